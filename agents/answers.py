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


@dataclass(frozen=True, slots=True)
class Sell:
    """A part of a position, as said: `percentage` is 50 for a half."""

    position_id: str
    percentage: Decimal


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed decision; `bets` are there exactly when the action is BET, `sells` when it is SELL."""

    action: Action
    bets: tuple[Bet, ...] = ()
    sells: tuple[Sell, ...] = ()
    reasoning: str = ""


def parse_answer(text: str) -> Answer:
    """The one decision a text states, or `Malformed` with the first thing that is wrong with it."""
    said = read_object(text)
    action = _action(said)
    bets, sells = _list(said, "bets"), _list(said, "sells")
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
        reasoning=_reasoning(said),
    )


# Fields: each takes what was said and where, so that a refusal can name the place.


def _action(said: dict[str, Any]) -> Action:
    choices = '"BET", "SELL" or "HOLD"'
    if "action" not in said:
        raise Malformed(f"action is missing: it must be {choices}")
    action = said["action"]
    if isinstance(action, str) and (name := action.strip(_BLANKS).upper()) in _INSTRUCTIONS:
        return cast(Action, name)
    raise Malformed(f"action must be {choices}, not {_shown(action)}")


def _list(said: dict[str, Any], name: str) -> list[Any]:
    instructions = said.get(name)
    if instructions is None:
        return []
    if not isinstance(instructions, list):
        raise Malformed(f"{name} must be a list, not {_shown(instructions)}")
    if len(instructions) > MAX_INSTRUCTIONS:
        raise Malformed(f"{name} must hold at most {MAX_INSTRUCTIONS} instructions, not {len(instructions)}")
    return instructions


def _bet(said: Any, where: str) -> Bet:
    return Bet(
        market_id=_id(*_field(said, where, "market_id")),
        side=_text(*_field(said, where, "side")),
        amount=_amount(*_field(said, where, "amount")),
    )


def _sell(said: Any, where: str) -> Sell:
    return Sell(
        position_id=_id(*_field(said, where, "position_id")),
        percentage=_percentage(*_field(said, where, "percentage")),
    )


def _field(said: Any, where: str, name: str) -> tuple[Any, str]:
    """What was said of a field, and the field's full name for the refusal."""
    if not isinstance(said, dict):
        raise Malformed(f"{where} must be an object, not {_shown(said)}")
    if name not in said:
        raise Malformed(f"{where}.{name} is missing")
    return said[name], f"{where}.{name}"


def _id(said: Any, where: str) -> str:
    if isinstance(said, int) and not isinstance(said, bool):
        return str(said)
    if not isinstance(said, str):
        raise Malformed(f"{where} must be text or a whole number, not {_shown(said)}")
    return _text(said, where)


def _text(said: Any, where: str) -> str:
    if not isinstance(said, str):
        raise Malformed(f"{where} must be text, not {_shown(said)}")
    if not (text := _storable(said).strip(_BLANKS)):
        raise Malformed(f"{where} must not be empty")
    return text


def _reasoning(said: dict[str, Any]) -> str:
    reasoning = said.get("reasoning")
    if reasoning is None:
        return ""
    if not isinstance(reasoning, str):
        raise Malformed(f"reasoning must be text, not {_shown(reasoning)}")
    return _storable(reasoning)


def _amount(said: Any, where: str) -> Decimal:
    return _decimal(said, where, _DOLLARS, "500 or 500.00")


def _percentage(said: Any, where: str) -> Decimal:
    return _decimal(said, where, _PERCENT, "50 or 33.5")


_PLAIN = r"[0-9]+(?:\.[0-9]+)?"
# "1,250" is 1250 here and 1.25 elsewhere: only decimals after the comma settle which.
_GROUPED = r"[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+"
_DOLLARS = re.compile(rf"(-?)\$?\s*({_GROUPED}|{_PLAIN})\s*(?:USD)?", re.IGNORECASE)
_PERCENT = re.compile(rf"(-?)({_PLAIN})\s*%?")


def _decimal(said: Any, where: str, notation: re.Pattern[str], examples: str) -> Decimal:
    if isinstance(said, int | Decimal) and not isinstance(said, bool):
        return Decimal(said)
    if not isinstance(said, str):
        raise Malformed(f"{where} must be a number, not {_shown(said)}")
    text = said.strip(_BLANKS)
    if len(text) <= MAX_DIGITS and (number := notation.fullmatch(text)):
        return Decimal(number[1] + number[2].replace(",", ""))
    raise Malformed(f"{where} must be a plain number such as {examples}, not {_shown(said)}")


def _shown(value: Any) -> str:
    """A value as a refusal names it: short, and on one line."""
    match value:
        case dict():
            return "an object"
        case list():
            return "a list"
        case Decimal():
            text = str(value)
        case _:
            text = _storable(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 40 else f"{text[:39]}…"


def _storable(text: str) -> str:
    """The text without what JSON can say and a database can not keep: NUL and half a surrogate pair."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text)


# One object out of a text. Every pattern is possessive, so that no text takes more than linear time.

_BLANKS = " \t\n\r\v\f\u00a0\u2007\u202f\u200b\u200c\u200d\u2060\ufeff"
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
    rf"(?P<kept>{_STRING}|[\[{{]\s*+,)|,(?=[\s{_BLANKS}]*+[\]}}])|(?![ \t\n\r])[\s{_BLANKS}]", re.DOTALL
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
            raise Malformed(f"{_shown(key)} is given twice with different values")
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
