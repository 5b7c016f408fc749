"""What a model said, read exactly: one JSON object out of a text, one trading answer out of the object.

Lenient where the meaning is certain (fences, prose, thinking, trailing commas, `"$500"`), deaf everywhere
else: an amount is never guessed, a draft never traded. Only structure is judged here. Whether a market,
a side or an amount is allowed is asked instruction by instruction, where the portfolio is known.
"""

import json
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, NoReturn, cast

MAX_CHARACTERS = 1_000_000
MAX_INSTRUCTIONS = 200
MAX_DIGITS = 1_000
"""Beyond this a number says nothing about money, and printing `1e999999999` would fill the memory."""

Action = Literal["BET", "SELL", "HOLD"]
_INSTRUCTIONS: dict[str, str | None] = {"BET": "bets", "SELL": "sells", "HOLD": None}


class Malformed(ValueError):
    """Why a text is no answer, in one sentence fit to be quoted back to the model."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Bet:
    """Money on one side of a market, as said: neither the ids nor the amount have been checked."""

    market_id: str
    side: str
    amount: Decimal

    def as_json(self) -> dict[str, str]:
        return {"market_id": self.market_id, "side": self.side, "amount": str(self.amount)}


@dataclass(frozen=True, slots=True)
class Sell:
    """A part of a position, as said: `percentage` is 50 for a half."""

    position_id: str
    percentage: Decimal

    def as_json(self) -> dict[str, str]:
        return {"position_id": self.position_id, "percentage": str(self.percentage)}


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed decision; `bets` are there exactly when the action is BET, `sells` when it is SELL."""

    action: Action
    bets: tuple[Bet, ...] = ()
    sells: tuple[Sell, ...] = ()
    reasoning: str = ""

    def as_json(self) -> dict[str, Any]:
        """The decision as it is stored until it is carried out."""
        return {
            "action": self.action,
            "bets": [bet.as_json() for bet in self.bets],
            "sells": [sale.as_json() for sale in self.sells],
            "reasoning": self.reasoning,
        }

    @classmethod
    def from_json(cls, said: dict[str, Any]) -> "Answer":
        """The decision that `as_json` gave."""
        return cls(
            action=said["action"],
            bets=tuple(Bet(bet["market_id"], bet["side"], Decimal(bet["amount"])) for bet in said["bets"]),
            sells=tuple(Sell(sale["position_id"], Decimal(sale["percentage"])) for sale in said["sells"]),
            reasoning=said["reasoning"],
        )


def parse_answer(text: str) -> Answer:
    """The one decision a text states, or `Malformed` with the first thing that is wrong with it."""
    said = read_object(text)
    action = _action(said)
    bets, sells = (list_of(said, name, MAX_INSTRUCTIONS, "instructions") for name in ("bets", "sells"))
    for name, instructions in (("bets", bets), ("sells", sells)):
        wanted = _INSTRUCTIONS[action] == name
        if wanted and not instructions:
            raise Malformed(f'{name} must not be empty when action is "{action}"')
        if instructions and not wanted:
            raise Malformed(f'{name} must be empty when action is "{action}"')
    return Answer(
        action=action,
        bets=tuple(_bet(bet, f"bets[{i}]") for i, bet in enumerate(bets)),
        sells=tuple(_sell(sell, f"sells[{i}]") for i, sell in enumerate(sells)),
        reasoning=optional_text(said.get("reasoning"), "reasoning"),
    )


# Fields: each takes what was said and where, so that a refusal can name the place.


def _action(said: dict[str, Any]) -> Action:
    choices = '"BET", "SELL" or "HOLD"'
    if "action" not in said:
        raise Malformed(f"action is missing: it must be {choices}")
    action = said["action"]
    if isinstance(action, str) and (name := action.strip(BLANKS).upper()) in _INSTRUCTIONS:
        return cast(Action, name)
    raise Malformed(f"action must be {choices}, not {shown(action)}")


