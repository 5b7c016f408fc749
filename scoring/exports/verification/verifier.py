"""Verification of a whole archive, check by check."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from arena_verifier import program
from arena_verifier.files import check_hashes
from arena_verifier.program import is_left_out
from arena_verifier.rows import Violations
from forecast_rank.files.archives import unpacked
from forecast_rank.files.checksums import check_zip_checksum
from scoring.exports.archive_record import InvalidManifest, read_manifest
from scoring.exports.dictionary import FORMATS, HASHED, RECOMPUTED
from scoring.exports.tables import TABLES
from scoring.exports.verification.archive_reader import Archive, check_tables
from scoring.exports.verification.forecasts import (
    check_agents_boards,
    check_condition_differences,
    check_forecast_leaderboards,
)
from scoring.exports.verification.partial import Unproven, unproven
from scoring.exports.verification.published_boards import check_published_tests
from scoring.exports.verification.rows import check_rows

Check = Callable[[Archive], Iterator[str]]


def _check_by_rules(name: str) -> Check:
    """A check of the arena's verifier, whose lines so far count also where a row ends it."""

    def check(archive: Archive) -> Iterator[str]:
        violations = Violations()
        if is_left_out(archive, name):
            return
        try:
            program.CHECKS[name](archive, violations)
        except MALFORMED_DATA_ERRORS:
            yield from violations
            raise
        yield from violations

    return check


CHECKS: dict[str, Check] = {
    "tables": check_tables,
    "rows": check_rows,
    **{name: _check_by_rules(name) for name in program.CHECKS},
    "forecast leaderboards": check_forecast_leaderboards,
    "intervals of agents": check_agents_boards,
    "tests of conditions": check_condition_differences,
    "tests of published boards": check_published_tests,
}
"""The rules of the arena's verifier, and what needs Parquet, NumPy or the models' vocabularies."""
MALFORMED_DATA_ERRORS = (*program.MALFORMED, pl.exceptions.PolarsError)
"""Errors that a check may meet in forged rows."""
MAX_VIOLATIONS_PER_CHECK = 20


@dataclass(slots=True)
class VerificationReport:
    """Counts of what was checked, and one line per violation that names file and row, in the order of the checks."""

    files: int = 0
    rows: int = 0
    checks: int = 0
    chain_links: int = 0
    leaderboards: bool = False
    """Whether the archive holds leaderboards to verify."""
    recomputed_columns: int = 0
    hashed_columns: int = 0
    unproven: list[Unproven] = field(default_factory=list)
    """Columns that a partial archive states without the rows that they follow from."""
    partial: bool = False
    violations: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """The counts, with the share of proven columns in per cent."""
        unprovable = sum(len(check.columns) for check in self.unproven)
        proven = self.recomputed_columns + self.hashed_columns - unprovable
        share = 100 * proven / (proven + unprovable) if proven else 0.0
        return {
            "files": self.files,
            "rows": self.rows,
            "checks": self.checks,
            "chain_links": self.chain_links,
            "leaderboards": self.leaderboards,
            "partial": self.partial,
            "proven_columns": proven,
            "unprovable_columns": unprovable,
            "recomputed_columns": self.recomputed_columns - unprovable,
            "hashed_columns": self.hashed_columns,
            "proven_percent": f"{share:.1f}",
            "violations": len(self.violations),
        }


def verify_archive(
    path: Path, progress: Callable[[int, int, str], None] = lambda count, total, caption: None
) -> VerificationReport:
    """The report on an archive, a folder or a zip file. Raises FileNotFoundError where there is neither."""
    if not path.exists():
        raise FileNotFoundError(path)
    report = VerificationReport(violations=list(check_zip_checksum(path)))
    try:
        with unpacked(path) as folder:
            _verify_folder(folder, report, progress)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, EOFError, ValueError) as error:
        report.violations.append(f"{path.name}: {error}")
    return report


def _verify_folder(folder: Path, report: VerificationReport, progress: Callable[[int, int, str], None]) -> None:
    special = [path.name for path in folder.rglob("*") if not path.is_file() and not path.is_dir()]
    if special:  # a pipe would never end
        report.violations.append(f"{', '.join(sorted(special))}: neither file nor folder")
        return
    try:
        manifest = read_manifest(folder)
        archive = Archive(folder, manifest, [format for format in FORMATS if format in manifest["formats"]])
        report.violations += _file_violations(archive)
        report.leaderboards = archive.is_whole
        report.files = len(manifest["files"])
        report.rows = sum(file["rows"] or 0 for file in manifest["files"].values()) // len(archive.formats)
        report.partial = not archive.is_whole
        proofs = [table.proof(name) for table in TABLES for name in table.names]
        report.recomputed_columns, report.hashed_columns = proofs.count(RECOMPUTED), proofs.count(HASHED)
        report.chain_links = sum(head["length"] for head in manifest["chains"].values())
    except (InvalidManifest, *MALFORMED_DATA_ERRORS) as error:
        report.violations.append(_error_text(error))
        return
    for index, (name, check) in enumerate(CHECKS.items()):
        progress(index, len(CHECKS), name)
        try:
            report.violations += islice(check(archive), MAX_VIOLATIONS_PER_CHECK)
        except MALFORMED_DATA_ERRORS as error:
            report.violations.append(f"{name}: can not be checked: {_error_text(error)}")
        report.checks += 1
    try:
        report.unproven += unproven(archive)
    except MALFORMED_DATA_ERRORS as error:
        report.violations.append(f"what can not be proven: {_error_text(error)}")
    progress(len(CHECKS), len(CHECKS), "")


def _file_violations(archive: Archive) -> Violations:
    violations, sizes = Violations(), {}
    for path in archive.folder.rglob("*"):
        if path.is_file():
            sizes[path.relative_to(archive.folder).as_posix()] = path.stat().st_size
    check_hashes(archive, sizes, violations)
    return violations


def _error_text(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"{text} is unknown" if isinstance(error, KeyError) else text
