"""How a value lies in a cell, and how it is read back. Exact both ways, in CSV and in Parquet."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from agents.records import instant_text
from markets.spreadsheets import defused, undefused
from scoring.exports.dictionary import Column

TEXTUAL = ("text", "json")


def stored(value: Any, kind: str) -> Any:
    """A value of the database as Parquet keeps it: a number, true or false, text, or nothing."""
    if kind == "text":
        return "" if value is None else str(value)
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    if kind == "decimal":
        return f"{Decimal(value):f}"
    if kind == "time":
        assert isinstance(value, datetime)
        return instant_text(value)
    return {"integer": int, "number": float, "boolean": bool}[kind](value)


def written(value: Any, kind: str) -> str:
    """A stored value as a cell of CSV. Negative numbers stay numbers; text that poses as a formula is defused."""
    if value is None:
        return ""
    if kind in TEXTUAL:
        return defused(str(value))
    if kind == "boolean":
        return "true" if value else "false"
    return repr(value) if kind == "number" else str(value)


def _json_of(text: str) -> Any:
    plain = undefused(text)
    return json.loads(plain) if plain else None


OF_TEXT: dict[str, Callable[[str], Any]] = {
    "text": undefused,
    "json": _json_of,
    "boolean": {"": None, "true": True, "false": False}.__getitem__,
    "integer": lambda text: int(text) if text else None,
    "number": lambda text: float(text) if text else None,
    "decimal": lambda text: Decimal(text) if text else None,
}
"""What a cell of CSV means to Python, by kind; of other kinds their text. An archive has tens of millions of cells."""


def readers(columns: Sequence[Column]) -> list[Callable[[str], Any]]:
    """What makes of each column's cells in CSV what Python means by them.

    They raise ValueError, KeyError or decimal.InvalidOperation for what can not have been written.
    """
    return [OF_TEXT.get(column.kind, lambda text: text or None) for column in columns]


def meant(value: Any, kind: str) -> Any:
    """A stored value as Python means it: decimals and JSON parsed, the rest as it is."""
    if value is None or kind not in ("decimal", "json"):
        return value
    return Decimal(value) if kind == "decimal" else json.loads(value)


def stored_row(columns: Sequence[Column], row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(stored(row[c.name], c.kind) for c in columns)
