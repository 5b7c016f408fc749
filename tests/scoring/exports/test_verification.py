"""`verify_export`: sound archives pass; damaged and forged ones do not, even with all manifest hashes recomputed."""

import csv
import json
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from forecast_rank.files.checksums import check_zip_checksum, file_sha256, list_files

from agents.records import GENESIS, link_sha256
from scoring.exports.manifest import MANIFEST, InvalidManifest, manifest_text, read_manifest
from scoring.exports.verification.verifier import verify_archive
from tests.commands import run

pytestmark = pytest.mark.django_db
Copy = Callable[[str], Path]
FLIPS_PER_FILE = 3


@pytest.mark.parametrize("name", ["whole", "whole.zip", "cohort", "day"])
def test_sound_archive_verifies_without_a_database(exported: Path, django_db_blocker: Any, name: str) -> None:
    with django_db_blocker.block():
        ran = run("verify_export", None, exported / name)
    assert ran.code == 0, ran.stderr
    assert (ran["violations"], ran["checks"], ran["leaderboards"]) == (0, 13, name.startswith("whole"))
    assert ran["chain_links"] == 48


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
    return any(file_sha256(folder / name) != stated["sha256"] for name, stated in files.items())


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


def rewrite(folder: Path, table: str, change: Callable[[list[dict[str, str]]], object]) -> None:
    """Changes the rows of a CSV table and updates the manifest."""
    path = folder / "csv" / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    update_manifest(folder)


def update_manifest(folder: Path) -> None:
    contents = json.loads((folder / MANIFEST).read_text())
    rows = {name: file["rows"] for name, file in contents["files"].items()}
    contents["files"] = list_files(folder, MANIFEST, rows)
    (folder / MANIFEST).write_text(manifest_text(contents))


def test_updated_manifest_alone_is_no_violation(copy: Copy) -> None:
    folder = copy("cohort")
    rewrite(folder, "trades", lambda rows: None)
    assert verify_archive(folder).violations == []


@pytest.mark.parametrize(
    ("table", "column", "value", "named"),
    [
        ("trades", "amount", "2400.00", "trading link"),
        ("trades", "price", "0.4400000000", "its universe's price"),
        ("trades", "implied_confidence", "0.9", "states implied_confidence"),
        ("journal", "amount", "9999.00", "journal: no. 1 of agent"),
        ("journal", "balance", "10000.01", "journal: no. 1 of agent"),
        ("positions", "shares", "1.000000", "positions: position"),
        ("settlements", "payout", "1.00", "settlements: settlement"),
        ("agents", "positions_value", "77777.00", "states positions_value"),
        ("agents", "win_rate", "0.123", "states win_rate"),
        ("snapshots", "total_value", "12000.00", "states total_value"),
        ("brier_scores", "score", "0.01", "states score"),
        ("brier_scores", "outcome", "maybe", "can not be"),
        ("calls", "raw_response", '{"choices": []}', "link"),
        ("calls", "portfolio_block", "{}", "the prompt of call"),
        ("calls", "cost_source", "booked", " is booked at "),
        ("prompts", "text", "Bet everything.", "has another hash"),
        ("universe_entries", "prices", '{"NO":"0.1","YES":"0.9"}', "universe"),
        ("question_entries", "reason", "traded", "set"),
        ("forecasts", "probabilities", '{"NO":0.02,"YES":0.98}', "differs from the record that was chained"),
        ("forecast_scores", "brier", "0.001", "states brier"),
        ("decisions", "action", "SELL", "differs from the record that was chained"),
        ("elicitations", "declined", "true", "differs from the record that was chained"),
        ("chain", "record_sha256", "0" * 64, "its hash does not follow from its record"),
        ("leaderboard_trading", "return_percent", "55.5", "leaderboard_trading: all"),
        ("leaderboard_trading", "rank", "7", "states rank"),
        ("leaderboard_trading", "brier", "0.0", "states brier"),
        ("leaderboard_trading", "cost_usd", "0.000001", "states cost_usd"),
        ("leaderboard_forecast", "brier", "0.0", "leaderboard_forecast: blind all"),
        ("leaderboard_forecast", "accuracy", "0.01", "states accuracy"),
        ("leaderboard_forecast", "rank", "9", "states rank"),
    ],
)
def test_forged_cell_is_found_although_manifest_hashes_match(
    exported: Path, copy: Copy, table: str, column: str, value: str, named: str
) -> None:
    folder = copy("whole")
    contents = json.loads((folder / MANIFEST).read_text())
    # CSV only, so that the forgery is not found by comparison with Parquet.
    contents["formats"] = ["csv"]
    contents["files"] = {k: v for k, v in contents["files"].items() if not k.startswith("parquet/")}
    (folder / MANIFEST).write_text(manifest_text(contents))
    for path in (folder / "parquet").iterdir():
        path.unlink()

    def forge(rows: list[dict[str, str]]) -> None:
        assert rows[0][column] != value
        rows[0][column] = value

    rewrite(folder, table, forge)
    violations = verify_archive(folder).violations
    assert any(named in line for line in violations), violations


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
        heads = dict.fromkeys(("trading", "forecast"), GENESIS)
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
    assert any("the manifest says" in line for line in violations)
    assert any("has none, although its market is resolved" in line for line in violations)
