"""One decision, whole: what the model was sent, what it said, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Decision, Instruction, ModelCall, Position, Trade
from markets.models import Market, Outcome, UniverseEntry
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
class Said:
    """A call with its instructions; `prompt` is None where it repeats the first call's but for a note."""

    call: ModelCall
    wishes: Sequence[Wish]
    prompt: str | None


@dataclass(frozen=True, slots=True)
class Fill:
    """A trade, where its price came from, and what its side came to."""

    trade: Trade
    price_source: str
    price_stale: bool
    fate: str


@require_safe
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """A decision with its reasoning, instructions, trades and every call to the model."""
    decision = get_object_or_404(
        Decision.objects.with_costs().select_related("agent__family", "cohort__methodology", "universe"),
        pk=pk,
    )
    calls = list(decision.calls.prefetch_related("instructions"))
    for call in calls:
        call.decision = decision
    said = _said(calls)
    trades = list(decision.trades.select_related("market", "outcome", "brier_score").order_by("sequence"))
    return render(
        request,
        "scoring/decision.html",
        {
            "decision": decision,
            "agent": decision.agent,
            "family": decision.agent.family,
            "cohort": decision.cohort,
            "calls": said,
            "wishes": [wish for call in said for wish in call.wishes],
            "fills": _fills(decision, trades),
            "latency_ms": sum(call.latency_ms or 0 for call in calls) if calls else None,
        },
    )


def _said(calls: Sequence[ModelCall]) -> list[Said]:
    instructions = [instruction for call in calls for instruction in call.instructions.all()]
    markets, positions = _meant(instructions)
    return [
        Said(
            call,
            [_wish(instruction, markets, positions) for instruction in call.instructions.all()],
            None if _repeats(call, calls[0]) else call.user_prompt,
        )
        for call in calls
    ]


def _repeats(call: ModelCall, first: ModelCall) -> bool:
    """Was the message that of the first call, but for the note about what was wrong?"""
    return call is not first and all(
        getattr(call, part) == getattr(first, part) for part in ("portfolio_block", "positions_block", "awaiting")
    )


def _meant(instructions: Sequence[Instruction]) -> tuple[dict[str, Market], dict[str, Position]]:
    """The markets and positions that instructions name, by their ids as text."""
    named: dict[str, set[int]] = {"market_id": set(), "position_id": set()}
    for instruction in instructions:
        for key, ids in named.items():
            value = _id(instruction.payload.get(key))
            if value is not None:
                ids.add(value)
    markets = Market.objects.filter(pk__in=named["market_id"])
    positions = Position.objects.filter(pk__in=named["position_id"]).select_related("market", "outcome")
    return {str(m.pk): m for m in markets}, {str(p.pk): p for p in positions}


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
    entries = UniverseEntry.objects.filter(
        universe=decision.universe_id, market__in=[trade.market_id for trade in trades]
    )
    sources = {entry.market_id: entry.sources for entry in entries}
    fills = []
    for trade in trades:
        source = sources.get(trade.market_id, {}).get(trade.side, {})
        name = source.get("source") or ""
        label = Outcome.PriceSource(name).label if name in Outcome.PriceSource.values else name
        fills.append(Fill(trade, label, bool(source.get("stale")), fate_of_trade(trade)))
    return fills
