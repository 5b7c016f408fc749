"""Carrying out an answer: each instruction in order, executed at the run's frozen price or rejected with a reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_DOWN, Decimal

from agents.answers import Answer, Bet, Sell
from agents.models import Agent, Decision, Instruction, ModelCall, Position
from agents.models.ledger import CENT, to_microshares
from agents.services import ledger
from cohorts.models import Methodology
from markets.models import Market, Outcome, Universe, UniverseEntry

MOST_SHARES = Decimal(10) ** 11
"""A bet on a price so small that it buys more is refused: the ledger keeps 12 digits before the point."""


class Rejected(Exception):
    """An instruction that can not be carried out; the message names the field and says why."""


@dataclass(slots=True)
class _Run:
    agent: Agent
    decision: Decision
    methodology: Methodology
    entries: dict[str, UniverseEntry]
    at: datetime
    trades: int = 0


def carry_out(answer: Answer, *, agent: Agent, decision: Decision, call: ModelCall, at: datetime) -> list[Instruction]:
    """Executes the instructions of `answer` for a locked `agent`; every one is returned and stored with its fate."""
    universe = decision.universe
    assert universe is not None
    run = _Run(agent, decision, agent.cohort.methodology, _entries(universe, answer, agent), at)
    instructions = []
    wishes: tuple[Bet | Sell, ...] = (*answer.bets, *answer.sells)
    for index, wanted in enumerate(wishes):
        reason = ""
        try:
            if isinstance(wanted, Bet):
                _bet(run, wanted, f"bets[{index}]")
            else:
                _sell(run, wanted, f"sells[{index}]")
        except Rejected as rejection:
            reason = str(rejection)
        instructions.append(
            Instruction(
                call=call,
                sequence=index + 1,
                kind="BET" if isinstance(wanted, Bet) else "SELL",
                payload=wanted.as_json(),
                executed=not reason,
                reason=reason,
            )
        )
    Instruction.objects.bulk_create(instructions)
    if run.trades:
        ledger.declare_bankrupt_if_so(agent, run.methodology)
    return instructions


def _entries(universe: Universe, answer: Answer, agent: Agent) -> dict[str, UniverseEntry]:
    """The universe's entries that the answer can reach, by market id as text."""
    named = {int(bet.market_id) for bet in answer.bets if _is_id(bet.market_id)}
    if answer.sells:
        named |= set(Position.objects.open().filter(agent=agent).values_list("market_id", flat=True))
    entries = universe.entries.filter(market__in=named).select_related("market").prefetch_related("market__outcomes")
    return {str(entry.market_id): entry for entry in entries}


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18


def _bet(run: _Run, bet: Bet, where: str) -> None:
    entry = run.entries.get(bet.market_id)
    if entry is None or not entry.bettable:
        raise Rejected(f"{where}.market_id: {bet.market_id!r} is not in the list of markets")
    _check_open(entry, f"{where}.market_id")
    outcome = match_side(list(entry.market.outcomes.all()), bet.side)
    if outcome is None:
        sides = ", ".join(o.side for o in entry.market.outcomes.all())
        raise Rejected(f"{where}.side: {bet.side!r} is no side of market {bet.market_id}; its sides are {sides}")
    price = _tradable_price(entry, outcome.side, where)
    rules, cash = run.methodology, run.agent.cash
    maximum = rules.maximum_bet(cash)
    if bet.amount < 0:
        raise Rejected(f"{where}.amount: {_shown(bet.amount)} is negative")
    if maximum < rules.minimum_bet:
        raise Rejected(f"{where}.amount: with cash of {cash:.2f} no bet is legal")
    # Compared before rounding: an absurdly large number could not even be rounded.
    if bet.amount >= maximum + CENT or (amount := bet.amount.quantize(CENT, rounding=ROUND_DOWN)) > maximum:
        raise Rejected(
            f"{where}.amount: {_shown(bet.amount)} is above the maximum of {rules.maximum_bet_shown(cash):.2f} "
            f"(25 % of the cash of {cash:.2f} at that moment)"
        )
    if amount < rules.minimum_bet:
        raise Rejected(f"{where}.amount: {_shown(bet.amount)} is below the minimum of {rules.minimum_bet:.2f}")
    if amount / price >= MOST_SHARES:
        raise Rejected(f"{where}.amount: buys more shares at {price:f} than the ledger can hold")
    run.trades += 1
    ledger.buy(run.agent, outcome, amount=amount, price=price, decision=run.decision, sequence=run.trades, at=run.at)


def _sell(run: _Run, sale: Sell, where: str) -> None:
    position = None
    if _is_id(sale.position_id):
        position = (
            Position.objects.open().filter(agent=run.agent, pk=int(sale.position_id)).select_related("outcome").first()
        )
    if position is None:
        raise Rejected(f"{where}.position_id: {sale.position_id!r} is none of your open positions")
    if not 1 <= sale.percentage <= 100:
        raise Rejected(f"{where}.percentage: {_shown(sale.percentage)} is outside 1 to 100")
    if not to_microshares(position.shares * sale.percentage / 100):
        raise Rejected(f"{where}.percentage: {_shown(sale.percentage)} of this position is less than a millionth share")
    entry = run.entries.get(str(position.market_id))
    if entry is None:
        raise Rejected(f"{where}.position_id: the market of {sale.position_id} has no price in this run")
    _check_open(entry, f"{where}.position_id")
    price = _tradable_price(entry, position.side, where)
    run.trades += 1
    ledger.sell(
        run.agent,
        position,
        percentage=sale.percentage,
        price=price,
        decision=run.decision,
        sequence=run.trades,
        at=run.at,
    )


def _check_open(entry: UniverseEntry, where: str) -> None:
    if not (entry.open and entry.market.is_open):
        awaiting = entry.market.status == Market.Status.CLOSED
        raise Rejected(
            f"{where}: market {entry.market_id} is closed" + (" and awaits its resolution" if awaiting else "")
        )


def _tradable_price(entry: UniverseEntry, side: str, where: str) -> Decimal:
    price = entry.price(side)
    if price is None or not 0 < price < 1:
        said = "has no price" if price is None else f"stands at {price:f}, outside (0, 1)"
        raise Rejected(f"{where}: side {side} of market {entry.market_id} {said} in this run")
    return price


def match_side(outcomes: Sequence[Outcome], side: str) -> Outcome | None:
    """The outcome that `side` names: exactly, else by a casefold that only one outcome has."""
    exact = [outcome for outcome in outcomes if outcome.side == side]
    if exact:
        return exact[0]
    folded = [outcome for outcome in outcomes if outcome.side.casefold() == side.casefold()]
    return folded[0] if len(folded) == 1 else None


def _shown(number: Decimal) -> str:
    text = f"{number:f}" if -30 < number.adjusted() < 30 else str(number)
    return text if len(text) <= 40 else f"{text[:40]}…"
