"""Each column whose proof the dictionary claims: a single changed cell of it is found."""

import json
import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from foundation.json_lines import instant_text
from scoring.exports.archive_record import read_manifest
from scoring.exports.dictionary import ArchiveTable
from scoring.exports.tables import TABLES, TABLES_BY_NAME
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.rows import vocabulary
from scoring.exports.verification.verifier import CHECKS, MALFORMED_DATA_ERRORS
from tests.scoring.exports.forgery import Cells, keep_csv_alone, read_cells, rewrite
from tests.selection import one_per_rule

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.own_database]
OF_THE_RECORD = ("tables", "record")
"""The checks that know the record of the archive, or the Parquet files: not made where a forger rewrote these."""


@pytest.fixture(scope="module")
def sound(exported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole archive in CSV alone; each test leaves it as it was."""
    folder = tmp_path_factory.mktemp("sound") / "whole"
    shutil.copytree(exported / "whole", folder)
    keep_csv_alone(folder)
    return folder


def claims() -> list[tuple[str, str]]:
    return [(table.name, name) for table in TABLES for name in table.names]


def rule(claim: tuple[str, str]) -> tuple[str, ...]:
    """What proves a column: a table's are recomputed or recorded together."""
    table, column = claim
    declared = TABLES_BY_NAME[table]
    return table, declared.proof(column), declared.record(column)


@pytest.mark.parametrize(("table", "column"), one_per_rule(claims(), rule))
def test_changed_cell_of_every_column_is_found(sound: Path, table: str, column: str) -> None:
    """By the record of the archive; where a column is recomputed, or of a task's record, by that alone."""
    declared = TABLES_BY_NAME[table]
    own_proof = declared.proof(column) == "recomputed" or declared.record(column) == "task"
    saved = {name: (sound / name).read_bytes() for name in (f"csv/{table}.csv", "csv/chain.csv", "manifest.json")}
    rows = read_cells(sound, table)
    for number in chosen_rows(sound, table, rows, recomputed=declared.proof(column) == "recomputed"):
        changed = [dict(row) for row in rows]
        changed[number][column] = changed_cell(declared, column, rows[number][column])
        rewrite(sound, table, lambda cells, new=changed: cells.__setitem__(slice(None), new), record=own_proof)
        checks = [name for name in CHECKS if name not in OF_THE_RECORD] if own_proof else ["record"]
        violation = first_violation(sound, checks)
        for name, contents in saved.items():
            (sound / name).write_bytes(contents)
        assert violation, f"{table}.{column}, row {number + 1}: {rows[number][column]!r} -> {changed[number][column]!r}"


def first_violation(folder: Path, checks: list[str]) -> str | None:
    archive = Archive(folder, read_manifest(folder), ["csv"])
    try:
        return next((violation for name in checks for violation in CHECKS[name](archive)), None)
    except MALFORMED_DATA_ERRORS as error:
        return repr(error)


def chosen_rows(folder: Path, table: str, rows: Cells, *, recomputed: bool) -> list[int]:
    indexes = [place for place, row in enumerate(rows) if recomputed or is_in_a_task_record(folder, table, row)]
    places = indexes or list(range(len(rows)))
    return sorted({places[0], places[-1]}) if places else []


def is_in_a_task_record(folder: Path, table: str, row: dict[str, str]) -> bool:
    def ids(name: str, column: str = "id", **where: str) -> set[str]:
        return {
            record[column]
            for record in read_cells(folder, name)
            if all(record[key] == value for key, value in where.items())
        }

    completed = {
        "decision": ids("decisions", status="completed"),
        "elicitation": ids("elicitations", status="completed"),
    }
    if table in ("decisions", "elicitations"):
        return row["status"] == "completed"
    if table == "calls":
        kind = "decision" if row["decision"] else "elicitation"
        return row["result"] not in ("sent", "lost") and row["late"] == "false" and row[kind] in completed[kind]
    if table == "instructions":
        of_completed = {
            record["id"] for record in read_cells(folder, "calls") if record["decision"] in completed["decision"]
        }
        return row["call"] in of_completed
    if table == "questions":
        return row["id"] in ids("question_entries", "question")
    if table == "question_options":
        return row["question"] in ids("question_entries", "question")
    return table != "chain" or row["protocol"] != "archive"


def changed_cell(table: ArchiveTable, column: str, text: str) -> str:
    kind = next(field.kind for field in table.columns if field.name == column)
    if words_of_column := vocabulary(table, column):
        return str(min(words_of_column - {text, ""}))
    if kind == "json":
        return json.dumps(changed_json(json.loads(text) if text else None))
    if not text:
        return {"integer": "1", "number": "0.5", "decimal": "1.00", "boolean": "true", "text": "forged",
                "time": "2026-03-09T00:00:00.000000Z"}[kind]  # fmt: skip
    if kind == "decimal":
        return f"{Decimal(text) + Decimal(1).scaleb(Decimal(text).as_tuple().exponent):f}"  # type: ignore[arg-type]
    if kind == "time":
        return instant_text(datetime.fromisoformat(text) + timedelta(minutes=1))
    changes = {"integer": lambda: str(int(text) + 1), "number": lambda: repr(float(text) + 0.001),
               "boolean": lambda: "false" if text == "true" else "true"}  # fmt: skip
    return changes[kind]() if kind in changes else f"{text}x"


def changed_json(value: Any) -> Any:
    """The value with one change as deep inside as there is anything."""
    if isinstance(value, dict) and value:
        name = next(iter(value))
        return value | {name: changed_json(value[name])}
    if isinstance(value, list) and value:
        return [changed_json(value[0]), *value[1:]]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}1" if isinstance(value, str) else ["forged"]
