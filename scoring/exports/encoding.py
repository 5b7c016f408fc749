"""Values in archive files: from the database to Parquet and CSV, and back. Exact in both directions."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

from forecast_rank.files.csv_cells import escape_formula, unescape_formula
from foundation.json_lines import instant_text

PLAIN_DECIMAL = re.compile(r"-?\d{1,26}(?:\.\d{1,12})?", re.ASCII).fullmatch


def encode(value: Any, kind: str) -> Any:
    """A database value as Parquet stores it: number, decimal, boolean, instant, text or null."""
    if kind == "text":
        return "" if value is None else str(value)
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if kind == "time":
        assert isinstance(value, datetime)
        return value
    return {"integer": int, "number": float, "boolean": bool, "decimal": Decimal}[kind](value)


def csv_text(value: Any, kind: str) -> str:
    """An encoded value as the text of a CSV cell. Text that a spreadsheet would run as a formula is escaped."""
    if value is None:
        return ""
    if kind in ("text", "json"):
        return escape_formula(str(value))
    if kind == "boolean":
        return "true" if value else "false"
    if kind == "decimal":
        return f"{value:f}"
    if kind == "time":
        return instant_text(value)
    return repr(value) if kind == "number" else str(value)


def decode(value: Any, kind: str) -> Any:
    """An encoded value for computing: JSON parsed, times as sortable text, the rest as it is."""
    if value is None or kind not in ("time", "json"):
        return value
    return instant_text(value) if kind == "time" else json.loads(value)


def parse_decimal(text: str) -> Decimal:
    """A decimal in full. Raises ValueError for any other: a huge exponent would fill the memory when printed."""
    if not PLAIN_DECIMAL(text):
        raise ValueError(f"{text[:40]!r} is not a plain decimal")
    return Decimal(text)


def _parse_json(text: str) -> Any:
    plain = unescape_formula(text)
    return json.loads(plain) if plain else None


CSV_PARSERS: dict[str, Callable[[str], Any]] = {
    "text": unescape_formula,
    "json": _parse_json,
    "boolean": {"": None, "true": True, "false": False}.__getitem__,
    "time": lambda text: text or None,
    "integer": lambda text: int(text) if text else None,
    "number": lambda text: float(text) if text else None,
    "decimal": lambda text: parse_decimal(text) if text else None,
}
"""From a CSV cell to what `decode` gives, by kind. One function per kind: an archive has tens of millions of cells.

They raise ValueError, KeyError or decimal.InvalidOperation for text that `csv_text` can not have written.
"""
