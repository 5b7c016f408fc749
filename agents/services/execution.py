"""Checks and executes the instructions of an answer, one by one, at the frozen prices of its universe.

`_check_bet` and `_check_sale` hold every rule that a bet or a sale must keep; a broken one raises
`InstructionRejected` with the reason that the model reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

from agents.answers.decisions import Answer, Bet, Sell
from agents.models import Agent, Decision, Instruction, ModelCall, Position
from agents.models.ledger import CENT, to_microshares
from agents.services import ledger
from markets.models import Market, Outcome, Universe, UniverseEntry

MAX_SHARES = Decimal(10) ** 11
"""The ledger stores 12 digits before the point."""


class InstructionRejected(Exception):
    """An instruction breaks a rule; the message names the field and the reason."""


@dataclass(frozen=True, slots=True)
class _Execution:
    """One answer being executed: the locked agent, and the entries that it may trade."""

    agent: Agent
    entries: dict[str, UniverseEntry]


def execute_answer(
    answer: Answer, *, agent: Agent, decision: Decision, call: ModelCall, at: datetime
) -> list[Instruction]:
    """Executes an answer's instructions in order for a locked `agent`; stores and returns each with its result."""
    universe = decision.universe
    assert universe is not None
    execution = _Execution(agent, _reachable_entries(universe, answer, agent))
    requests: tuple[Bet | Sell, ...] = (*answer.bets, *answer.sells)
    instructions = []
    for index, request in enumerate(requests):
        reason = ""
        try:
            if isinstance(request, Bet):
                outcome, price, amount = _check_bet(execution, request, f"bets[{index}]")
                ledger.buy(agent, outcome, amount=amount, price=price, decision=decision, at=at)
            else:
                position, price = _check_sale(execution, request, f"sells[{index}]")
                ledger.sell(agent, position, percentage=request.percentage, price=price, decision=decision, at=at)
        except InstructionRejected as rejection:
            reason = str(rejection)
        instructions.append(
            Instruction(
                call=call,
                sequence=index + 1,
                kind="BET" if isinstance(request, Bet) else "SELL",
                payload=request.as_json(),
                executed=not reason,
                reason=reason,
            )
        )
    Instruction.objects.bulk_create(instructions)
    if any(instruction.executed for instruction in instructions):
        ledger.declare_bankruptcy_if_due(agent, agent.cohort.methodology)
    return instructions


def _check_bet(execution: _Execution, bet: Bet, path: str) -> tuple[Outcome, Decimal, Decimal]:
    """The outcome to buy, its price, and the amount in whole cents. Raises InstructionRejected."""
    entry = execution.entries.get(bet.market_id)
    if entry is None or not entry.bettable:
        raise InstructionRejected(f"{path}.market_id: {bet.market_id!r} is not in the list of markets")
    _check_open(entry, f"{path}.market_id")
    outcomes = list(entry.market.outcomes.all())
    outcome = match_side(outcomes, bet.side)
    if outcome is None:
        sides = ", ".join(outcome.side for outcome in outcomes)
        raise InstructionRejected(
            f"{path}.side: {bet.side!r} is no side of market {bet.market_id}; its sides are {sides}"
        )
    price = _frozen_price(entry, outcome.side, path)
    amount = _check_amount(bet.amount, execution.agent, f"{path}.amount")
    if amount / price >= MAX_SHARES:
        raise InstructionRejected(f"{path}.amount: buys more shares at {price:f} than the ledger can hold")
    return outcome, price, amount


