"""Parses a model's answer in the trading protocol: one JSON object from the text, one `Answer` from the object.

The parser is lenient where the meaning is certain (fences, prose, thinking, trailing commas, `"$500"`) and refuses
everything else; it never guesses an amount. It checks structure only: `instructions` checks markets, sides and amounts.
"""

import re
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from arena_verifier.answer_texts import BLANKS, MAX_DIGITS, Malformed, abbreviate, extract_object, storable

MAX_INSTRUCTIONS = 200

Action = Literal["BET", "SELL", "HOLD"]
_INSTRUCTIONS: dict[str, str | None] = {"BET": "bets", "SELL": "sells", "HOLD": None}


@dataclass(frozen=True, slots=True)
class Bet:
    """A bet on one side of a market, as stated: neither the ids nor the amount have been checked.

    reason : None where the methodology asks for none
    """

    market_id: str
    side: str
    amount: Decimal
    reason: str | None = None

    def as_json(self) -> dict[str, str]:
        reason = {} if self.reason is None else {"reason": self.reason}
        return {"market_id": self.market_id, "side": self.side, "amount": str(self.amount), **reason}


@dataclass(frozen=True, slots=True)
class Sell:
    """The sale of a percentage (50 for a half) of a position, as stated and unchecked."""

    position_id: str
    percentage: Decimal

    def as_json(self) -> dict[str, str]:
        return {"position_id": self.position_id, "percentage": str(self.percentage)}


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed decision: `bets` only and always with the action BET, `sells` with SELL."""

    action: Action
    bets: tuple[Bet, ...] = ()
    sells: tuple[Sell, ...] = ()
    reasoning: str = ""

    def as_json(self) -> dict[str, Any]:
        """The decision as it is stored with its call."""
        instructions = {"bets": list(map(Bet.as_json, self.bets)), "sells": list(map(Sell.as_json, self.sells))}
        return asdict(self) | instructions

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Answer":
        """The inverse of `as_json`."""
        return cls(
            action=stored["action"],
            bets=tuple(map(_stored_bet, stored["bets"])),
            sells=tuple(Sell(sale["position_id"], Decimal(sale["percentage"])) for sale in stored["sells"]),
            reasoning=stored["reasoning"],
        )


def _stored_bet(stored: dict[str, str]) -> Bet:
    return Bet(stored["market_id"], stored["side"], Decimal(stored["amount"]), stored.get("reason"))


def parse_answer(text: str, *, bet_reasons: bool = False) -> Answer:
    """The one decision that a text states, with its bets' reasons if asked. Raises Malformed with its first fault."""
    return parse_decision(extract_object(text), bet_reasons=bet_reasons)


def parse_decision(data: dict[str, Any], *, bet_reasons: bool) -> Answer:
    """The decision that an object states, with its bets' reasons if asked. Raises Malformed with its first fault."""
    action = _parse_action(data)
    bets, sells = (parse_list(data, name, MAX_INSTRUCTIONS, "instructions") for name in ("bets", "sells"))
    for name, instructions in (("bets", bets), ("sells", sells)):
        required = _INSTRUCTIONS[action] == name
        if required and not instructions:
            raise Malformed(f'{name} must not be empty when action is "{action}"')
        if instructions and not required:
            raise Malformed(f'{name} must be empty when action is "{action}"')
    return Answer(
        action=action,
        bets=tuple(_parse_bet(bet, f"bets[{i}]", with_reason=bet_reasons) for i, bet in enumerate(bets)),
        sells=tuple(_parse_sale(sale, f"sells[{i}]") for i, sale in enumerate(sells)),
        reasoning=parse_optional_text(data.get("reasoning"), "reasoning"),
    )


# Fields: each parser takes a value and its path, which the message of Malformed names.


def _parse_action(data: dict[str, Any]) -> Action:
    choices = '"BET", "SELL" or "HOLD"'
    if "action" not in data:
        raise Malformed(f"action is missing: it must be {choices}")
    action = data["action"]
    if isinstance(action, str) and (name := action.strip(BLANKS).upper()) in _INSTRUCTIONS:
        return cast(Action, name)
    raise Malformed(f"action must be {choices}, not {abbreviate(action)}")


def parse_list(data: dict[str, Any], name: str, max_length: int, unit: str) -> list[Any]:
    """The list under `name`; empty if it is absent."""
    items = data.get(name)
    if items is None:
        return []
    if not isinstance(items, list):
        raise Malformed(f"{name} must be a list, not {abbreviate(items)}")
    if len(items) > max_length:
        raise Malformed(f"{name} must hold at most {max_length} {unit}, not {len(items)}")
    return items


def _parse_bet(value: Any, path: str, *, with_reason: bool) -> Bet:
    return Bet(
        market_id=parse_id(*get_field(value, path, "market_id")),
        side=parse_text(*get_field(value, path, "side")),
        amount=_parse_decimal(*get_field(value, path, "amount"), _DOLLARS, "500 or 500.00"),
        reason=parse_optional_text(value.get("reason"), f"{path}.reason") if with_reason else None,
    )


def _parse_sale(value: Any, path: str) -> Sell:
    return Sell(
        position_id=parse_id(*get_field(value, path, "position_id")),
        percentage=_parse_decimal(*get_field(value, path, "percentage"), _PERCENT, "50 or 33.5"),
    )


def get_field(value: Any, path: str, name: str) -> tuple[Any, str]:
    """A field of an object, and the field's path."""
    if not isinstance(value, dict):
        raise Malformed(f"{path} must be an object, not {abbreviate(value)}")
    if name not in value:
        raise Malformed(f"{path}.{name} is missing")
    return value[name], f"{path}.{name}"


def parse_id(value: Any, path: str) -> str:
    """An id as text, from text or a whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise Malformed(f"{path} must be text or a whole number, not {abbreviate(value)}")
    return parse_text(value, path)


def parse_text(value: Any, path: str) -> str:
    """A text without surrounding blanks, never empty."""
    if not isinstance(value, str):
        raise Malformed(f"{path} must be text, not {abbreviate(value)}")
    if not (text := storable(value).strip(BLANKS)):
        raise Malformed(f"{path} must not be empty")
    return text


def parse_optional_text(value: Any, path: str) -> str:
    """A text as it is; empty if it is null."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Malformed(f"{path} must be text, not {abbreviate(value)}")
    return storable(value)


PLAIN = r"[0-9]+(?:\.[0-9]+)?"
# "1,250" is 1250 in English and 1.25 elsewhere: only decimals after the comma settle which.
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
_DOLLARS = re.compile(rf"(-?)\$?\s*({_GROUPED}|{PLAIN})\s*(?:USD)?", re.IGNORECASE)
_PERCENT = re.compile(rf"(-?)({PLAIN})\s*%?")


def _parse_decimal(value: Any, path: str, notation: re.Pattern[str], examples: str) -> Decimal:
    number = parse_number(value, path, notation, examples)
    return number if isinstance(number, Decimal) else Decimal(number[1] + number[2].replace(",", ""))


def parse_number(value: Any, path: str, notation: re.Pattern[str], examples: str) -> Decimal | re.Match[str]:
    """A JSON number as Decimal, or the match of a text with `notation`."""
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    if not isinstance(value, str):
        raise Malformed(f"{path} must be a number, not {abbreviate(value)}")
    text = value.strip(BLANKS)
    if len(text) <= MAX_DIGITS and (match := notation.fullmatch(text)):
        return match
    raise Malformed(f"{path} must be a plain number such as {examples}, not {abbreviate(value)}")
