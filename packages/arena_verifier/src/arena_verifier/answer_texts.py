"""Answers as text: the content of a stored answer, and the one JSON object that it holds."""

import json
import re
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import reduce
from operator import getitem
from typing import Any, NoReturn

MAX_CHARACTERS = 1_000_000
MAX_CONTAINERS = 10_000
"""Opening braces and brackets of an answer: each may begin an object that has to be read."""
MAX_DIGITS = 1_000
"""Printing a number such as `1e999999999` would exhaust the memory."""


class Malformed(ValueError):
    """A text that is no answer; `reason` is a sentence that the retry prompt can quote."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def storable(text: Any) -> str:
    """A text with NUL and unpaired surrogates replaced: valid in JSON, refused by databases. Empty for no text."""
    return re.sub("[\0\ud800-\udfff]", "\ufffd", text) if isinstance(text, str) else ""


def without_nul(text: Any) -> str:
    """A text as it came from outside, without NUL, that a database can store. Empty for no text."""
    return storable(text.replace("\0", "")) if isinstance(text, str) else ""


def parse(text: Any, **options: Any) -> Any:
    """The value of a JSON text; None for another text."""
    with suppress(ValueError, TypeError, ArithmeticError, RecursionError):
        return json.loads(text, **options)
    return None


def member(value: Any, *path: Any) -> Any:
    """The value at a path of names and places in JSON; None without one."""
    with suppress(LookupError, TypeError):
        return reduce(getitem, path, value)
    return None


def content_of(raw_response: str, http_status: int | None) -> str:
    """The text of a stored answer; a submitted one, which came without HTTP, is the text itself."""
    if http_status is None:
        return raw_response
    return content_text(member(parse(raw_response), "choices", 0, "message", "content")) or ""


def content_text(content: Any) -> str | None:
    """The text of a message's content, given whole or in parts; None if it is no text."""
    if content is None or isinstance(content, str):
        return without_nul(content)
    if not isinstance(content, list):
        return None
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            texts.append(text)
    return without_nul("".join(texts)) if texts or not content else None


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
        value = DECODER.decode(span)
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


DECODER = json.JSONDecoder(
    strict=False,  # models write unescaped line breaks inside strings
    parse_float=_decode_number,
    parse_int=_decode_number,
    parse_constant=_refuse_constant,
    object_pairs_hook=_decode_pairs,
)
"""Reads integers as int, fractions as Decimal with all their digits."""
