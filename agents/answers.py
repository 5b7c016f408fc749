"""Parses a model's answer in the trading protocol: one JSON object from the text, one `Answer` from the object.

The parser is lenient where the meaning is certain (fences, prose, thinking, trailing commas, `"$500"`) and refuses
everything else; it never guesses an amount. It checks structure only: `agents.services.execution` checks markets,
sides and amounts.
"""

import json
import re
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn, cast

MAX_CHARACTERS = 1_000_000
MAX_CONTAINERS = 10_000
"""Opening braces and brackets of an answer: each may begin an object that has to be read."""
MAX_INSTRUCTIONS = 200
MAX_DIGITS = 1_000
"""Printing a number such as `1e999999999` would exhaust the memory."""

Action = Literal["BET", "SELL", "HOLD"]
_INSTRUCTIONS: dict[str, str | None] = {"BET": "bets", "SELL": "sells", "HOLD": None}


class Malformed(ValueError):
    """A text that is no answer; `reason` is a sentence that the retry prompt can quote."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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
        bets = [bet.as_json() for bet in self.bets]
        sells = [sell.as_json() for sell in self.sells]
        return asdict(self) | {"bets": bets, "sells": sells}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Answer":
        """The inverse of `as_json`."""
        return cls(
            action=stored["action"],
            bets=tuple(map(_stored_bet, stored["bets"])),
            sells=tuple(Sell(sale["position_id"], Decimal(sale["percentage"])) for sale in stored["sells"]),
            reasoning=stored["reasoning"],
        )


def object_schema(**properties: Any) -> dict[str, Any]:
    """A JSON schema with every property required, as strict modes demand."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT, NUMBER = {"type": "string"}, {"type": "number"}
DECISION_SCHEMA: dict[str, Any] = {
    "strict": True,
    "schema": object_schema(
        action={"type": "string", "enum": ["BET", "SELL", "HOLD"]},
        bets={"type": "array", "items": object_schema(market_id=TEXT, side=TEXT, amount=NUMBER)},
        sells={"type": "array", "items": object_schema(position_id=TEXT, percentage=NUMBER)},
        reasoning=TEXT,
    ),
}
"""An unused list stays empty."""
REASONED_DECISION_SCHEMA: dict[str, Any] = {
    "strict": True,
    "schema": object_schema(
        reasoning=TEXT,
        action={"type": "string", "enum": ["BET", "SELL", "HOLD"]},
        bets={"type": "array", "items": object_schema(market_id=TEXT, side=TEXT, reason=TEXT, amount=NUMBER)},
        sells={"type": "array", "items": object_schema(position_id=TEXT, percentage=NUMBER)},
    ),
}
"""Where the reasons come before the numbers."""


def _stored_bet(stored: dict[str, str]) -> Bet:
    return Bet(stored["market_id"], stored["side"], Decimal(stored["amount"]), stored.get("reason"))


def parse_answer(text: str, *, bet_reasons: bool = False) -> Answer:
    """The one decision that a text states, with its bets' reasons if asked. Raises Malformed with its first fault."""
    data = extract_object(text)
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


def abbreviate(value: Any) -> str:
    """A value in at most 40 characters on one line, for messages."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case Decimal():
            text = str(value)
        case _:
            text = storable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 40 else f"{text[:39]}…"


def storable(text: str) -> str:
    """The text with NUL and unpaired surrogates replaced: valid in JSON, refused by databases."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


# The object within the text. Every pattern is possessive, so that matching takes linear time.

BLANKS = " \t\n\r\v\f\u00a0\u2007\u202f\u200b\u200c\u200d\u2060\ufeff"
_STRING = r'"(?:[^"\\]++|\\.?+)*+"?+'  # an unclosed one runs to the end of the text
_SCALAR = rf"(?:{_STRING}|[-+.\w]++)"
_TAG = re.compile(r"<(?P<closing>/?+)(?P<name>think|thinking|reasoning)>", re.IGNORECASE)
_START = re.compile(
    rf"(?P<tag>{_TAG.pattern})|(?P<object>\{{)"
    # Prose is full of brackets ("[1]", "[0, 1)"): only one that leads on to a container opens an array.
    rf"|(?P<array>\[)(?=\s*+(?:{_SCALAR}\s*+,\s*+)*+[\[{{])",
    re.IGNORECASE | re.DOTALL,
)
_BRACES = re.compile(rf"{_STRING}|[{{}}]", re.DOTALL)
_BRACKETS = re.compile(rf"{_STRING}|[\[\]]", re.DOTALL)
_JSON_OBJECT = re.compile(rf"\{{\s*+(?:\}}|{_STRING}\s*+:)", re.DOTALL)
# Trailing commas and blanks other than the four of JSON are dropped.
_LENIENT = re.compile(
    rf"(?P<unchanged>{_STRING}|[\[{{]\s*+,)|,(?=[\s{BLANKS}]*+[\]}}])|(?![ \t\n\r])[\s{BLANKS}]", re.DOTALL
)


class LastObject:
    """Where the last object that was looked at begins, and where each object directly inside it ends."""

    def __init__(self) -> None:
        self.start = 0
        self.inner_ends: list[int] = []


