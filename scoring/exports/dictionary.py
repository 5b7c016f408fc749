"""Declarations of archive tables and columns, and the data dictionary made from them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import models

from foundation.fields import CostField, MoneyField, PriceField, SharesField
from scoring.reports.columns import ReportColumn, named

CSV, PARQUET = "csv", "parquet"
CENTS, COST = 2, 6
"""Places of decimals that `table_rows` computes."""
FORMATS = (CSV, PARQUET)
RECOMPUTED, HASHED = "recomputed", "hashed"
"""Proofs of a column. Every column has one, since the record of an archive holds the hash of every table."""
KINDS = {
    "integer": "whole number",
    "number": "floating point number",
    "decimal": "exact decimal",
    "boolean": "true or false",
    "time": "instant in UTC, to the microsecond",
    "text": "text; empty where there is none",
    "json": "JSON; empty where there is none",
}
UNITS = {
    "usd": "US dollars", "share": "shares", "price": "US dollars a share", "percent": "per cent", "row": "id",
    "sha": "SHA-256, hex",
}  # fmt: skip
"""Units by their abbreviation in a table's declaration."""
KINDS_OF_REPORTS = {"choice": "text", "dollars": "decimal", "interval": "json", "numbers": "json"}
"""Kinds of an archive's columns by those of a report's, where they differ."""
UNITS_OF_FIELDS = {MoneyField: "usd", CostField: "usd", SharesField: "share", PriceField: "price"}
KINDS_OF_FIELDS: dict[Any, str] = {
    models.IntegerField: "integer",
    models.FloatField: "number",
    models.DecimalField: "decimal",
    models.BooleanField: "boolean",
    models.DateTimeField: "time",
    models.JSONField: "json",
    models.DateField: "text",
    models.CharField: "text",
    models.TextField: "text",
}
"""The first class that a field is an instance of decides: a DateTimeField is a DateField too."""
CATEGORIES = ("status", "kind", "side", "action", "arm", "source", "category")
"""Text columns with few different values; dictionary-encoded in Parquet."""
REFERENCES = {
    "agent": "agents.id", "batch": "question_batches.id", "call": "calls.id", "cohort": "cohorts.number",
    "decision": "decisions.id", "elicitation": "elicitations.id", "envelope": "envelopes.id",
    "entry": "question_entries.id", "family": "families.slug", "forecast": "forecasts.id", "market": "markets.id",
    "outcome": "outcomes.id", "position": "positions.id", "question": "questions.id",
    "question_set": "question_sets.id", "release": "releases.id", "settlement": "settlements.id",
    "trade": "trades.id", "universe": "universes.id", "winning_outcome": "outcomes.id",
}  # fmt: skip
"""The column that a column of this name refers to, by an id, a cohort's number or a family's slug."""


@dataclass(frozen=True, slots=True)
class ArchiveColumn:
    """A column: name, kind (one of KINDS), meaning, unit, and the field path from the row's model."""

    name: str
    kind: str
    meaning: str
    unit: str = ""
    path: str = ""

    @property
    def references(self) -> str | None:
        """The column that it refers to, as `table.column`."""
        is_reference = self.unit == UNITS["row"] or self.name in ("cohort", "family")
        return REFERENCES.get(self.name) if is_reference else None

    @property
    def is_category(self) -> bool:
        return self.kind == "text" and self.name in CATEGORIES


@dataclass(frozen=True, slots=True)
class ArchiveTable:
    """A table and the model of its rows; no model where `table_rows` computes them.

    recomputed : names of columns that follow from other rows, by the verification of an archive: `all` or `all but …`
    chained : names of columns in the hashed record of a decision or elicitation, or under a hash that it holds
    batch_size : rows that are held in memory at a time; few where rows are large
    """

    name: str
    meaning: str
    columns: tuple[ArchiveColumn, ...]
    model: Any = None
    order: tuple[str, ...] = ("pk",)
    batch_size: int = 2_000
    recomputed: str = ""
    chained: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def proof(self, name: str) -> str:
        """The proof of a column: recomputed from other rows, or hashed in a record of a chain."""
        names = self.recomputed.split()
        if names[:1] == ["all"]:
            return HASHED if name in names[2:] else RECOMPUTED
        return RECOMPUTED if name in names else HASHED

    def record(self, name: str) -> str | None:
        """The record that holds a hashed column: that of the task, or only that of the archive."""
        if self.proof(name) == RECOMPUTED:
            return None
        return "task" if name in self.chained.split() else "archive"


