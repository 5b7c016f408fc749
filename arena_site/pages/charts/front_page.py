"""Figures of the front page: scores with and without prices, and the lead over the market week by week."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple

from agents.models import Family
from arena_site.pages.board_figures import BRIER_NAMES, leader_title
from arena_site.pages.charts.curves import ChartEvent, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import marker_of
from arena_site.pages.charts.slopes import SlopeRow, slope_chart
from arena_site.pages.filters import count, day_text, signed_score
from arena_site.pages.headlines import MINIMUM_EVENTS, Headline
from scoring.constants import MARKET
from scoring.leaderboard_keys import ranked_by
from scoring.selectors.forecast_boards import ForecastBoard
from scoring.selectors.performance import ReleaseChange

LEADS_NOTE = (
    "The market’s Brier score less the model’s: above the line a model was closer to what happened. A point holds the "
    "forecasts of four weeks on questions that have resolved; the latest rest on those that resolved soon. Bands are "
    "95 % intervals of each model alone. A hollow marker is a change of release."
)
Entry = Mapping[str, Any]


class Side(NamedTuple):
    """A leaderboard, its condition as a label and as a sentence's words, and who leads it."""

    board: ForecastBoard
    label: str
    phrase: str
    headline: Headline | None


def prices_figure(sides: Sequence[Side], families: Mapping[str, Family], *, query: str) -> Figure | None:
    """Each model's score with and without the market's prices, and the market's; None unless there are both."""
    if len(sides) < 2:
        return None
    names = {ranked_by(side.board.entries) for side in sides}
    column = names.pop() if len(names) == 1 else "brier"
    by_forecaster = {entry["forecaster"]: entry for entry in sides[1].board.entries}
    rows = []
    for entry in sides[0].board.entries:
        if (entry["reference"] or entry["external"]) and entry["forecaster"] != MARKET:
            continue
        without_prices = by_forecaster.get(entry["forecaster"], {})
        values = entry[column], without_prices.get(column)
        intervals = entry[f"{column}_ci"], without_prices.get(f"{column}_ci")
        rows.append(SlopeRow(entry["display_name"], families.get(entry["family"]), values, intervals))
    name = BRIER_NAMES[column]
    y_title = f"{name[0].upper()}{name[1:]} (0 is best)"
    labels = sides[0].label, sides[1].label
    chart = slope_chart(rows, labels, x_title="Prompt condition", y_title=y_title, unit="score")
    if chart is None:
        return None
    titles = [leader_title(side.headline, f"has the lowest {name}") for side in sides if side.headline]
    title = " ".join(titles) or f"The {name} of each model {sides[0].label} and {sides[1].label}."
    note = "Lower is better. Bars are 95 % intervals, events resampled; the dashed line is the market’s prices."
    data = sides[0].board.report.get("data", {})
    source = f"{count(data['questions'])} resolved questions" if data.get("questions") else ""
    at = sides[0].board.computed_at
    return Figure("prices", title, chart, note, source=source, at=at, query=query)


def leads_figure(
    side: Side, families: Mapping[str, Family], changes: Sequence[ReleaseChange], *, query: str
) -> Figure | None:
    """Each model's lead over the market's prices by four weeks of forecasts; None for fewer than two points."""
    leads = side.board.report.get("leads") or {}
    ends = [datetime.fromisoformat(end) for end in leads.get("ends", [])]
    points = {slug: row for slug, row in leads.get("forecasters", {}).items() if slug in families and any(row)}
    if len(ends) < 2 or not points:
        return None
    curves = []
    for slug, row in points.items():
        values = [point and point[0] for point in row]
        bands = [(point[1], point[2]) if point and point[1] is not None else None for point in row]
        curves.append(family_curve(families[slug], values, band=bands))
    events = [event for change in changes for event in _release_events(change, ends, points, families)]
    chart = line_chart(
        ends, curves, y_title="Lead over the market in Brier score", unit="signed_score", baseline=Decimal(0),
        height=380, events=events,
    )  # fmt: skip
    title = _leads_title(side, ends, points, families)
    return Figure("leads", title, chart, LEADS_NOTE, at=side.board.computed_at, query=query) if chart else None


def _leads_title(
    side: Side, ends: Sequence[datetime], points: Mapping[str, Sequence[Any]], families: Mapping[str, Family]
) -> str:
    """The best model against the market in the last window, and in the first if it has enough events, as a title.

    The interval is of that model alone, not corrected for the choice of the best, so that no lead is claimed by it.
    """
    first, last = ({slug: row[place] for slug, row in points.items()} for place in (0, -1))
    best = _best(last, MINIMUM_EVENTS) or _best(last)
    first_best = _best(first, MINIMUM_EVENTS)
    until = f"in forecasts of the four weeks to {day_text(ends[-1])}"
    if best is None:
        return f"No question with a forecast made {side.phrase}, {until}, has resolved yet."
    name, (lead, low, high, _) = families[best].display_name, last[best]
    interval, ending = "no interval yet", ""
    if low is not None:
        interval = f"95 % interval of it alone {signed_score(low)} to {signed_score(high)}"
    if low is None or low <= 0 <= high:
        ending = "; no difference is shown"
    elif first_best is not None:
        subject = "it also" if first_best == best else families[first_best].display_name
        ending = f"; {subject} did in those to {day_text(ends[0])}"
    size = f"{signed_score(lead)}, {interval}"
    return f"{name} scores best against the market’s prices {side.phrase}, {until} ({size}){ending}."


def _best(points: Mapping[str, Any], events: int = 0) -> str | None:
    """Whose point is the highest of those that rest on so many events."""
    scored = {slug: point[0] for slug, point in points.items() if point and point[3] >= events}
    return max(scored, key=scored.__getitem__) if scored else None


def _release_events(
    change: ReleaseChange, ends: Sequence[datetime], points: Mapping[str, Sequence[Any]], families: Mapping[str, Family]
) -> list[ChartEvent]:
    """The mark of a change of release, at the height of the family's first point after it."""
    after = [
        point for end, point in zip(ends, points.get(change.family, ()), strict=False) if end >= change.at and point
    ]
    if not after:
        return []
    family = families[change.family]
    text = f"{family.display_name} is {change.after} from {day_text(change.at)} on"
    return [ChartEvent(change.at, after[0][0], text, family.color, marker_of(family), kind="release")]