def _check_amount(amount: Decimal, agent: Agent, path: str) -> Decimal:
    """The amount in whole cents, rounded down, between the methodology's minimum and its share of the agent's cash."""
    methodology, cash, text = agent.cohort.methodology, agent.cash, _format_number(amount)
    minimum, maximum = methodology.minimum_bet, methodology.maximum_bet(cash)
    if amount < 0:
        raise InstructionRejected(f"{path}: {text} is negative")
    if maximum < minimum:
        raise InstructionRejected(f"{path}: with cash of {cash:.2f} no bet is legal")
    # Compared before rounding: quantize fails on numbers with more digits than the decimal context.
    if amount >= maximum + CENT or (amount := amount.quantize(CENT, rounding=ROUND_DOWN)) > maximum:
        percent = (methodology.maximum_bet_fraction * 100).normalize()
        raise InstructionRejected(
            f"{path}: {text} is above the maximum of {methodology.maximum_bet_shown(cash):.2f} "
            f"({percent:f} % of the cash of {cash:.2f} at that moment)"
        )
    if amount < minimum:
        raise InstructionRejected(f"{path}: {text} is below the minimum of {minimum:.2f}")
    return amount


def _check_sale(execution: _Execution, sale: Sell, path: str) -> tuple[Position, Decimal]:
    """The position to sell from and its price. Raises InstructionRejected."""
    position = None
    if _is_id(sale.position_id):
        positions = Position.objects.open().filter(agent=execution.agent, pk=int(sale.position_id))
        position = positions.select_related("outcome").first()
    if position is None:
        raise InstructionRejected(f"{path}.position_id: {sale.position_id!r} is none of your open positions")
    percentage = _format_number(sale.percentage)
    if not 1 <= sale.percentage <= 100:
        raise InstructionRejected(f"{path}.percentage: {percentage} is outside 1 to 100")
    if not to_microshares(position.shares * sale.percentage / 100):
        raise InstructionRejected(f"{path}.percentage: {percentage} of this position is less than a millionth share")
    entry = execution.entries.get(str(position.market_id))
    if entry is None:
        raise InstructionRejected(f"{path}.position_id: the market of {sale.position_id} has no price in this run")
    _check_open(entry, f"{path}.position_id")
    return position, _frozen_price(entry, position.side, path)


def _check_open(entry: UniverseEntry, path: str) -> None:
    market = entry.market
    if entry.open and market.is_open:
        return
    state = {
        Market.Status.ACTIVE: "takes no orders for now" if entry.open else "took no orders at the freeze",
        Market.Status.CLOSED: "is closed and awaits its resolution",
    }.get(Market.Status(market.status), f"is {market.status}")
    raise InstructionRejected(f"{path}: market {market.pk} {state}")


def _frozen_price(entry: UniverseEntry, side: str, path: str) -> Decimal:
    """The universe's price of a side, strictly between 0 and 1. Raises InstructionRejected."""
    price = entry.price(side)
    if price is None or not 0 < price < 1:
        fault = "has no price" if price is None else f"stands at {price:f}, outside (0, 1)"
        raise InstructionRejected(f"{path}: side {side} of market {entry.market_id} {fault} in this run")
    return price


def _reachable_entries(universe: Universe, answer: Answer, agent: Agent) -> dict[str, UniverseEntry]:
    """The universe's entries for the markets that the answer names or the agent holds, by market id as text."""
    market_ids = {int(bet.market_id) for bet in answer.bets if _is_id(bet.market_id)}
    if answer.sells:
        market_ids |= set(Position.objects.open().filter(agent=agent).values_list("market_id", flat=True))
    entries = universe.entries.filter(market__in=market_ids)
    entries = entries.select_related("market").prefetch_related("market__outcomes")
    return {str(entry.market_id): entry for entry in entries}


def match_side(outcomes: Sequence[Outcome], side: str) -> Outcome | None:
    """The outcome with this side: an exact match, else the only one that matches by casefold."""
    for outcome in outcomes:
        if outcome.side == side:
            return outcome
    folded = [outcome for outcome in outcomes if outcome.side.casefold() == side.casefold()]
    return folded[0] if len(folded) == 1 else None


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _format_number(number: Decimal) -> str:
    text = f"{number:f}" if -30 < number.adjusted() < 30 else str(number)
    return text if len(text) <= 40 else f"{text[:40]}…"
