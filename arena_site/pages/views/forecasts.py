"""The leaderboard of the forecast protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import Family
from arena_site.pages.board_order import FORECAST_BOARD, BoardOrder, without
from arena_site.pages.charts.curves import Curve, family_curve
from arena_site.pages.charts.figures import Figure
from arena_site.pages.charts.front_page import Side, leads_figure, prices_figure
from arena_site.pages.charts.lines import LineChart, line_chart
from arena_site.pages.charts.markers import REFERENCE_COLORS
from arena_site.pages.citations import citation
from arena_site.pages.comparison_sentences import LEAST_DATA, pair_rows
from arena_site.pages.freshness import current_pause, dated, instants, requested_instant
from arena_site.pages.headlines import Headline, forecast_headline
from arena_site.pages.metrics import GROUPS, METRICS, disagreements
from arena_site.pages.selection import PageSelection, all_or_one, condition_labels
from arena_site.pages.stored_boards import StoredBoards, stored_boards
from foundation.clock import present
from scoring.constants import AFTER_CUTOFF, EXTREMISING, FORECAST, GAMMAS, SHOWN_REFERENCES
from scoring.leaderboard_keys import ranked_by
from scoring.selectors.claims import questions_per_week
from scoring.selectors.competition import competition_index, last_competition_index
from scoring.selectors.forecast_boards import ForecastBoard, forecast_board
from scoring.selectors.performance import release_changes
from scoring.selectors.published_boards import citable_instant

if TYPE_CHECKING:
    from scoring.selectors.forecast_panels import Exclusions

CREATED = {"": "all", AFTER_CUTOFF: "created after each model’s knowledge cut-off"}
RETURN_NOTE = (
    "Running mean over the questions in the order in which they resolved, with $1 on each. Stakes follow the forecast "
    "and the ask prices: at risk aversion 0 all is staked on the option with the best odds by the forecast, at 1 "
    "stakes equal the probabilities. Baselines are dashed; on the horizontal line a forecaster breaks even."
)


@require_safe
@dated
def forecasts(request: HttpRequest) -> HttpResponse:
    """The ranking with the references, and the figures beside the ranking."""
    boards = stored_boards(protocol=FORECAST)
    selection = _selection(request, boards)
    order = BoardOrder.from_request(request, FORECAST_BOARD)
    now = present()
    board = {name: selection[name] for name in ("arm", "methodology", "category")}
    as_of = None if selection["created"] else requested_instant(request, FORECAST, **board)
    leaderboard = _leaderboard(selection, as_of)
    competition = last_competition_index()  # as of this request: its choices read it anew
    conditions = competition.conditions
    cited_at = as_of or _citable_instant(leaderboard.entries, selection, board)
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
    returns = _returns_figure(leaderboard, selection, families)
    pace = questions_per_week(computed_at)
    bet_rows = []
    for row in report.get("forecasts_and_trades", []):
        bet_rows.append(row | {"row_family": families.get(row["family"])})
    return TemplateResponse(
        request,
        "forecasts.html",
        {
            "leaderboard": leaderboard,
            "left_out": None if as_of else _left_out(selection),
            "cutoffs": [(competition.names[slug], row) for slug, row in report.get("cutoffs", {}).items()],
            "selection": selection,
            "order": order,
            "columns": without(FORECAST_BOARD, *(["adjusted_brier"] if ranked_by(entries) == "brier" else [])),
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
                    ("As of", "as_of", {} if selection["created"] else instants(FORECAST, now, pause, **board)),
                ]
            ),
            "as_of": as_of,
            "computed_at": computed_at,
            "pause": pause,
            "headline": headline,
            "citation": citation(request, selection, title, headline, cited_at),
            "returns": returns,
            "risk_aversions": selection.links("gamma", dict(zip(GAMMAS, GAMMAS, strict=True))),
            **_board_figures(leaderboard, selection, headline, families),
            "pace": pace,
            "pairs": pair_rows(entries, list(filter(itemgetter("n"), report.get("pairs", []))), pace),
            "least_data": LEAST_DATA,
            "forecasts_and_trades": bet_rows,
            "agreement": agreement,
            "metric_groups": GROUPS,
            "metric_names": METRICS,
            "disagreements": disagreements(entries, agreement),
            "extremising": EXTREMISING,
            "shown_references": SHOWN_REFERENCES,
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


def _citable_instant(
    entries: Sequence[Mapping[str, Any]], selection: PageSelection, board: Mapping[str, str]
) -> datetime | None:
    """The instant of the published board with these ranks; boards after the knowledge cut-off are not published."""
    return None if selection["created"] else citable_instant(entries, FORECAST, **board)


def _leaderboard(selection: PageSelection, at: datetime | None) -> ForecastBoard:
    arm, methodology, category = selection["arm"], selection["methodology"], selection["category"]
    after_cutoff = bool(selection["created"])
    return forecast_board(arm=arm, methodology=methodology, category=category, at=at, after_cutoff=after_cutoff)


def _left_out(selection: PageSelection) -> Exclusions:
    """The questions and forecasts that the board leaves out."""
    from scoring.selectors.forecast_panels import Selection, left_out

    arm, methodology, category = selection["arm"], selection["methodology"], selection["category"]
    return left_out(Selection(arm, methodology), category)


def _returns_figure(
    leaderboard: ForecastBoard, selection: PageSelection, families: Mapping[str, Family]
) -> Figure | None:
    """The averaged returns as questions resolved."""
    curves = leaderboard.report.get("curves", {}).get("average_return", {}).get(selection["gamma"], {})
    drawn = [e for e in leaderboard.entries if not e["reference"] or e["forecaster"] in SHOWN_REFERENCES]
    chart = _return_chart(curves, drawn, families)
    condition = competition_index().conditions.label(selection["arm"])
    title = f"Average return per $1 staked as questions resolved, {condition}, at risk aversion {selection['gamma']}."
    query, at = selection.suffix, leaderboard.computed_at
    return Figure("returns", title, chart, RETURN_NOTE, at=at, query=query) if chart else None


def _board_figures(
    leaderboard: ForecastBoard, selection: PageSelection, headline: Headline | None, families: Mapping[str, Family]
) -> dict[str, Figure | None]:
    """The scores with and without prices, for the condition that shows them, and the lead over the market."""
    competition = last_competition_index()
    conditions, arm = competition.conditions, selection["arm"]
    side = Side(leaderboard, conditions.label(arm), conditions.phrase(arm), headline)
    changes = release_changes(competition.counted)
    leads = leads_figure(side, families, changes, query=selection.suffix)
    pair = next((pair for pair in conditions.pairs_apart("prices") if arm == pair[0]), None)
    if pair is None or {"as_of", "created"} & set(selection.chosen):
        return {"prices": None, "leads": leads}
    rival = forecast_board(
        arm=pair[1], methodology=selection["methodology"], category=selection["category"],
        parts=("pairs", "data", "market"),
    )  # fmt: skip
    phrase = conditions.phrase(pair[1])
    at = rival.computed_at or present()
    rival_headline = forecast_headline(rival.entries, rival.report, at=at, condition=phrase)
    sides = [side, Side(rival, conditions.label(pair[1]), phrase, rival_headline)]
    return {"prices": prices_figure(sides, families, query=selection.suffix), "leads": leads}


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
