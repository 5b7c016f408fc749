"""JSON Lines for prompts, and decimals and instants as text.

Text from outside enters a prompt as one JSON value to a line, so that it can not imitate the prompt's structure.
"""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

# Line ends to some readers; JSON itself escapes only characters below U+0020.
_LINE_ENDS = re.compile("[\x7f\x85\u2028\u2029]")


def json_line(value: Any) -> str:
    """`value` as JSON on exactly one line; decimals become numbers with all their digits."""
    text = json.dumps(_plain(value), ensure_ascii=False)
    return _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_number(value: Decimal) -> str:
    """A decimal in full, without an exponent or trailing zeros: 0.43, 0.00005, 1."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def decimal_text(value: Decimal, places: int = 6) -> str:
    """A decimal with all its digits and at least `places` decimal places: 0.430000."""
    integer, _, fraction = f"{value:f}".partition(".")
    fraction = fraction.rstrip("0").ljust(places, "0")
    return f"{integer}.{fraction}" if fraction else integer


def instant_text(at: datetime) -> str:
    """An instant in UTC with microseconds always, so that texts sort in order of time."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)  # ten places at most, so the shortest repr of the float is the text of the decimal
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
