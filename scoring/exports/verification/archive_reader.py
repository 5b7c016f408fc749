"""Reading an archive for verification, and comparing stated with recomputed figures."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.records import sha256
from scoring.exports.table_files import read_table
from scoring.exports.tables import TABLES_BY_NAME
from scoring.stored_json import is_same

Row = dict[str, Any]
MAX_VALUE_LENGTH = 120
"""Characters of a value that are shown in a violation."""


def _cached_table(name: str, key: str = "id") -> cached_property[dict[Any, Row]]:
    """The rows of a table by their key, read once."""
    return cached_property(lambda archive: archive.by_id(name, key))


@dataclass
class Archive:
    """The tables of an archive, read from the first of its formats unless another is named."""

    folder: Path
    manifest: Row
    formats: list[str]

    @property
    def is_whole(self) -> bool:
        return not any(self.manifest["selection"].values())

    @property
    def is_window(self) -> bool:
        selection = self.manifest["selection"]
        return bool(selection["from"] or selection["to"])

    def path(self, name: str, format: str = "") -> Path:
        format = format or self.formats[0]
        return self.folder / format / f"{name}.{format}"

    def rows(self, name: str, format: str = "") -> Iterator[Row]:
        """The rows of a table, one at a time."""
        return read_table(self.path(name, format), TABLES_BY_NAME[name])

    def by_id(self, name: str, key: str = "id") -> dict[Any, Row]:
        return {row[key]: row for row in self.rows(name)}

    def grouped(self, name: str, key: str) -> dict[Any, list[Row]]:
        groups: dict[Any, list[Row]] = defaultdict(list)
        for row in self.rows(name):
            groups[row[key]].append(row)
        return groups

    cohorts = _cached_table("cohorts", "number")
    agents = _cached_table("agents")
    markets = _cached_table("markets")
    outcomes = _cached_table("outcomes")
    trades = _cached_table("trades")
    universes = _cached_table("universes")
    elicitations = _cached_table("elicitations")
    question_batches = _cached_table("question_batches")
    question_sets = _cached_table("question_sets")

    @cached_property
    def decisions(self) -> dict[int, Row]:
        """The rows of decisions, each with the hash of its reasoning in place of the text."""
        return {
            row["id"]: {**row, "reasoning": None, "reasoning_sha256": sha256(row["reasoning"])}
            for row in self.rows("decisions")
        }

    @cached_property
    def externals(self) -> set[str]:
        """The slugs of external agents."""
        return {family["slug"] for family in self.rows("families") if family["external"]}

    @cached_property
    def methodologies(self) -> dict[str, Row]:
        rows = json.loads((self.folder / "methodologies.json").read_text(encoding="utf-8"))
        return {row["version"]: row for row in rows}

    def rules_of(self, agent: int) -> Row:
        """The methodology of an agent's cohort."""
        return self.methodologies[self.cohorts[self.agents[agent]["cohort"]]["methodology"]]


def mismatches(row: str, stated: Row, computed: Row) -> Iterator[str]:
    """A violation for each computed figure that differs from the stated one."""
    if computed.items() <= stated.items():
        return  # the quick way, for nearly all of millions of rows
    for name, value in computed.items():
        if not is_same(stated[name], value):
            yield f"{row} states {name} {_shortened(stated[name])}, computed is {_shortened(value)}"


def _shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"
