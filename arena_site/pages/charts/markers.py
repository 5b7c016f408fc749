"""Markers and colours of curves: a shape for each family besides its colour, and enough contrast in both themes."""

import math
from collections.abc import Callable
from functools import cache

from agents.models import Family
from scoring.constants import REFERENCES

MINIMUM_LUMINANCE, MAXIMUM_LUMINANCE = 0.143, 0.285
"""Relative luminance with a contrast of 3 or more to the backgrounds of both themes."""
CORNER_REACH = 1.18
"""Distance of a polygon's corners in radii of a circle that looks as large."""
REFERENCE_COLORS = dict(zip(REFERENCES, ("#7b8088", "#8c8577", "#7a5195", "#8d5a97", "#6d4a85"), strict=True))
"""Greys and violets for market, uniform and the three ensembles, which look unlike any competitor."""


def marker_of(family: Family) -> int:
    """The index of a family's marker, the same on every page."""
    return ((family.pk or 1) - 1) % len(MARKERS)


def marker_path(marker: int, x: float, y: float, radius: float = 4.5) -> str:
    """The SVG path of a marker around a point."""
    return MARKERS[marker % len(MARKERS)](x, y, radius)


@cache
def readable_color(color: str) -> str:
    """The colour, darkened or lightened until it has enough contrast to white and to black."""
    parts = tuple(int(color[index : index + 2], 16) / 255 for index in (1, 3, 5))
    target = min(max(luminance(parts), MINIMUM_LUMINANCE), MAXIMUM_LUMINANCE)
    low, high = 0.0, 2.0  # 0 is black, 1 the colour as it is, 2 white
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if luminance(_shaded(parts, middle)) < target else (low, middle)
    if abs(luminance(parts) - target) < 1e-9:
        return color
    return "#" + "".join(f"{round(part * 255):02x}" for part in _shaded(parts, (low + high) / 2))


def luminance(parts: tuple[float, ...]) -> float:
    """WCAG's relative luminance of red, green and blue from 0 to 1."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _shaded(parts: tuple[float, ...], amount: float) -> tuple[float, ...]:
    if amount <= 1:
        return tuple(part * amount for part in parts)
    return tuple(part + (1 - part) * (amount - 1) for part in parts)


def _circle(x: float, y: float, radius: float) -> str:
    reach, width = _number(radius), _number(2 * radius)
    return f"M{_number(x - radius)} {_number(y)}a{reach} {reach} 0 1 0 {width} 0a{reach} {reach} 0 1 0 -{width} 0Z"


def _polygon(corners: int, rotation: float, *, inner: float = 0.0, size: float = CORNER_REACH) -> Callable[..., str]:
    """A regular polygon, its first corner `rotation` degrees from the top; a star where `inner` is given."""

    steps = corners * 2 if inner else corners
    directions = []
    for step in range(steps):
        angle = math.radians(rotation + 360 * step / steps)
        directions.append((math.sin(angle), math.cos(angle), size * (inner if inner and step % 2 else 1)))

    def path(x: float, y: float, radius: float) -> str:
        points = []
        for sine, cosine, distance in directions:
            points.append(f"{_number(x + radius * distance * sine)} {_number(y - radius * distance * cosine)}")
        return "M" + "L".join(points) + "Z"

    return path


def _plus(x: float, y: float, radius: float) -> str:
    arm, half = radius * 1.1, radius * 0.42
    return (
        f"M{_number(x - half)} {_number(y - arm)}h{_number(2 * half)}v{_number(arm - half)}h{_number(arm - half)}"
        f"v{_number(2 * half)}h{_number(half - arm)}v{_number(arm - half)}h{_number(-2 * half)}v{_number(half - arm)}"
        f"h{_number(half - arm)}v{_number(-2 * half)}h{_number(arm - half)}Z"
    )


def _number(value: float) -> str:
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


MARKERS: tuple[Callable[[float, float, float], str], ...] = (
    _circle,
    _polygon(4, 45, size=1.25),
    _polygon(3, 0, size=1.35),
    _polygon(4, 0, size=1.3),
    _polygon(3, 180, size=1.35),
    _plus,
    _polygon(5, 0, inner=0.45, size=1.45),
    _polygon(6, 0),
)
