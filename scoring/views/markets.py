"""Markets: what can be bet on, at which prices, and who holds what."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Position, Trade
from markets.models import Market, Outcome, PriceObservation, Question, QuestionEntry
from scoring.roster import roster
from scoring.views.holdings import STATES, fate_of_side, holdings
from scoring.views.prices import Deal, price_history
from scoring.views.venues import venue_address

PER_PAGE = 50
SORTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "volume": ("largest volume", ("-volume", "pk")),
    "closes": ("closing soonest", (F("closes_at").asc(nulls_last=True), "pk")),
    "resolved": ("resolved last", (F("resolved_at").desc(nulls_last=True), "pk")),
    "newest": ("first seen last", ("-first_seen_at", "-pk")),
}
PLAYED = {"bet": "an agent bet on", "held": "held now", "asked": "asked about"}
DEAL = (
    *("agent_id", "outcome_id", "decision_id", "kind", "shares", "price", "amount", "implied_confidence"),
    *("executed_at", "brier_score__score"),
)
"""What the page shows of a trade, in the order of `Deal`."""
OBSERVATIONS, ROWS = 20, 30
"""Rows of each kind that a market's page shows unless all are asked for."""


@dataclass(frozen=True, slots=True)
class Row:
    """A market in the list: its sides with their prices, or else the venue's quotes, and who won and holds it."""

    market: Market
    sides: Sequence[tuple[str, Decimal | None]]
    winner: str | None
    holders: int | None


@require_safe
def markets(request: HttpRequest) -> HttpResponse:
    """Markets by volume, a page at a time: all, or those of a status, venue, category, some words, or played ones."""
    categories = list(
        Market.objects.exclude(category="").order_by("category").values_list("category", flat=True).distinct()
    )
    choices = {
        "status": Market.Status.values,
        "source": Market.Source.values,
        "category": categories,
        "played": list(PLAYED),
        "sort": list(SORTS),
    }
    chosen = {name: _choice(request, name, known) for name, known in choices.items()}
    words = " ".join(request.GET.get("q", "").replace("\0", "").split())[:200]
    asked = {name: value for name, value in ({"q": words} | chosen).items() if value}
    rows = _chosen(chosen, words).order_by(*SORTS[chosen["sort"] or "volume"][1])
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    listed = list(page.object_list)
    held: dict[int, int] = dict(
        Position.objects.open()
        .filter(market__in=[market.pk for market in listed])
        .order_by()
        .values_list("market")
        .annotate(holders=Count("agent", distinct=True))
    )

    def link(**other: str) -> str:
        query = {name: value for name, value in (asked | other).items() if value}
        return f"?{urlencode(query)}" if query else "?"

    def tabs(name: str, labels: dict[str, str]) -> list[dict[str, Any]]:
        return [
            {"query": link(**{name: value}), "label": label, "here": chosen[name] == value}
            for value, label in labels.items()
        ]

    context: dict[str, Any] = {
        "page": page,
        "words": words,
        "chosen": chosen,
        "asked": asked,
        "kept": [(name, chosen[name]) for name in ("status", "played", "sort") if chosen[name]],
        "categories": categories,
        "tabs": [
            ("Status", tabs("status", {"": "all"} | {value: value for value in Market.Status.values})),
            ("Played", tabs("played", {"": "all"} | PLAYED)),
            ("Order", tabs("sort", {"": SORTS["volume"][0]} | {k: SORTS[k][0] for k in list(SORTS)[1:]})),
        ],
        "sources": Market.Source.choices,
        "earlier": link(page=str(page.previous_page_number())) if page.has_previous() else None,
        "later": link(page=str(page.next_page_number())) if page.has_next() else None,
        "rows": _rows(listed, held),
    }
    return render(request, "scoring/markets.html", context)


def _rows(listed: Sequence[Market], held: Mapping[int, int]) -> list[Row]:
    sides: dict[int, list[tuple[str, Decimal | None]]] = defaultdict(list)
    names: dict[int | None, str] = {}
    outcomes = Outcome.objects.filter(market__in=[market.pk for market in listed]).order_by("market_id", "index")
    for pk, market, side, price, quote in outcomes.values_list("pk", "market_id", "side", "price", "quote"):
        sides[market].append((side, quote if price is None else price))
        names[pk] = side
    return [
        Row(market, sides[market.pk], names.get(market.winning_outcome_id), held.get(market.pk)) for market in listed
    ]


