"""PNG pictures of the SVG files that our templates draw: the few elements that these use, drawn by Matplotlib."""

import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.transforms import Affine2D

UNITS_PER_INCH, PIXELS_PER_UNIT = 100, 2
POINTS_PER_UNIT = 72 / UNITS_PER_INCH
COMMAND = re.compile(r"([MLZhvac])([^MLZhvac]*)")
TRANSLATION = re.compile(r"translate\(([-\d.]+),\s*([-\d.]+)\)")
ALIGNMENTS = {"start": "left", "middle": "center", "end": "right"}
INHERITED = (
    "fill", "stroke", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "font-size", "font-weight",
    "text-anchor",
)  # fmt: skip

Offset = tuple[float, float]


def rasterize(svg: str, size: tuple[int, int] | None = None) -> bytes:
    """The picture: of a size in pixels, in which the drawing is centred, or at two pixels for each of its units."""
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own template made it
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    scale = min(size[0] / width, size[1] / height) if size else PIXELS_PER_UNIT
    across, down = size or (width * scale, height * scale)
    # Points and dashes are in inches of the drawing: its units are the same whatever the scale.
    dpi = UNITS_PER_INCH * scale
    figure = Figure(figsize=(across / dpi, down / dpi), dpi=dpi, facecolor="#ffffff")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    margin_x, margin_y = (across / scale - width) / 2, (down / scale - height) / 2
    axes.set(xlim=(-margin_x, width + margin_x), ylim=(height + margin_y, -margin_y))
    axes.axis("off")
    for order, (tag, attributes, offset, text) in enumerate(_shapes(root, {}, (0.0, 0.0))):
        if tag == "text":
            _write(axes, attributes, offset, text, order)
        elif (path := _path(tag, attributes)) is not None:
            moved = path.transformed(Affine2D().translate(*offset))
            axes.add_patch(PathPatch(moved, zorder=order, **_style(attributes)))
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _shapes(
    node: ElementTree.Element, inherited: Mapping[str, str], offset: Offset
) -> Iterator[tuple[str, dict[str, str], Offset, str]]:
    """Each element that is drawn, in order, with its own and inherited attributes and the place of its origin."""
    for child in node:
        tag = child.tag.rpartition("}")[2]
        attributes = {**{name: value for name, value in inherited.items() if name in INHERITED}, **child.attrib}
        x, y = offset
        if moved := TRANSLATION.match(child.attrib.get("transform", "")):
            x, y = x + float(moved[1]), y + float(moved[2])
        if tag in ("g", "a"):
            yield from _shapes(child, attributes, (x, y))
        elif tag != "title":
            yield tag, attributes, (x, y), child.text or ""


def _path(tag: str, attributes: Mapping[str, str]) -> Path | None:
    if tag == "path":
        return _parse(attributes.get("d", ""))
    if tag == "line":
        return Path([_point(attributes, "x1", "y1"), _point(attributes, "x2", "y2")])
    if tag == "rect":
        x, y = _point(attributes, "x", "y")
        width, height = _point(attributes, "width", "height")
        return Path([(x, y), (x + width, y), (x + width, y + height), (x, y + height), (x, y)], closed=True)
    if tag == "circle":
        return Path.circle(_point(attributes, "cx", "cy"), float(attributes["r"]))
    return None


def _point(attributes: Mapping[str, str], x: str, y: str) -> Offset:
    return float(attributes[x]), float(attributes[y])


def _parse(data: str) -> Path | None:
    """A path of straight lines, and of circles as two half arcs."""
    vertices: list[Any] = []
    codes: list[Any] = []
    for command, arguments in COMMAND.findall(data):
        numbers = list(map(float, re.findall(r"-?[\d.]+", arguments)))
        if command in "ML":
            vertices += zip(numbers[::2], numbers[1::2], strict=True)
            codes += [Path.MOVETO if command == "M" else Path.LINETO, *[Path.LINETO] * (len(numbers) // 2 - 1)]
        elif command == "Z":
            vertices.append(vertices[-1])
            codes.append(Path.CLOSEPOLY)
        elif command in "hv":
            x, y = vertices[-1]
            vertices.append((x + numbers[0], y) if command == "h" else (x, y + numbers[0]))
            codes.append(Path.LINETO)
        elif command == "a":
            x, y = vertices[-1]
            half: Any = Path.arc(180, 360) if numbers[5] > 0 else Path.arc(0, 180)
            vertices += [*(half.vertices[1:] * numbers[0] + (x + numbers[5] / 2, y))]
            codes += [*half.codes[1:]]
    return Path(np.array(vertices, dtype=float), codes) if vertices else None


def _style(attributes: Mapping[str, str]) -> dict[str, Any]:
    width = float(attributes.get("stroke-width", 1))
    # Matplotlib measures dashes in widths of the line.
    dashes = tuple(float(length) / width for length in attributes.get("stroke-dasharray", "").split())
    return {
        "facecolor": _color(attributes, "fill"),
        "edgecolor": _color(attributes, "stroke"),
        "linewidth": width * POINTS_PER_UNIT,
        "linestyle": (0, dashes) if dashes else "-",
        "joinstyle": "round",
        "capstyle": "butt",
    }


def _color(attributes: Mapping[str, str], name: str) -> Any:
    color = attributes.get(name, "#000000" if name == "fill" else "none")
    return color if color == "none" else (color, float(attributes.get(f"{name}-opacity", 1)))


def _write(axes: Any, attributes: Mapping[str, str], offset: Offset, text: str, order: int) -> None:
    axes.text(
        float(attributes["x"]) + offset[0],
        float(attributes["y"]) + offset[1],
        text,
        color=attributes.get("fill", "#000000"),
        fontsize=float(attributes.get("font-size", 16)) * POINTS_PER_UNIT,
        fontweight="bold" if attributes.get("font-weight") else "normal",
        ha=ALIGNMENTS[attributes.get("text-anchor", "start")],
        va="center_baseline" if "dy" in attributes else "baseline",
        parse_math=False,
        zorder=order,
    )
