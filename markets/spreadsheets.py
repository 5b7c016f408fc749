"""Cells that a spreadsheet takes for what they are."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

FORMULA_STARTS = "=+-@\t\r"
DEFUSED = "'"
"""A spreadsheet takes a cell that begins with it for text, and does not show it."""


def defused(text: str) -> str:
    """Text with an apostrophe before it where a spreadsheet would calculate it, or where it begins with one itself.

    Examples
    --------
    >>> defused("=1+1"), defused("'tis"), defused("plain")
    ("'=1+1", "''tis", 'plain')
    """
    return DEFUSED + text if text[:1] and text[0] in FORMULA_STARTS + DEFUSED else text


def undefused(text: str) -> str:
    """What `defused` was given."""
    return text.removeprefix(DEFUSED)


def cell(value: Any) -> str:
    """A value as a cell of CSV: numbers stay numbers, negative ones too; instants are ISO-8601; text is defused."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, dict | list):
        return defused(json.dumps(value, ensure_ascii=False, default=str))
    return defused(str(value))
