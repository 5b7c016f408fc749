"""Forged archives: changed tables, with the hashes put right as a forger would."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.records import canonical, link_sha256, record_sha256
from arena_verifier import program
from forecast_rank.files.checksums import file_sha256
from scoring.exports.archive_record import MANIFEST, WEEKLY_TABLES, WeeklyRows, manifest_text

Cells = list[dict[str, str]]


def keep_csv_alone(folder: Path) -> None:
    """Removes the Parquet files, so that no forgery is found by comparison with them."""
    for path in (folder / "parquet").iterdir():
        path.unlink()
    update_manifest(folder, formats=["csv"])


def standalone_violations(folder: Path) -> list[str]:
    """The violations that the archive's own verifier finds."""
    violations, _, _ = program.verify(folder)
    return [line for lines in violations.values() for line in lines]


def read_cells(folder: Path, table: str) -> Cells:
    with (folder / "csv" / f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_cells(folder: Path, table: str, rows: Cells) -> None:
    path = folder / "csv" / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        names = next(csv.reader(file))
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, names)
        out.writeheader()
        out.writerows(rows)


def rewrite(folder: Path, table: str, change: Callable[[Cells], object], *, record: bool = False) -> None:
    """Changes the rows of a CSV table and updates the manifest; with `record`, the record of the archive too."""
    rows = read_cells(folder, table)
    change(rows)
    write_cells(folder, table, rows)
    update_manifest(folder)
    if record:
        update_record(folder, table)


def update_manifest(folder: Path, **fields: Any) -> None:
    """Puts right the hashes and the numbers of rows."""
    contents = json.loads((folder / MANIFEST).read_text()) | fields
    present = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files = {name: file for name, file in contents["files"].items() if name in present}
    for name, path in present.items():
        sha256 = file_sha256(path)
        if name != MANIFEST and sha256 != files.get(name, {}).get("sha256"):
            rows = len(read_cells(folder, path.stem)) if path.parent.name == "csv" else None
            files[name] = {"sha256": sha256, "bytes": path.stat().st_size, "rows": rows}
    contents["files"] = files
    (folder / MANIFEST).write_text(manifest_text(contents))


def update_record(folder: Path, table: str, chains: dict[str, Any] | None = None) -> None:
    """Makes the last record of the chain of archives one of a changed table, and the manifest's head its own."""
    links = read_cells(folder, "chain")
    last = next(row for row in reversed(links) if row["protocol"] == "archive")
    record = json.loads(last["record"])
    if chains is not None:
        record["chains"] = {name: head for name, head in chains.items() if name != "archive"}
    if table in record["tables"]:
        rows = read_cells(folder, table)
        record["tables"][table] = {"rows": len(rows), "sha256": file_sha256(folder / "csv" / f"{table}.csv")}
        if column := WEEKLY_TABLES.get(table):
            weeks = WeeklyRows()
            weeks.add_days(table, [row[column][:10] for row in rows if row[column]])
            record["weeks"] |= weeks.as_json()
    last["record"], last["record_sha256"] = canonical(record), record_sha256(record)
    last["sha256"] = link_sha256(last["previous"], last["record_sha256"])
    write_cells(folder, "chain", links)
    chains = json.loads((folder / MANIFEST).read_text())["chains"]
    update_manifest(folder, chains=chains | {"archive": {"length": int(last["sequence"]), "head": last["sha256"]}})


def rewrite_board(folder: Path, protocol: str, change: Callable[[Any], None], *, newest: bool) -> None:
    """Changes the first entry of a published board, its hash, and the chain of boards from there on."""
    rows, links = read_cells(folder, "published_boards"), read_cells(folder, "chain")
    of_protocol = [row for row in rows if row["protocol"] == protocol]
    board = of_protocol[-1 if newest else 0]
    entries = json.loads(board["entries"])
    change(entries[0])
    board["entries"] = canonical(entries)
    board["sha256"] = record_sha256({"entries": entries, "report": json.loads(board["report"])})
    head = None
    for link in (row for row in links if row["protocol"] == "board"):
        record = json.loads(link["record"])
        if link["sequence"] == board["link"]:
            record["boards"] = [recorded_board(row) for row in rows if row["link"] == board["link"]]
        link["record"], link["record_sha256"] = canonical(record), record_sha256(record)
        link["previous"] = head or link["previous"]
        link["sha256"] = head = link_sha256(link["previous"], link["record_sha256"])
    write_cells(folder, "published_boards", rows)
    write_cells(folder, "chain", links)
    chains = json.loads((folder / MANIFEST).read_text())["chains"]
    chains["board"]["head"] = head
    update_manifest(folder, chains=chains)
    update_record(folder, "published_boards", chains=chains)


def recorded_board(row: dict[str, str]) -> dict[str, str]:
    return {name: row[name] for name in ("protocol", "track", "methodology", "arm", "category", "at", "sha256")}
