"""Scores by the days from a forecast to its market's close, and how much beliefs move."""

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from arena_site.pages.board_figures import brier_figure
from arena_site.pages.charts.curves import Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.intervals import interval_chart
from arena_site.pages.charts.lines import line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.filters import count, fraction
from arena_site.pages.headlines import Headline, forecast_headline
from arena_site.pages.report_selection import SelectedPart, selected_part
from foundation.bulk import mappings_by, rows_by
from scoring.constants import DAYS_AHEAD, EARLY_DAYS, MARKET, SHOWN_REFERENCES, days_label
from scoring.selectors.forecast_boards import ForecastBoard

LEAST_EVENTS = 4
"""Events of a bin below which its scores are in the table, but not drawn."""


@require_safe
def time(request: HttpRequest) -> HttpResponse:
    """The page: the early forecasts, scores by days to the close, revisions beside the moves of prices."""
    page = selected_part(request, "time")
    bins = page.figures["bins"]
    names: dict[str, str] = {}
    for row in bins:
        for entry in row["entries"]:
            if not entry["reference"] or entry["forecaster"] in SHOWN_REFERENCES:
                names[entry["forecaster"]] = entry["display_name"]
    headline = _headline(page)
    rows = []
    for forecaster, display_name in names.items():
        cells = map(_entry, bins, repeat(forecaster))
        rows.append((page.competition.by_slug.get(forecaster), display_name, list(cells)))
    context = {
        "page": page,
        "sentences": [headline.sentence if headline else NOBODY, *_revision_sentence(page)],
        "bins": [(days_label(row["days_from"], row["days_to"]), row) for row in bins],
        "rows": rows,
        "revisions": page.competition.with_families(page.figures["revisions"], "forecaster"),
        "charts": rows_by("name", _figures(page, headline)),
    }
    return TemplateResponse(request, "time.html", context)


NOBODY = f"No model leads yet {EARLY_DAYS} days and more before the close: fewer than four events have resolved."


def _entry(row: Mapping[str, Any], forecaster: str) -> Mapping[str, Any] | None:
    """The entry of a forecaster in a bin."""
    return mappings_by("forecaster", row["entries"]).get(forecaster)


def _headline(page: SelectedPart) -> Headline | None:
    early = page.figures["early"]
    condition = f"{page.condition}, {EARLY_DAYS} days and more before the close"
    at = page.computed_at or timezone.now()
    return forecast_headline(early["entries"], early, at=at, condition=condition) if early else None


def _revision_sentence(page: SelectedPart) -> list[str]:
    """How many models move more, or less, than the price, by the corrected intervals, and how often its way."""
    rows, shares, more, less = 0, [], 0, 0
    for row in page.figures["revisions"]:
        if row["difference_ci"]:
            low, high = row["difference_ci"]
            rows, more, less = rows + 1, more + (low > 0), less + (high < 0)
            if row["same_direction"] is not None:
                shares.append(row["same_direction"])
    if not shares:
        return []
    models = count(rows)
    moves = f"no model of {models} is shown to move further or less far than the price"
    if more or less:
        moves = f"{more or 'none'} of {models} models move further than the price and {less or 'none'} less far"
        moves += "; for the others no difference is shown" if more + less < rows else ""
    ways = f"{fraction(min(shares), 0)} to {fraction(max(shares), 0)}"
    return [
        f"Between two forecasts of a question {moves}; {ways} of their revisions go the price’s way, {page.condition}."
    ]


def _figures(page: SelectedPart, headline: Headline | None) -> list[Figure]:
    bins, families = page.figures["bins"], page.competition.by_slug
    figures = []
    chart = line_chart(
        range(len(DAYS_AHEAD)), _curves(bins, page), y_title="Brier score (0 is best)", axis="days", unit="score"
    )
    if bins and chart:
        title = f"Brier scores by days to the market’s close, {page.condition}."
        note = (
            "A question counts once in each bin. Bins of fewer than four events are not drawn; the table has intervals."
        )
        figures.append(Figure("by-days", title, chart, note, **page.files))
    early = page.figures["early"]
    if early and early["entries"]:
        board = ForecastBoard(early["entries"], early, page.computed_at)
        figures.append(brier_figure(board, headline, families, query=page.selection.suffix))
    revisions = sorted(page.figures["revisions"], key=lambda row: row["revision"])
    if revisions:
        rows = []
        for row in revisions:
            family = families[row["forecaster"]]
            rows.append({**row, "family": family.slug, "display_name": family.display_name})
        widest = max(revisions, key=lambda row: row["n"])
        moves = interval_chart(
            rows, "revision", families, x_title="Mean change between two days", unit="fraction",
            baselines={"Price": widest["price_move"]},
        )  # fmt: skip
        title = f"How far models revise between two days, {page.condition}."
        note = "Mean absolute change with its 95 % interval over events. The line is the price’s on the same days."
        figures.append(Figure("revisions", title, moves, note, **page.files))
    return figures


def _curves(bins: Sequence[Mapping[str, Any]], page: SelectedPart) -> list[Curve]:
    """The curve of the market, dashed, and those of the models and agents."""
    slugs = dict.fromkeys(map(itemgetter("forecaster"), page.figures["revisions"]))
    for row in bins:
        for entry in row["entries"]:
            if not entry["reference"]:
                slugs[entry["forecaster"]] = None
    curves = []
    for slug in (MARKET, *slugs):
        values = []
        for row in bins:
            entry = _entry(row, slug)
            values.append(entry["brier"] if entry and row["events"] >= LEAST_EVENTS else None)
        if slug == MARKET:
            curves.append(Curve("Market", REFERENCE_COLORS[MARKET], values, dashed=True))
        else:
            curves.append(family_curve(page.competition.by_slug[slug], values))
    return curves
