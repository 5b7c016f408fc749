"""The dashboard's small charts as SVG: bars only, without text, so that they stretch to any width."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

WIDTH, HEIGHT = 1000.0, 100.0
"""The size of a chart's view box, which the page stretches."""
LEAST_HEIGHT = 12.0
"""The least height of a bar, so that the quickest run can be seen and pressed."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `x` on (a fraction of the width), as high as the fraction `height` of the chart from `base` on."""

    x: float
    width: float
    height: float
    css_class: str
    title: str
    path: str
    base: float = 0.0


def bar_chart(bars: Iterable[Bar], *, label: str, css_class: str, line: float | None = None) -> SafeString:
    """Bars that each link to what they show; `line` is the height of a dashed line across."""
    drawn = format_html_join(
        "",
        '<a href="{}" tabindex="-1"><rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect></a>',
        ((b.path, b.css_class, *_rectangle(b), b.title) for b in bars),
    )
    if line is not None:
        y = f"{HEIGHT * (1 - line):.1f}"
        drawn += format_html('<line class="cap" x1="0" x2="{}" y1="{}" y2="{}"/>', f"{WIDTH:.0f}", y, y)
    return format_html(
        '<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="group" aria-label="{}">{}</svg>',
        css_class, f"{WIDTH:.0f}", f"{HEIGHT:.0f}", label, drawn,
    )  # fmt: skip


def _rectangle(bar: Bar) -> tuple[str, str, str, str]:
    height = HEIGHT * bar.height
    top = HEIGHT * (1 - bar.base) - height
    return f"{WIDTH * bar.x:.1f}", f"{top:.1f}", f"{WIDTH * bar.width:.1f}", f"{height:.1f}"


def bar_heights(durations: Sequence[float]) -> list[float]:
    """Each duration as a fraction of the longest, at least LEAST_HEIGHT high."""
    longest = max(durations, default=0) or 1
    return [max(duration / longest, LEAST_HEIGHT / HEIGHT) for duration in durations]
