"""Scores by the date of a model's release and by the end of its knowledge."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from operator import itemgetter

from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import capfirst
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.charts.curves import Curve, single_point
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.filters import count, day_text, score, signed_score
from arena_site.pages.report_selection import SelectedPart, selected_part
from scoring.constants import MARKET

SUBJECTS = {"released_on": "date of release", "knowledge_cutoff": "end of knowledge"}
"""The dates over which there is a trend, in words."""
NOTE = (
    "Below 0 a release forecasts better than the market’s prices on the same questions. Bars are 95 % intervals over"
    " events; the dashed line is the least-squares trend, its band from resampled events. The band says how sure the"
    " line is for these releases, not for others."
)


@require_safe
def releases(request: HttpRequest) -> HttpResponse:
    """The trends of the scores over both dates, with the date of parity with the market."""
    page = selected_part(request, "releases")
    rows = sorted(page.figures["rows"], key=lambda row: (row["released_on"] or "", row["release"]), reverse=True)
    context = {
        "page": page,
        "sentences": list(map(partial(_sentence, page), SUBJECTS)) if rows else [],
        "rows": page.competition.with_families(rows, "family"),
        "figures": _figures(page),
    }
    return TemplateResponse(request, "releases.html", context)


def _sentence(page: SelectedPart, column: str) -> str:
    """The trend in words."""
    trend, subject = page.figures["trends"][column], SUBJECTS[column]
    condition = capfirst(page.condition)
    if trend is None:
        return f"{condition}, no trend by {subject} can be told: it takes three releases of different, known dates."
    low, high = trend["slope_ci"]
    basis = f"{count(trend['releases'])} releases, {count(trend['events'])} events"
    if low <= 0 <= high:
        return (
            f"{condition}, no trend by {subject} is shown: in a year the Brier score less the market’s changes by"
            f" {signed_score(trend['slope'])} (95 % interval {signed_score(low)} to {signed_score(high)}; {basis})."
        )
    change, falls = ("better", "falls") if trend["slope"] < 0 else ("worse", "rises")
    least, most = sorted((abs(low), abs(high)))
    sentence = (
        f"{condition}, releases with a later {subject} forecast {change}: in a year the Brier score less the market’s"
        f" {falls} by {score(abs(trend['slope']))} (95 % interval {score(least)} to {score(most)}; {basis})"
    )
    if trend["parity"]:
        first, last = map(_day, trend["parity_ci"])
        sentence += f"; the line meets the market’s score on {_day(trend['parity'])} (95 % interval {first} to {last})"
    return f"{sentence}."


def _instant(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(), UTC)


def _day(day: str) -> str:
    return day_text(_instant(day))


def _figures(page: SelectedPart) -> list[Figure]:
    return list(filter(None, map(partial(_figure, page), SUBJECTS)))


def _figure(page: SelectedPart, column: str) -> Figure | None:
    """Each release's difference to the market over one of its dates, with the trend; None without a trend."""
    trend = page.figures["trends"][column]
    if trend is None:
        return None
    line = {_instant(point["date"]): point for point in trend["line"]}
    rows = [row for row in page.figures["rows"] if row[column] and row["difference"] is not None]
    positions = sorted({*line, *map(_instant, map(itemgetter(column), rows))})
    values, band = [], []
    for at in positions:
        point = line.get(at)
        values.append(point and point["value"])
        band.append(point and (point["low"], point["high"]))
    curves = [Curve("Trend", REFERENCE_COLORS[MARKET], values, dashed=True, band=band)]
    for row in rows:
        place, family = positions.index(_instant(row[column])), page.competition.by_slug[row["family"]]
        point = row["difference"], row["difference_ci"]
        curves.append(single_point(row["display_name"], family, place, len(positions), *point))
    chart = line_chart(
        positions,
        curves,
        y_title="Brier score less the market’s",
        axis=column,
        baseline=Decimal(0),
        unit="signed_score",
    )
    assert chart is not None, "a trend has values"
    title = f"Score less the market’s by {SUBJECTS[column]}, {page.condition}."
    source = f"{count(trend['releases'])} releases, {count(trend['events'])} events"
    return Figure(column.replace("_", "-"), title, chart, NOTE, source=source, **page.files)
