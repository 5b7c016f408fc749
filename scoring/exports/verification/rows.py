"""Checks of single rows of every table: fixed vocabularies, unique keys and references."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.exceptions import FieldDoesNotExist

from agents.records import PROTOCOLS
from arena_verifier.rows import mismatches
from foundation.bulk import subset
from scoring.exports.dictionary import ArchiveTable, field_at
from scoring.exports.tables import TABLES, TABLES_BY_NAME
from scoring.exports.verification.archive_reader import Archive

KEYS = {
    "after_costs": ("agent",), "books": ("universe", "outcome"),
    "blocks": ("kind", "id"), "brier_scores": ("trade",), "chain": ("protocol", "sequence"), "cohorts": ("number",),
    "condition_differences": ("family", "condition_a", "condition_b"), "evidence": ("entry", "position"),
    "forecast_scores": ("forecast",), "instructions": ("call", "sequence"), "journal": ("agent", "sequence"),
    "leaderboard_agents": ("track", "protocol", "forecaster"),
    "leaderboard_forecast": ("arm", "methodology", "category", "forecaster"),
    "leaderboard_trading": ("methodology", "family"), "prompts": ("sha256",),
    "published_boards": ("protocol", "track", "methodology", "arm", "category", "at"),
    "question_options": ("question", "index"),
    "receipts": ("sequence",), "signing_keys": ("key_id",),
    "refused_forecasts": ("call", "entry"), "universe_entries": ("universe", "market"),
}  # fmt: skip
"""The columns that identify a row, where it has no id. Prices have no key, snapshots too many to hold in memory."""
WITHOUT_KEY = ("prices", "snapshots")
VOCABULARIES = {
    ("chain", "protocol"): frozenset(PROTOCOLS),
    ("prompts", "kind"): frozenset(("system", "user", "markets", "questions", "evidence")),
    ("blocks", "kind"): frozenset(("markets", "questions", "evidence")),
}


def check_rows(archive: Archive) -> Iterator[str]:
    """Every value of a fixed vocabulary is in it, every row has a key of its own, and every reference resolves."""
    targets = _targets(archive) if archive.is_whole else {}
    for table in TABLES:
        choices, references = {}, []
        for column in table.columns:
            if values := vocabulary(table, column.name):
                choices[column.name] = values
            if column.references in targets:
                references.append((column.name, column.references, targets[column.references]))
        key, identities = KEYS.get(table.name, ("id",)), set()
        for number, row in enumerate(archive.rows(table.name), start=1):
            for name, values in choices.items():
                if row[name] not in values:
                    yield f"{table.name}: row {number} has the unknown {name} {row[name]!r}"
            for name, target, present in references:
                if row[name] is not None and row[name] not in present:
                    yield f"{table.name}: row {number} refers to {target} {row[name]}, which does not exist"
            if table.name not in WITHOUT_KEY:
                identity = tuple(row[name] for name in key)
                if identity in identities:
                    yield f"{table.name}: there are two rows with {', '.join(key)} {', '.join(map(str, identity))}"
                identities.add(identity)


def check_computed(archive: Archive, table: str, rows: Iterable[Mapping[str, Any]], unfounded: str) -> Iterator[str]:
    """A line for each row of a table that differs from the computed one of its key, has none, or is missing.

    `unfounded` are the words about a row without a computed one.
    """
    computed = {}
    for row in rows:
        computed[tuple(row[name] for name in KEYS[table])] = subset(row, TABLES_BY_NAME[table].names)
    for archived in archive.rows(table):
        key = tuple(archived[name] for name in KEYS[table])
        name, figures = f"{table}: {' '.join(key)}", computed.pop(key, None)
        if figures is None:
            yield f"{name} {unfounded}"
        else:
            yield from mismatches(name, archived, figures)
    for key in computed:
        yield f"{table}: {' '.join(key)} is missing"


def vocabulary(table: ArchiveTable, name: str) -> frozenset[Any] | None:
    """The values that a column may have by its database field; None where any is possible."""
    if fixed := VOCABULARIES.get((table.name, name)):
        return fixed
    if not table.model:
        return None
    path = next(column.path for column in table.columns if column.name == name)
    try:
        field = field_at(table.model, path)
    except FieldDoesNotExist:
        return None
    if not field.choices:
        return None
    return frozenset(str(value) for value, _ in field.flatchoices) | ({""} if field.blank or field.null else set())


def _targets(archive: Archive) -> dict[str, set[Any]]:
    references: set[str] = set()
    for table in TABLES:
        references.update(column.references for column in table.columns if column.references)
    targets = {}
    for reference in sorted(references):
        name, column_name = reference.split(".")
        targets[reference] = {row[column_name] for row in archive.rows(name)}
    return targets
