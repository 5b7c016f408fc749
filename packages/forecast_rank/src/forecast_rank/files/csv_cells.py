"""CSV cells that a spreadsheet does not execute as formulas."""

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

FORMULA_STARTS = "=+-@\t\r"
TEXT_PREFIX = "'"
"""A spreadsheet reads a cell that begins with an apostrophe as text, and hides the apostrophe."""


def escape_formula(text: str) -> str:
    """The text, with an apostrophe before it if a spreadsheet would calculate it or it begins with one itself.

    Examples
    --------
    >>> escape_formula("=1+1"), escape_formula("'tis"), escape_formula("plain")
    ("'=1+1", "''tis", 'plain')
    """
    return TEXT_PREFIX + text if text[:1] and text[0] in FORMULA_STARTS + TEXT_PREFIX else text


def unescape_formula(text: str) -> str:
    """The argument of `escape_formula`, given its result."""
    return text.removeprefix(TEXT_PREFIX)


def csv_cell(value: Any) -> str:
    """A value as the text of a CSV cell: plain numbers, ISO-8601 times, JSON for lists, other text escaped."""
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
        return escape_formula(json.dumps(value, ensure_ascii=False, default=str))
    return escape_formula(str(value))
