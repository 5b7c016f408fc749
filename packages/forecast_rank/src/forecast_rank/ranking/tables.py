"""A table of a report as text cells, and the columns of figures that it shows."""

from dataclasses import dataclass, replace
from typing import Any

from forecast_rank.ranking.names import distinct_names

ROWS_PRINTED = 50
"""Forecasters in a table where a report is printed; all are in its JSON, and in its tables as Markdown and LaTeX."""
NAME_WIDTH = 40

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table as text.

    Attributes
    ----------
    name : str
        The ranking that it shows, or "pairs", "agreement", "rejected".
    title : str
    header : list of str
    rows : list of list of str
        As long as `header`.
    text_columns : frozenset of int
        Columns that are aligned left; the others hold figures.
    names : int or None
        The column of forecasters' names, which are whole.
    """

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    text_columns: frozenset[int] = frozenset({0})
    names: int | None = None

    def first_rows(self) -> "ReportTable":
        """The table where a report is printed: ROWS_PRINTED forecasters and the references, and how many it lacks."""
        rows, forecasters = [], 0
        for row in self.rows:
            is_reference = self.header[0] == "#" and not row[0]
            forecasters += not is_reference
            if is_reference or forecasters <= ROWS_PRINTED:
                rows.append(row)
        if not (hidden := len(self.rows) - len(rows)):
            return self
        return replace(self, rows=rows, title=f"{self.title}; {hidden:,} more in the JSON report")

    def shortened(self) -> "ReportTable":
        """The table for a terminal, its names no longer than NAME_WIDTH; two names stay two."""
        if self.names is None:
            return self
        short = distinct_names((row[self.names] for row in self.rows), NAME_WIDTH)
        rows = [[*row[: self.names], short[row[self.names]], *row[self.names + 1 :]] for row in self.rows]
        return replace(self, rows=rows)


@dataclass(frozen=True, slots=True)
class FigureColumn:
    """A column of a ranking's table.

    Attributes
    ----------
    heading : str
    key : str
        The figure, by its key in an entry of the report.
    digits : int
        Decimals shown.
    lower : bool or None
        Whether lower is better; None if neither direction is, so that no best figure is marked.
    under : str or None
        Key within the figure, if that is a mapping: a gamma or a ranking.
    interval : bool
        Whether `KEY_ci` is shown behind the figure.
    error : str or None
        Key of the standard error shown behind the figure.
    """

    heading: str
    key: str
    digits: int = 4
    lower: bool | None = False
    under: str | None = None
    interval: bool = False

    def value(self, entry: Entry) -> Any:
        """The figure in an entry, None if it has none."""
        return self._lookup(entry, self.key)

    def text(self, entry: Entry) -> str:
        """The figure as it is printed."""
        value = self.value(entry)
        if value is None:
            return "–"
        if isinstance(value, list):
            return "–".join(str(part) for part in value)
        text = str(value) if isinstance(value, int) else f"{value:z.{self.digits}f}"
        if self.interval and (ends := self._lookup(entry, f"{self.key}_ci")):
            text += f" [{', '.join('–' if end is None else f'{end:z.{self.digits}f}' for end in ends)}]"
        return text

    def _lookup(self, entry: Entry, key: str) -> Any:
        value = entry.get(key)
        return value.get(self.under) if self.under is not None and isinstance(value, dict) else value
