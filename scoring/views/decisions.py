"""One decision, whole: what the model was sent, what it said, and what came of it."""

from collections.abc import Mapping, Sequence
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
from scoring.views.calls import latency_ms, said, spent
from scoring.views.holdings import fate_of_side

SHOWN = (
    *("status", "error", "week", "action", "fallback", "reasoning", "decided_at"),
    *("agent__model_id", "agent__family"),
    *("cohort__number", "cohort__methodology__version", "cohort__methodology__maximum_bet_fraction"),
    *("cohort__methodology__system_prompt", "cohort__methodology__user_prompt"),
    *("universe__frozen_at", "universe__sha256", "universe__market_block"),
    "link",
)
"""What the page and the record that is hashed take of a decision: most columns are a methodology's."""
TRADED = (
    *("kind", "shares", "price", "amount", "realized_pnl", "implied_confidence", "position_id"),
    *("market_id", "market__question", "market__status", "market__winning_outcome", "outcome_id", "outcome__side"),
    *("journal_entry__balance", "brier_score__score"),
)
"""What the page shows of a trade."""


Meant = tuple[int | None, str, str]
"""A market, its question, and a side where a position was named."""
NOTHING: Meant = (None, "", "")


@dataclass(frozen=True, slots=True)
class Wish:
    """An instruction with the market that it means, where there is such a one."""

    instruction: Instruction
    market: int | None
    question: str
    side: str
    size: str | None
    named: str
    """What the model wrote where an id belongs."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A trade, where its price came from, what it could have staked at most, and what its side came to."""

    trade: Any
    number: int | None
    """Of its market in the universe."""
    source: str
    stale: bool
    seen: PriceObservation | None
    limit: Decimal | None
    fate: str


@require_safe
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """A decision with its reasoning, instructions, trades and every call to the model."""
    decision = get_object_or_404(
        Decision.objects.select_related("agent__family", "cohort__methodology", "universe", "link").only(*SHOWN), pk=pk
    )
    calls = list(decision.calls.order_by("sequence"))
    for call in calls:
        call.decision = decision
    instructions = Instruction.objects.filter(call__in=[call.pk for call in calls]).order_by(
        "call__sequence", "sequence"
    )
    trades = list(decision.trades.order_by("sequence").values_list(*TRADED, named=True))
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
            "spent": spent(calls),
            "wishes": _wishes(list(instructions), trades),
            "fills": _fills(decision, trades),
            "latency_ms": latency_ms(calls),
            "link": link,
            "record": canonical(task_record(decision, next((c for c in calls if c.pk == link.call_id), None)))
            if link
            else None,
            "weeks": list(beside),
        },
    )


def _wishes(instructions: Sequence[Instruction], trades: Sequence[Any]) -> list[Wish]:
    """The instructions, each with the market or position that it names by its id as text.

    What was traded is known with the trades; the others are looked up.
    """
    named: dict[str, set[int]] = {"market_id": set(), "position_id": set()}
    for instruction in instructions:
        for key, ids in named.items():
            value = _id(instruction.payload.get(key))
            if value is not None:
                ids.add(value)
    markets = {t.market_id: t.market__question for t in trades}
    if unknown := named["market_id"] - markets.keys():
        markets |= dict(Market.objects.filter(pk__in=unknown).order_by().values_list("pk", "question"))
    positions = {t.position_id: (t.market_id, t.market__question, t.outcome__side) for t in trades}
    if unknown := named["position_id"] - positions.keys():
        found = Position.objects.filter(pk__in=unknown).order_by()
        rows = found.values_list("pk", "market_id", "market__question", "outcome__side")
        positions |= {pk: (market, question, side) for pk, market, question, side in rows}
    by_text: dict[str, Meant] = {str(pk): (pk, question, "") for pk, question in markets.items()}
    held: dict[str, Meant] = {str(pk): meant for pk, meant in positions.items()}
    return [_wish(instruction, by_text, held) for instruction in instructions]


def _id(value: Any) -> int | None:
    """An id as the database can hold it: what a model wrote may be anything."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _wish(instruction: Instruction, markets: Mapping[str, Meant], positions: Mapping[str, Meant]) -> Wish:
    payload = instruction.payload
    if instruction.kind == "SELL":
        named = str(payload.get("position_id"))
        return Wish(instruction, *positions.get(named, NOTHING), payload.get("percentage"), named)
    named = str(payload.get("market_id"))
    market, question, _ = markets.get(named, NOTHING)
    return Wish(instruction, market, question, str(payload.get("side", "")), payload.get("amount"), named)


def _fills(decision: Decision, trades: Sequence[Any]) -> list[Fill]:
    universe, rules = decision.universe, decision.methodology
    entries: dict[int, Any] = {}
    seen: dict[int, PriceObservation] = {}
    if universe is not None and trades:
        found = UniverseEntry.objects.filter(universe=universe, market__in={trade.market_id for trade in trades})
        entries = {market: entry for market, *entry in found.values_list("market_id", "position", "sources")}
        seen = PriceObservation.objects.latest({trade.outcome_id for trade in trades}, universe.frozen_at)
    fills = []
    for trade in trades:
        number, sources = entries.get(trade.market_id, (None, {}))
        source = sources.get(trade.outcome__side, {})
        name = source.get("source") or ""
        label = Outcome.PriceSource(name).label if name in Outcome.PriceSource.values else name
        limit = None
        if trade.kind == Trade.Kind.BUY and trade.journal_entry__balance is not None:
            limit = rules.maximum_bet(trade.journal_entry__balance + trade.amount)
        stale = bool(source.get("stale"))
        fate = fate_of_side(trade.market__status, won=trade.market__winning_outcome == trade.outcome_id)
        fills.append(Fill(trade, number, label, stale, seen.get(trade.outcome_id), limit, fate))
    return fills
