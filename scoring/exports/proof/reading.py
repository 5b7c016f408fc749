"""An archive that is to be proved, and small tools that all of its checks share."""

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

from scoring.exports.files import read_table
from scoring.exports.tables import BY_NAME

Row = dict[str, Any]
CLOSE = 1e-9
"""How far two computations of one floating point number may lie apart, relative to it."""


@dataclass
class Archive:
    """The tables of an archive in one format."""

    folder: Path
    contents: Row
    format: str

    @property
    def is_whole(self) -> bool:
        return not any(self.contents["selection"].values())

    @property
    def is_window(self) -> bool:
        selection = self.contents["selection"]
        return bool(selection["from"] or selection["to"])

    def path(self, name: str, format: str = "") -> Path:
        format = format or self.format
        return self.folder / format / f"{name}.{format}"

    def rows(self, name: str, format: str = "") -> Iterator[Row]:
        """The rows of a table, one at a time."""
        return read_table(self.path(name, format), BY_NAME[name])

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
        """The methodology that an agent plays by."""
        return self.methodologies[self.cohorts[self.agents[agent]["cohort"]]["methodology"]]


def same(stated: Any, found: Any) -> bool:
    """Are they the same figure? Numbers may differ in their last digits; lists and dicts are compared part by part."""
    if isinstance(stated, dict) and isinstance(found, dict):
        return stated.keys() == found.keys() and all(same(stated[name], found[name]) for name in stated)
    if isinstance(stated, list | tuple) and isinstance(found, list | tuple):
        return len(stated) == len(found) and all(map(same, stated, found))
    if isinstance(stated, float) or isinstance(found, float):
        if stated is None or found is None:
            return stated is found
        return math.isclose(stated, found, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(stated == found)


def differing(row: str, stated: Row, found: Row) -> Iterator[str]:
    """A line for each figure of `found` that a row states otherwise."""
    if found.items() <= stated.items():
        return  # as nearly all of millions do
    for name, value in found.items():
        if not same(stated[name], value):
            yield f"{row} states {name} {_shown(stated[name])}, its rows make {_shown(value)}"


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else f"{text[:120]}…"


@contextmanager
def unpacked(place: Path) -> Iterator[Path]:
    """The folder of an archive, whether it is one or lies in a zip file. Raises zipfile.BadZipFile."""
    if place.is_dir():
        yield place
        return
    folder = Path(tempfile.mkdtemp(prefix="verify-"))
    try:
        with zipfile.ZipFile(place) as archive:
            names = archive.namelist()
            if len(set(names)) < len(names):
                raise zipfile.BadZipFile("it holds two files of one name")
            archive.extractall(folder)
        yield folder
    finally:
        shutil.rmtree(folder)
