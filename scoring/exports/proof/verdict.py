"""The whole proof of an archive, check by check."""

import csv
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

import polars as pl

from scoring.exports import manifest
from scoring.exports.dictionary import as_json
from scoring.exports.files import FORMATS, file_sha256, seal_of
from scoring.exports.proof import boards, books, chain, scores
from scoring.exports.proof.reading import Archive, unpacked
from scoring.exports.tables import TABLES

CHECKS: dict[str, Callable[[Archive], Iterator[str]]] = {
    "chains": chain.chains,
    "prompts": chain.prompts,
    "universes": books.universes,
    "trades": books.trades,
    "journals": books.journals,
    "positions": books.positions,
    "agents": books.agents,
    "snapshots": books.snapshots,
    "bets": scores.bets,
    "forecasts": scores.forecasts,
    "trading board": boards.trading,
    "forecast boards": boards.forecast,
}
UNREADABLE = (
    *(ValueError, LookupError, TypeError, ArithmeticError, AttributeError, OSError, AssertionError),
    *(csv.Error, pl.exceptions.PolarsError),
)
"""What rows that somebody bent may make of any computation."""
SHOWN = 20
"""Violations of one check that are named."""


@dataclass(slots=True)
class Verdict:
    """What was checked, and a line for each violation that names the file and the row, in the order of the checks."""

    files: int = 0
    rows: int = 0
    checks: int = 0
    links: int = 0
    whole: bool = False
    violations: list[str] = field(default_factory=list)


def verdict_on(place: Path, progress: Callable[[int, int, str], None] = lambda done, of, what: None) -> Verdict:
    """The verdict on an archive, a folder or a zip file. Raises FileNotFoundError where there is neither."""
    if not place.exists():
        raise FileNotFoundError(place)
    verdict = Verdict()
    verdict.violations += broken_seal(place)
    try:
        with unpacked(place) as folder:
            _judge(folder, verdict, progress)
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError) as error:
        verdict.violations.append(f"{place.name}: {error}")
    return verdict


def broken_seal(place: Path) -> Iterator[str]:
    """What is wrong with a zip file whose hash lies beside it; nothing where there is none."""
    seal = seal_of(place)
    if place.is_file() and seal.is_file():
        known = seal.read_text(encoding="utf-8", errors="replace").split()
        if known[:1] != [file_sha256(place)]:
            yield f"{place.name}: its SHA-256 is not the one in {seal.name}"


def _judge(folder: Path, verdict: Verdict, progress: Callable[[int, int, str], None]) -> None:
    try:
        contents = manifest.read(folder)
        verdict.violations += _files(folder, contents["files"], verdict)
        formats = [format for format in FORMATS if format in contents["formats"]]
        archive = Archive(folder, contents, formats[0])
        verdict.whole = archive.is_whole
        verdict.links = sum(end["length"] for end in contents["chains"].values())
    except (manifest.BadManifest, *UNREADABLE) as error:
        verdict.violations.append(_said(error))
        return
    checks = {"tables": lambda archive: _tables(archive, formats, verdict), **CHECKS}
    for done, (name, check) in enumerate(checks.items()):
        progress(done, len(checks), name)
        try:
            verdict.violations += islice(check(archive), SHOWN)
        except UNREADABLE as error:
            verdict.violations.append(f"{name}: can not be checked: {_said(error)}")
        verdict.checks += 1
    progress(len(checks), len(checks), "")


def _files(folder: Path, listed: dict[str, dict[str, object]], verdict: Verdict) -> Iterator[str]:
    """Every file that the manifest lists is there and as it says, and there is no other."""
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {manifest.MANIFEST}
    for name in sorted(there - listed.keys()):
        yield f"{name}: is not in the manifest"
    for name, said in sorted(listed.items()):
        verdict.files += 1
        if name not in there:
            yield f"{name}: is missing"
        elif file_sha256(folder / name) != said["sha256"]:
            yield f"{name}: its SHA-256 is not the one in the manifest"


def _tables(archive: Archive, formats: list[str], verdict: Verdict) -> Iterator[str]:
    """Tables have as many rows as the manifest says, the same in every format; the dictionary is this version's."""
    if json.loads((archive.folder / "dictionary.json").read_text(encoding="utf-8")) != as_json(TABLES):
        yield "dictionary.json: describes other tables"
    for table in TABLES:
        count = 0
        for number, rows in enumerate(zip_longest(*(archive.rows(table.name, format) for format in formats)), start=1):
            count = number
            if any(row != rows[0] for row in rows[1:]):
                yield f"{table.name}: row {number} differs between {' and '.join(formats)}"
                break
        verdict.rows += count
        for format in formats:
            name = archive.path(table.name, format).relative_to(archive.folder).as_posix()
            if archive.contents["files"][name]["rows"] != count:
                yield f"{name}: {count} rows, the manifest says {archive.contents['files'][name]['rows']}"


def _said(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"{text} is unknown" if isinstance(error, KeyError) else text
