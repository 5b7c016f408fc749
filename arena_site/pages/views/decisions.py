"""A decision: the prompt, the answer, its instructions and its trades."""

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
from arena_site.pages.views.model_calls import usage_of, with_prompts
from arena_site.pages.views.positions import side_result
from markets.models import Market, Outcome, PriceObservation, UniverseEntry

DECISION_COLUMNS = (
    *("status", "error", "week", "action", "fallback", "reasoning", "decided_at"),
    *("agent__model_id", "agent__family"),
    *("cohort__number", "cohort__methodology__version", "cohort__methodology__maximum_bet_fraction"),
    *("cohort__methodology__system_prompt", "cohort__methodology__user_prompt"),
    *("universe__frozen_at", "universe__sha256", "universe__market_block"),
    "link",
)
"""Columns of the page and of the hashed record: most others are a methodology's."""
TRADE_COLUMNS = (
    *("kind", "shares", "price", "amount", "realized_pnl", "implied_confidence", "position_id"),
    *("market_id", "market__question", "market__status", "market__winning_outcome", "outcome_id", "outcome__side"),
    *("journal_entry__balance", "brier_score__score"),
)


Target = tuple[int | None, str, str]
"""The market that an instruction names, its question, and the side of a named position."""
NO_TARGET: Target = (None, "", "")


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """An instruction with the market that it names, if there is one."""

    instruction: Instruction
    market: int | None
    question: str
    side: str
    size: str | None
    written_id: str
    """The id as the model wrote it."""


@dataclass(frozen=True, slots=True)
class TradeRow:
    """A trade with its result, the source of its price, and the largest bet that was legal."""

    trade: Any
    universe_position: int | None
    source: str
    stale: bool
    observation: PriceObservation | None
    limit: Decimal | None
    result: str


@require_safe
def decision(request: HttpRequest, pk: int) -> HttpResponse:
    """A decision with its reasoning, instructions, trades and model calls."""
    decision = get_object_or_404(
        Decision.objects.select_related("agent__family", "cohort__methodology", "universe", "link").only(
            *DECISION_COLUMNS
        ),
        pk=pk,
    )
    calls = list(decision.calls.order_by("sequence"))
    for call in calls:
        call.decision = decision
    instructions = Instruction.objects.filter(call__in=[call.pk for call in calls]).order_by(
        "call__sequence", "sequence"
    )
    trades = list(decision.trades.order_by("sequence").values_list(*TRADE_COLUMNS, named=True))
    link = getattr(decision, "link", None)
    answer = next((call for call in calls if link and call.pk == link.call_id), None)
    return render(
        request,
        "decision.html",
        {
            "decision": decision,
            "agent": decision.agent,
            "family": decision.agent.family,
            "cohort": decision.cohort,
            "calls": with_prompts(calls),
            "usage": usage_of(calls),
            "instructions": _instruction_rows(list(instructions), trades),
            "trades": _trade_rows(decision, trades),
            "link": link,
            "record": canonical(task_record(decision, answer)) if link else None,
            "weeks": list(Decision.objects.filter(agent=decision.agent_id).order_by("week").values_list("week", "pk")),
        },
    )


def _instruction_rows(instructions: Sequence[Instruction], trades: Sequence[Any]) -> list[InstructionRow]:
    """The instructions with the markets that they name; markets without a trade are looked up."""
    written: dict[str, set[int]] = {"market_id": set(), "position_id": set()}
    for instruction in instructions:
        for key, ids in written.items():
            value = _id(instruction.payload.get(key))
            if value is not None:
                ids.add(value)
    markets = {t.market_id: t.market__question for t in trades}
    if unknown := written["market_id"] - markets.keys():
        markets |= dict(Market.objects.filter(pk__in=unknown).order_by().values_list("pk", "question"))
    positions = {t.position_id: (t.market_id, t.market__question, t.outcome__side) for t in trades}
    if unknown := written["position_id"] - positions.keys():
        found = Position.objects.filter(pk__in=unknown).order_by()
        rows = found.values_list("pk", "market_id", "market__question", "outcome__side")
        positions |= {pk: (market, question, side) for pk, market, question, side in rows}
    by_market: dict[str, Target] = {str(pk): (pk, question, "") for pk, question in markets.items()}
    by_position: dict[str, Target] = {str(pk): target for pk, target in positions.items()}
    return [_instruction_row(instruction, by_market, by_position) for instruction in instructions]


def _id(value: Any) -> int | None:
    """A number that can be an id: a model may write anything."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def _instruction_row(
    instruction: Instruction, markets: Mapping[str, Target], positions: Mapping[str, Target]
) -> InstructionRow:
    payload = instruction.payload
    if instruction.kind == "SELL":
        written_id = str(payload.get("position_id"))
        target = positions.get(written_id, NO_TARGET)
        return InstructionRow(instruction, *target, payload.get("percentage"), written_id)
    written_id = str(payload.get("market_id"))
    market, question, _ = markets.get(written_id, NO_TARGET)
    side, size = str(payload.get("side", "")), payload.get("amount")
    return InstructionRow(instruction, market, question, side, size, written_id)


def _trade_rows(decision: Decision, trades: Sequence[Any]) -> list[TradeRow]:
    universe, rules = decision.universe, decision.methodology
    entries: dict[int, Any] = {}
    observations: dict[int, PriceObservation] = {}
    if universe is not None and trades:
        found = UniverseEntry.objects.filter(universe=universe, market__in={trade.market_id for trade in trades})
        entries = {market: entry for market, *entry in found.values_list("market_id", "position", "sources")}
        observations = PriceObservation.objects.latest({trade.outcome_id for trade in trades}, universe.frozen_at)
    rows = []
    for trade in trades:
        position, sources = entries.get(trade.market_id, (None, {}))
        source = sources.get(trade.outcome__side, {})
        name = source.get("source") or ""
        label = Outcome.PriceSource(name).label if name in Outcome.PriceSource.values else name
        limit = None
        if trade.kind == Trade.Kind.BUY and trade.journal_entry__balance is not None:
            limit = rules.maximum_bet(trade.journal_entry__balance + trade.amount)
        stale = bool(source.get("stale"))
        result = side_result(trade.market__status, won=trade.market__winning_outcome == trade.outcome_id)
        rows.append(TradeRow(trade, position, label, stale, observations.get(trade.outcome_id), limit, result))
    return rows
