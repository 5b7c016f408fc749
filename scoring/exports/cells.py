"""How a value lies in a cell, and how it is read back. Exact both ways, in CSV and in Parquet."""

import json
from collections.abc import Mapping, Sequence
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


def read(text: str, kind: str) -> Any:
    """A cell of CSV as the value that was stored. Raises ValueError for what can not have been written."""
    if kind in TEXTUAL:
        plain = undefused(text)
        return plain if plain or kind == "text" else None
    if text == "":
        return None
    if kind == "boolean":
        return {"true": True, "false": False}[text]
    if kind in ("integer", "number"):
        return int(text) if kind == "integer" else float(text)
    return text


def meant(value: Any, kind: str) -> Any:
    """A stored value as Python means it: decimals and JSON parsed, the rest as it is."""
    if value is None or kind not in ("decimal", "json"):
        return value
    return Decimal(value) if kind == "decimal" else json.loads(value)


def row_of(columns: Sequence[Column], cells: Sequence[Any]) -> dict[str, Any]:
    """A row of stored values by name, as Python means them."""
    return {c.name: meant(value, c.kind) for c, value in zip(columns, cells, strict=True)}


def stored_row(columns: Sequence[Column], row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(stored(row[c.name], c.kind) for c in columns)
