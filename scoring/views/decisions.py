"""One decision, whole: what the model was sent, what it said, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Decision, Instruction, Position, Trade
from agents.records import canonical
from agents.services.chain import task_record
from markets.models import Market, Outcome, PriceObservation, UniverseEntry
from scoring.views.calls import latency_ms, said
from scoring.views.holdings import fate_of_trade


@dataclass(frozen=True, slots=True)
class Wish:
    """An instruction with the market that it means, where there is such a one."""

    instruction: Instruction
    market: Market | None
    side: str
    size: str | None
    named: str
    """What the model wrote where an id belongs."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A trade, where its price came from, what it could have staked at most, and what its side came to."""

    trade: Trade
    entry: UniverseEntry | None
    source: str
    stale: bool
    seen: PriceObservation | None
    limit: Decimal | None
    fate: str


@require_safe
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """A decision with its reasoning, instructions, trades and every call to the model."""
    decision = get_object_or_404(
        Decision.objects.with_costs().select_related("agent__family", "cohort__methodology", "universe", "link"),
        pk=pk,
    )
    calls = list(decision.calls.prefetch_related("instructions"))
    for call in calls:
        call.decision = decision
    trades = decision.trades.select_related("market", "outcome", "brier_score", "journal_entry", "position")
    link = getattr(decision, "link", None)
    beside = Decision.objects.filter(agent=decision.agent_id).order_by("week").values_list("week", "pk")
    return render(
        request,
        "scoring/decision.html",
        {
            "decision": decision,
            "agent": decision.agent,
            "family": decision.agent.family,
            "cohort": decision.cohort,
            "calls": said(calls),
            "wishes": _wishes([instruction for call in calls for instruction in call.instructions.all()]),
            "fills": _fills(decision, list(trades.order_by("sequence"))),
            "latency_ms": latency_ms(calls),
            "link": link,
            "record": canonical(task_record(decision, next((c for c in calls if c.pk == link.call_id), None)))
            if link
            else None,
            "weeks": list(beside),
        },
    )


def _wishes(instructions: Sequence[Instruction]) -> list[Wish]:
    """The instructions, each with the market or position that it names by its id as text."""
    named: dict[str, set[int]] = {"market_id": set(), "position_id": set()}
    for instruction in instructions:
        for key, ids in named.items():
            value = _id(instruction.payload.get(key))
            if value is not None:
                ids.add(value)
    markets = {str(m.pk): m for m in Market.objects.filter(pk__in=named["market_id"]).defer("description")}
    found = Position.objects.filter(pk__in=named["position_id"]).select_related("market", "outcome")
    positions = {str(p.pk): p for p in found.defer("market__description")}
    return [_wish(instruction, markets, positions) for instruction in instructions]


def _id(value: Any) -> int | None:
    """An id as the database can hold it: what a model wrote may be anything."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _wish(instruction: Instruction, markets: dict[str, Market], positions: dict[str, Position]) -> Wish:
    payload = instruction.payload
    if instruction.kind == "SELL":
        position = positions.get(str(payload.get("position_id")))
        market, side = (position.market, position.side) if position else (None, "")
        return Wish(instruction, market, side, payload.get("percentage"), str(payload.get("position_id")))
    named = str(payload.get("market_id"))
    return Wish(instruction, markets.get(named), str(payload.get("side", "")), payload.get("amount"), named)


def _fills(decision: Decision, trades: Sequence[Trade]) -> list[Fill]:
    universe, rules = decision.universe, decision.methodology
    entries: dict[int, UniverseEntry] = {}
    seen: dict[int, PriceObservation] = {}
    if universe is not None and trades:
        found = UniverseEntry.objects.filter(universe=universe, market__in={trade.market_id for trade in trades})
        entries = {entry.market_id: entry for entry in found}
        seen = PriceObservation.objects.latest({trade.outcome_id for trade in trades}, universe.frozen_at)
    fills = []
    for trade in trades:
        entry = entries.get(trade.market_id)
        source = (entry.sources if entry else {}).get(trade.side, {})
        name = source.get("source") or ""
        label = Outcome.PriceSource(name).label if name in Outcome.PriceSource.values else name
        limit = None
        if trade.kind == Trade.Kind.BUY and (paid := getattr(trade, "journal_entry", None)):
            limit = rules.maximum_bet(paid.balance + trade.amount)
        stale = bool(source.get("stale"))
        fills.append(Fill(trade, entry, label, stale, seen.get(trade.outcome_id), limit, fate_of_trade(trade)))
    return fills
