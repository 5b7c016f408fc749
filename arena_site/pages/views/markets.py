"""The list of markets, and a market with its prices, positions and trades."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import attrgetter
from typing import Any

from django.db.models import Count, Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.template.response import TemplateResponse
from django.views.decorators.http import require_safe

from agents.models import Family, Position, Trade
from agents.services.settlement import OVERDUE_AFTER
from arena_site.pages.charts.price_history import price_figure
from arena_site.pages.lists import Dates, Filter, ListColumn, ListPage, labels, stored_categories
from arena_site.pages.positions import count_states, positions_of, side_result
from arena_site.pages.selection import PageSelection
from markets.models import Market, Outcome, PriceObservation, Question
from markets.selectors.list_filters import matching_markets
from markets.selectors.option_prices import shown_price
from markets.sources.registry import SOURCES, source_choices
from scoring.selectors.competition import competition_index

COLUMNS = (
    ListColumn("Question", "question", "question"),
    ListColumn("Price", number=True),
    ListColumn("Status", "status", "status"),
    ListColumn("Volume", "volume", "volume", descending=True, number=True),
    ListColumn("Closes", "closes", "closes_at"),
    ListColumn("Resolved", "resolved", "resolved_at", descending=True),
    ListColumn("Holders", number=True),
)
PLAYED = {"bet": "traded", "held": "open positions", "asked": "forecast questions"}
CLOSING = Dates("Closes", "closes_at", "closes_from", "closes_to")
LIST_COLUMNS = (
    *("question", "category", "source", "external_id", "slug", "status", "volume", "closes_at", "resolved_at"),
    "winning_outcome",
)
TRADE_COLUMNS = (
    *("agent", "outcome", "outcome__side", "decision", "kind", "shares", "price", "amount", "implied_confidence"),
    *("executed_at", "brier_score__score"),
)
OBSERVATIONS, ROWS = 20, 30
"""Rows of each kind that a market's page shows without `?all`."""


@require_safe
def markets(request: HttpRequest) -> HttpResponse:
    """Markets, filtered by words in the question, status, category, venue, use, model and closing day."""
    competition = competition_index()
    listing = ListPage(
        request,
        COLUMNS,
        "-volume",
        [
            Filter("status", "Status", labels(Market.Status.values)),
            Filter("category", "Category", labels(stored_categories(Market.objects.all()))),
            Filter("source", "Venue", dict(source_choices())),
            Filter("played", "Arena activity", PLAYED),
            Filter("model", "Traded by", competition.names, "any model"),
        ],
        [CLOSING],
    )
    page = listing.page(_selected(listing.selection, competition.by_slug))
    context = {"page": page, "listing": listing, "rows": _rows(list(page.object_list))}
    return render(request, "markets.html", context)


def _rows(markets: Sequence[Market]) -> list[dict[str, Any]]:
    """The markets with their sides and prices or quotes, their winning sides and the numbers of their holders."""
    positions = Position.objects.open().filter(market__in=markets).order_by()
    holders = dict(positions.values_list("market").annotate(Count("agent", distinct=True)))
    sides: dict[int, list[Outcome]] = defaultdict(list)
    outcomes = Outcome.objects.filter(market__in=markets).only("market", "side", "price", "quote")
    for outcome in outcomes.order_by("market_id", "index"):
        sides[outcome.market_id].append(outcome)
    rows = []
    for market in markets:
        prices, winner = [], None
        for outcome in sides[market.pk]:
            prices.append((outcome.side, shown_price(market, outcome)))
            if outcome.pk == market.winning_outcome_id:
                winner = outcome.side
        row = {
            "market": market,
            "sides": prices,
            "winner": winner,
            "holders": holders.get(market.pk),
        }
        rows.append(row)
    return rows


def _selected(selection: PageSelection, families: Mapping[str, Family]) -> QuerySet[Market]:
    markets = matching_markets(Market.objects.only(*LIST_COLUMNS), selection["q"])
    markets = markets.filter(**selection.of("status", "source", "category"))
    if selection["model"]:
        positions = Position.objects.filter(agent__family=families[selection["model"]], market=OuterRef("pk"))
        markets = markets.filter(Exists(positions))
    if selection["played"] == "held":
        return markets.filter(pk__in=Position.objects.open().values("market"))
    if selection["played"] == "bet":
        return markets.filter(traded=True)
    return markets.filter(has_questions=True) if selection["played"] == "asked" else markets


@require_safe
def market(request: HttpRequest, pk: int) -> HttpResponse:
    """A market: its price history, its resolution, its positions and trades, and the questions on it."""
    market = get_object_or_404(Market, pk=pk)
    source, outcomes = SOURCES[market.source], list(market.outcomes.all())
    for outcome in outcomes:
        if outcome.pk == market.winning_outcome_id:
            market.winning_outcome = outcome
    current, past = positions_of(market)
    trades = _trades(market)
    # Read after the rows, so that it includes all their agents.
    agents = competition_index().agents_by_id if current or past or trades else {}
    bets = Counter(trade.outcome for trade in trades if trade.kind == Trade.Kind.BUY)
    sides, results = [], {}
    for outcome in outcomes:
        sides.append((outcome, shown_price(market, outcome), bets[outcome.pk]))
        results[outcome.pk] = side_result(market.status, won=outcome.pk == market.winning_outcome_id)
    limit = None if "all" in request.GET else ROWS
    observations = PriceObservation.objects.filter(outcome__in=outcomes).select_related("outcome")
    questions = list(
        Question.objects.filter(options__outcome__market=market).only("text", "status").distinct().order_by("-pk")
    )
    return TemplateResponse(
        request,
        "market.html",
        {
            "market": market,
            "sides": sides,
            "resolution_rule": source.rule,
            "manual": list(market.manual_settlements.select_related("winner")) if market.is_final else [],
            "alarm_hours": OVERDUE_AFTER // timedelta(hours=1),
            "agents": agents,
            "held": current[:limit],
            "past": past[:limit],
            "hidden": len(current[limit:]) + len(past[limit:]) if limit else 0,
            "states": count_states([*current, *past]),
            "realized": sum(map(attrgetter("realized_pnl"), past)),
            "trades": [(trade, results[trade.outcome]) for trade in trades[:limit]],
            "hidden_trades": max(0, len(trades) - limit) if limit else 0,
            "observations": list(observations.order_by("-observed_at", "-pk")[:OBSERVATIONS]),
            "figure": price_figure(market, outcomes, trades, agents),
            "questions": questions,
        },
    )


def _trades(market: Market) -> list[Any]:
    """The market's trades, newest first."""
    return list(market.trades.order_by("-executed_at", "-pk").values_list(*TRADE_COLUMNS, named=True))
