"""Image files of figures: an SVG drawn by the template of the page's chart, and a PNG of that SVG."""

import hashlib
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from threading import Lock
from typing import Any, NamedTuple
from xml.etree import ElementTree

import resvg_py
from django.conf import settings
from django.core.cache import cache
from django.template.loader import render_to_string

from arena_site.pages.charts.diagrams import DiagramGrid
from arena_site.pages.charts.figures import Figure
from arena_site.pages.filters import day_text, single_line

MARGIN, GAP = 28, 26
COLUMNS = 4
LEAST_WIDTH = 1056
"""Room for the title and the address."""
TITLE_SIZE, NOTE_SIZE = 22, 13
CHARACTER_WIDTH, BOLD_WIDTH = 0.52, 0.66
"""Width of a letter as a share of the font's size, on average: of plain text, and of a title in bold."""
PNG_LIFETIME_S = 3600
PIXELS_PER_UNIT = 2
FONT = "DejaVu Sans"
FONTS = Path(str(getattr(find_spec("matplotlib"), "origin", ""))).parent / "mpl-data" / "fonts" / "ttf"
"""A server may have no fonts; these come with the library's plots."""

_drawing = Lock()


class HeadingLine(NamedTuple):
    """A line of text above a chart."""

    line: str
    y: int
    size: int
    color: str
    bold: bool


def svg_image(figure: Figure, address: str) -> str:
    """The figure as an SVG file, with its title, notes, source and address."""
    chart = figure.chart
    across = COLUMNS if isinstance(chart, DiagramGrid) else 1
    width = max(LEAST_WIDTH, across * (chart.width + GAP) - GAP + 2 * MARGIN)
    heading = _heading(figure, width)
    top = heading[-1].y + GAP
    panels = []
    height = top + chart.height
    if isinstance(chart, DiagramGrid):
        for index, diagram in enumerate(chart.diagrams):
            row, column = divmod(index, COLUMNS)
            x, y = MARGIN + column * (chart.width + GAP), top + GAP + row * (chart.height + 2 * GAP)
            panels.append((x, y, diagram))
        height = panels[-1][1] + chart.height
    context: dict[str, Any] = {
        "figure": figure,
        "width": width,
        "height": height + 2 * GAP,
        "margin": MARGIN,
        "top": top,
        "heading": heading,
        "panels": panels,
        "source": source_line(figure, address),
    }
    return render_to_string("chart.svg", context, using="jinja2")


def _heading(figure: Figure, width: int) -> list[HeadingLine]:
    lines: list[HeadingLine] = []
    y = MARGIN // 2
    for text, size, color in ((figure.title, TITLE_SIZE, "#1b2430"), (figure.note, NOTE_SIZE, "#586374")):
        y += MARGIN // 7
        letter = size * (BOLD_WIDTH if size == TITLE_SIZE else CHARACTER_WIDTH)
        for line in wrap(single_line(text), int((width - 2 * MARGIN) / letter)):
            y += round(size * 1.35)
            lines.append(HeadingLine(line, y, size, color, bold=size == TITLE_SIZE))
    return lines


def source_line(figure: Figure, address: str) -> str:
    """The source of a figure in a line: the arena, the date, what it was made from, and the address."""
    demo = " (demo with invented data)" if settings.ARENA_DEMO else ""
    parts = [f"Source: Forecaster Arena{demo}", day_text(figure.at) if figure.at else "", figure.source, address]
    return ", ".join(filter(None, parts))


def png_image(svg: str, size: tuple[int, int] | None = None) -> bytes:
    """The picture of an SVG file of ours, of this size in pixels or twice as large as the drawing.

    It is cached by its content.
    """
    key = f"chart-png-{size}-{hashlib.sha256(svg.encode()).hexdigest()}".replace(" ", "")
    with _drawing:  # one at a time: a waiting request gets the picture of the first
        picture: bytes | None = cache.get(key)
        if picture is None:
            picture = _rasterize(svg, size)
            cache.set(key, picture, PNG_LIFETIME_S)
    return picture


def _rasterize(svg: str, size: tuple[int, int] | None) -> bytes:
    """The drawing as PNG, centred in `size`."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own template made it
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    across, down = size or (PIXELS_PER_UNIT * width, PIXELS_PER_UNIT * height)
    root.attrib.update(viewBox=f"0 0 {width} {height}", width=str(across), height=str(down))
    return resvg_py.svg_to_bytes(
        svg_string=ElementTree.tostring(root, encoding="unicode"),
        background="#ffffff",
        skip_system_fonts=True,
        font_files=[str(FONTS / name) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")],
        font_family=FONT,
        sans_serif_family=FONT,
    )
