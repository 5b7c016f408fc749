"""The list of markets, and a market with its prices, positions and trades."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Position, Trade
from arena_site.pages.views.positions import count_states, positions_of, side_result
from arena_site.pages.views.price_history import MarketTrade, price_history
from arena_site.pages.views.selection import PageSelection, all_or_one
from markets.models import Market, Outcome, PriceObservation, Question, QuestionEntry
from markets.sources.registry import SOURCES, source_choices
from scoring.competition import competition_index

PER_PAGE = 50
SEARCH_LENGTH = 200
ORDERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "": ("largest volume", ("-volume", "pk")),
    "closes": ("closing soonest", (F("closes_at").asc(nulls_last=True), "pk")),
    "resolved": ("resolved last", (F("resolved_at").desc(nulls_last=True), "pk")),
    "newest": ("first seen last", ("-first_seen_at", "-pk")),
}
PLAYED = {"": "all", "bet": "an agent bet on", "held": "held now", "asked": "asked about"}
TRADE_COLUMNS = (
    *("agent_id", "outcome_id", "decision_id", "kind", "shares", "price", "amount", "implied_confidence"),
    *("executed_at", "brier_score__score"),
)
"""Agent and outcome, then the fields of `MarketTrade` in their order."""
OBSERVATIONS, ROWS = 20, 30
"""Rows of each kind that a market's page shows without `?all`."""


@dataclass(frozen=True, slots=True)
class MarketRow:
    """A market in the list: its sides with prices or quotes, its winning side, and the number of its holders."""

    market: Market
    sides: Sequence[tuple[str, Decimal | None]]
    winner: str | None
    holders: int | None


@require_safe
def markets(request: HttpRequest) -> HttpResponse:
    """Markets, filtered by status, venue, category, use and words in the question."""
    categories = list(
        Market.objects.exclude(category="").order_by("category").values_list("category", flat=True).distinct()
    )
    words = " ".join(request.GET.get("q", "").replace("\0", "").split())[:SEARCH_LENGTH]
    selection = PageSelection.from_request(
        request,
        {
            "status": ["", *Market.Status.values],
            "source": ["", *SOURCES],
            "category": ["", *categories],
            "played": list(PLAYED),
            "sort": list(ORDERS),
        },
    ).with_text("q", words)
    found = _selected(selection).order_by(*ORDERS[selection["sort"]][1])
    page = Paginator(found, PER_PAGE).get_page(request.GET.get("page"))
    paged = selection.with_text("page", "")
    listed = list(page.object_list)
    holders: dict[int, int] = dict(
        Position.objects.open()
        .filter(market__in=[market.pk for market in listed])
        .order_by()
        .values_list("market")
        .annotate(Count("agent", distinct=True))
    )
    context: dict[str, Any] = {
        "page": page,
        "selection": selection,
        "hidden_fields": [(name, selection[name]) for name in ("status", "played", "sort") if selection[name]],
        "categories": categories,
        "filters": selection.filter_links(
            [
                ("Status", "status", all_or_one("all", Market.Status.values)),
                ("Played", "played", PLAYED),
                ("Order", "sort", {name: label for name, (label, _) in ORDERS.items()}),
            ]
        ),
        "sources": source_choices(),
        "previous": paged.query(page=str(page.previous_page_number())) if page.has_previous() else None,
        "next": paged.query(page=str(page.next_page_number())) if page.has_next() else None,
        "rows": _rows(listed, holders),
    }
    return render(request, "markets.html", context)


def _rows(listed: Sequence[Market], holders: Mapping[int, int]) -> list[MarketRow]:
    sides: dict[int, list[tuple[str, Decimal | None]]] = defaultdict(list)
    names: dict[int | None, str] = {}
    outcomes = Outcome.objects.filter(market__in=[market.pk for market in listed]).order_by("market_id", "index")
    for pk, market, side, price, quote in outcomes.values_list("pk", "market_id", "side", "price", "quote"):
        sides[market].append((side, quote if price is None else price))
        names[pk] = side
    return [
        MarketRow(market, sides[market.pk], names.get(market.winning_outcome_id), holders.get(market.pk))
        for market in listed
    ]


