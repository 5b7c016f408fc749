"""Checks of an agent's answers before they leave: what the arena would refuse is refused here in the same words.

`FaultyAnswer` stands for an answer that the arena could not read at all, `Refusal` for one forecast or instruction
that it would not take while it takes the others.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from numbers import Integral, Real
from typing import Any

from arena_agent.objects import Bet, Forecast, Market, Portfolio, Position, Question, Sell

MAX_INSTRUCTIONS = 200
MAX_DIGITS = 1_000
MAX_BODY_BYTES = 1_000_000
SUM_TOLERANCE = Decimal("0.02")
EXACT_TOLERANCE = 1e-6
MINIMUM_BET = Decimal(50)
MAXIMUM_BET_FRACTION = Decimal("0.25")
CENT, MICROSHARE = Decimal("0.01"), Decimal("0.000001")
BLANKS = " \t\n\r\v\f\u00a0\u2007\u202f\u200b\u200c\u200d\u2060\ufeff"

_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
_PROBABILITY = re.compile(rf"(-?{_PLAIN})\s*(%?)")
_DOLLARS = re.compile(rf"(-?)\$?\s*({_GROUPED}|{_PLAIN})\s*(?:USD)?", re.IGNORECASE)
_PERCENT = re.compile(rf"(-?)({_PLAIN})\s*%?")


class FaultyAnswer(ValueError):
    """An answer that can not be read; the message names the field."""


class Refusal(ValueError):
    """A forecast or an instruction that would not be taken; the message says why."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A forecast that the arena takes: as it is sent, and the probabilities that are scored."""

    body: dict[str, Any]
    probabilities: dict[str, float]


# --- forecasts -------------------------------------------------------------------------------------------


def check_forecast(question: Question, answer: Any, path: str = "forecasts[0]") -> CheckedQuestion:
    """The forecast of a question as the arena would take it. Raises FaultyAnswer or Refusal."""
    forecast = answer if isinstance(answer, Forecast) else Forecast(answer)
    value_by_option = forecast.probabilities
    if not isinstance(value_by_option, Mapping):
        raise FaultyAnswer(f"{path}.probabilities must be an object, not {abbreviate(value_by_option)}")
    values: dict[str, Any] = {}
    numbers: list[tuple[str, Decimal]] = []
    for option, value in value_by_option.items():
        if not isinstance(option, str):
            raise FaultyAnswer(f"{path}.probabilities: the option {abbreviate(option)} must be text")
        values[option], number = _probability(value, f"{path}.probabilities[{abbreviate(option)}]")
        numbers.append((storable(option), number))
    rationale = _optional_text(forecast.rationale, f"{path}.rationale")
    try:
        probabilities = _normalise(question, _match_options(question, numbers))
    except Refusal as fault:
        raise Refusal(f"question {question.id}: {fault}") from None
    return CheckedQuestion({"question_id": question.id, "rationale": rationale, "probabilities": values}, probabilities)


def _probability(value: Any, path: str) -> tuple[Any, Decimal]:
    """A probability as it is sent, and its value."""
    text, number = _number(value, path, _PROBABILITY, "0.4 or 40%")
    if isinstance(number, Decimal):
        return text, number
    return text, Decimal(number[1]).scaleb(-2) if number[2] else Decimal(number[1])


def _match_options(question: Question, numbers: Sequence[tuple[str, Decimal]]) -> dict[str, Decimal]:
    by_folded_name: dict[str, list[str]] = {}
    for option in question.options:
        by_folded_name.setdefault(_fold(option), []).append(option)
    vector: dict[str, Decimal] = {}
    for name, value in numbers:
        candidates = [name] if name in question.options else by_folded_name.get(_fold(name), [])
        if len(candidates) != 1:
            fault = f"may mean {len(candidates)} of its options" if candidates else "is none of its options"
            raise Refusal(f"{abbreviate(name)} {fault}")
        option = candidates[0]
        if option in vector:
            raise Refusal(f"{abbreviate(option)} is named twice")
        if not 0 <= value <= 1:
            raise Refusal(f"{abbreviate(option)} is given {abbreviate(value)}, which is outside [0, 1]")
        vector[option] = value
    for option in question.options:
        if option not in vector:
            raise Refusal(f"{abbreviate(option)} has no probability")
    return {option: vector[option] for option in question.options}


def _normalise(question: Question, vector: Mapping[str, Decimal]) -> dict[str, float]:
    probabilities = {option: float(value) for option, value in vector.items()}
    if not question.exclusive:
        return probabilities
    total = sum(vector.values(), Decimal(0))
    if abs(total - 1) > SUM_TOLERANCE:
        raise Refusal(f"the probabilities of its {len(vector)} options sum to {abbreviate(total)}, not 1")
    float_total = math.fsum(probabilities.values())
    if abs(float_total - 1) <= EXACT_TOLERANCE:
        return probabilities
    return {option: value / float_total for option, value in probabilities.items()}


