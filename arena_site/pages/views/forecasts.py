"""The leaderboard of the forecast protocol."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.board_order import FORECAST_COLUMNS, BoardOrder, named_pairs
from arena_site.pages.charts.calibration import reliability_figure
from arena_site.pages.charts.curves import Curve, family_curve
from arena_site.pages.charts.diagrams import reliability_diagram
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.lines import LineChart, line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.citations import citation
from arena_site.pages.freshness import current_pause, instants, requested_instant
from arena_site.pages.headlines import forecast_headline
from arena_site.pages.metrics import GROUPS, METRICS, disagreements
from arena_site.pages.selection import PageSelection, all_or_one, condition_labels
from arena_site.pages.stored_boards import StoredBoards, stored_boards
from markets.models import Question, QuestionOption
from markets.selectors.option_prices import question_outcome_text
from scoring.constants import AFTER_CUTOFF, EXTREMISING, FORECAST, GAMMAS, SHOWN_REFERENCES
from scoring.leaderboard_keys import ranked_by
from scoring.selectors.competition import competition_index, last_competition_index
from scoring.selectors.forecast_boards import ForecastBoard, forecast_board

if TYPE_CHECKING:
    from scoring.services.forecast_panels import Exclusions

LATEST_QUESTIONS = 8
CREATED = {"": "all", AFTER_CUTOFF: "created after each model’s knowledge cut-off"}
RETURN_NOTE = (
    "Running mean over the questions in the order in which they resolved, with $1 on each. Stakes follow the forecast "
    "and the ask prices: at risk aversion 0 all is staked on the option with the best odds by the forecast, at 1 "
    "stakes equal the probabilities. Baselines are dashed; on the horizontal line a forecaster breaks even."
)


@require_safe
def forecasts(request: HttpRequest) -> HttpResponse:
    """The ranking with the references, and the figures beside the ranking."""
    boards = stored_boards(protocol=FORECAST)
    selection = _selection(request, boards)
    order = BoardOrder.from_request(request, FORECAST_COLUMNS)
    now = timezone.now()
    as_of = requested_instant(request, now)
    leaderboard = _leaderboard(selection, as_of)
    competition = last_competition_index()  # as of this request: its choices read it anew
    conditions = competition.conditions
    pause = None if as_of else current_pause(competition.cohorts.values(), now)
    families = competition.by_slug
    entries, report, computed_at = leaderboard.entries, leaderboard.report, leaderboard.computed_at
    arm, at = selection["arm"], computed_at or now
    condition = conditions.phrase(arm)
    if selection["created"]:
        condition += " on questions created after each model’s knowledge cut-off"
    headline = forecast_headline(entries, report, at=at, condition=condition)
    title = "forecast leaderboard" + (f", {conditions.label(arm)}" if "arm" in selection.chosen else "")
    categories = {} if selection["created"] else all_or_one("all", boards.categories(arm))
    agreement = report.get("agreement", {}).get("spearman", {})
    returns, calibration = _figures(leaderboard, selection, families)
    bet_rows = []
    for row in report.get("forecasts_and_trades", []):
        bet_rows.append(row | {"row_family": families.get(row["family"])})
    return TemplateResponse(
        request,
        "forecasts.html",
        {
            "leaderboard": leaderboard,
            "left_out": _left_out(selection, as_of),
            "cutoffs": [(competition.names[slug], row) for slug, row in report.get("cutoffs", {}).items()],
            "selection": selection,
            "order": order,
            "rows": order.entry_rows(entries, families),
            "ranked_by": ranked_by(entries),
            "has_external": any(map(itemgetter("external"), entries)),
            "report": report,
            "filters": selection.filter_links(
                [
                    ("Prompt condition", "arm", condition_labels(conditions, selection, boards.arms)),
                    ("Methodology", "methodology", all_or_one("all", boards.versions, minimum=2)),
                    ("Category", "category", categories),
                    ("Questions", "created", {} if selection["category"] else CREATED),
                    ("As of", "as_of", instants(competition, computed_at or now, pause)),
                ]
            ),
            "as_of": as_of,
            "pause": pause,
            "headline": headline,
            "citation": citation(request, selection, title, headline, computed_at),
            "returns": returns,
            "risk_aversions": selection.links("gamma", dict(zip(GAMMAS, GAMMAS, strict=True))),
            "calibration": calibration,
            "pairs": named_pairs(entries, list(filter(itemgetter("n"), report.get("pairs", [])))),
            "forecasts_and_trades": bet_rows,
            "agreement": agreement,
            "metric_groups": GROUPS,
            "metric_names": METRICS,
            "disagreements": disagreements(entries, agreement),
            "extremising": EXTREMISING,
            "questions": _latest_questions(),
        },
    )


def _selection(request: HttpRequest, boards: StoredBoards) -> PageSelection:
    choices = {
        "arm": competition_index().conditions.names(request.GET.get("methodology", "")),
        "methodology": ["", *boards.versions],
        "category": ["", *boards.categories()],
        "created": ["", AFTER_CUTOFF],
        "gamma": GAMMAS,
    }
    selection = PageSelection.dated(request, choices)
    if selection["created"] and selection["category"]:
        raise Http404(f"created={AFTER_CUTOFF} has no board by category")
    return selection


def _leaderboard(selection: PageSelection, at: datetime | None) -> ForecastBoard:
    arm, methodology, category = selection["arm"], selection["methodology"], selection["category"]
    after_cutoff = bool(selection["created"])
    return forecast_board(arm=arm, methodology=methodology, category=category, at=at, after_cutoff=after_cutoff)


def _left_out(selection: PageSelection, at: datetime | None) -> Exclusions | None:
    """What the board leaves out; None for a condition that shows nothing for which it might."""
    from scoring.services.forecast_panels import Selection, left_out

    arm, methodology, category = selection["arm"], selection["methodology"], selection["category"]
    has_sources = bool(last_competition_index().conditions.by_name[arm].sources)
    return left_out(Selection(arm, methodology, at), category) if has_sources else None


def _figures(
    leaderboard: ForecastBoard, selection: PageSelection, families: Mapping[str, Family]
) -> tuple[Figure | None, Figure | None]:
    """The averaged returns, and the reliability diagrams."""
    curves = leaderboard.report.get("curves", {})
    drawn = [e for e in leaderboard.entries if not e["reference"] or e["forecaster"] in SHOWN_REFERENCES]
    reliability = curves.get("reliability", {})
    bins = reliability.get("forecasters", {}) | reliability.get("references", {})
    diagrams = []
    for entry in drawn:
        name, family = entry["forecaster"], families.get(entry["family"])
        if bins.get(name):
            diagrams.append(reliability_diagram(entry["display_name"], bins[name], family, name))
    at, query = leaderboard.computed_at, selection.suffix
    returns = _return_chart(curves.get("average_return", {}).get(selection["gamma"], {}), drawn, families)
    condition = competition_index().conditions.label(selection["arm"])
    title = f"Average return per $1 staked as questions resolved, {condition}, at risk aversion {selection['gamma']}."
    figure = Figure("returns", title, returns, RETURN_NOTE, at=at, query=query) if returns else None
    return figure, reliability_figure(diagrams, condition=condition, at=at, query=query)


def _return_chart(
    returns: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]
) -> LineChart | None:
    """Averaged returns as questions resolve."""
    if not returns.get("questions"):
        return None
    lines = returns["forecasters"] | returns["references"]
    curves = []
    for entry in entries:
        if not entry["n"] or entry["external"]:
            continue
        values = [None if value is None else round(100 * (value - 1), 2) for value in lines[entry["forecaster"]]]
        if entry["reference"]:
            color = REFERENCE_COLORS[entry["forecaster"]]
            curves.append(Curve(entry["display_name"], color, values, dashed=True))
        else:
            curves.append(family_curve(families[entry["family"]], values))
    return line_chart(
        returns["questions"],
        curves,
        axis="questions",
        y_title="Average return (%)",
        baseline=Decimal(0),
        unit="percent",
    )


def _latest_questions() -> list[dict[str, Any]]:
    columns = ("text", "category", "exclusive", "status", "first_asked_at", "closes_at")
    latest = list(Question.objects.only(*columns).order_by("-pk")[:LATEST_QUESTIONS])
    options = QuestionOption.objects.filter(question__in=latest, happened=True)
    happened: dict[int, list[str]] = defaultdict(list)
    for question_id, name in options.values_list("question_id", "name"):
        happened[question_id].append(name)
    rows = []
    for question in latest:
        rows.append({"question": question, "outcome": question_outcome_text(question, happened[question.pk])})
    return rows
