"""Figures: charts with what a reader needs to quote them, and the rows of their data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arena_site.pages.charts.diagrams import DiagramGrid
from arena_site.pages.charts.intervals import IntervalChart
from arena_site.pages.charts.lines import LineChart
from arena_site.pages.charts.slopes import SlopeChart


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, a sentence that says what it shows, notes on how to read it, and what it was made from and when.

    `name` is its anchor on the page and the name of its files. `query` leads to the page as it is shown, `page_query`
    to the page of one chart, where that is another.
    `methodology` is the version behind a chart that can have only one.
    """

    name: str
    title: str
    chart: LineChart | DiagramGrid | IntervalChart | SlopeChart
    note: str = ""
    source: str = ""
    at: datetime | None = None
    query: str = ""
    page_query: str = ""
    methodology: str = ""

    @property
    def rows(self) -> Iterator[Sequence[Any]]:
        """The data as rows of a CSV file, the first with the names of the columns."""
        for row in self.chart.csv_rows:
            yield [_rounded(cell) for cell in row]


def _rounded(value: Any) -> Any:
    """A float without the noise of its last digits; other values as they are."""
    return round(value, 6) + 0.0 if isinstance(value, float) else value