# --- decisions -------------------------------------------------------------------------------------------


def check_decision(
    instructions: Any, portfolio: Portfolio, markets: Sequence[Market]
) -> tuple[dict[str, Any], list[str]]:
    """The decision as it is sent, and the reasons of the instructions that the arena would reject, which are left out.

    Raises FaultyAnswer where the arena could not read it, and Refusal where it would carry out none of it.
    """
    bets, sells = _sort_instructions(instructions)
    action = "BET" if bets else "SELL" if sells else "HOLD"
    if bets and sells:
        raise FaultyAnswer('sells must be empty when action is "BET"')
    for name, items in (("bets", bets), ("sells", sells)):
        if len(items) > MAX_INSTRUCTIONS:
            raise FaultyAnswer(f"{name} must hold at most {MAX_INSTRUCTIONS} instructions, not {len(items)}")
    read_bets = [_read_bet(bet, f"bets[{index}]") for index, bet in enumerate(bets)]
    read_sales = [_read_sale(sale, f"sells[{index}]") for index, sale in enumerate(sells)]
    accepted: list[dict[str, str]] = []
    reasons: list[str] = []
    cash = portfolio.cash
    by_id = {market.id: market for market in markets}
    for index, bet_record in enumerate(read_bets):
        try:
            cash -= _check_bet(bet_record, by_id, cash, f"bets[{index}]")
            accepted.append(bet_record.body)
        except Refusal as refusal:
            reasons.append(str(refusal))
    shares = {position.id: position.shares for position in portfolio.positions}
    for index, sale_record in enumerate(read_sales):
        try:
            _check_sale(sale_record, shares, f"sells[{index}]")
            accepted.append(sale_record.body)
        except Refusal as refusal:
            reasons.append(str(refusal))
    if reasons and not accepted:
        raise Refusal("; ".join(reasons))
    return {"action": action} | ({"bets": accepted} if bets else {"sells": accepted} if sells else {}), reasons


@dataclass(frozen=True, slots=True)
class _StatedBet:
    market_id: str
    side: str
    amount: Decimal
    body: dict[str, str]


@dataclass(frozen=True, slots=True)
class _StatedSale:
    position_id: str
    percentage: Decimal
    body: dict[str, str]


def _sort_instructions(instructions: Any) -> tuple[list[Bet], list[Sell]]:
    if not isinstance(instructions, Sequence) or isinstance(instructions, str):
        raise FaultyAnswer(f"trade must return a list of Bet and Sell, not {abbreviate(instructions)}")
    bets = [instruction for instruction in instructions if isinstance(instruction, Bet)]
    sells = [instruction for instruction in instructions if isinstance(instruction, Sell)]
    for index, instruction in enumerate(instructions):
        if not isinstance(instruction, Bet | Sell):
            raise FaultyAnswer(f"trade: item {index} must be a Bet or a Sell, not {abbreviate(instruction)}")
    return bets, sells


def _read_bet(bet: Bet, path: str) -> _StatedBet:
    market_id = _id(bet.market.id if isinstance(bet.market, Market) else bet.market, f"{path}.market_id")
    side = _text(bet.side, f"{path}.side")
    amount = _decimal(bet.amount, f"{path}.amount", _DOLLARS, "500 or 500.00")
    reason = _optional_text(bet.reason, f"{path}.reason")
    body = {"market_id": market_id, "side": side} | ({"reason": reason} if reason else {})
    return _StatedBet(market_id, side, amount, body | {"amount": f"{amount:f}"})


def _read_sale(sale: Sell, path: str) -> _StatedSale:
    position = sale.position.id if isinstance(sale.position, Position) else sale.position
    position_id = _id(position, f"{path}.position_id")
    percentage = _decimal(sale.percentage, f"{path}.percentage", _PERCENT, "50 or 33.5")
    return _StatedSale(position_id, percentage, {"position_id": position_id, "percentage": f"{percentage:f}"})


def _check_bet(bet: _StatedBet, markets: Mapping[str, Market], cash: Decimal, path: str) -> Decimal:
    """The amount in whole cents."""
    market = markets.get(bet.market_id)
    if market is None:
        raise Refusal(f"{path}.market_id: {bet.market_id!r} is not in the list of markets")
    side = _match_side(market, bet.side)
    if side is None:
        sides = ", ".join(market.prices)
        raise Refusal(f"{path}.side: {bet.side!r} is no side of market {market.id}; its sides are {sides}")
    price = market.prices[side]
    if price is None or not 0 < price < 1:
        fault = "has no price" if price is None else f"stands at {Decimal(repr(price)):f}, outside (0, 1)"
        raise Refusal(f"{path}: side {side} of market {market.id} {fault} in this run")
    return _check_amount(bet.amount, cash, f"{path}.amount")


def _match_side(market: Market, side: str) -> str | None:
    if side in market.prices:
        return side
    folded = [name for name in market.prices if name.casefold() == side.casefold()]
    return folded[0] if len(folded) == 1 else None


