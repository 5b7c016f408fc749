"""Judges the instructions of an answer, one by one, at the frozen prices of its universe, and carries them out.

Judging writes nothing: the cash and the positions that earlier instructions leave are followed in memory. The rules
that a bet or a sale must keep are those of `arena_verifier.instructions`; here are those that need the arena's rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents.models import Agent, Decision, Instruction, ModelCall, Position
from agents.models.ledger import to_microshares
from agents.services import ledger
from arena_verifier.decisions import Answer, Bet, Sell
from arena_verifier.instructions import (
    InstructionRejected,
    check_amount,
    check_percentage,
    check_price,
    find_market,
    find_position,
    find_side,
)
from cohorts.models import Methodology
from foundation.json_lines import json_number
from markets.models import Market, Outcome, Universe, UniverseEntry

MAX_SHARES = Decimal(10) ** 11
"""The ledger stores 12 digits before the point."""
BET, SELL = "BET", "SELL"
NUMBERS = ("price", "shares", "amount")


@dataclass(frozen=True, slots=True)
class InstructionVerdict:
    """The judgement on one bet or sale: its price, shares and amount in US dollars, or the reason of its rejection."""

    sequence: int
    kind: str
    payload: dict[str, str]
    reason: str = ""
    side: str = ""
    price: Decimal | None = None
    shares: Decimal | None = None
    amount: Decimal | None = None

    @property
    def is_executed(self) -> bool:
        return not self.reason

    def as_json(self) -> dict[str, Any]:
        stated = {"sequence": self.sequence, "kind": self.kind, "payload": self.payload}
        result: dict[str, Any] = {"executed": self.is_executed, "reason": self.reason, "side": self.side}
        for name in NUMBERS:
            value = getattr(self, name)
            result[name] = None if value is None else json_number(value)
        return stated | result

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "InstructionVerdict":
        """The inverse of `as_json`."""
        fields = {name: stored[name] for name in ("sequence", "kind", "payload", "reason", "side")}
        for name in NUMBERS:
            fields[name] = None if stored[name] is None else Decimal(stored[name])
        return cls(**fields)


@dataclass(slots=True)
class _Account:
    """The cash and positions that the instructions so far would leave, and the entries that an answer may trade."""

    methodology: Methodology
    cash: Decimal
    positions: dict[str, Position]
    """By id as text."""
    entries: dict[str, UniverseEntry]
    """By the market's id as text."""


def judge_answer(answer: Answer, *, agent: Agent, universe: Universe) -> list[InstructionVerdict]:
    """The verdicts on an answer's instructions in order, by the state of a locked `agent`. Nothing is written."""
    positions: dict[str, Position] = {}
    if answer.sells:
        held = Position.objects.open().filter(agent=agent).select_related("outcome")
        positions = {str(position.pk): position for position in held}
    entries = _reachable_entries(universe, answer, positions.values())
    account = _Account(agent.cohort.methodology, agent.cash, positions, entries)
    verdicts = []
    requests: tuple[Bet | Sell, ...] = (*answer.bets, *answer.sells)
    for index, request in enumerate(requests):
        kind = BET if isinstance(request, Bet) else SELL
        try:
            if isinstance(request, Bet):
                traded = _judge_bet(account, request, f"bets[{index}]")
            else:
                traded = _judge_sale(account, request, f"sells[{index}]")
        except InstructionRejected as rejection:
            traded = {"reason": str(rejection)}
        verdicts.append(InstructionVerdict(index + 1, kind, request.as_json(), **traded))
    return verdicts


def carry_out(
    verdicts: Sequence[InstructionVerdict], *, agent: Agent, decision: Decision, call: ModelCall, at: datetime
) -> None:
    """Trades as judged for a locked `agent`, and stores each instruction with its result."""
    executed = [verdict for verdict in verdicts if verdict.is_executed]
    payloads = [verdict.payload for verdict in executed]
    positions = Position.objects.in_bulk([sale["position_id"] for sale in payloads if "position_id" in sale])
    markets = [int(bet["market_id"]) for bet in payloads if "market_id" in bet]
    outcomes = {}
    for outcome in Outcome.objects.filter(market__in=markets):
        outcomes[str(outcome.market_id), outcome.side] = outcome
    for verdict in executed:
        assert verdict.price is not None
        traded: Any = {"price": verdict.price, "decision": decision, "at": at}
        if verdict.kind == BET:
            assert verdict.amount is not None
            outcome = outcomes[verdict.payload["market_id"], verdict.side]
            ledger.buy(agent, outcome, amount=verdict.amount, **traded)
        else:
            position = positions[int(verdict.payload["position_id"])]
            ledger.sell(agent, position, percentage=Decimal(verdict.payload["percentage"]), **traded)
    store_instructions(verdicts, call)
    if executed:
        ledger.declare_bankruptcy_if_due(agent, agent.cohort.methodology)


