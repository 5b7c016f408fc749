"""The report of a ranking: its figures as dictionaries, frames, tables and pictures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecast_rank.ranking.scores import FIGURES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from matplotlib.axes import Axes
    from numpy.typing import NDArray
    from rich.console import Console, ConsoleOptions, RenderableType

    from forecast_rank.ranking.tables import ReportTable

Progress = Callable[[int, int, str], None]


def no_progress(count: int, total: int, caption: str) -> None:
    """Progress that nobody watches."""


class Report:
    """The result of `rank`: every figure by forecaster and reference, rankings, pairs, agreement and curves.

    Printing a report shows its tables. `to_dict` has all figures, by the keys of the command's JSON.

    Examples
    --------
    >>> import forecast_rank as fr
    >>> import polars as pl
    >>> frame = pl.DataFrame({"question": ["q1", "q2"], "outcome": [1, 0], "ann": [0.8, 0.4], "bob": [0.6, 0.6]})
    >>> report = fr.rank(frame, metrics="brier", bootstrap=0)
    >>> report
    <Report: 2 forecasters, 2 questions>
    >>> report.to_polars().select("forecaster", "brier").filter(forecaster="ann").rows()
    [('ann', 0.1)]
    >>> print(report.to_markdown("rejected") if report.to_dict()["rejected"] else "nothing rejected")
    nothing rejected
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def to_dict(self) -> dict[str, Any]:
        """All of the report in plain lists, dictionaries, numbers and None, as `forecast-rank --json` prints it.

        Returns
        -------
        dict
            With the keys settings, headline (the ranking that heads the report), forecasters, references, rankings,
            no_interval, data, curves, pairs, notes, models, questions, agreement, rejected and rejection_groups.
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

    def to_pandas(self) -> pd.DataFrame:
        """The table of `to_polars` as a pandas frame. Needs pandas.

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def ranked(self, ranking: str) -> dict[str, tuple[int | None, float | None]]:
        """Rank and figure of each forecaster in a ranking, in its order; equals share a rank.

        Parameters
        ----------
        ranking : str

        Returns
        -------
        dict of str to (int, float)
            Both None for a forecaster without the figure.

        Raises
        ------
        KeyError
            If the report has no such ranking.
        """
        if ranking not in self._content["rankings"]:
            raise KeyError(f"no ranking {ranking!r}; there are {', '.join(self._content['rankings'])}")
        key, _, under = ranking.partition(":")
        entries = self._content["forecasters"]
        order = self._content["rankings"][ranking]
        figures = [entries[name][FIGURES.get(key, key)] for name in order]
        values = [figure[under] if under else figure for figure in figures]
        return {
            name: (None if value is None else 1 + values.index(value), value)
            for name, value in zip(order, values, strict=True)
        }

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
        """The heading and the tables, of many scores and forecasters the first ones, at a width in characters.

        Returns
        -------
        str
        """
        from forecast_rank.ranking.report_tables import report_heading
        from forecast_rank.ranking.table_formats import terminal_table

        tables = [f"{table.title}\n{terminal_table(table, width)}" for table in self._printed()]
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

        return draw(self._content, Path(folder), format, progress or no_progress)

    def plot_reliability(self) -> NDArray[Any]:
        """A reliability diagram for each forecaster and reference.

        Returns
        -------
        array of matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the report has no figures for the picture, here of the metric "calibration".
        """
        return self._axes("reliability")

    def plot_average_return(self, gamma: float | str = "0") -> Axes:
        """The running averaged return in order of closing, at the risk aversion `gamma` of the report.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            Without the metric "average_return" or prices, or for another gamma.
        """
        key = f"{gamma:g}" if isinstance(gamma, int | float) else gamma
        return self._axes("average_return", f"_{key}")[0]

    def plot_scores(self, ranking: str = "brier") -> Axes:
        """A forest plot of a ranking: figures, with intervals if there are any, the best on top, references as lines.

        Parameters
        ----------
        ranking : str
            "brier", "average_return:0.5".

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            Without such a ranking, or of one forecaster without an interval.
        """
        return self._axes("scores", f"_{ranking.replace(':', '_')}")[0]

    def plot_pairs(self) -> Axes:
        """Differences in the Brier score of every two forecasters on common questions, significant ones marked.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            Without pairs.
        """
        return self._axes("pairs")[0]

    def plot_ranks(self) -> NDArray[Any]:
        """Rank and rank range of each forecaster, side by side for every ranking.

        Returns
        -------
        array of matplotlib.axes.Axes

        Raises
        ------
        ValueError
            Without rank ranges, which need resamples.
        """
        return self._axes("ranks")

    def plot_agreement(self) -> Axes:
        """Correlations between the rankings.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            For fewer than two rankings.
        """
        return self._axes("agreement")[0]

    def plot_ability(self) -> NDArray[Any]:
        """Abilities of the forecasters above the difficulties of the questions.

        Returns
        -------
        array of matplotlib.axes.Axes

        Raises
        ------
        ValueError
            Without the metric "irt".
        """
        return self._axes("ability")

    def _axes(self, picture: str, suffix: str = "") -> NDArray[Any]:
        from forecast_rank.ranking.plots import axes_of

        return axes_of(self._content, picture, suffix)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """The heading and all tables for a notebook."""
        from forecast_rank.ranking.report_tables import report_heading
        from forecast_rank.ranking.table_formats import html_paragraph, html_table

        tables = [html_table(table) for table in self._printed()]
        return "\n".join([html_paragraph(report_heading(self._content)), *tables])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The heading and all tables for `rich.print`."""
        from rich.text import Text

        from forecast_rank.ranking.report_tables import report_heading
        from forecast_rank.ranking.table_formats import rich_table

        yield Text(report_heading(self._content))
        for table in self._printed():
            yield Text(table.title)
            yield rich_table(table)

    def __repr__(self) -> str:
        data = self._content["data"]
        return f"<Report: {data['forecasters']} forecasters, {data['questions']} questions>"

    def _printed(self) -> list[ReportTable]:
        return [table.first_rows() for table in self._tables().values()]

    def _tables(self) -> dict[str, ReportTable]:
        from forecast_rank.ranking.report_tables import report_tables

        return {table.name: table for table in report_tables(self._content)}

    def _table(self, name: str) -> ReportTable:
        tables = self._tables()
        if name not in tables:
            raise KeyError(f"no table {name!r}; there are {', '.join(tables)}")
        return tables[name]


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