def _check_amount(dollars: Decimal, cash: Decimal, path: str) -> Decimal:
    amount_text, maximum = _format_number(dollars), cash * MAXIMUM_BET_FRACTION
    if dollars < 0:
        raise Refusal(f"{path}: {amount_text} is negative")
    if maximum < MINIMUM_BET:
        raise Refusal(f"{path}: with cash of {cash:.2f} no bet is legal")
    # Compared before rounding: quantize fails on numbers with more digits than the decimal context.
    if dollars >= maximum + CENT or (amount := dollars.quantize(CENT, rounding=ROUND_DOWN)) > maximum:
        percent = (MAXIMUM_BET_FRACTION * 100).normalize()
        raise Refusal(
            f"{path}: {amount_text} is above the maximum of {maximum.quantize(CENT, rounding=ROUND_DOWN):.2f} "
            f"({percent:f} % of the cash of {cash:.2f} at that moment)"
        )
    if amount < MINIMUM_BET:
        raise Refusal(f"{path}: {amount_text} is below the minimum of {MINIMUM_BET:.2f}")
    return amount


def _check_sale(sale: _StatedSale, shares: dict[str, Decimal], path: str) -> None:
    """Checks a sale and takes its shares from `shares`."""
    if sale.position_id not in shares:
        raise Refusal(f"{path}.position_id: {sale.position_id!r} is none of your open positions")
    percentage_text, position_shares = _format_number(sale.percentage), shares[sale.position_id]
    if not 1 <= sale.percentage <= 100:
        raise Refusal(f"{path}.percentage: {percentage_text} is outside 1 to 100")
    sold = (position_shares * sale.percentage / 100).quantize(MICROSHARE)
    if not sold:
        raise Refusal(f"{path}.percentage: {percentage_text} of this position is less than a millionth share")
    if sold == position_shares:
        del shares[sale.position_id]
    else:
        shares[sale.position_id] = position_shares - sold


# --- values ----------------------------------------------------------------------------------------------


def _number(value: Any, path: str, notation: re.Pattern[str], examples: str) -> tuple[Any, Decimal | re.Match[str]]:
    """A number as JSON can hold it, and its value or the match of a text with `notation`."""
    if isinstance(value, str):
        text = value.strip(BLANKS)
        if len(text) <= MAX_DIGITS and (match := notation.fullmatch(text)):
            return value, match
        raise FaultyAnswer(f"{path} must be a plain number such as {examples}, not {abbreviate(value)}")
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise FaultyAnswer(f"{path} must be a number, not {abbreviate(value)}")
    if isinstance(value, Integral):
        integer = int(value)
        if abs(integer) >= 10**MAX_DIGITS:
            raise FaultyAnswer(f"a number of {path} has more than {MAX_DIGITS:,} digits")
        return integer, Decimal(integer)
    number = float(value)
    if math.isnan(number) or math.isinf(number):
        literal = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
        raise FaultyAnswer(f"{literal} is not a JSON number")
    return number, Decimal(float.__repr__(number))


def _decimal(value: Any, path: str, notation: re.Pattern[str], examples: str) -> Decimal:
    if isinstance(value, Decimal) and value.is_finite():
        return value
    number = _number(value, path, notation, examples)[1]
    return number if isinstance(number, Decimal) else Decimal(number[1] + number[2].replace(",", ""))


def _id(value: Any, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise FaultyAnswer(f"{path} must be text or a whole number, not {abbreviate(value)}")
    return _text(value, path)


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise FaultyAnswer(f"{path} must be text, not {abbreviate(value)}")
    if not (text := storable(value).strip(BLANKS)):
        raise FaultyAnswer(f"{path} must not be empty")
    return text


def _optional_text(value: Any, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FaultyAnswer(f"{path} must be text, not {abbreviate(value)}")
    return storable(value)


def abbreviate(value: Any) -> str:
    """A value in at most 40 characters on one line, for messages."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "a list"
    if isinstance(value, Decimal):
        text = str(value)
    else:
        try:
            text = storable(json.dumps(value, ensure_ascii=False))
        except (TypeError, ValueError):
            text = f"an object of the type {type(value).__name__}"
    return text if len(text) <= 40 else f"{text[:39]}…"


def storable(text: str) -> str:
    """The text with NUL and unpaired surrogates replaced, as the arena stores it."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


def encode_answer(answer: Mapping[str, Any]) -> str:
    """The body of an answer. Raises FaultyAnswer if it is too long."""
    body = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    if len(body.encode()) > MAX_BODY_BYTES:
        raise FaultyAnswer(f"the body is longer than {MAX_BODY_BYTES:,} bytes")
    return body


def _fold(name: str) -> str:
    return name.strip(BLANKS).casefold()


def _format_number(number: Decimal) -> str:
    text = f"{number:f}" if -30 < number.adjusted() < 30 else str(number)
    return text if len(text) <= 40 else f"{text[:40]}…"
