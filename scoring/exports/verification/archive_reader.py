"""Reading an archive for verification, and comparing stated with recomputed figures."""

import json
import math
import shutil
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from scoring.exports.table_files import read_table
from scoring.exports.tables import TABLES_BY_NAME

Row = dict[str, Any]
TOLERANCE = 1e-9
"""Largest difference between two computations of one floating point number, relative and absolute."""
MAX_VALUE_LENGTH = 120
"""Characters of a value that are shown in a violation."""


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

    @cached_property
    def cohorts(self) -> dict[int, Row]:
        return self.by_id("cohorts", "number")

    @cached_property
    def agents(self) -> dict[int, Row]:
        return self.by_id("agents")

    @cached_property
    def markets(self) -> dict[int, Row]:
        return self.by_id("markets")

    @cached_property
    def outcomes(self) -> dict[int, Row]:
        return self.by_id("outcomes")

    @cached_property
    def trades(self) -> dict[int, Row]:
        return self.by_id("trades")

    @cached_property
    def universes(self) -> dict[int, Row]:
        return self.by_id("universes")

    @cached_property
    def decisions(self) -> dict[int, Row]:
        rows = self.by_id("decisions")
        for row in rows.values():
            del row["reasoning"]
        return rows

    @cached_property
    def methodologies(self) -> dict[str, Row]:
        rows = json.loads((self.folder / "methodologies.json").read_text(encoding="utf-8"))
        return {row["version"]: row for row in rows}

    def rules_of(self, agent: int) -> Row:
        """The methodology of an agent's cohort."""
        return self.methodologies[self.cohorts[self.agents[agent]["cohort"]]["methodology"]]


def is_same(stated: Any, computed: Any) -> bool:
    """Equality with a tolerance for floats, also inside lists and dicts."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        return stated.keys() == computed.keys() and all(is_same(stated[name], computed[name]) for name in stated)
    if isinstance(stated, list | tuple) and isinstance(computed, list | tuple):
        return len(stated) == len(computed) and all(map(is_same, stated, computed))
    if isinstance(stated, float) or isinstance(computed, float):
        if stated is None or computed is None:
            return stated is computed
        return math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(stated == computed)


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


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The folder of an archive; a zip file is unpacked for as long as needed. Raises zipfile.BadZipFile."""
    if path.is_dir():
        yield path
        return
    folder = Path(tempfile.mkdtemp(prefix="verify-"))
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("it holds two files of one name")
            archive.extractall(folder)
        yield folder
    finally:
        shutil.rmtree(folder)
