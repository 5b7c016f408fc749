"""The list of markets, and a market with its prices, positions and trades."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Position, Trade
from agents.services.settlement import OVERDUE_AFTER
from arena_site.manual_settlements import manual_settlements
from arena_site.pages.charts.price_history import price_history
from arena_site.pages.positions import count_states, positions_of, side_result
from arena_site.pages.selection import PageSelection, all_or_one
from markets.models import Market, Outcome, PriceObservation, Question, QuestionEntry
from markets.sources.registry import SOURCES, source_choices
from scoring.competition import competition_index

PER_PAGE = 50
SEARCH_LENGTH = 200
ORDERS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "": ("largest volume", ("-volume", "pk")),
    "closes": ("closing soonest", (F("closes_at").asc(nulls_last=True), "pk")),
    "resolved": ("recently resolved", (F("resolved_at").desc(nulls_last=True), "pk")),
    "newest": ("newest", ("-first_seen_at", "-pk")),
}
PLAYED = {"": "all", "bet": "traded", "held": "open positions", "asked": "forecast questions"}
TRADE_COLUMNS = (
    *("agent", "outcome", "outcome__side", "decision", "kind", "shares", "price", "amount", "implied_confidence"),
    *("executed_at", "brier_score__score"),
)
OBSERVATIONS, ROWS = 20, 30
"""Rows of each kind that a market's page shows without `?all`."""


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
    selected = _selected(selection).order_by(*ORDERS[selection["sort"]][1])
    page = Paginator(selected, PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "page": page,
        "selection": selection.with_text("page", ""),
        "hidden_fields": [(name, selection[name]) for name in ("status", "played", "sort") if selection[name]],
        "categories": categories,
        "filters": selection.filter_links(
            [
                ("Status", "status", all_or_one("all", Market.Status.values)),
                ("Arena activity", "played", PLAYED),
                ("Sort by", "sort", {name: label for name, (label, _) in ORDERS.items()}),
            ]
        ),
        "sources": source_choices(),
        "rows": _rows(list(page.object_list)),
    }
    return render(request, "markets.html", context)


def _rows(markets: Sequence[Market]) -> list[dict[str, Any]]:
    """The markets with their sides and prices or quotes, their winning sides and the numbers of their holders."""
    pks = [market.pk for market in markets]
    positions = Position.objects.open().filter(market__in=pks).order_by()
    holders = dict(positions.values_list("market").annotate(Count("agent", distinct=True)))
    sides: dict[int, list[tuple[str, Decimal | None]]] = defaultdict(list)
    names: dict[int | None, str] = {}
    outcomes = Outcome.objects.filter(market__in=pks).order_by("market_id", "index")
    for pk, market, side, price, quote in outcomes.values_list("pk", "market_id", "side", "price", "quote"):
        sides[market].append((side, quote if price is None else price))
        names[pk] = side
    return [
        {
            "market": market,
            "sides": sides[market.pk],
            "winner": names.get(market.winning_outcome_id),
            "holders": holders.get(market.pk),
        }
        for market in markets
    ]


def _selected(selection: PageSelection) -> QuerySet[Market]:
    markets = Market.objects.only("question", "category", "source", "status", "volume", "closes_at", "winning_outcome")
    markets = markets.filter(**{name: selection[name] for name in ("status", "source", "category") if selection[name]})
    for word in selection["q"].split():
        markets = markets.filter(question__icontains=word)
    if selection["played"] == "bet":
        return markets.filter(traded=True)
    if selection["played"] == "held":
        return markets.filter(pk__in=Position.objects.open().values("market"))
    return markets.filter(has_questions=True) if selection["played"] == "asked" else markets


@require_safe
def market(request: HttpRequest, pk: int) -> HttpResponse:
    """A market: its price history, its resolution, its positions and trades, and the questions on it."""
    market = get_object_or_404(Market, pk=pk)
    source, outcomes = SOURCES[market.source], list(market.outcomes.all())
    by_pk = {outcome.pk: outcome for outcome in outcomes}
    if market.winning_outcome_id in by_pk:
        market.winning_outcome = by_pk[market.winning_outcome_id]
    held, past = positions_of(market)
    trades: list[Any] = list(market.trades.order_by("-executed_at", "-pk").values_list(*TRADE_COLUMNS, named=True))
    # Read after the rows, so that it includes all their agents.
    agents = {agent.pk: agent for agent in competition_index().agents} if held or past or trades else {}
    bets = Counter(trade.outcome for trade in trades if trade.kind == Trade.Kind.BUY)
    results = {pk: side_result(market.status, won=pk == market.winning_outcome_id) for pk in by_pk}
    limit = None if "all" in request.GET else ROWS
    observations = PriceObservation.objects.filter(outcome__in=by_pk).select_related("outcome")
    questions = list(
        Question.objects.filter(options__outcome__market=market).only("text", "status").distinct().order_by("-pk")
    )
    return render(
        request,
        "market.html",
        {
            "market": market,
            "sides": [(outcome, bets[outcome.pk]) for outcome in outcomes],
            "venue_url": source.page_url(market.external_id, market.slug),
            "resolution_rule": source.rule,
            "manual": manual_settlements(market),
            "alarm_hours": OVERDUE_AFTER // timedelta(hours=1),
            "agents": agents,
            "held": held[:limit],
            "past": past[:limit],
            "hidden": sum(max(0, len(rows) - limit) for rows in (held, past)) if limit else 0,
            "states": count_states([*held, *past]),
            "realized": sum(position.realized_pnl for position in past),
            "trades": [(trade, results[trade.outcome]) for trade in trades[:limit]],
            "hidden_trades": max(0, len(trades) - limit) if limit else 0,
            "observations": list(observations.order_by("-observed_at", "-pk")[:OBSERVATIONS]),
            "history": price_history(market, outcomes, trades, agents),
            "questions": questions,
            "duplicate": _duplicate_question(questions),
        },
    )


def _duplicate_question(questions: Sequence[Question]) -> Question | None:
    """The question at another venue that duplicates a question on this market."""
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
