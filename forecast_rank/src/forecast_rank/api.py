"""Reading and ranking forecasts in one call each."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast_rank.ranking.forecasts import LoadedForecasts, TooFewForecasts, group_rejections, read_forecasts
from forecast_rank.ranking.report import rank_panel, rank_with_pm_rank_definitions
from forecast_rank.ranking.settings import InvalidSetting, Settings

if TYPE_CHECKING:
    import polars as pl

    from forecast_rank.ranking.report_tables import ReportTable

Progress = Callable[[int, int, str], None]
Source = Any
"""A path or several, a polars, pandas or Arrow table, or forecasts that `read` returned."""

REASONS_SHOWN = 5
_USUAL = Settings()


class Report:
    """The result of `rank`: every figure by forecaster and reference, rankings, pairs, agreement and curves.

    Printing a report shows its tables. `to_dict` has all figures, by the keys of the command's JSON.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def to_dict(self) -> dict[str, Any]:
        """All of the report in plain lists, dictionaries, numbers and None, as `forecast-rank --json` prints it.

        Returns
        -------
        dict
            With the keys settings, forecasters, references, rankings, data, curves, pairs, notes, models, questions,
            agreement, rejected and rejection_groups.
        """
        return self._content

    def to_polars(self) -> pl.DataFrame:
        """The figures as a table with a row for each forecaster and reference.

        Returns
        -------
        polars.DataFrame
            `forecaster`, `reference` (whether the row is a reference), then a column for each figure. A figure by
            gamma or ranking has a column for each, `average_return:0.5`; an interval two, `brier_ci_low` and
            `brier_ci_high`.
        """
        import polars as pl

        rows = [
            {"forecaster": name, "reference": group == "references", **dict(_flat(entry))}
            for group in ("forecasters", "references")
            for name, entry in self._content[group].items()
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    def to_markdown(self, table: str | None = None) -> str:
        """The tables in Markdown.

        Parameters
        ----------
        table : str, optional
            A ranking ("brier", "average_return:0.5"), "pairs", "agreement" or "rejected"; all tables, each below its
            title, if not given.

        Returns
        -------
        str

        Raises
        ------
        KeyError
            If the report has no such table.
        """
        from forecast_rank.ranking.table_formats import markdown_table

        if table is not None:
            return markdown_table(self._table(table))
        return "\n".join(f"**{item.title}**\n\n{markdown_table(item)}" for item in self._tables().values())

    def to_latex(self, table: str | None = None) -> str:
        """The tables in LaTeX, with the rules of the package booktabs.

        Parameters
        ----------
        table : str, optional
            As in `to_markdown`.

        Returns
        -------
        str

        Raises
        ------
        KeyError
            If the report has no such table.
        """
        from forecast_rank.ranking.table_formats import latex_table

        if table is not None:
            return latex_table(self._table(table))
        return "\n".join(f"% {item.title}\n{latex_table(item)}" for item in self._tables().values())

    def to_text(self, width: int = 120) -> str:
        """The heading and all tables for a terminal of `width` characters.

        Returns
        -------
        str
        """
        from forecast_rank.ranking.report_tables import report_heading
        from forecast_rank.ranking.table_formats import terminal_table

        tables = [f"{table.title}\n{terminal_table(table, width)}" for table in self._tables().values()]
        return "\n".join([report_heading(self._content), *tables])

    def save(self, path: Path | str) -> None:
        """Writes `to_dict()` to a file as JSON. An existing file is replaced only when all is written."""
        from forecast_rank.atomic_files import atomic_write

        with atomic_write(Path(path)) as file:
            file.write_text(json.dumps(self._content, allow_nan=False) + "\n")

    def plot(self, folder: Path | str, format: str = "svg", progress: Progress | None = None) -> list[Path]:
        """Draws the pictures that the report has figures for. Needs matplotlib (`forecast-rank[plots]`).

        Parameters
        ----------
        folder : path
            Made if it does not exist.
        format : {"svg", "png"}
        progress : callable, optional
            Called with pictures done, pictures in all and the name of the next one.

        Returns
        -------
        list of Path
            The files written.
        """
        from forecast_rank.ranking.plots import draw

        return draw(self._content, Path(folder), format, progress or _no_progress)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        data = self._content["data"]
        return f"<Report: {data['forecasters']} forecasters, {data['questions']} questions>"

    def _tables(self) -> dict[str, ReportTable]:
        from forecast_rank.ranking.report_tables import report_tables

        return {table.name: table for table in report_tables(self._content)}

    def _table(self, name: str) -> ReportTable:
        tables = self._tables()
        if name not in tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(tables)}")
        return tables[name]


