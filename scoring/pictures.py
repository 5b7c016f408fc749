"""Pictures of boards for pages elsewhere that link here: 1200 by 630 pixels, drawn once a state of the boards."""

from collections.abc import Callable
from datetime import datetime
from io import BytesIO
from threading import Lock
from typing import Any

from scoring.charts import readable
from scoring.performance import performance
from scoring.revisions import BOARDS, PLAYERS, tokens
from scoring.roster import roster
from scoring.selected import selected_entries
from scoring.services.boards import TRADING
from scoring.services.forecast_boards import FORECAST
from scoring.services.forecast_panels import REFERENCES
from scoring.templatetags.arena import dollars, score, signed_percent

PAPER, INK, SOFT, RULE = "#fcfbf8", "#1b2430", "#586374", "#dedad0"
SIZE, DPI = (12.0, 6.3), 100
MARKERS = ("o", "s", "^", "D", "v", "P", "*", "h")
"""The shapes of `scoring.charts.marks`, as Matplotlib calls them."""
MOST_NAMED = 12

_kept: dict[str, tuple[tuple[str | None, ...], bytes]] = {}
_drawing = Lock()


def picture_of(name: str, at: datetime) -> tuple[str, bytes] | None:
    """A version and a PNG of the board `name`, of one of PICTURES; None for another name."""
    if name not in PICTURES:
        return None
    known = tokens()
    now = tuple(known.get(thing) for thing in (BOARDS, PLAYERS))
    with _drawing:  # one at a time: who waits gets what the first one drew
        if _kept.get(name, (None, b""))[0] != now:
            _kept[name] = (now, PICTURES[name](at))
        return "-".join(map(str, now)), _kept[name][1]


def _leaderboard(at: datetime) -> bytes:
    """The mean value of each family over time, and who leads."""
    known = roster()
    found = performance([agent for agent in known.players if not agent.family.external], span=None, at=at)
    families = known.by_slug
    entries = [entry for entry in selected_entries(TRADING) if not entry["external"]]
    figure, axes = _paper("Which model reads the future best?", _led(entries))
    balance = float(known.methodology.starting_balance)
    axes.axhline(balance, color=SOFT, linewidth=1, linestyle=(0, (5, 4)))
    ends = []
    for slug, values in found.families.items():
        points = [(at, float(v)) for at, v in zip(found.instants, values, strict=True) if v is not None]
        if points:
            family = families[slug]
            color, marker = readable(family.color), MARKERS[(family.pk - 1) % len(MARKERS)]
            axes.plot(
                *zip(*points, strict=True), color=color, linewidth=2.4, marker=marker, markevery=[-1], markersize=8
            )
            ends.append((points[-1][1], family.display_name, color))
    axes.yaxis.set_major_formatter(lambda value, _: dollars(value))
    _name_ends(axes, ends)
    _days(axes)
    return _png(figure)


def _forecasts(at: datetime) -> bytes:
    """The Brier score of each forecaster with its interval, best first."""
    shown = [
        entry
        for entry in selected_entries(FORECAST)
        if entry["brier"] is not None and (not entry["reference"] or entry["forecaster"] in REFERENCES[:3])
    ]
    families = roster().by_slug
    leader = next((entry for entry in shown if entry["rank"] == 1 and not entry["reference"]), None)
    told = f"{leader['display_name']} leads: Brier {score(leader['brier'])}, lower is better" if leader else ""
    figure, axes = _paper("Which model says what will happen?", told)
    axes.set_position((0.2, 0.1, 0.75, 0.66))
    for row, entry in enumerate(shown):
        family = families.get(entry["family"])
        color = readable(family.color) if family else SOFT
        marker = MARKERS[(family.pk - 1) % len(MARKERS)] if family else "o"
        low, high = entry["brier_ci"] or (entry["brier"], entry["brier"])
        axes.plot([low, high], [row, row], color=color, linewidth=3, alpha=0.5, solid_capstyle="butt")
        axes.plot(entry["brier"], row, marker=marker, color=color, markersize=10)
    axes.set_yticks(range(len(shown)), [entry["display_name"] for entry in shown], color=INK, fontsize=15)
    for label in axes.get_yticklabels():
        label.set_parse_math(False)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(lambda value, _: score(value))
    axes.grid(axis="x", color=RULE)
    axes.grid(visible=False, axis="y")
    return _png(figure)


PICTURES: dict[str, Callable[[datetime], bytes]] = {"leaderboard": _leaderboard, "forecasts": _forecasts}


def _led(entries: list[dict[str, Any]]) -> str:
    if not entries:
        return "Language models bet on real prediction markets. Reality scores them."
    leader = entries[0]
    gained = signed_percent(leader["return_percent"])
    return f"{leader['display_name']} leads with {gained}, the mean return over {leader['cohorts']} cohorts"


def _paper(title: str, told: str) -> tuple[Any, Any]:
    # Here and not above: it takes most of a second to import, and jobs never draw.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    figure.text(0.05, 0.905, title, family="serif", fontsize=30, color=INK)
    figure.text(0.05, 0.835, told, fontsize=17, color=INK, parse_math=False)
    figure.text(0.95, 0.028, "Forecaster Arena", fontsize=13, color=SOFT, ha="right")
    axes = figure.add_axes((0.085, 0.12, 0.71, 0.66), facecolor=PAPER)
    axes.grid(axis="y", color=RULE)
    axes.set_axisbelow(True)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.tick_params(length=0, labelsize=13, labelcolor=SOFT)
    return figure, axes


def _name_ends(axes: Any, ends: list[tuple[float, str, str]]) -> None:
    """The curves' names beside their ends, moved apart, in their order."""
    low, high = axes.get_ylim()
    least = (high - low) * 0.058
    height = high
    for value, name, color in sorted(ends, reverse=True)[:MOST_NAMED]:
        height = min(value, height)
        axes.annotate(
            name, (1.015, height), xycoords=("axes fraction", "data"), va="center", fontsize=14, color=color,
            parse_math=False, annotation_clip=False,
        )  # fmt: skip
        height -= least


def _days(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=4, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))


def _png(figure: Any) -> bytes:
    held = BytesIO()
    figure.savefig(held, format="png", metadata={"Software": None})
    return held.getvalue()
