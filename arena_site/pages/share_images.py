"""Images of the leaderboards for links on social networks: 1200 by 630 pixels, cached by the boards' version."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from threading import Lock
from typing import Any

from arena_site.pages.charts import marker_of, readable_color
from arena_site.pages.filters import dollars, score, signed_percent
from markets.services.cache_versions import Scope, current_versions
from scoring.competition import competition_index
from scoring.constants import FORECAST, REFERENCES, TRADING
from scoring.leaderboard_entries import leaderboard_entries
from scoring.performance import performance

BACKGROUND, TEXT, MUTED, GRID = "#fcfbf8", "#1b2430", "#586374", "#dedad0"
SIZE, DPI = (12.0, 6.3), 100
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "h")
"""The markers of `arena_site.pages.charts.markers`, by Matplotlib's names."""
MAXIMUM_LABELS = 12

_cache: dict[str, tuple[tuple[str | None, ...], bytes]] = {}
_drawing = Lock()


def share_image(name: str, at: datetime) -> tuple[str, bytes] | None:
    """The version and the PNG of an image; None for an unknown name."""
    if name not in IMAGES:
        return None
    known = current_versions()
    now = tuple(known.get(scope) for scope in (Scope.LEADERBOARDS, Scope.COMPETITION))
    with _drawing:  # one at a time: a waiting request gets the image of the first
        if _cache.get(name, (None, b""))[0] != now:
            _cache[name] = (now, IMAGES[name](at))
        return "-".join(map(str, now)), _cache[name][1]


def _leaderboard(at: datetime) -> bytes:
    """The mean portfolio value of each family over time, and the leader."""
    known = competition_index()
    found = performance([agent for agent in known.agents if not agent.family.external], span=None, at=at)
    families = known.by_slug
    entries = [entry for entry in leaderboard_entries(TRADING) if not entry["external"]]
    figure, axes = _figure("Which model reads the future best?", _leader_text(entries))
    balance = float(known.methodology.starting_balance)
    axes.axhline(balance, color=MUTED, linewidth=1, linestyle=(0, (5, 4)))
    ends = []
    for slug, values in found.families.items():
        points = [(at, float(v)) for at, v in zip(found.instants, values, strict=True) if v is not None]
        if points:
            family = families[slug]
            color, marker = readable_color(family.color), MARKERS[marker_of(family)]
            axes.plot(
                *zip(*points, strict=True), color=color, linewidth=2.4, marker=marker, markevery=[-1], markersize=8
            )
            ends.append((points[-1][1], family.display_name, color))
    axes.yaxis.set_major_formatter(lambda value, _: dollars(value))
    _label_ends(axes, ends)
    _date_axis(axes)
    return _png(figure)


def _forecasts(at: datetime) -> bytes:
    """The Brier score of each forecaster with its interval, the best first."""
    shown = [
        entry
        for entry in leaderboard_entries(FORECAST)
        if entry["brier"] is not None and (not entry["reference"] or entry["forecaster"] in REFERENCES[:3])
    ]
    families = competition_index().by_slug
    leader = next((entry for entry in shown if entry["rank"] == 1 and not entry["reference"]), None)
    subtitle = f"{leader['display_name']} leads: Brier {score(leader['brier'])}, lower is better" if leader else ""
    figure, axes = _figure("Which model says what will happen?", subtitle)
    axes.set_position((0.2, 0.1, 0.75, 0.66))
    for row, entry in enumerate(shown):
        family = families.get(entry["family"])
        color = readable_color(family.color) if family else MUTED
        marker = MARKERS[marker_of(family)] if family else "o"
        low, high = entry["brier_ci"] or (entry["brier"], entry["brier"])
        axes.plot([low, high], [row, row], color=color, linewidth=3, alpha=0.5, solid_capstyle="butt")
        axes.plot(entry["brier"], row, marker=marker, color=color, markersize=10)
    axes.set_yticks(range(len(shown)), [entry["display_name"] for entry in shown], color=TEXT, fontsize=15)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: score(value))
    axes.grid(axis="x", color=GRID)
    axes.grid(visible=False, axis="y")
    return _png(figure)


IMAGES: dict[str, Callable[[datetime], bytes]] = {"leaderboard": _leaderboard, "forecasts": _forecasts}


def _leader_text(entries: list[dict[str, Any]]) -> str:
    if not entries:
        return "Language models bet on real prediction markets. Reality scores them."
    leader = entries[0]
    gained = signed_percent(leader["return_percent"])
    return f"{leader['display_name']} leads with {gained}, the mean return over {leader['cohorts']} cohorts"


def _figure(title: str, subtitle: str) -> tuple[Any, Any]:
    # Imported here: Matplotlib takes most of a second, and jobs never draw.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor=BACKGROUND)
    FigureCanvasAgg(figure)
    figure.text(0.05, 0.905, title, family="serif", fontsize=30, color=TEXT)
    figure.text(0.05, 0.835, subtitle, fontsize=17, color=TEXT, parse_math=False)
    figure.text(0.95, 0.028, "Forecaster Arena", fontsize=13, color=MUTED, ha="right")
    axes = figure.add_axes((0.085, 0.12, 0.71, 0.66), facecolor=BACKGROUND)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, labelsize=13, labelcolor=MUTED)
    return figure, axes


def _label_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """Labels of the curves beside their ends, moved apart."""
    low, high = axes.get_ylim()
    distance = (high - low) * 0.058
    height = high
    for value, name, color in sorted(ends, reverse=True)[:MAXIMUM_LABELS]:
        height = min(value, height)
        axes.annotate(
            name, (1.015, height), xycoords=("axes fraction", "data"), va="center", fontsize=14, color=color,
            parse_math=False, annotation_clip=False,
        )  # fmt: skip
        height -= distance


def _date_axis(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=4, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))


def _png(figure: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()
