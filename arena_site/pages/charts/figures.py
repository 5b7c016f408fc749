"""Figures: charts with what a reader needs to quote them, and the rows of their data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from arena_site.pages.charts.diagrams import DiagramGrid
from arena_site.pages.charts.lines import LineChart

VALUE_COLUMNS = {"money": "value_usd", "percent": "return_percent", "fraction": "probability", "price": "price_usd"}
POSITION_COLUMNS = {"time": "time_utc", "weeks": "weeks_since_start", "questions": "questions"}


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart, a sentence that says what it shows, notes on how to read it, and what it was made from and when.

    `name` is its anchor on the page and the name of its files. `query` leads to the page as it is shown, `dated` to
    the same figures later on, where the page has past states.
    """

    name: str
    title: str
    chart: LineChart | DiagramGrid
    note: str = ""
    source: str = ""
    at: datetime | None = None
    query: str = ""
    dated: str = ""

    @property
    def is_line_chart(self) -> bool:
        return isinstance(self.chart, LineChart)

    @property
    def rows(self) -> Iterator[Sequence[Any]]:
        """The data as rows of a CSV file, the first with the names of the columns."""
        rows = _line_rows(self.chart) if isinstance(self.chart, LineChart) else self.chart.rows
        return ([_rounded(cell) for cell in row] for row in rows)


def _line_rows(chart: LineChart) -> Iterator[Sequence[Any]]:
    """One row for each point of each curve, then one for each event."""
    banded, numbered = (any(getattr(c, name) for c in chart.curves) for name in ("band", "numbers"))
    columns = ["series", POSITION_COLUMNS[chart.axis], VALUE_COLUMNS[chart.unit]]
    yield [*columns, *(["lower_quartile", "upper_quartile"] if banded else []), *(["cohorts"] if numbered else [])]
    for curve in chart.curves:
        for index, (position, value) in enumerate(zip(chart.positions, curve.values, strict=True)):
            if value is None:
                continue
            row = [curve.name, position, value, *(curve.band[index] or () if banded else ())]
            yield [*row, curve.numbers[index]] if numbered else row
    for event, _ in chart.events:
        yield [event.text, event.at, event.value]


def _rounded(value: Any) -> Any:
    """A float without the noise of its last digits; other values as they are."""
    return round(value, 6) + 0.0 if isinstance(value, float) else value
