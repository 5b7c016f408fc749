"""Markets: what can be bet on, at which prices, and who holds what."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, F, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Agent, Position, Trade
from markets.models import Market, Outcome, PriceObservation, Question, QuestionEntry
from scoring.views.holdings import STATES, fate_of_trade, holdings
from scoring.views.prices import price_history
from scoring.views.venues import venue_address

PER_PAGE = 50
SORTS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "volume": ("largest volume", ("-volume", "pk")),
    "closes": ("closing soonest", (F("closes_at").asc(nulls_last=True), "pk")),
    "resolved": ("resolved last", (F("resolved_at").desc(nulls_last=True), "pk")),
    "newest": ("first seen last", ("-first_seen_at", "-pk")),
}
PLAYED = {"bet": "an agent bet on", "held": "held now", "asked": "asked about"}
OBSERVATIONS, ROWS = 20, 30
"""Rows of each kind that a market's page shows unless all are asked for."""


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
    held: dict[int, int] = dict(
        Position.objects.open()
        .filter(market__in=[market.pk for market in page])
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
        "held": held,
    }
    return render(request, "scoring/markets.html", context)


def _choice(request: HttpRequest, name: str, known: list[str]) -> str:
    """What the address says of one filter. Raises Http404 for what it can not be."""
    value = request.GET.get(name, "")
    if value and value not in known:
        raise Http404(f"{name}={value} is not one of: {', '.join(known)}")
    return value


def _chosen(chosen: dict[str, str], words: str) -> QuerySet[Market]:
    rows = Market.objects.select_related("winning_outcome").prefetch_related("outcomes")
    rows = rows.defer("description", "event_title")
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
    market = get_object_or_404(Market.objects.select_related("winning_outcome"), pk=pk)
    outcomes = list(market.outcomes.annotate(bought=Count("trades", filter=Q(trades__kind="BUY"))))
    positions = list(Position.objects.filter(market=market))
    trades = list(Trade.objects.filter(market=market).select_related("brier_score").order_by("-executed_at", "-pk"))
    sides = {outcome.pk: outcome for outcome in outcomes}
    _know(market, sides, [*positions, *trades])
    held, past = holdings(positions)
    fates = [each.fate for each in (*held, *past)]
    most = None if "all" in request.GET else ROWS
    observed = list(PriceObservation.objects.filter(outcome__in=sides).order_by("-observed_at", "-pk")[:OBSERVATIONS])
    for each in observed:
        each.outcome = sides[each.outcome_id]
    questions = Question.objects.filter(options__outcome__market=market).defer("rules").distinct().order_by("-pk")
    return render(
        request,
        "scoring/market.html",
        {
            "market": market,
            "outcomes": outcomes,
            "address": venue_address(market),
            "held": held[:most],
            "past": past[:most],
            "hidden": max(0, len(held) - ROWS) + max(0, len(past) - ROWS) if most else 0,
            "states": [(name, fates.count(name)) for name in STATES if name in fates],
            "paid": sum(each.position.realized_pnl for each in past),
            "trades": [{"trade": trade, "fate": fate_of_trade(trade)} for trade in trades[:most]],
            "trades_hidden": max(0, len(trades) - ROWS) if most else 0,
            "observations": observed,
            "history": price_history(market, outcomes, trades),
            "questions": list(questions),
            "twin": _twin(questions),
        },
    )


def _know(market: Market, sides: Mapping[int, Outcome], rows: Sequence[Position | Trade]) -> None:
    """Lets rows on a market know its sides, and agents with their families and cohorts, each of these once.

    Joined, each would be made anew for every row.
    """
    agents = Agent.objects.select_related("family", "cohort").in_bulk({row.agent_id for row in rows})
    for row in rows:
        row.market, row.outcome, row.agent = market, sides[row.outcome_id], agents[row.agent_id]


def _twin(questions: QuerySet[Question]) -> Question | None:
    """The question at the other venue that is one with a question on this market."""
    pairs = QuestionEntry.objects.filter(Q(question__in=questions.values("pk")) | Q(twin__in=questions.values("pk")))
    pair = pairs.exclude(twin=None).select_related("question", "twin").order_by("-pk").first()
    if pair is None:
        return None
    own = {question.pk for question in questions}
    return pair.twin if pair.question_id in own else pair.question
