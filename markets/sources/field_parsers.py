"""Parsers of single values from venues: numbers, prices, times, and text that the database can store."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

from arena_verifier.answer_texts import without_nul

NUMBER = re.compile(r"[-+]?(\d+(?:\.\d*)?|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
FEE_STEP = Decimal("0.000001")
LONGEST_NUMBER = 100
"""Characters; the longest price in the captured answers has 40."""
LARGEST_AMOUNT = Decimal(10) ** 15
LONGEST_ID, LONGEST_LABEL, LONGEST_NAME, LONGEST_STATUS = 120, 120, 300, 40
"""Characters; the database would refuse a longer value together with its batch."""

Value = TypeVar("Value")


def number(raw: object) -> Decimal:
    """The exact decimal of a number or its text. Raises ValueError for anything else."""
    numeric = isinstance(raw, str | int | float | Decimal) and not isinstance(raw, bool)
    text = str(raw).strip() if numeric else ""
    if len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text):
        return Decimal(text)
    raise ValueError(f"{shown(raw)} is not a number")


def price(raw: object) -> Decimal:
    """An unrounded price. Raises ValueError if it is not a number in [0, 1]."""
    value = number(raw)
    if not 0 <= value <= 1:
        raise ValueError(f"{shown(raw)} is outside [0, 1]")
    return value.copy_abs()  # "-0" is 0; abs() would round to the context's 28 digits


def fee_term(raw: object) -> Decimal:
    """The rate or the exponent of a fee, as it is stored. Raises ValueError if it is none from 0 to 100."""
    value = number(raw)
    if not 0 <= value <= 100:
        raise ValueError(f"{shown(raw)} is no term of a fee")
    return value.quantize(FEE_STEP)


def line(raw: object) -> str:
    """Text on one line: stripped, without NUL, and with a space for each other control character or line break."""
    if isinstance(raw, str) and raw.isprintable():
        return raw.strip()  # nearly always, and quick
    return re.sub(r"[\x01-\x1f\x7f-\x9f\u2028\u2029]", " ", without_nul(raw)).strip()


def label(raw: object) -> str:
    """A line cut to the length of a label."""
    return line(raw)[:LONGEST_LABEL].strip()


def prose(raw: object) -> str:
    """Text of several lines, without control characters other than line breaks and tabs."""
    if isinstance(raw, str) and raw.isprintable():
        return raw.strip()
    return re.sub(r"[\x01-\x08\x0b-\x1f\x7f-\x9f]", " ", without_nul(raw).replace("\r\n", "\n")).strip()


PLACEHOLDER = re.compile(
    r"\|\|[^|\n]{1,60}\|\||\{\{ ?[a-z_][\w ]{0,60}\}\}|<<[^<>\n]{1,60}>>"
    r"|\[(?:date|time|count|number|amount|price|value|name|team|player|candidate|person|city|country|state|year|month|"
    r"day|event|threshold|percentage|x|xx)\](?!\()",
    re.IGNORECASE,
)
"""A blank of a template that its venue has not filled in."""


def filled(text: str) -> str:
    """The text, or nothing where it is a template with an unfilled blank."""
    return "" if PLACEHOLDER.search(text) else text


def identifier(raw: object) -> str | None:
    """An id given as text or integer, as text; None if it is missing or too long."""
    text = name(raw)
    return text if 0 < len(text) <= LONGEST_ID else None


def name(raw: object) -> str:
    """A name on one line, also from a number (`2024`); empty if missing."""
    return line(str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw)


def moment(raw: object) -> datetime | None:
    """An aware UTC time from any of the venues' forms; None if it is missing or unreadable."""
    try:
        parsed = datetime.fromisoformat(raw.strip()) if isinstance(raw, str) else None
        aware = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return aware if aware and aware.year > 1 else None  # year 1 is how Go writes "no time"


def flag(raw: object) -> bool | None:
    """A boolean from a boolean or its text; None if missing. Raises ValueError for anything else."""
    if raw is None or isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in {"true", "false"}:
        return raw.strip().lower() == "true"
    raise ValueError(f"{shown(raw)} is neither true nor false")


def sequence(raw: object) -> list[Any]:
    """A list from a list or its JSON text. Raises ValueError for anything else."""
    try:
        value = json.loads(raw, parse_float=Decimal) if isinstance(raw, str) else raw
    except (ValueError, ArithmeticError, RecursionError):
        value = None
    if isinstance(value, list):
        return value
    raise ValueError(f"{shown(raw)} is not a list")


def shown(raw: object) -> str:
    text = line(repr(raw))
    return text if len(text) <= 60 else f"{text[:59]}…"


def or_none(read: Callable[[object], Value]) -> Callable[[object], Value | None]:
    """The parser with None in place of a ValueError."""

    def lenient(raw: object) -> Value | None:
        try:
            return read(raw)
        except ValueError:
            return None

    return lenient


number_or_none, price_or_none = or_none(number), or_none(price)
fee_term_or_none = or_none(fee_term)
flag_or_none, sequence_or_none = or_none(flag), or_none(sequence)


def amount(raw: object) -> Decimal | None:
    """An amount of money or shares; None if it is missing, negative or implausibly large."""
    value = number_or_none(raw)
    return value if value is not None and 0 <= value < LARGEST_AMOUNT else None


def coalesce(*values: Value | None) -> Value | None:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)


def first_field(raw: Mapping[str, Any], read: Callable[[object], Value | None], *names: str) -> Value | None:
    """The value of the first of the named fields from which `read` makes one."""
    return coalesce(*(read(raw.get(name)) for name in names))


def complement(probability: Decimal | None) -> Decimal | None:
    """The price of the other of two sides."""
    return None if probability is None else 1 - probability
