"""Declarations of archive tables and columns, and the data dictionary made from them."""

from dataclasses import dataclass
from typing import Any

CSV, PARQUET = "csv", "parquet"
FORMATS = (CSV, PARQUET)
KINDS = {
    "integer": "whole number",
    "number": "floating point number",
    "decimal": "exact decimal, as text",
    "boolean": "true or false",
    "time": "ISO-8601 in UTC, to the microsecond",
    "text": "text; empty where there is none",
    "json": "JSON; empty where there is none",
}
UNITS = {"usd": "US dollars", "share": "shares", "price": "US dollars a share", "row": "id", "sha": "SHA-256, hex"}
"""Units by their abbreviation in a table's declaration."""


@dataclass(frozen=True, slots=True)
class ArchiveColumn:
    """A column: name, kind (one of KINDS), meaning, unit, and the field path from the row's model."""

    name: str
    kind: str
    meaning: str
    unit: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class ArchiveTable:
    """A table and the model of its rows (app.Model); no model where `table_rows` computes them.

    batch_size : rows that are held in memory at a time; few where rows are large
    """

    name: str
    meaning: str
    columns: tuple[ArchiveColumn, ...]
    model: str = ""
    order: tuple[str, ...] = ("pk",)
    batch_size: int = 2_000

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


def columns(text: str) -> tuple[ArchiveColumn, ...]:
    """The columns of a declaration with a line `name kind [unit] [path] - meaning` for each.

    Examples
    --------
    >>> columns("cash decimal usd - Cash now.")[0]
    ArchiveColumn(name='cash', kind='decimal', meaning='Cash now.', unit='US dollars', path='cash')
    """
    return tuple(_parse_column(line) for line in text.strip().splitlines())


def _parse_column(line: str) -> ArchiveColumn:
    declaration, _, meaning = line.strip().partition(" - ")
    name, kind, *rest = declaration.split()
    unit = next((UNITS[word] for word in rest if word in UNITS), "")
    path = next((word for word in rest if word not in UNITS), name)
    if kind not in KINDS or not meaning:
        raise ValueError(f"{line!r} does not declare a column")
    return ArchiveColumn(name, kind, meaning, unit, path)


def dictionary_json(tables: tuple[ArchiveTable, ...]) -> list[dict[str, Any]]:
    """The contents of `dictionary.json`."""
    return [
        {
            "table": table.name,
            "meaning": table.meaning,
            "columns": [
                {"name": c.name, "type": c.kind, "unit": c.unit or None, "meaning": c.meaning} for c in table.columns
            ],
        }
        for table in tables
    ]
