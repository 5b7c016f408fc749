"""Ranking forecasts in one call, and comparing two reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast_rank.batch_ranking import is_streamed, rank_in_batches
from forecast_rank.ranking.compatible_reports import (
    rank_with_arena_evaluation_definitions,
    rank_with_pm_rank_definitions,
)
from forecast_rank.ranking.forecasts import LoadedForecasts
from forecast_rank.ranking.rejections import check_rejected, rejections
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.settings import (
    ARENA_EVALUATION,
    LIKE,
    InvalidSetting,
    Settings,
)
from forecast_rank.reports import Progress, Report, no_progress
from forecast_rank.sources import Source, comma_separated, named_columns, read

if TYPE_CHECKING:
    import polars as pl

ECE_DEFINITION = (
    "sum over {} right-open bins of equal width of share x |mean probability - mean outcome|; pairs of probability and "
    "outcome weigh weight / number of options"
)
_USUAL = Settings()


def compare(a: Report | Source, b: Report | Source, *, ranking: str | None = None, **settings: Any) -> pl.DataFrame:
    """The figures and ranks of forecasters in two reports, such as of two halves of a season.

    Ranks are those among the forecasters of each report. The difference tells nothing about chance: for two forecasters
    on the same questions `paired_tests` does.

    Parameters
    ----------
    a, b : Report, or a source as in `read`
        A source is ranked first.
    ranking : str, optional
        A ranking of both reports: "brier", "average_return:0.5"; by default that by the Brier score, else the first
        that both have.
    **settings
        Keywords of `rank` for sources; two reports take none.

    Returns
    -------
    polars.DataFrame
        A row for each forecaster of either report, with the columns `forecaster`, `a`, `b`, `difference` (b − a),
        `rank_a` and `rank_b`; in order of `a`, then of `b`.

    Raises
    ------
    KeyError
        If a report has no such ranking, or the reports have none in common.
    InvalidSetting
        For settings beside two reports, which are ranked already.

    Examples
    --------
    >>> import polars as pl
    >>> spring = pl.DataFrame({"question": ["q1", "q2"], "outcome": [1, 0], "ann": [0.5, 0.5], "bob": [1.0, 0.5]})
    >>> autumn = pl.DataFrame({"question": ["q3", "q4"], "outcome": [1, 0], "ann": [1.0, 0.0], "bob": [0.5, 0.5]})
    >>> table = compare(spring, autumn, metrics="brier", bootstrap=0)
    >>> table.rows()
    [('bob', 0.125, 0.25, 0.125, 1, 2), ('ann', 0.25, 0.0, -0.25, 2, 1)]
    """
    import polars as pl

    if settings and isinstance(a, Report) and isinstance(b, Report):
        raise InvalidSetting(f"{', '.join(settings)}: reports are ranked already; name a ranking of theirs")
    reports = [item if isinstance(item, Report) else rank(item, **settings) for item in (a, b)]
    if ranking is None:
        ranking = _common_ranking(*reports)
    first, second = (report.ranked(ranking) for report in reports)
    rows = []
    for name in dict.fromkeys([*first, *second]):
        (rank_a, value_a), (rank_b, value_b) = first.get(name, (None, None)), second.get(name, (None, None))
        difference = None if value_a is None or value_b is None else value_b - value_a
        rows.append((name, value_a, value_b, difference, rank_a, rank_b))
    figures = dict.fromkeys(("a", "b", "difference"), pl.Float64)
    schema = {"forecaster": pl.String, **figures, "rank_a": pl.Int64, "rank_b": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _common_ranking(a: Report, b: Report) -> str:
    """The Brier score's ranking, else the first that both reports have. Raises KeyError."""
    names, other_names = ([*report.to_dict()["rankings"]] for report in (a, b))
    common = [name for name in names if name in other_names]
    if not common:
        a_names, b_names = (", ".join(rankings) or "none" for rankings in (names, other_names))
        raise KeyError(f"the reports have no ranking in common: a has {a_names}, b has {b_names}")
    return "brier" if "brier" in common else common[0]


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
    min_questions: int = _USUAL.min_questions,
    pairs: int = _USUAL.pairs,
    format: str | None = None,
    strict: bool = False,
    fractional_outcomes: bool = False,
    normalise: bool = False,
    order: Iterable[str] | str = (),
    columns: Mapping[str, str] | Iterable[str] | str = (),
    allow_rejected: bool = False,
    like: str | None = None,
    explain: bool = False,
    out: Path | str | None = None,
    plots: Path | str | None = None,
    plot_format: str = "svg",
    progress: Progress | None = None,
) -> Report:
    """Scores and ranks the forecasters of a file or frame.

    The keywords are the long options of the command `forecast-rank`, with the same defaults.

    A Parquet file of more than 40 million rows is read in batches, as by `Partial.of_parquet`: with the metrics that
    are means over forecasts, without curves, and with a note that says so.

    Parameters
    ----------
    source : as in `read`, or LoadedForecasts
    metrics : list of str, or str separated by commas
        Any of `forecast_rank.METRICS`; by default all but the ranking by wins, `bradley_terry`, and those for
        statisticians, `ranked_probability` and `auc`.
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
    interval : {"studentised", "percentile", "bca"}
        Kind of bootstrap interval.
    level : float
        Coverage of intervals and rank ranges, in (0, 1).
    min_questions : int
        Forecasters with fewer questions have scores, but no rank and no rank range.
    pairs : int
        How many forecasters, the first by their Brier score, are compared in pairs; 0 for no pairs.
    format, strict, fractional_outcomes, normalise, order, columns
        As in `read`.
    allow_rejected : bool
        Rank what is left even if more than half of the rows are rejected.
    like : {"pm_rank", "arena-evaluation"}, optional
        Use the definitions of that package, under its names.
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
    if like is not None and like not in LIKE:
        raise InvalidSetting(f"like: {' or '.join(LIKE)}, not {like}")
    columns, order = named_columns(columns), comma_separated(order, distinct=False)
    settings = Settings(
        metrics=comma_separated(metrics),
        gammas=comma_separated(gamma),
        bootstrap=bootstrap,
        seed=seed,
        stream=stream,
        log_clip=log_clip,
        bins=bins,
        interval=interval,
        level=level,
        min_questions=min_questions,
        pairs=pairs,
    )
    reading: dict[str, Any] = {
        "strict": strict,
        "fractional_outcomes": fractional_outcomes,
        "normalise": normalise,
    }
    if not (like or explain or order or columns) and is_streamed(source, format):
        report = rank_in_batches(source, settings, allow_rejected=allow_rejected, **reading)
        report.to_dict()["settings"] |= {"file": str(source), **reading}
        return _saved(report, out, plots, plot_format)
    loaded = source
    if not isinstance(source, LoadedForecasts):
        loaded = read(source, format, columns=columns, order=order, **reading)
    if explain:
        print(loaded.explanation(), end="\n\n")
    check_rejected(
        len(loaded.panel),
        loaded.rows - loaded.unresolved,
        loaded.rejected,
        allow_rejected=allow_rejected,
        unresolved=loaded.unresolved,
    )
    metadata = asdict(settings) | {
        "metrics": list(settings.metrics),
        "gammas": list(settings.gammas),
        "file": loaded.source,
        "fractional_outcomes": fractional_outcomes,
        "normalise": normalise,
        "order": list(order),
        "columns": dict(columns),
        "option_order": loaded.option_order,
        "like": like,
    }
    if "calibration" in settings.metrics:
        metadata["ece"] = ECE_DEFINITION.format(bins)
    if like == ARENA_EVALUATION:
        figures = rank_with_arena_evaluation_definitions(loaded.panel, settings)
    elif like:
        figures = rank_with_pm_rank_definitions(loaded.panel, settings)
    else:
        figures = rank_panel(loaded.panel, settings, progress or no_progress)
    figures["data"] |= {
        "rows": loaded.rows,
        "rejected": len(loaded.rejected),
        "superseded": loaded.superseded,
        "repeated": loaded.repeated,
        "unresolved": loaded.unresolved,
        "normalised": loaded.normalised,
        "ignored_columns": loaded.ignored,
    }
    figures["notes"] = [*loaded.notes, *figures["notes"]]
    report = Report({"settings": metadata, **figures, **rejections(loaded.rejected)})
    return _saved(report, out, plots, plot_format)


def _saved(report: Report, out: Path | str | None, plots: Path | str | None, plot_format: str) -> Report:
    """The report, after its file and its pictures are written where they are asked for."""
    if out is not None:
        report.save(out)
    if plots is not None:
        report.plot(plots, plot_format)
    return report
