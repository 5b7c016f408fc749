"""Embeds of figures: pages for frames on other sites, whole without scripts, with as much detail as fits."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape
from typing import Any, NamedTuple, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone

from arena_site.pages.charts.curves import ChartEvent
from arena_site.pages.charts.diagrams import DiagramGrid, scatter_places
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import IntervalChart
from arena_site.pages.charts.line_drawing import DrawnLine
from arena_site.pages.charts.lines import LineChart
from arena_site.pages.charts.slopes import SlopeChart
from arena_site.pages.citations import dated_query

Chart = LineChart | DiagramGrid | IntervalChart | SlopeChart
Item = TypeVar("Item")
PREFIX = "/embed"
"""Begins the address of an embed; that of its page and the chart's name follow."""
MAXIMUM_BYTES = 30_000
WIDTH, HEADING_HEIGHT, PANELS_ACROSS, PANEL_ROWS = 760, 170, 3, 2
"""Pixels of a frame in a column of text, and the panels that it shows without scrolling."""
REDUCED_NOTE = "Drawn with less detail than on its page."
STYLE = (settings.BASE_DIR / "templates" / "pages" / "embed.css").read_text()
STYLE_HASH = f"'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'"
"""The source of styles that the policy of embeds allows."""


class Detail(NamedTuple):
    """The most points of a line, a band or a panel, the most series, and whether events have links and texts."""

    points: int
    series: int
    texts: bool = False


DETAILS = (
    Detail(1_000, 100, texts=True), Detail(100, 100), Detail(50, 50), Detail(25, 25), Detail(20, 12), Detail(10, 6),
)  # fmt: skip
"""From the most detail to the least."""


def embed_page(figure: Figure, address: str) -> str:
    """The figure as a page of at most MAXIMUM_BYTES, with a link to its page at `address`."""
    for detail in DETAILS:
        page = _page(figure, address, detail)
        if len(page.encode()) <= MAXIMUM_BYTES:
            break
    return page


def embed_code(request: HttpRequest, figure: Figure) -> str:
    """The HTML that frames a chart of the request's page, as it is now, on another site."""
    path = f"{PREFIX}{request.path}charts/{figure.name}/{dated_query(figure)}"
    return (
        f'<iframe src="{escape(request.build_absolute_uri(path))}" title="{escape(figure.title)}" width="100%"'
        f' height="{_frame_height(figure)}" frameborder="0" loading="lazy"></iframe>'
    )


def _frame_height(figure: Figure) -> int:
    chart = figure.chart
    if isinstance(chart, DiagramGrid):
        rows = min(PANEL_ROWS, -(-len(chart.diagrams) // PANELS_ACROSS))
        return HEADING_HEIGHT + rows * chart.height
    return HEADING_HEIGHT + round(chart.height * WIDTH / chart.width)


def _page(figure: Figure, address: str, detail: Detail) -> str:
    chart = _reduced(figure.chart, detail)
    context: dict[str, Any] = {
        "figure": replace(figure, chart=chart),
        "places": [scatter_places(diagram) for diagram in getattr(chart, "diagrams", ())],
        "at": figure.at or timezone.now(),
        "address": address,
        "is_demo": settings.ARENA_DEMO,
        "reduced_note": "" if chart == figure.chart else REDUCED_NOTE,
        "style": STYLE,
    }
    return render_to_string("embed.html", context, using="jinja2")


def _reduced(chart: Chart, detail: Detail) -> Chart:
    """The chart with at most this detail; the same one if it has no more."""
    if isinstance(chart, IntervalChart):
        return replace(chart, rows=chart.rows[: detail.series])
    if isinstance(chart, SlopeChart):
        return replace(chart, lines=chart.lines[: detail.series])
    if isinstance(chart, DiagramGrid):
        diagrams = []
        for diagram in chart.diagrams[: detail.series]:
            diagrams.append(replace(diagram, points=_thinned(diagram.points, detail.points)))
        return replace(chart, diagrams=diagrams)
    lines = []
    for line in chart.lines[: detail.series]:
        lines.append(_reduced_line(line, detail.points))
    return replace(chart, lines=lines, events=list(_reduced_events(chart, detail)))


def _reduced_line(line: DrawnLine, most: int) -> DrawnLine:
    lower_and_upper = line.band.strip("MZ").split("L")
    middle = len(lower_and_upper) // 2
    lower, upper = (_thinned(ends, most) for ends in (lower_and_upper[:middle], lower_and_upper[middle:]))
    return replace(
        line,
        path=_thinned_path(line.path, most),
        few=_thinned_path(line.few, most),
        band="M" + "L".join([*lower, *upper]) + "Z" if line.band else "",
    )


def _thinned_path(path: str, most: int) -> str:
    return "M" + "L".join(_thinned(path.removeprefix("M").split("L"), most)) if path else ""


def _reduced_events(chart: LineChart, detail: Detail) -> Iterator[tuple[ChartEvent, str]]:
    for event, path in chart.events[: detail.points]:
        yield (event if detail.texts else replace(event, text="", href="")), path


def _thinned(items: Sequence[Item], most: int) -> Sequence[Item]:
    """At most so many of the items, at equal distances, the first and the last among them."""
    if len(items) <= most:
        return items
    step = (len(items) - 1) / (most - 1)
    return [items[round(index * step)] for index in range(most)]
