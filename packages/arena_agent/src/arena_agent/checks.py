"""Checks of an agent's answers before they leave, by the arena's own rules: it would refuse them in the same words.

`Malformed` stands for an answer that the arena could not read at all, `Refusal` for one forecast or decision that it
would not take.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

from arena_agent.objects import Bet, Forecast, Market, Portfolio, Position, Question, Sell
from arena_verifier.answer_texts import DECODER, MAX_DIGITS, Malformed, abbreviate
from arena_verifier.decisions import Answer, parse_decision
from arena_verifier.forecasts import PromptQuestion, check_forecasts, parse_forecast
from arena_verifier.instructions import (
    InstructionRejected,
    check_amount,
    check_percentage,
    check_price,
    find_market,
    find_position,
    find_side,
)

MAX_BODY_BYTES = 1_000_000
MINIMUM_BET = Decimal(50)
MAXIMUM_BET_FRACTION = Decimal("0.25")


class Refusal(ValueError):
    """A forecast or a decision that would not be taken; the message says why."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A forecast that the arena takes: as it is sent, and the probabilities that are scored."""

    body: dict[str, Any]
    probabilities: dict[str, float]


def check_forecast(question: Question, forecasts: Mapping[str, Any]) -> CheckedQuestion:
    """The forecast of a question, from the forecasts of an answer that name it, by path.

    Raises Malformed or Refusal.
    """
    stated = [parse_forecast(forecast, path) for path, forecast in forecasts.items()]
    (checked,) = check_forecasts(stated, [PromptQuestion(question.id, question.options, question.exclusive)])
    if checked.probabilities is None:
        raise Refusal(checked.reason)
    (first, *_), values = forecasts.values(), {}
    for option, value in first["probabilities"].items():
        values[option] = float(value) if isinstance(value, Decimal) else value
    body = {"question_id": question.id, "rationale": checked.rationale, "probabilities": values}
    return CheckedQuestion(body, checked.probabilities)


def forecast_as_read(question: Question, answer: Any, path: str) -> Any:
    """The forecast that an agent returned, as the arena will read it. Raises Malformed."""
    forecast = answer if isinstance(answer, Forecast) else Forecast(answer)
    content = {"question_id": question.id, "rationale": forecast.rationale, "probabilities": forecast.probabilities}
    return _as_read(content, path)


def read_instructions(instructions: Any) -> Answer:
    """The decision of an agent's bets and sales, as the arena will read it. Raises Malformed."""
    if not isinstance(instructions, Sequence) or isinstance(instructions, str):
        raise Malformed(f"trade must return a list of Bet and Sell, not {_name(instructions)}")
    bets, sells = [], []
    for index, instruction in enumerate(instructions):
        if isinstance(instruction, Bet):
            market = instruction.market.id if isinstance(instruction.market, Market) else instruction.market
            bet = {"market_id": market, "side": instruction.side, "reason": instruction.reason}
            bets.append(bet | {"amount": instruction.amount})
        elif isinstance(instruction, Sell):
            position = instruction.position
            position_id = position.id if isinstance(position, Position) else position
            sells.append({"position_id": position_id, "percentage": instruction.percentage})
        else:
            raise Malformed(f"trade: item {index} must be a Bet or a Sell, not {_name(instruction)}")
    action = "BET" if bets else "SELL" if sells else "HOLD"
    content = _as_read({"action": action, "bets": bets, "sells": sells}, "trade")
    return parse_decision(content, bet_reasons=True)


def check_decision(
    decision: Answer, portfolio: Portfolio, markets: Sequence[Market]
) -> tuple[dict[str, Any], list[str]]:
    """The decision as it is sent, and the reasons of the instructions that the arena would reject, which are left out.

    Raises Refusal where it would carry out none of it.
    """
    accepted, reasons = [], []
    market_by_id = {market.id: market for market in markets}
    positions = {position.id: position for position in portfolio.positions}
    shares = {position.id: position.shares for position in portfolio.positions}
    cash = portfolio.cash
    for index, bet in enumerate(decision.bets):
        path = f"bets[{index}]"
        try:
            market = find_market(market_by_id, bet, path)
            side = find_side(list(market.prices), bet, path)
            price = market.prices[side]
            check_price(None if price is None else Decimal(repr(price)), market.id, side, path)
            cash -= check_amount(
                bet.amount, cash=cash, minimum=MINIMUM_BET, fraction=MAXIMUM_BET_FRACTION, path=f"{path}.amount"
            )
        except InstructionRejected as rejection:
            reasons.append(str(rejection))
            continue
        reason = {"reason": bet.reason} if bet.reason else {}
        accepted.append({"market_id": bet.market_id, "side": bet.side, **reason, "amount": f"{bet.amount:f}"})
    for index, sale in enumerate(decision.sells):
        path = f"sells[{index}]"
        try:
            position = find_position(positions, sale, path)
            shares[position.id] -= check_percentage(sale, shares[position.id], path)
        except InstructionRejected as rejection:
            reasons.append(str(rejection))
            continue
        if not shares[position.id]:
            del positions[position.id]
        accepted.append({"position_id": sale.position_id, "percentage": f"{sale.percentage:f}"})
    if reasons and not accepted:
        raise Refusal("; ".join(reasons))
    body: dict[str, Any] = {"action": decision.action}
    if accepted:
        body["bets" if decision.bets else "sells"] = accepted
    return body | ({"reasoning": decision.reasoning} if decision.reasoning else {}), reasons


def encode_answer(answer: Mapping[str, Any]) -> str:
    """The body of an answer. Raises Malformed if it is too long."""
    body = json.dumps(answer, ensure_ascii=False, allow_nan=False)
    if len(body.encode()) > MAX_BODY_BYTES:
        raise Malformed(f"the body is longer than {MAX_BODY_BYTES:,} bytes")
    return body


def _as_read(content: dict[str, Any], path: str) -> Any:
    """The answer that an agent returned, read from its JSON. Raises Malformed for values that JSON can not hold."""
    try:
        text = json.dumps(content, default=_json_value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Malformed(f"{path} can not be sent as JSON: {error}") from None
    return DECODER.decode(text)


def _json_value(value: Any) -> Any:
    """A value that JSON can hold for one that it can not: numbers of other types, and mappings."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return f"{value:f}" if abs(value.adjusted()) < MAX_DIGITS else str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"it holds an object of the type {type(value).__name__}")


def _name(value: Any) -> str:
    """An object that an agent returned, for messages."""
    try:
        return abbreviate(value)
    except (TypeError, ValueError):
        return f"an object of the type {type(value).__name__}"