def _selected(selection: PageSelection) -> QuerySet[Market]:
    found = Market.objects.only("question", "category", "source", "status", "volume", "closes_at", "winning_outcome")
    found = found.filter(**{name: selection[name] for name in ("status", "source", "category") if selection[name]})
    for word in selection["q"].split():
        found = found.filter(question__icontains=word)
    if selection["played"] == "bet":
        found = found.filter(traded=True)
    elif selection["played"] == "held":
        found = found.filter(pk__in=Position.objects.open().values("market"))
    elif selection["played"] == "asked":
        found = found.filter(has_questions=True)
    return found


@require_safe
def market(request: HttpRequest, pk: int) -> HttpResponse:
    """A market: its price history, its resolution, its positions and trades, and the questions on it."""
    market = get_object_or_404(Market, pk=pk)
    outcomes = list(market.outcomes.all())
    by_pk = {outcome.pk: outcome for outcome in outcomes}
    if market.winning_outcome_id in by_pk:
        market.winning_outcome = by_pk[market.winning_outcome_id]
    held, past = positions_of(market)
    found = list(Trade.objects.filter(market=market).order_by("-executed_at", "-pk").values_list(*TRADE_COLUMNS))
    # Read after the rows, so that it includes all their agents.
    agents = {agent.pk: agent for agent in competition_index().agents} if held or past or found else {}
    trades = [MarketTrade(agents[agent], by_pk[outcome], *columns) for agent, outcome, *columns in found]
    bets = Counter(trade.outcome.pk for trade in trades if trade.kind == Trade.Kind.BUY)
    results = {pk: side_result(market.status, won=pk == market.winning_outcome_id) for pk in by_pk}
    limit = None if "all" in request.GET else ROWS
    observations = list(
        PriceObservation.objects.filter(outcome__in=by_pk).order_by("-observed_at", "-pk")[:OBSERVATIONS]
    )
    for observation in observations:
        observation.outcome = by_pk[observation.outcome_id]
    questions = list(
        Question.objects.filter(options__outcome__market=market).only("text", "status").distinct().order_by("-pk")
    )
    return render(
        request,
        "market.html",
        {
            "market": market,
            "sides": [(outcome, bets[outcome.pk]) for outcome in outcomes],
            "venue_url": venue_url(market),
            "resolution_rule": SOURCES[market.source].rule,
            "agents": agents,
            "held": held[:limit],
            "past": past[:limit],
            "hidden": sum(max(0, len(rows) - limit) for rows in (held, past)) if limit else 0,
            "states": count_states([*held, *past]),
            "realized": sum(position.realized_pnl for position in past),
            "trades": [(trade, results[trade.outcome.pk]) for trade in trades[:limit]],
            "hidden_trades": max(0, len(trades) - limit) if limit else 0,
            "observations": observations,
            "history": price_history(market, outcomes, trades),
            "questions": questions,
            "duplicate": _duplicate_question(questions),
        },
    )


def venue_url(market: Market) -> str | None:
    """The market's page at its venue; None if it has no address."""
    return SOURCES[market.source].page_url(market.external_id, market.slug)


def _duplicate_question(questions: Sequence[Question]) -> Question | None:
    """The question at the other venue that duplicates a question on this market."""
    own = {question.pk for question in questions}
    if not own:
        return None
    pairs = QuestionEntry.objects.filter(Q(question__in=own) | Q(duplicate__in=own), duplicate__isnull=False).order_by(
        "-pk"
    )
    columns = [f"{side}__{column}" for side in ("question", "duplicate") for column in ("pk", "text", "source")]
    for pair in pairs.values_list(*columns)[:1]:
        pk, text, source = pair[3:] if pair[0] in own else pair[:3]
        return Question(pk=pk, text=text, source=source)
    return None
