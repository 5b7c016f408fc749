"""The files of an archive."""

import csv
import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from arena_verifier.rows import Row, Tables, Violations, canonical, sha256

MAX_BYTES, MAX_FILES, MAX_JSON, MAX_CELL = 2**32, 1_000, 2**26, 2**26


class UnreadableArchive(Exception):
    """The folder is no archive that can be read, or is beyond a limit."""


class ArchiveTables(Tables):
    """The tables of an archive with its manifest and documents."""

    def __init__(self, folder: Path, manifest: Row) -> None:
        super().__init__()
        self.folder, self.manifest, self.selection = folder, manifest, manifest["selection"]
        self.is_window = bool(self.selection["from"] or self.selection["to"])
        self.is_whole = not self.is_window and self.selection["cohort"] is None

    def path(self, name: str) -> Path:
        return self.folder / name

    def json(self, name: str) -> Any:
        return json.loads(self.path(name).read_text(encoding="utf-8"))

    def methodologies(self) -> list[Row]:
        rows: list[Row] = self.json("methodologies.json")
        return rows

    def heads(self) -> dict[str, tuple[int, str]]:
        return {name: (head["length"], head["head"]) for name, head in self.manifest["chains"].items()}

    def made_at(self) -> str:
        return str(self.manifest["made_at"])

    def hash(self, name: str) -> str:
        with self.path(name).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def table_names(self) -> list[str]:
        raise NotImplementedError

    def digest(self, table: str) -> tuple[int, str]:
        """The number of rows of a table by the manifest, and the SHA-256 of its CSV file."""
        name = f"csv/{table}.csv"
        return self.manifest["files"][name]["rows"], self.hash(name)


class CsvArchive(ArchiveTables):
    """An archive by its CSV files. Every table has the columns that its dictionary names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = self.list_files()
        super().__init__(folder, self.json("manifest.json"))
        self.columns = {}
        for table in self.json("dictionary.json"):
            self.columns[table["table"]] = [(column["name"], column["type"]) for column in table["columns"]]
        if "csv" not in self.manifest["formats"]:
            raise UnreadableArchive("the archive holds no CSV, which is all that this program reads")

    def list_files(self) -> dict[str, int]:
        """The sizes of the regular files by their paths, within the limits."""
        if not self.folder.is_dir():
            raise UnreadableArchive(f"{self.folder}: there is no such folder")
        sizes = {}
        for path in self.folder.rglob("*"):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                sizes[path.relative_to(self.folder).as_posix()] = status.st_size
            if len(sizes) > MAX_FILES:
                raise UnreadableArchive(f"more files than the limit of {MAX_FILES:,}")
        if (total := sum(sizes.values())) > MAX_BYTES:
            raise UnreadableArchive(f"{total:,} bytes, above the limit of {MAX_BYTES:,} bytes")
        return sizes

    def path(self, name: str) -> Path:
        if name not in self.files:
            raise UnreadableArchive(f"{name}: is missing")
        return self.folder / name

    def json(self, name: str) -> Any:
        path = self.path(name)
        if self.files[name] > MAX_JSON:
            raise UnreadableArchive(f"{name}: {self.files[name]:,} bytes, above the limit of {MAX_JSON:,} bytes")
        return json.loads(path.read_text(encoding="utf-8"))

    def table_names(self) -> list[str]:
        return list(self.columns)

    def rows(self, table: str) -> Iterator[Row]:
        names = [name for name, _ in self.columns[table]]
        parsers = [PARSERS[kind] for _, kind in self.columns[table]]
        with self.path(f"csv/{table}.csv").open(newline="", encoding="utf-8") as file:
            lines = csv.reader(file, strict=True)
            if next(lines, None) != names:
                raise ValueError(f"{table}.csv: its columns are not those of the dictionary")
            for line in lines:
                if len(line) != len(names):
                    raise ValueError(f"{table}.csv: line {lines.line_num} has {len(line)} cells, not {len(names)}")
                yield {name: parse(cell) for name, parse, cell in zip(names, parsers, line, strict=True)}


def unescape(text: str) -> str:
    """A text without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return text[1:] if text[:1] == "'" else text


def number(pattern: str, convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser of numbers of bounded length, so that no huge exponent can exhaust the memory."""
    return lambda text: None if text == "" else convert(re.fullmatch(pattern, text)[0])  # type: ignore[index]


PARSERS: dict[str, Callable[[str], Any]] = {
    "text": unescape,
    "json": lambda text: json.loads(unescape(text)) if text else None,
    "boolean": {"": None, "true": True, "false": False}.__getitem__,
    "time": lambda text: text or None,
    "integer": number(r"-?\d{1,18}", int),
    "decimal": number(r"-?\d{1,20}(\.\d{1,12})?", Decimal),
    "number": number(r"-?\d{1,25}(\.\d{1,25})?(e[+-]?\d{1,3})?", float),
}


def check_files(archive: CsvArchive, violations: Violations) -> None:
    """Every file has the hash of the manifest, the manifest its own, and there are no others."""
    manifest = archive.manifest
    hashed_contents = {name: value for name, value in manifest.items() if name != "sha256"}
    if sha256(canonical(hashed_contents)) != manifest["sha256"]:
        violations.append("manifest.json: its hash does not match its contents")
    check_hashes(archive, archive.files, violations)
    for table in archive.table_names():
        rows = sum(1 for _ in archive.rows(table))
        if rows != manifest["files"][f"csv/{table}.csv"]["rows"]:
            violations.append(f"csv/{table}.csv: {rows} rows, against the manifest")


def check_hashes(archive: ArchiveTables, sizes: dict[str, int], violations: Violations) -> None:
    """The files of these sizes are those of the manifest, with the same hashes."""
    listed = archive.manifest["files"]
    for name in sorted(sizes.keys() - listed.keys() - {"manifest.json"}):
        violations.append(f"{name}: is not in the manifest")
    for name, file in sorted(listed.items()):
        if name not in sizes:
            violations.append(f"{name}: is missing")
        elif archive.hash(name) != file["sha256"] or sizes[name] != file["bytes"]:
            violations.append(f"{name}: its SHA-256 is not the one in the manifest")
