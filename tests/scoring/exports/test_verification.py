"""`verify_export`: sound archives pass; damaged and forged ones do not, even with all manifest hashes recomputed."""

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from agents.records import GENESIS, link_sha256
from forecast_rank.files.checksums import check_zip_checksum, file_sha256
from scoring.exports.archive_record import MANIFEST, InvalidManifest, read_manifest
from scoring.exports.tables import TABLES
from scoring.exports.verification.verifier import verify_archive
from tests.commands import run
from tests.lazy_modules import pl
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgeries import every
from tests.scoring.exports.forgery import keep_csv_alone, rewrite, update_manifest

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
Copy = Callable[[str], Path]
FLIPS_PER_FILE = 3


COLUMNS = sum(len(table.columns) for table in TABLES)


@pytest.mark.parametrize("name", ["whole", "whole.zip"])
def test_sound_archive_verifies_without_a_database(exported: Path, django_db_blocker: Any, name: str) -> None:
    with django_db_blocker.block():
        ran = run("verify_export", None, exported / name)
    assert ran.code == 0, ran.stderr
    assert (ran["violations"], ran["checks"], ran["leaderboards"]) == (0, 34, True)
    assert (ran["proven_columns"], ran["unprovable_columns"], ran["proven_percent"]) == (COLUMNS, 0, "100.0")
    assert ran["recomputed_columns"] + ran["hashed_columns"] == COLUMNS
    assert ran["chain_links"] == 52