def read(
    source: Source,
    format: str | None = None,
    *,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
) -> LoadedForecasts:
    """The forecasts of a file or frame in long or wide form, checked row by row.

    Parameters
    ----------
    source : path, list of paths, polars.DataFrame, pandas.DataFrame or Arrow table
        One row per forecaster, question and option, with the columns `forecaster, question, probability, outcome` and
        optionally `option, odds, no_odds, event, category, made_at, closed_at, weight, exclusive`; or `question,
        outcome` and a column for each forecaster. A file may be packed with gzip or zstd; "-" is standard input.
        Several paths are the files that a publisher's format consists of.
    format : {"csv", "xlsx", "parquet", "jsonl"} or a publisher's format, optional
        Format of a file; by its content and suffix if not given. The publishers' are "gjo", "prophet_csv",
        "prophet_tasks", "forecastbench", "kalshibench", "polystrat" and "metaculus".
    strict : bool
        Raise for the first row that cannot be used, instead of rejecting it.
    fractional_outcomes : bool
        Allow outcomes between 0 and 1: unresolved questions scored against a price.
    normalise : bool
        Divide the probabilities of exclusive options by their sum where that is within 0.02 of 1.

    Returns
    -------
    LoadedForecasts
        The panel, and the rejected rows with line number and reason.

    Raises
    ------
    UnreadableFile
        If the source as a whole cannot be used.
    InvalidRow
        With `strict`, for the first row that cannot be used.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"forecaster": ["ann"], "question": ["q"], "probability": [0.8], "outcome": [1]})
    >>> read(frame).panel.forecasters
    ['ann']
    """
    return read_forecasts(source, format, strict=strict, fractional_outcomes=fractional_outcomes, normalise=normalise)


