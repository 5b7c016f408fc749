"""The trading leaderboard, and returns by weeks since a cohort's start."""

from operator import attrgetter, itemgetter
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from arena_site.pages.board_order import TRADING_BOARD, BoardOrder, without
from arena_site.pages.charts.after_costs import costs_figure, costs_sentence
from arena_site.pages.charts.portfolios import RETURNS_TITLE, returns_figure
from arena_site.pages.citations import citation
from arena_site.pages.freshness import current_pause, dated, instants, next_decision_run, requested_instant
from arena_site.pages.headlines import largest_bet_sentence, trading_headline
from arena_site.pages.selection import PageSelection, all_or_one
from arena_site.pages.stored_boards import stored_boards
from foundation.clock import present
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.models import Leaderboard
from scoring.selectors.after_costs import entries_with_books
from scoring.selectors.cohort_returns import cohort_returns
from scoring.selectors.competition import competition_index
from scoring.selectors.leaderboard_entries import trading_board
from scoring.selectors.published_boards import citable_instant

NOT_PUBLISHED = ("return_after_costs", "return_without_largest_bet")
"""Columns that published boards lack."""


@require_safe
@dated
def trading(request: HttpRequest) -> HttpResponse:
    """The ranking by return, and returns by weeks since a cohort's start."""
    order = BoardOrder.from_request(request, TRADING_BOARD)
    now = present()
    computed = dict(Leaderboard.objects.filter(protocol=TRADING).values_list("methodology", "computed_at"))
    versions, categories = sorted(filter(None, computed)), stored_boards(protocol=FORECAST).categories()
    choices = {"methodology": [ALL_METHODOLOGIES, *versions], "category": ["", *categories]}
    selection = PageSelection.dated(request, choices)
    board = {name: selection[name] for name in ("methodology", "category")}
    as_of = requested_instant(request, TRADING, **board)
    computed_at = as_of or computed.get(selection["methodology"])
    competition = competition_index()
    pause = None if as_of else current_pause(competition.cohorts.values(), now)
    families = competition.by_slug
    entries, pairs = trading_board(methodology=selection["methodology"], category=selection["category"], at=as_of)
    participants = competition.counted_under(selection["methodology"])
    agents = [agent for agent in participants if not agent.family.external and not as_of]
    returns = cohort_returns(agents, at=now)
    cohorts = competition.cohorts.values()
    headline = trading_headline(entries, pairs, cohorts, at=computed_at or now)
    costed = entries_with_books(entries)
    return TemplateResponse(
        request,
        "trading.html",
        {
            "selection": selection,
            "as_of": as_of,
            "json_query": urlencode(selection.of("methodology", "category", "as_of")),
            "computed_at": computed_at,
            "headline": headline,
            "largest_bet": "" if headline is None or as_of else largest_bet_sentence(headline.leader),
            "citation": citation(
                request, selection, "trading leaderboard", headline, as_of or citable_instant(entries, TRADING, **board)
            ),
            "order": order,
            "columns": without(TRADING_BOARD, *NOT_PUBLISHED) if as_of else TRADING_BOARD,
            "rows": order.entry_rows(entries, families),
            "choices": [families[entry["family"]] for entry in entries],
            "has_external": any(map(itemgetter("external"), entries)),
            "most_cohorts": max(map(itemgetter("cohorts"), entries), default=0),
            "filters": selection.filter_links(
                [
                    ("Methodology", "methodology", all_or_one("all versions", versions, minimum=2)),
                    ("Category", "category", all_or_one("all", categories)),
                    ("As of", "as_of", instants(TRADING, now, pause, **board)),
                ]
            ),
            "figure": returns_figure(
                returns,
                agents,
                families,
                RETURNS_TITLE.format(whose="each model"),
                query=selection.suffix,
            ),
            "costs": costs_figure(costed, families, query=selection.suffix, at=computed_at or now) if costed else None,
            "costs_sentence": costs_sentence(costed, headline.condition) if costed and headline else "",
            "without_book": sum(entry["trades_without_book"] or 0 for entry in entries),
            "methodology": competition.methodology,
            "cohorts": sum(cohort.started_at <= (as_of or now) for cohort in cohorts),
            "voided": list(filter(attrgetter("voided_at"), cohorts)),
            "next_run": next_decision_run(now),
            "pause": pause,
        },
    )