@pytest.mark.parametrize("name", ["cohort", "day"])
def test_partial_archive_says_what_it_can_not_prove(
    exported: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as end:
        call_command("verify_export", str(exported / name), "--json")
    assert end.value.code == 3
    *lines, last = capsys.readouterr().out.splitlines()
    summary = json.loads(last)
    assert (summary["violations"], summary["leaderboards"], summary["partial"]) == (0, False, True)
    assert summary["proven_columns"] + summary["unprovable_columns"] == COLUMNS
    rows = len(table_rows(exported / name, "outcomes"))
    assert any(
        line.startswith(f"not proven: outcomes, {rows} rows: price, price_source, price_stale (") for line in lines
    )
    assert any(line.startswith("not proven: leaderboard_trading, 0 rows: methodology, family, rank") for line in lines)
    cash_is_proven = not any(line.startswith("not proven: agents,") and ", cash," in line for line in lines)
    assert cash_is_proven == (name == "cohort")


def test_missing_archive_is_bad_usage(tmp_path: Path) -> None:
    assert run("verify_export", None, tmp_path / "nothing").code == 2


def test_flipped_bit_in_any_file_is_found(copy: Copy) -> None:
    folder, random_numbers = copy("whole"), random.Random(20260308)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        sound = path.read_bytes()
        for _ in range(FLIPS_PER_FILE):
            place = random_numbers.randrange(len(sound))
            path.write_bytes(with_flipped_bit(sound, place, random_numbers))
            assert is_damaged(folder), f"{path.name}, byte {place}"
        path.write_bytes(sound)
    assert not is_damaged(folder)


def with_flipped_bit(sound: bytes, place: int, random_numbers: random.Random) -> bytes:
    damaged = bytearray(sound)
    damaged[place] ^= 1 << random_numbers.randrange(8)
    return bytes(damaged)


def is_damaged(folder: Path) -> bool:
    """Does the manifest fail its own hash, or any file the manifest's?"""
    try:
        files = read_manifest(folder)["files"]
    except InvalidManifest:
        return True
    return any(file_sha256(folder / name) != file_entry["sha256"] for name, file_entry in files.items())


def test_flipped_bit_in_the_manifest_is_found(copy: Copy) -> None:
    folder = copy("day")
    path = folder / MANIFEST
    sound, random_numbers = path.read_bytes(), random.Random(1)
    for place in range(0, len(sound), 7):
        path.write_bytes(with_flipped_bit(sound, place, random_numbers))
        with pytest.raises(InvalidManifest):
            read_manifest(folder)


def test_changed_added_and_missing_files_are_named(copy: Copy) -> None:
    folder = copy("cohort")
    (folder / "csv" / "trades.csv").write_bytes((folder / "csv" / "trades.csv").read_bytes() + b" ")
    (folder / "notes.txt").write_text("mine")
    (folder / "LICENSE.txt").unlink()
    ran = run("verify_export", None, folder)
    assert ran.code == 1
    violations = verify_archive(folder).violations
    assert violations[:3] == [
        "notes.txt: is not in the manifest",
        "LICENSE.txt: is missing",
        "csv/trades.csv: its SHA-256 is not the one in the manifest",
    ]


def test_flipped_bit_in_a_zip_file_is_found(exported: Path, tmp_path: Path) -> None:
    sound, random_numbers, damaged = (exported / "whole.zip").read_bytes(), random.Random(7), tmp_path / "whole.zip"
    shutil.copy(exported / "whole.zip.sha256", tmp_path)
    for _ in range(20):
        damaged.write_bytes(with_flipped_bit(sound, random_numbers.randrange(len(sound)), random_numbers))
        assert list(check_zip_checksum(damaged)) == ["whole.zip: its SHA-256 is not the one in whole.zip.sha256"]
    assert verify_archive(damaged).violations[0] == "whole.zip: its SHA-256 is not the one in whole.zip.sha256"


def test_archive_beyond_a_limit_is_refused_before_it_is_read(copy: Copy, tmp_path: Path) -> None:
    def refusal(archive: Path) -> str:
        ran = run("verify_export", None, archive)
        assert ran.code == 2
        return ran.stderr.strip().splitlines()[-1]

    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("csv/trades.csv", bytes(2**28 + 1))
    size = (tmp_path / "bomb.zip").stat().st_size
    assert refusal(tmp_path / "bomb.zip") == (
        f"bomb.zip: {size:,} bytes expand to 268,435,457 bytes, above the limit of 268,435,456 bytes"
    )
    table = copy("cohort") / "parquet" / "trades.parquet"
    table.parent.mkdir(exist_ok=True)
    pl.select(pl.repeat(1, 1_000_000)).write_parquet(table)
    assert refusal(table.parents[1]) == (
        f"parquet/trades.parquet: 1,000,000 rows in {table.stat().st_size:,} bytes, above the limit of 100,000 rows"
    )
    table.unlink()
    (table.parents[1] / "dictionary.json").write_bytes(bytes(2**26 + 1))
    assert refusal(table.parents[1]) == "dictionary.json: 67,108,865 bytes, above the limit of 67,108,864 bytes"


# forgeries with recomputed manifest hashes


def test_updated_manifest_alone_is_no_violation(copy: Copy) -> None:
    folder = copy("cohort")
    rewrite(folder, "trades", lambda rows: None)
    assert verify_archive(folder).violations == []


def test_difference_between_formats_is_found(copy: Copy) -> None:
    folder = copy("whole")
    path = folder / "parquet" / "families.parquet"
    pl.read_parquet(path).with_columns(provider=pl.lit("Acme")).write_parquet(path)
    update_manifest(folder)
    assert "families: row 1 differs between csv and parquet" in verify_archive(folder).violations


def test_rebuilt_chain_does_not_end_at_the_published_head(copy: Copy) -> None:
    folder = copy("cohort")
    published = json.loads((folder / MANIFEST).read_text())["chains"]["trading"]["head"]

    def forge(rows: list[dict[str, str]]) -> None:
        heads = dict.fromkeys(("trading", "forecast", "board", "archive"), GENESIS)
        for row in rows:
            if row["decision"]:
                row["record_sha256"] = link_sha256(row["record_sha256"], "forged")
            row["previous"] = heads[row["protocol"]]
            row["sha256"] = heads[row["protocol"]] = link_sha256(row["previous"], row["record_sha256"])

    rewrite(folder, "chain", forge)
    violations = verify_archive(folder).violations
    assert any(published in line for line in violations if line.startswith("chain: trading ends")), violations


def test_deleted_row_is_found(copy: Copy) -> None:
    folder = copy("cohort")
    rewrite(folder, "brier_scores", lambda rows: rows.pop())
    violations = verify_archive(folder).violations
    assert "brier_scores: its rows are not those in the record of this archive" in violations
    assert any("has none, although its market is resolved" in line for line in violations)


def test_selection_in_the_manifest_turns_no_check_off(copy: Copy) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    selection = {"cohort": None, "from": "2026-01-01T00:00:00.000000Z", "to": None}
    rewrite(folder, "agents", every("cash", lambda text: "99999.00"))
    update_manifest(folder, selection=selection)
    violations = verify_archive(folder).violations
    assert "leaderboard_trading: it has rows, and only an archive of everything has leaderboards" in violations
    assert any("the record of this archive has selection" in line for line in violations)
    assert "agents: its rows are not those in the record of this archive" in violations


@pytest.mark.parametrize(
    ("name", "table", "column", "value", "message"),
    [
        ("day", "trades", "executed_at", "2026-04-01T00:00:00.000000Z", "is outside the window"),
        ("day", "decisions", "decided_at", "2026-03-08T00:05:00.000000Z", "is outside the window"),
        ("cohort", "decisions", "cohort", "2", "is not of cohort 1"),
        ("cohort", "agents", "cohort", "2", "is not of cohort 1"),
    ],
)
def test_row_outside_the_selection_is_a_violation(
    copy: Copy, name: str, table: str, column: str, value: str, message: str
) -> None:
    folder = copy(name)
    rewrite(folder, table, lambda rows: rows[0].__setitem__(column, value), record=True)
    ran = run("verify_export", None, folder)
    assert ran.code == 1
    assert any(message in line for line in verify_archive(folder).violations)


def test_missing_file_is_a_violation(copy: Copy) -> None:
    folder = copy("cohort")
    (folder / "csv" / "snapshots.csv").unlink()
    contents = json.loads((folder / MANIFEST).read_text())
    del contents["files"]["csv/snapshots.csv"]
    update_manifest(folder, files=contents["files"])
    assert run("verify_export", None, folder).code == 1