def _choice(request: HttpRequest, name: str, known: list[str]) -> str:
    """What the address says of one filter. Raises Http404 for what it can not be."""
    value = request.GET.get(name, "")
    if value and value not in known:
        raise Http404(f"{name}={value} is not one of: {', '.join(known)}")
    return value


def _chosen(chosen: dict[str, str], words: str) -> QuerySet[Market]:
    rows = Market.objects.only("question", "category", "source", "status", "volume", "closes_at", "winning_outcome")
    rows = rows.filter(**{name: chosen[name] for name in ("status", "source", "category") if chosen[name]})
    for word in words.split():
        rows = rows.filter(question__icontains=word)
    if chosen["played"] == "bet":
        rows = rows.filter(followed=True)
    elif chosen["played"] == "held":
        rows = rows.filter(pk__in=Position.objects.open().values("market"))
    elif chosen["played"] == "asked":
        rows = rows.filter(asked=True)
    return rows


@require_safe
def market(request: HttpRequest, pk: int) -> HttpResponse:
    """One market: its price over time with who entered and left, its resolution, and everything that rests on it."""
    market = get_object_or_404(Market, pk=pk)
    outcomes = list(market.outcomes.all())
    sides = {outcome.pk: outcome for outcome in outcomes}
    if market.winning_outcome_id in sides:
        market.winning_outcome = sides[market.winning_outcome_id]
    positions = list(Position.objects.filter(market=market))
    trades = list(Trade.objects.filter(market=market).order_by("-executed_at", "-pk").values_list(*DEAL))
    # Read after the rows, so that it knows all whom they name.
    players = {player.pk: player for player in roster().players} if positions or trades else {}
    for position in positions:
        position.market, position.outcome = market, sides[position.outcome_id]
        # A player is as much of an agent as the page shows.
        Position.agent.field.set_cached_value(position, players[position.agent_id])  # type: ignore[arg-type]
    deals = [Deal(players[agent], sides[outcome], *deal) for agent, outcome, *deal in trades]
    bought = Counter(deal.outcome.pk for deal in deals if deal.kind == Trade.Kind.BUY)
    fate_of = {pk: fate_of_side(market.status, won=pk == market.winning_outcome_id) for pk in sides}
    held, past = holdings(positions)
    fates = [each.fate for each in (*held, *past)]
    most = None if "all" in request.GET else ROWS
    observed = list(PriceObservation.objects.filter(outcome__in=sides).order_by("-observed_at", "-pk")[:OBSERVATIONS])
    for each in observed:
        each.outcome = sides[each.outcome_id]
    asked = Question.objects.filter(options__outcome__market=market).only("text", "status").distinct()
    questions = list(asked.order_by("-pk"))
    return render(
        request,
        "scoring/market.html",
        {
            "market": market,
            "sides": [(outcome, bought[outcome.pk]) for outcome in outcomes],
            "address": venue_address(market),
            "held": held[:most],
            "past": past[:most],
            "hidden": max(0, len(held) - ROWS) + max(0, len(past) - ROWS) if most else 0,
            "states": [(name, fates.count(name)) for name in STATES if name in fates],
            "paid": sum(each.position.realized_pnl for each in past),
            "deals": [(deal, fate_of[deal.outcome.pk]) for deal in deals[:most]],
            "deals_hidden": max(0, len(deals) - ROWS) if most else 0,
            "observations": observed,
            "history": price_history(market, outcomes, deals),
            "questions": questions,
            "twin": _twin(questions),
        },
    )


def _twin(questions: Sequence[Question]) -> Question | None:
    """The question at the other venue that is one with a question on this market."""
    own = {question.pk for question in questions}
    if not own:
        return None
    pairs = QuestionEntry.objects.filter(Q(question__in=own) | Q(twin__in=own), twin__isnull=False).order_by("-pk")
    ends = [f"{end}__{column}" for end in ("question", "twin") for column in ("pk", "text", "source")]
    for pair in pairs.values_list(*ends)[:1]:
        pk, text, source = pair[3:] if pair[0] in own else pair[:3]
        return Question(pk=pk, text=text, source=source)
    return None