def list_of(said: dict[str, Any], name: str, most: int, of_what: str) -> list[Any]:
    """The list said under `name`; empty where there is none."""
    items = said.get(name)
    if items is None:
        return []
    if not isinstance(items, list):
        raise Malformed(f"{name} must be a list, not {shown(items)}")
    if len(items) > most:
        raise Malformed(f"{name} must hold at most {most} {of_what}, not {len(items)}")
    return items


def _bet(said: Any, where: str) -> Bet:
    return Bet(
        market_id=id_of(*field_of(said, where, "market_id")),
        side=text_of(*field_of(said, where, "side")),
        amount=_amount(*field_of(said, where, "amount")),
    )


def _sell(said: Any, where: str) -> Sell:
    return Sell(
        position_id=id_of(*field_of(said, where, "position_id")),
        percentage=_percentage(*field_of(said, where, "percentage")),
    )


def field_of(said: Any, where: str, name: str) -> tuple[Any, str]:
    """What was said of a field, and the field's full name for the refusal."""
    if not isinstance(said, dict):
        raise Malformed(f"{where} must be an object, not {shown(said)}")
    if name not in said:
        raise Malformed(f"{where}.{name} is missing")
    return said[name], f"{where}.{name}"


def id_of(said: Any, where: str) -> str:
    """An id as text, said as text or as a whole number."""
    if isinstance(said, int) and not isinstance(said, bool):
        return str(said)
    if not isinstance(said, str):
        raise Malformed(f"{where} must be text or a whole number, not {shown(said)}")
    return text_of(said, where)


def text_of(said: Any, where: str) -> str:
    """What was said, without the blanks around it; never empty."""
    if not isinstance(said, str):
        raise Malformed(f"{where} must be text, not {shown(said)}")
    if not (text := storable(said).strip(BLANKS)):
        raise Malformed(f"{where} must not be empty")
    return text


def optional_text(said: Any, where: str) -> str:
    """What was said, whole; empty where there is nothing."""
    if said is None:
        return ""
    if not isinstance(said, str):
        raise Malformed(f"{where} must be text, not {shown(said)}")
    return storable(said)


def _amount(said: Any, where: str) -> Decimal:
    return _decimal(said, where, _DOLLARS, "500 or 500.00")


def _percentage(said: Any, where: str) -> Decimal:
    return _decimal(said, where, _PERCENT, "50 or 33.5")


PLAIN = r"[0-9]+(?:\.[0-9]+)?"
# "1,250" is 1250 here and 1.25 elsewhere: only decimals after the comma settle which.
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
_DOLLARS = re.compile(rf"(-?)\$?\s*({_GROUPED}|{PLAIN})\s*(?:USD)?", re.IGNORECASE)
_PERCENT = re.compile(rf"(-?)({PLAIN})\s*%?")


def _decimal(said: Any, where: str, notation: re.Pattern[str], examples: str) -> Decimal:
    number = number_of(said, where, notation, examples)
    return number if isinstance(number, Decimal) else Decimal(number[1] + number[2].replace(",", ""))


def number_of(said: Any, where: str, notation: re.Pattern[str], examples: str) -> Decimal | re.Match[str]:
    """The number said, or how its text fits the notation."""
    if isinstance(said, int | Decimal) and not isinstance(said, bool):
        return Decimal(said)
    if not isinstance(said, str):
        raise Malformed(f"{where} must be a number, not {shown(said)}")
    text = said.strip(BLANKS)
    if len(text) <= MAX_DIGITS and (written := notation.fullmatch(text)):
        return written
    raise Malformed(f"{where} must be a plain number such as {examples}, not {shown(said)}")