def store_instructions(verdicts: Iterable[InstructionVerdict], call: ModelCall) -> None:
    """Stores the instructions of an answer with their verdicts."""
    instructions = []
    for verdict in verdicts:
        stated = {"sequence": verdict.sequence, "kind": verdict.kind, "payload": verdict.payload}
        instructions.append(Instruction(call=call, executed=verdict.is_executed, reason=verdict.reason, **stated))
    Instruction.objects.bulk_create(instructions)


def _judge_bet(account: _Account, bet: Bet, path: str) -> dict[str, Any]:
    """Takes the cost of a bet from the account; its side, price, shares and amount. Raises InstructionRejected."""
    outcome, price, amount = _check_bet(account, bet, path)
    account.cash -= amount
    shares = to_microshares(amount / price)
    return {"side": outcome.side, "price": price, "shares": shares, "amount": amount}


def _judge_sale(account: _Account, request: Sell, path: str) -> dict[str, Any]:
    """Moves a sale's proceeds and shares in the account; its side, price, shares and proceeds.

    Raises InstructionRejected.
    """
    position, price = _check_sale(account, request, path)
    sale = ledger.sale_of(position, percentage=request.percentage, price=price)
    account.cash += sale.proceeds
    position.shares -= sale.shares
    position.cost_basis -= sale.cost_basis
    if not position.shares:
        del account.positions[str(position.pk)]
    return {"side": position.side, "price": price, "shares": sale.shares, "amount": sale.proceeds}


def _check_bet(account: _Account, bet: Bet, path: str) -> tuple[Outcome, Decimal, Decimal]:
    """The outcome to buy, its price, and the amount in whole cents. Raises InstructionRejected."""
    listed = {market: entry for market, entry in account.entries.items() if entry.bettable}
    entry = find_market(listed, bet, path)
    _check_open(entry, f"{path}.market_id")
    outcomes = {outcome.side: outcome for outcome in entry.market.outcomes.all()}
    outcome = outcomes[find_side(list(outcomes), bet, path)]
    price = check_price(entry.price(outcome.side), bet.market_id, outcome.side, path)
    amount = check_amount(
        bet.amount,
        cash=account.cash,
        minimum=account.methodology.minimum_bet,
        fraction=account.methodology.maximum_bet_fraction,
        path=f"{path}.amount",
    )
    if amount / price >= MAX_SHARES:
        raise InstructionRejected(f"{path}.amount: buys more shares at {price:f} than the ledger can hold")
    return outcome, price, amount


def _check_sale(account: _Account, sale: Sell, path: str) -> tuple[Position, Decimal]:
    """The position to sell from and its price. Raises InstructionRejected."""
    position = find_position(account.positions, sale, path)
    check_percentage(sale, position.shares, path)
    market = str(position.market_id)
    entry = account.entries.get(market)
    if entry is None:
        raise InstructionRejected(f"{path}.position_id: the market of {sale.position_id} has no price in this run")
    _check_open(entry, f"{path}.position_id")
    return position, check_price(entry.price(position.side), market, position.side, path)


def _check_open(entry: UniverseEntry, path: str) -> None:
    market = entry.market
    if entry.open and market.is_open:
        return
    state = {
        Market.Status.ACTIVE: "takes no orders for now" if entry.open else "took no orders at the freeze",
        Market.Status.CLOSED: "is closed and awaits its resolution",
    }.get(Market.Status(market.status), f"is {market.status}")
    raise InstructionRejected(f"{path}: market {market.pk} {state}")


def _reachable_entries(universe: Universe, answer: Answer, positions: Iterable[Position]) -> dict[str, UniverseEntry]:
    """The universe's entries for the markets that the answer bets on or of positions, by market id as text."""
    market_ids = {int(bet.market_id) for bet in answer.bets if _is_id(bet.market_id)}
    market_ids |= {position.market_id for position in positions}
    entries = universe.entries.filter(market__in=market_ids)
    entries = entries.select_related("market").prefetch_related("market__outcomes")
    return {str(entry.market_id): entry for entry in entries}


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
