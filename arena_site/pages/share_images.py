"""Images of the leaderboards for links on social networks: 1200 by 630 pixels, cached by version."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from threading import Lock
from typing import Any, NamedTuple

from django.conf import settings

from arena_site.pages.charts.markers import marker_of, readable_color
from arena_site.pages.filters import score, signed_percent
from markets.services.cache_versions import Scope, current_versions
from scoring.competition import competition_index
from scoring.constants import FORECAST, REFERENCES, TRADING
from scoring.leaderboard_entries import leaderboard_entries

BACKGROUND, TEXT, MUTED, GRID = "#fcfbf8", "#1b2430", "#586374", "#dedad0"
SIZE, DPI = (12.0, 6.3), 100
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "h")
"""The markers of `arena_site.pages.charts.markers`, by Matplotlib's names."""

TYPES = {"png": "image/png", "svg": "image/svg+xml"}

_cache: dict[tuple[str, str], tuple[tuple[str | None, ...], bytes]] = {}
_drawing = Lock()


class ImageContent(NamedTuple):
    """The content of a share image: a leaderboard's score with its interval, and a sentence about the leader."""

    protocol: str
    title: str
    score: str
    interval: str
    write: Callable[[Any], str]
    sentence: str


IMAGES = {
    "trading": ImageContent(
        TRADING, "Trading leaderboard", "return_percent", "return_ci", signed_percent,
        "{name} leads with a mean return of {score} on paper money",
    ),
    "forecasts": ImageContent(
        FORECAST, "Forecast leaderboard", "brier", "brier_ci", score,
        "{name} leads with a Brier score of {score}; lower is better",
    ),
}  # fmt: skip


def share_image(name: str, extension: str, at: datetime) -> tuple[str, bytes] | None:
    """The version and the bytes of an image; None for an unknown name or type."""
    if name not in IMAGES or extension not in TYPES:
        return None
    key = name, extension
    versions = current_versions()
    now = tuple(versions.get(scope) for scope in (Scope.LEADERBOARDS, Scope.COMPETITION))
    with _drawing:  # one at a time: a waiting request gets the image of the first
        if _cache.get(key, (None, b""))[0] != now:
            _cache[key] = (now, _draw(IMAGES[name], extension, at))
        return "-".join(map(str, now)), _cache[key][1]


def _draw(content: ImageContent, extension: str, at: datetime) -> bytes:
    """The score of each model and reference with its interval, the best first."""
    # Imported here: Matplotlib takes most of a second, and jobs never draw.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = [
        entry
        for entry in leaderboard_entries(content.protocol)
        if entry[content.score] is not None and not entry["external"] and entry.get("forecaster") not in REFERENCES[3:]
    ]
    families = competition_index().by_slug
    leader = next((entry for entry in shown if entry["rank"] == 1 and not entry.get("reference")), None)
    subtitle = "Language models on real prediction markets, scored by what happened"
    if leader:
        subtitle = content.sentence.format(name=leader["display_name"], score=content.write(leader[content.score]))
    source = f"Forecaster Arena, {at.day} {at:%B %Y}" + (" – demo with invented data" if settings.ARENA_DEMO else "")

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    figure.text(0.05, 0.905, content.title, family="serif", fontsize=30, color=TEXT)
    figure.text(0.05, 0.835, subtitle, fontsize=17, color=TEXT, parse_math=False)
    figure.text(0.95, 0.028, source, fontsize=13, color=MUTED, ha="right")
    axes = figure.add_axes((0.2, 0.1, 0.75, 0.66), facecolor=BACKGROUND)
    for row, entry in enumerate(shown):
        family = families.get(entry["family"])
        color, marker = (readable_color(family.color), MARKERS[marker_of(family)]) if family else (MUTED, "o")
        interval = entry[content.interval] or [entry[content.score]] * 2
        axes.plot(interval, [row, row], color=color, linewidth=3, alpha=0.5, solid_capstyle="butt")
        axes.plot(entry[content.score], row, marker=marker, color=color, markersize=10)
    axes.set_yticks(range(len(shown)), [entry["display_name"] for entry in shown])
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: content.write(value))
    axes.grid(axis="x", color=GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, labelsize=13, labelcolor=MUTED)
    axes.tick_params(axis="y", labelsize=15, labelcolor=TEXT)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    buffer = BytesIO()
    figure.savefig(buffer, format=extension, metadata={"Software": None} if extension == "png" else {"Date": None})
    return buffer.getvalue()