def shown(value: Any) -> str:
    """A value as a refusal names it: short, and on one line."""
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
    """The text without what JSON can say and a database can not keep: NUL and half a surrogate pair."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


# One object out of a text. Every pattern is possessive, so that no text takes more than linear time.

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
# What JSON does not allow and nobody means: a last comma, and blanks other than its own four.
_FORGIVEN = re.compile(
    rf"(?P<kept>{_STRING}|[\[{{]\s*+,)|,(?=[\s{BLANKS}]*+[\]}}])|(?![ \t\n\r])[\s{BLANKS}]", re.DOTALL
)


def read_object(text: str) -> dict[str, Any]:
    """The one JSON object of a text: integers as int, fractions as Decimal just as written.

    Prose, code fences and thinking around it are passed over, and the same object said twice counts once.
    Raises `Malformed` where there is no object, another one, or one that leaves a doubt: broken off,
    with NaN, with a key given two values, inside an array.
    """
    if len(text) > MAX_CHARACTERS:
        raise Malformed(f"the answer is longer than {MAX_CHARACTERS:,} characters")
    try:
        found, thought = _objects(text)
    except RecursionError:
        raise Malformed("the object is nested too deeply") from None
    if not found:
        raise Malformed(f"no JSON object {'outside the thinking' if thought else 'in the answer'}")
    if len(found) > 1:
        raise Malformed("the answer holds two different JSON objects")
    return found[0]


def _objects(text: str) -> tuple[list[dict[str, Any]], bool]:
    """The first two different objects at the top level, and whether any thinking was passed over."""
    found: list[dict[str, Any]] = []
    thought, at, answer_from = False, 0, _end_of_unopened_thinking(text)
    while start := _START.search(text, at):
        try:
            if start["tag"]:
                at, thought = _end_of_thinking(text, start), True
                if start["closing"]:
                    found.clear()
                continue
            at = _end(text, start)
            value = _decoded(text, start.start(), at)
        except Malformed:
            if start.start() >= answer_from:
                raise
            # Thinking that the chat template opened may hold anything, half an object too.
            found, thought, at = [], True, answer_from
            continue
        if value is not None and len(found) < 2 and not any(_same(value, other) for other in found):
            found.append(value)
    return found, thought


def _end_of_unopened_thinking(text: str) -> int:
    """Where the last closing tag before any opening one ends; 0 where there is none."""
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


def _end(text: str, start: re.Match[str]) -> int:
    """Where the container closes; its inside is never searched for another one."""
    opening, kind, pieces = ("{", "object", _BRACES) if start["object"] else ("[", "array", _BRACKETS)
    depth = 0
    for piece in pieces.finditer(text, start.start()):
        if piece[0] == opening:
            depth += 1
        elif not piece[0].startswith('"'):
            depth -= 1
            if depth == 0:
                return piece.end()
    raise Malformed(f"the {kind} that opens on line {_line(text, start.start())} is never closed")


def _decoded(text: str, start: int, end: int) -> dict[str, Any] | None:
    """The object between the braces, or None where they are only prose, as in `{maybe}`."""
    span = _FORGIVEN.sub(lambda fault: fault["kept"] or " ", text[start:end])
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


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _number(written: str) -> int | Decimal:
    try:
        number = Decimal(written)
    except InvalidOperation:
        number = None
    if number is None or len(written) > MAX_DIGITS or abs(number.adjusted()) > MAX_DIGITS:
        raise Malformed(f"the number {written[:20]}… has more than {MAX_DIGITS:,} digits")
    return number if set(".eE") & set(written) else int(written)


def _no_number(written: str) -> NoReturn:
    raise Malformed(f"{written} is not a JSON number")


def _unambiguous(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, value in pairs:
        if key in said and not _same(said[key], value):
            raise Malformed(f"{shown(key)} is given twice with different values")
        said[key] = value
    return said


def _same(one: Any, other: Any) -> bool:
    """Whether two values say the same; for Python alone, `true` would equal 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


_DECODER = json.JSONDecoder(
    strict=False,  # models write line breaks inside strings, and the meaning is plain
    parse_float=_number,
    parse_int=_number,
    parse_constant=_no_number,
    object_pairs_hook=_unambiguous,
)
