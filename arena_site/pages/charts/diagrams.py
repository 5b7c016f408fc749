"""Square diagrams with both axes from 0 to 100 %: reliability diagrams and scatter plots, one panel for each model."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

from agents.models import Family
from arena_site.pages.charts.markers import REFERENCE_COLORS, marker_of, marker_path, readable_color
from arena_site.pages.filters import DASH, count, fraction

LEFT, TOP, SIDE = 46, 34, 200
"""The upper left corner of the square of a panel, and the length of its sides."""
LARGEST_RADIUS, SMALLEST_RADIUS = 9.0, 2.5
POINT_RADIUS = 3
NUMBER_LINES = 51, 64
"""Distances below the square of the two lines of bins' numbers."""
HAPPENED = {True: "won", False: "lost", None: "not resolved"}
"""Texts of points by whether their event happened."""
MAXIMUM_ROWS = 60
THOUSAND = 1_000
BIN_CELLS = itemgetter("from", "to", "forecast", "outcome", "low", "high", "pairs", "weight")
"""The cells of a bin's row in the CSV file."""


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """A drawn bin: its mean forecast, its observed frequency with the interval, and its number of forecasts."""

    x: float
    y: float
    low: float
    high: float
    path: str
    middle: float
    number: str
    number_y: int
    """The place of its number below the square: those of neighbours stand on two lines."""


@dataclass(frozen=True, slots=True)
class SquareDiagram:
    """The panel of one forecaster, with bins, or with markers of points as two paths.

    Markers are filled where the event happened, else hollow. `rows` are its rows of the CSV file; `points` are what
    charts.js reads out: x and y as fractions, and a text.
    """

    name: str
    color: str
    marker: int
    rows: Sequence[Sequence[Any]]
    points: Sequence[tuple[float, float, str]]
    bins: tuple[ReliabilityBin, ...] = ()
    filled: str = ""
    hollow: str = ""


@dataclass(frozen=True, slots=True)
class DiagramGrid:
    """Diagrams side by side on the same axes."""

    kind: ClassVar[str] = "grid"
    left_edge: ClassVar[int] = LEFT
    right_edge: ClassVar[int] = LEFT + SIDE
    top: ClassVar[int] = TOP
    bottom: ClassVar[int] = TOP + SIDE
    width: ClassVar[int] = LEFT + SIDE + 18
    shares: ClassVar[Sequence[tuple[int, float, float]]] = [
        (share, LEFT + SIDE * share / 100, TOP + SIDE * (1 - share / 100)) for share in range(0, 101, 25)
    ]
    """Each tick's percentage, and its place on the horizontal and on the vertical axis."""
    diagrams: Sequence[SquareDiagram]
    x_title: str
    y_title: str
    columns: Sequence[str]

    @property
    def has_bins(self) -> bool:
        return any(map(attrgetter("bins"), self.diagrams))

    @property
    def height(self) -> int:
        return TOP + SIDE + (70 if self.has_bins else 40)

    @property
    def csv_rows(self) -> Iterator[Sequence[Any]]:
        """The names of the columns, and the rows of each diagram."""
        yield self.columns
        for diagram in self.diagrams:
            for row in diagram.rows:
                yield [diagram.name, *row]

    @property
    def table(self) -> Iterator[list[str]]:
        """The data as cells of a table, the points of scatter plots thinned to MAXIMUM_ROWS."""
        _, *rows = self.csv_rows
        step = 1 if self.has_bins else max(1, -(-len(rows) // MAXIMUM_ROWS))
        for name, *cells in rows[::step]:
            yield [name, *map(_cell, cells)]

    @property
    def data(self) -> dict[str, Any]:
        """The data that charts.js reads out: the points of each panel, and the place of the square in it."""
        square = {"left": LEFT, "top": TOP, "side": SIDE}
        return square | {
            "titles": [self.x_title, self.y_title],
            "panels": [{"name": diagram.name, "points": diagram.points} for diagram in self.diagrams],
        }


def _x(share: float) -> float:
    return round(LEFT + share * SIDE, 1)


def _y(share: float) -> float:
    return round(TOP + (1 - share) * SIDE, 1)


def reliability_grid(diagrams: Sequence[SquareDiagram]) -> DiagramGrid:
    """Reliability diagrams side by side."""
    columns = ("forecaster", "bin_from", "bin_to", "forecast", "observed", "low", "high", "forecasts", "weight")
    return DiagramGrid(diagrams, "Forecast probability", "Observed frequency", columns)


def reliability_diagram(
    name: str, bins: Sequence[Mapping[str, Any]], family: Family | None, reference: str = ""
) -> SquareDiagram:
    """Observed frequency (upwards) over forecast probability (to the right), of the bins of a report.

    They are a family's, or those of a reference forecaster.
    """
    color, marker = (family.color, marker_of(family)) if family else (REFERENCE_COLORS[reference], 0)
    rows, points, drawn = [], [], []
    for row in bins:
        if row["forecast"] is not None and row["outcome"] is not None:
            rows.append(BIN_CELLS(row))
            points.append((_rounded(row["forecast"]), _rounded(row["outcome"]), _bin_text(row)))
            drawn.append(_bin(row, marker))
    return SquareDiagram(name, readable_color(color), marker, rows, points, tuple(drawn))


def _bin(report: Mapping[str, Any], marker: int) -> ReliabilityBin:
    x, y = _x(report["forecast"]), _y(report["outcome"])
    radius = round(max(SMALLEST_RADIUS, LARGEST_RADIUS * math.sqrt(report["weight"])), 1)
    pairs = report["pairs"]
    return ReliabilityBin(
        x,
        y,
        _y(report["low"]),
        _y(report["high"]),
        marker_path(marker, x, y, radius),
        _x((report["from"] + report["to"]) / 2),
        count(pairs) if pairs < THOUSAND else f"{pairs / THOUSAND:.3g}k",
        NUMBER_LINES[round(10 * report["from"]) % 2],
    )


def _bin_text(report: Mapping[str, Any]) -> str:
    noun = "forecast" if report["pairs"] == 1 else "forecasts"
    return f"{count(report['pairs'])} {noun}, 95 % interval {fraction(report['low'])} to {fraction(report['high'])}"


def _rounded(value: float) -> float:
    return round(value, 6) + 0.0


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: DASH}[value]
    return fraction(value) if isinstance(value, float) else count(value)


def stakes_grid(diagrams: Sequence[SquareDiagram]) -> DiagramGrid:
    """Scatter plots of stakes over forecasts side by side."""
    columns = ("model", "forecast", "stake", "won")
    return DiagramGrid(diagrams, "Forecast of the side bought", "Share of the largest stake", columns)


def scatter_diagram(family: Family, points: Sequence[tuple[float, float, bool | None]]) -> SquareDiagram:
    """The scatter plot of a family's points (x, y, whether the event happened)."""
    marker = marker_of(family)
    labels = []
    filled = hollow = ""
    for x, y, happened in points:
        labels.append((_rounded(x), _rounded(y), HAPPENED[happened]))
        path = marker_path(marker, _x(x), _y(y), POINT_RADIUS)
        if happened:
            filled += path
        else:
            hollow += path
    color = readable_color(family.color)
    return SquareDiagram(family.display_name, color, marker, points, labels, filled=filled, hollow=hollow)
