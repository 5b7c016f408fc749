"""What a table of an archive is made of, as data: the writer reads paths, the proof kinds, people meanings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

KINDS = {
    "integer": "whole number",
    "number": "floating point number",
    "decimal": "exact decimal, as text",
    "boolean": "true or false",
    "time": "ISO-8601 in UTC, to the microsecond",
    "text": "text; empty where there is none",
    "json": "JSON; empty where there is none",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its kind (of KINDS), what it means, in which unit, and where the row's model has it."""

    name: str
    kind: str
    meaning: str
    unit: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, and the model its rows come from (app.Model); none where they are made otherwise.

    chunk : rows that are held at a time, few where rows are large
    where : what narrows the model's rows
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    model: str = ""
    order: tuple[str, ...] = ("pk",)
    chunk: int = 2_000
    where: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


UNITS = {"usd": "US dollars", "share": "shares", "price": "US dollars a share", "row": "id", "sha": "SHA-256, hex"}


def columns(text: str) -> tuple[Column, ...]:
    """The columns of a listing: `name kind [unit] [path] - meaning` on each line.

    Examples
    --------
    >>> columns("cash decimal usd - Cash now.")[0]
    Column(name='cash', kind='decimal', meaning='Cash now.', unit='US dollars', path='cash')
    """
    return tuple(_column(line) for line in text.strip().splitlines())


def _column(line: str) -> Column:
    said, _, meaning = line.strip().partition(" - ")
    name, kind, *rest = said.split()
    unit = next((UNITS[word] for word in rest if word in UNITS), "")
    path = next((word for word in rest if word not in UNITS), name)
    if kind not in KINDS or not meaning:
        raise ValueError(f"{line!r} is no column")
    return Column(name, kind, meaning, unit, path)


def as_json(tables: tuple[Table, ...]) -> list[dict[str, Any]]:
    """The data dictionary as it lies in an archive."""
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