def rank(
    source: Source,
    *,
    metrics: Iterable[str] | str = _USUAL.metrics,
    gamma: Iterable[float | str] | float | str = _USUAL.gammas,
    bootstrap: int = _USUAL.bootstrap,
    seed: int = _USUAL.seed,
    stream: int = _USUAL.stream,
    log_clip: float = _USUAL.log_clip,
    bins: int = _USUAL.bins,
    interval: str = _USUAL.interval,
    level: float = _USUAL.level,
    format: str | None = None,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
    allow_rejected: bool = False,
    like: str | None = None,
    defects: bool = False,
    explain: bool = False,
    out: Path | str | None = None,
    plots: Path | str | None = None,
    plot_format: str = "svg",
    progress: Progress | None = None,
) -> Report:
    """Scores and ranks the forecasters of a file or frame.

    The keywords are the long options of the command `forecast-rank`, with the same defaults.

    Parameters
    ----------
    source : as in `read`, or LoadedForecasts
    metrics : list of str, or str separated by commas
        Any of `forecast_rank.METRICS`.
    gamma : list of float, or str separated by commas
        Risk aversions of the averaged return, in [0, 1].
    bootstrap : int
        Resamples of the events; 0 for no intervals.
    seed : int
        Of the resamples.
    stream : int
        Questions per step of the return curves.
    log_clip : float
        Lowest probability that the log score charges, in [0, 1).
    bins : int
        Bins of the calibration.
    interval : {"percentile", "bca"}
        Kind of bootstrap interval.
    level : float
        Coverage of intervals and rank ranges, in (0, 1).
    format, strict, fractional_outcomes, normalise
        As in `read`.
    allow_rejected : bool
        Rank what is left even if more than half of the rows are rejected.
    like : {"pm_rank"}, optional
        Use the definitions of that package, under its names.
    defects : bool
        With `like`: reproduce its known errors too.
    explain : bool
        Print how the source was understood, before the ranking.
    out : path, optional
        File for the whole report as JSON.
    plots : path, optional
        Folder for the pictures.
    plot_format : {"svg", "png"}
    progress : callable, optional
        Called with steps done, steps in all and the name of the next step.

    Returns
    -------
    Report

    Raises
    ------
    InvalidSetting
        For a setting that is out of range.
    UnreadableFile
        If the source as a whole cannot be used.
    TooFewForecasts
        If no row can be ranked or, without `allow_rejected`, more than half of the rows are rejected.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({
    ...     "forecaster": ["ann", "bob"], "question": ["q", "q"], "probability": [0.8, 0.6], "outcome": [1, 1],
    ... })
    >>> report = rank(frame, metrics="brier", bootstrap=0)
    >>> report.to_dict()["rankings"]["brier"]
    ['ann', 'bob']
    """
    if like not in (None, "pm_rank"):
        raise InvalidSetting(f"like: pm_rank, not {like}")
    if defects and not like:
        raise InvalidSetting("defects: only together with like")
    settings = Settings(
        metrics=_listed(metrics),
        gammas=_listed(gamma),
        bootstrap=bootstrap,
        seed=seed,
        stream=stream,
        log_clip=log_clip,
        bins=bins,
        interval=interval,
        level=level,
    )
    loaded = source
    if not isinstance(source, LoadedForecasts):
        loaded = read(source, format, strict=strict, fractional_outcomes=fractional_outcomes, normalise=normalise)
    if explain:
        print(loaded.explanation(), end="\n\n")
    _check_rejected(loaded, allow_rejected)
    stated = asdict(settings) | {
        "metrics": list(settings.metrics),
        "gammas": list(settings.gammas),
        "file": loaded.source,
        "fractional_outcomes": fractional_outcomes,
        "normalise": normalise,
        "like": like,
    }
    if like:
        stated["defects"] = defects
        figures = rank_with_pm_rank_definitions(loaded.panel, settings, defects=defects)
    else:
        figures = rank_panel(loaded.panel, settings, progress or _no_progress)
    figures["data"] |= {
        "rows": loaded.rows,
        "rejected": len(loaded.rejected),
        "superseded": loaded.superseded,
        "repeated": loaded.repeated,
        "normalised": loaded.normalised,
        "ignored_columns": loaded.ignored,
    }
    figures["notes"] = [*loaded.notes, *figures["notes"]]
    rejected = [{"row": line.row, "why": line.why} for line in loaded.rejected]
    groups = [asdict(group) for group in group_rejections(loaded.rejected)]
    report = Report({"settings": stated, **figures, "rejected": rejected, "rejection_groups": groups})
    if out is not None:
        report.save(out)
    if plots is not None:
        report.plot(plots, plot_format)
    return report


def _check_rejected(loaded: LoadedForecasts, allow_rejected: bool) -> None:
    """Raises TooFewForecasts, with the first reasons, if too few rows are left."""
    rejected = len(loaded.rejected)
    if len(loaded.panel) and (allow_rejected or 2 * rejected <= loaded.rows):
        return
    reasons = "".join(f"\n  {group}" for group in group_rejections(loaded.rejected)[:REASONS_SHOWN])
    if not len(loaded.panel):
        raise TooFewForecasts(f"no forecast can be ranked, {rejected} of {loaded.rows} rows are rejected{reasons}")
    raise TooFewForecasts(f"{rejected} of {loaded.rows} rows are rejected; --allow-rejected ranks the others{reasons}")


def _no_progress(done: int, total: int, caption: str) -> None:
    pass


def _listed(values: Any) -> tuple[str, ...]:
    """A list, or text separated by commas, as distinct texts: 0.5 as "0.5", 0.0 as "0"."""
    if isinstance(values, str):
        values = values.split(",")
    elif isinstance(values, int | float):
        values = [values]
    texts = (f"{value:g}" if isinstance(value, int | float) else str(value).strip() for value in values)
    return tuple(dict.fromkeys(text for text in texts if text))


def _flat(entry: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The figures of an entry, one value to a name."""
    for key, value in entry.items():
        of_key = {f"{key}:{under}": part for under, part in value.items()} if isinstance(value, dict) else {key: value}
        for name, part in of_key.items():
            stem, interval = name, key.endswith("_ci") or key in ("rank_range", "rank_ranges")
            if not interval:
                yield name, float(part) if isinstance(part, float) and math.isfinite(part) else part
                continue
            low, high = (None, None) if part is None else part
            yield f"{stem}_low", low
            yield f"{stem}_high", high