def extract_object(text: str, last: LastObject | None = None) -> dict[str, Any]:
    """The one JSON object of a text: integers as int, fractions as Decimal with all their digits.

    Prose, code fences and thinking around it are skipped, and a repetition of the same object counts once. Raises
    Malformed if there is no object, a second one, or an ambiguous one: truncated, with NaN, with two values for a
    key, inside an array. `last` is filled in either case.
    """
    if len(text) > MAX_CHARACTERS:
        raise Malformed(f"the answer is longer than {MAX_CHARACTERS:,} characters")
    if text.count("{") + text.count("[") > MAX_CONTAINERS:
        raise Malformed(f"the answer holds more than {MAX_CONTAINERS:,} objects and lists")
    try:
        objects, skipped_thinking = _extract_objects(text, last or LastObject())
    except RecursionError:
        raise Malformed("the object is nested too deeply") from None
    if not objects:
        raise Malformed(f"no JSON object {'outside the thinking' if skipped_thinking else 'in the answer'}")
    if len(objects) > 1:
        raise Malformed("the answer holds two different JSON objects")
    return objects[0]


def _extract_objects(text: str, last: LastObject) -> tuple[list[dict[str, Any]], bool]:
    """The first two different objects at the top level, and whether any thinking was skipped."""
    objects: list[dict[str, Any]] = []
    skipped_thinking, position, answer_start = False, 0, _end_of_unopened_thinking(text)
    while start := _START.search(text, position):
        try:
            if start["tag"]:
                position, skipped_thinking = _end_of_thinking(text, start), True
                if start["closing"]:
                    objects.clear()
                continue
            position = _end_of_container(text, start, last)
            value = _decode_object(text, start.start(), position)
        except Malformed:
            if start.start() >= answer_start:
                raise
            # Thinking that the chat template opened may hold anything, a truncated object too.
            objects, skipped_thinking, position = [], True, answer_start
            continue
        if value is not None and len(objects) < 2 and not any(_equal(value, item) for item in objects):
            objects.append(value)
    return objects, skipped_thinking


def _end_of_unopened_thinking(text: str) -> int:
    """The end of the last closing tag before any opening one; 0 without one."""
    end = 0
    for tag in _TAG.finditer(text):
        if not tag["closing"]:
            break
        end = tag.end()
    return end


def _end_of_thinking(text: str, tag: re.Match[str]) -> int:
    if tag["closing"]:
        return tag.end()
    if closing := re.compile(f"</{tag['name']}>", re.IGNORECASE).search(text, tag.end()):
        return closing.end()
    raise Malformed(f"the thinking that begins with {tag[0]} is never closed")


def _end_of_container(text: str, start: re.Match[str], last: LastObject) -> int:
    """The end of the object or array that opens at `start`."""
    last.start, last.inner_ends = start.start(), []
    opening, kind, pieces = ("{", "object", _BRACES) if start["object"] else ("[", "array", _BRACKETS)
    depth = 0
    for piece in pieces.finditer(text, start.start()):
        if piece[0] == opening:
            depth += 1
        elif not piece[0].startswith('"'):
            depth -= 1
            if depth == 0:
                return piece.end()
            if depth == 1:
                last.inner_ends.append(piece.end())
    raise Malformed(f"the {kind} that opens on line {_line(text, start.start())} is never closed")


def _decode_object(text: str, start: int, end: int) -> dict[str, Any] | None:
    """The object between the braces, or None if they are part of prose, as in `{maybe}`."""
    span = _LENIENT.sub(lambda match: match["unchanged"] or " ", text[start:end])
    if not _JSON_OBJECT.search(span):
        return None
    try:
        value = _DECODER.decode(span)
    except json.JSONDecodeError as error:
        line = _line(text, start) + error.lineno - 1
        raise Malformed(f"line {line} is not valid JSON: {error.msg}") from None
    if not isinstance(value, dict):
        raise Malformed("the answer must be a JSON object, not an array")
    return value


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _decode_number(literal: str) -> int | Decimal:
    try:
        number = Decimal(literal)
    except InvalidOperation:
        number = None
    if number is None or len(literal) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise Malformed(f"the number {literal[:20]}… has more than {MAX_DIGITS:,} digits")
    return number if set(".eE") & set(literal) else int(literal)


def _refuse_constant(literal: str) -> NoReturn:
    raise Malformed(f"{literal} is not a JSON number")


def _decode_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a repeated key must have the same value each time."""
    data: dict[str, Any] = {}
    for key, value in pairs:
        if key in data and not _equal(data[key], value):
            raise Malformed(f"{abbreviate(key)} is given twice with different values")
        data[key] = value
    return data


def _equal(left_value: Any, right: Any) -> bool:
    """Equality of JSON values; in Python alone, True equals 1."""
    if isinstance(left_value, dict) and isinstance(right, dict):
        return left_value.keys() == right.keys() and all(_equal(left_value[key], right[key]) for key in left_value)
    if isinstance(left_value, list) and isinstance(right, list):
        return len(left_value) == len(right) and all(map(_equal, left_value, right))
    return isinstance(left_value, bool) == isinstance(right, bool) and left_value == right


_DECODER = json.JSONDecoder(
    strict=False,  # models write unescaped line breaks inside strings
    parse_float=_decode_number,
    parse_int=_decode_number,
    parse_constant=_refuse_constant,
    object_pairs_hook=_decode_pairs,
)
