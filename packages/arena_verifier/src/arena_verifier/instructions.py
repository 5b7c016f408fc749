"""Limits of instructions: the market, side, price and amount of a bet, the position and percentage of a sale.

Each rule raises `InstructionRejected` with the reason that the model reads; `path` names the instruction in it.
"""

from collections.abc import Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import TypeVar

from arena_verifier.decisions import Bet, Sell
from arena_verifier.rows import CENT, MICROSHARE

Value = TypeVar("Value")


class InstructionRejected(ValueError):
    """An instruction breaks a rule; the message names the field and the reason."""


def find_market(markets: Mapping[str, Value], bet: Bet, path: str) -> Value:
    """The market of a bet, among those that are listed, by id. Raises InstructionRejected."""
    if bet.market_id not in markets:
        raise InstructionRejected(f"{path}.market_id: {bet.market_id!r} is not in the list of markets")
    return markets[bet.market_id]


def find_side(sides: Sequence[str], bet: Bet, path: str) -> str:
    """The side of a bet: an exact match, else the only one that matches by casefold. Raises InstructionRejected."""
    if bet.side in sides:
        return bet.side
    folded = [side for side in sides if side.casefold() == bet.side.casefold()]
    if len(folded) != 1:
        raise InstructionRejected(
            f"{path}.side: {bet.side!r} is no side of market {bet.market_id}; its sides are {', '.join(sides)}"
        )
    return folded[0]


def check_price(price: Decimal | None, market_id: str, side: str, path: str) -> Decimal:
    """The price of a side, strictly between 0 and 1. Raises InstructionRejected."""
    if price is None or not 0 < price < 1:
        fault = "has no price" if price is None else f"stands at {price:f}, outside (0, 1)"
        raise InstructionRejected(f"{path}: side {side} of market {market_id} {fault} in this run")
    return price


def check_amount(dollars: Decimal, *, cash: Decimal, minimum: Decimal, fraction: Decimal, path: str) -> Decimal:
    """The amount in whole cents, rounded down, between the minimum and a fraction of the cash.

    Raises InstructionRejected.
    """
    amount_text, maximum = format_number(dollars), cash * fraction
    if dollars < 0:
        raise InstructionRejected(f"{path}: {amount_text} is negative")
    if maximum < minimum:
        raise InstructionRejected(f"{path}: with cash of {cash:.2f} no bet is legal")
    # Compared before rounding: quantize fails on numbers with more digits than the decimal context.
    if dollars >= maximum + CENT or (amount := dollars.quantize(CENT, rounding=ROUND_DOWN)) > maximum:
        raise InstructionRejected(
            f"{path}: {amount_text} is above the maximum of {maximum.quantize(CENT, rounding=ROUND_DOWN):.2f} "
            f"({(fraction * 100).normalize():f} % of the cash of {cash:.2f} at that moment)"
        )
    if amount < minimum:
        raise InstructionRejected(f"{path}: {amount_text} is below the minimum of {minimum:.2f}")
    return amount


def find_position(positions: Mapping[str, Value], sale: Sell, path: str) -> Value:
    """The position of a sale, among the agent's open ones, by id. Raises InstructionRejected."""
    name = sale.position_id
    pk = str(int(name)) if name.isascii() and name.isdigit() and len(name) <= 18 else name
    if pk not in positions:
        raise InstructionRejected(f"{path}.position_id: {name!r} is none of your open positions")
    return positions[pk]


def check_percentage(sale: Sell, shares: Decimal, path: str) -> Decimal:
    """The shares that a sale takes of a position's. Raises InstructionRejected."""
    percentage = format_number(sale.percentage)
    if not 1 <= sale.percentage <= 100:
        raise InstructionRejected(f"{path}.percentage: {percentage} is outside 1 to 100")
    sold = (shares * sale.percentage / 100).quantize(MICROSHARE)
    if not sold:
        raise InstructionRejected(f"{path}.percentage: {percentage} of this position is less than a millionth share")
    return sold


def format_number(number: Decimal) -> str:
    """A number in full, in exponential form if it is huge or tiny, in at most 41 characters."""
    text = f"{number:f}" if -30 < number.adjusted() < 30 else str(number)
    return text if len(text) <= 40 else f"{text[:40]}…"