def record_table(model: Any, name: str, meaning: str, declarations: str, **options: Any) -> ArchiveTable:
    """The table of a model's rows, whose declarations name plain fields, or are as those of `columns`.

    A plain field is declared by its name, one of a related row by `name=path`: its class gives kind and unit, its
    help_text the meaning. Raises ValueError for a field without one, FieldDoesNotExist for a name that is no field.
    """
    return ArchiveTable(name, meaning, columns(declarations, model), model, **options)


def columns(text: str, model: Any = None) -> tuple[ArchiveColumn, ...]:
    """The columns of lines that name plain fields, and lines `name kind [unit] [path] - meaning` for one other each.

    Examples
    --------
    >>> columns("cash decimal usd - Cash now.")[0]
    ArchiveColumn(name='cash', kind='decimal', meaning='Cash now.', unit='US dollars', path='cash')
    """
    declared: list[ArchiveColumn] = []
    for line in text.strip().splitlines():
        if " - " in line:
            declared.append(_parse_column(line))
        else:
            declared += [_field_column(model, word) for word in line.split()]
    return tuple(declared)


def _parse_column(line: str) -> ArchiveColumn:
    declaration, _, meaning = line.strip().partition(" - ")
    name, kind, *words = declaration.split()
    unit = next((UNITS[word] for word in words if word in UNITS), "")
    path = next((word for word in words if word not in UNITS), name)
    if kind not in KINDS or not meaning:
        raise ValueError(f"{line!r} does not declare a column")
    return ArchiveColumn(name, kind, meaning, unit, path)


def report_columns(report: Iterable[ReportColumn], names: str) -> tuple[ArchiveColumn, ...]:
    """The archive's columns of those of a report that have these names."""
    return tuple(map(_report_column, named(report, names)))


def _report_column(column: ReportColumn) -> ArchiveColumn:
    kind = KINDS_OF_REPORTS.get(column.kind, column.kind)
    unit = "usd" if column.kind == "dollars" else column.unit
    return ArchiveColumn(column.name, kind, column.meaning, UNITS.get(unit, ""), column.name)


def _field_column(model: Any, word: str) -> ArchiveColumn:
    name, _, path = word.partition("=")
    path = path or name
    field = field_at(model, path)
    target = field.target_field if field.is_relation else field
    kind = next(kind for field_class, kind in KINDS_OF_FIELDS.items() if isinstance(target, field_class))
    unit = UNITS_OF_FIELDS.get(type(field), "")
    if target.primary_key and kind == "integer":
        unit = "row"
    elif name == "previous" or name.endswith("sha256"):
        unit = "sha"
    path = "__".join([*path.split("__")[:-1], field.attname])
    return ArchiveColumn(name, kind, _meaning(field, path), UNITS.get(unit, ""), path)


def field_at(model: Any, path: str) -> Any:
    """The field at the end of a path from a model. Raises FieldDoesNotExist."""
    for name in path.split("__"):
        field = model._meta.get_field(name)
        model = field.related_model
    return field


def _meaning(field: Any, path: str) -> str:
    """Its help_text; without one its choices, or the names of the related row and its field."""
    owner, name = field.model._meta.verbose_name, field.verbose_name
    if "__" in path:
        return f"The {owner}'s {name}."
    if field.help_text:
        return str(field.help_text)
    if field.choices:
        *values, last = (value for value, _ in field.flatchoices)
        return f"{', '.join(values)} or {last}."
    if field.primary_key or field.is_relation:
        return f"The {field.related_model._meta.verbose_name if field.is_relation else owner}."
    raise ValueError(f"{field} has no help_text")


def decimal_places(table: ArchiveTable, column: ArchiveColumn) -> int:
    """The places of a decimal column: of its database field, or of the figure that `table_rows` computes."""
    computed = COST if column.name == "cost_usd" else CENTS
    if not table.model:
        return computed
    try:
        return int(field_at(table.model, column.path).decimal_places)
    except FieldDoesNotExist:
        return computed


def dictionary_json(tables: tuple[ArchiveTable, ...]) -> list[dict[str, Any]]:
    """The contents of `dictionary.json`."""
    contents = []
    for table in tables:
        columns = [_column_json(table, column) for column in table.columns]
        contents.append({"table": table.name, "meaning": table.meaning, "columns": columns})
    return contents


def _column_json(table: ArchiveTable, column: ArchiveColumn) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.kind,
        "unit": column.unit or None,
        "meaning": column.meaning,
        "references": column.references,
        "proof": table.proof(column.name),
        "record": table.record(column.name),
        "why": None,
    }
