"""The proof of an archive: sound ones pass, and whatever somebody bends is found, even with every hash made anew."""

import csv
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from agents.records import GENESIS, link_sha256
from scoring.exports import manifest
from scoring.exports.files import file_sha256
from scoring.exports.proof.verdict import broken_seal, verdict_on
from tests.scoring.exports.doors import shell

pytestmark = pytest.mark.django_db
Copy = Callable[[str], Path]
FLIPS_PER_FILE = 3


@pytest.mark.parametrize("name", ["whole", "whole.zip", "cohort", "day"])
def test_an_archive_proves_itself_without_a_database(exported: Path, django_db_blocker: Any, name: str) -> None:
    with django_db_blocker.block():
        ran = shell("verify_export", exported / name)
    assert ran.code == 0, ran.complaint
    assert (ran["violations"], ran["checks"], ran["boards"]) == (0, 13, name.startswith("whole"))
    assert ran["chain_links"] == 48


def test_a_place_without_an_archive_is_bad_usage(tmp_path: Path) -> None:
    assert shell("verify_export", tmp_path / "nothing").code == 2


def test_a_flipped_bit_anywhere_in_any_file_is_found(copy: Copy) -> None:
    folder, dice = copy("whole"), random.Random(20260308)
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        sound = path.read_bytes()
        for _ in range(FLIPS_PER_FILE):
            bent, place = bytearray(sound), dice.randrange(len(sound))
            bent[place] ^= 1 << dice.randrange(8)
            path.write_bytes(bent)
            assert any_of_the_files_is_wrong(folder), f"{path.name}, byte {place}"
        path.write_bytes(sound)
    assert not any_of_the_files_is_wrong(folder)


def any_of_the_files_is_wrong(folder: Path) -> bool:
    """What the proof asks before it reads a row: is each file the one of the manifest, and the manifest genuine?"""
    try:
        files = manifest.read(folder)["files"]
    except manifest.BadManifest:
        return True
    return any(file_sha256(folder / name) != said["sha256"] for name, said in files.items())


def test_each_bit_of_the_manifest_counts(copy: Copy) -> None:
    folder = copy("day")
    path = folder / manifest.MANIFEST
    sound, dice = path.read_bytes(), random.Random(1)
    for place in range(0, len(sound), 7):
        bent = bytearray(sound)
        bent[place] ^= 1 << dice.randrange(8)
        path.write_bytes(bent)
        with pytest.raises(manifest.BadManifest):
            manifest.read(folder)


def test_a_bent_file_is_named(copy: Copy) -> None:
    folder = copy("cohort")
    (folder / "csv" / "trades.csv").write_bytes((folder / "csv" / "trades.csv").read_bytes() + b" ")
    (folder / "notes.txt").write_text("mine")
    (folder / "LICENSE.txt").unlink()
    ran = shell("verify_export", folder)
    assert ran.code == 1
    found = verdict_on(folder).violations
    assert found[:3] == [
        "notes.txt: is not in the manifest",
        "LICENSE.txt: is missing",
        "csv/trades.csv: its SHA-256 is not the one in the manifest",
    ]


def test_a_flipped_bit_anywhere_in_a_zip_file_is_found(exported: Path, tmp_path: Path) -> None:
    sound, dice, bent = (exported / "whole.zip").read_bytes(), random.Random(7), tmp_path / "whole.zip"
    shutil.copy(exported / "whole.zip.sha256", tmp_path)
    for _ in range(20):
        place = dice.randrange(len(sound))
        bent.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << dice.randrange(8)]) + sound[place + 1 :])
        assert list(broken_seal(bent)) == ["whole.zip: its SHA-256 is not the one in whole.zip.sha256"]
    assert verdict_on(bent).violations[0] == "whole.zip: its SHA-256 is not the one in whole.zip.sha256"


# bent by somebody who makes all hashes anew


def bend(folder: Path, table: str, change: Callable[[dict[str, str]], None], row: int = 0) -> None:
    """Changes one row of a table in every format and has the manifest fit again."""
    path = folder / "csv" / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.DictReader(file)
        rows, names = list(lines), list(lines.fieldnames or [])
    change(rows[row])
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, names)
        out.writeheader()
        out.writerows(rows)
    seal(folder)


def seal(folder: Path) -> None:
    contents = json.loads((folder / manifest.MANIFEST).read_text())
    rows = {name: said["rows"] for name, said in contents["files"].items()}
    contents["files"] = manifest.listed(folder, rows)
    (folder / manifest.MANIFEST).write_text(manifest.written(contents))


def sets(column: str, value: str) -> Callable[[dict[str, str]], None]:
    def change(row: dict[str, str]) -> None:
        assert row[column] != value
        row[column] = value

    return change


def test_resealing_alone_changes_nothing(copy: Copy) -> None:
    folder = copy("cohort")
    bend(folder, "trades", lambda row: None)
    assert verdict_on(folder).violations == []


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
        ("prompts", "text", "Bet everything.", "has another hash"),
        ("universe_entries", "prices", '{"NO":"0.1","YES":"0.9"}', "universe"),
        ("question_entries", "reason", "played", "set"),
        ("forecasts", "probabilities", '{"NO":0.02,"YES":0.98}', "is not what was chained"),
        ("forecast_scores", "brier", "0.001", "states brier"),
        ("decisions", "action", "SELL", "is not what was chained"),
        ("elicitations", "declined", "true", "is not what was chained"),
        ("chain", "record_sha256", "0" * 64, "its hash is not that of its record"),
        ("leaderboard_trading", "return_percent", "55.5", "leaderboard_trading: all"),
        ("leaderboard_trading", "rank", "7", "states rank"),
        ("leaderboard_trading", "brier", "0.0", "states brier"),
        ("leaderboard_trading", "cost_usd", "0.000001", "states cost_usd"),
        ("leaderboard_forecast", "brier", "0.0", "leaderboard_forecast: blind all"),
        ("leaderboard_forecast", "accuracy", "0.01", "states accuracy"),
        ("leaderboard_forecast", "rank", "9", "states rank"),
    ],
)
def test_a_bent_row_is_found_though_every_hash_fits(
    exported: Path, copy: Copy, table: str, column: str, value: str, named: str
) -> None:
    folder = copy("whole")
    contents = json.loads((folder / manifest.MANIFEST).read_text())
    # The CSV alone, so that it is not the other format that gives it away.
    contents["formats"] = ["csv"]
    contents["files"] = {k: v for k, v in contents["files"].items() if not k.startswith("parquet/")}
    (folder / manifest.MANIFEST).write_text(manifest.written(contents))
    for path in (folder / "parquet").iterdir():
        path.unlink()
    bend(folder, table, sets(column, value))
    found = verdict_on(folder).violations
    assert any(named in line for line in found), found


def test_formats_that_differ_are_found(copy: Copy) -> None:
    folder = copy("whole")
    path = folder / "parquet" / "families.parquet"
    pl.read_parquet(path).with_columns(provider=pl.lit("Acme")).write_parquet(path)
    seal(folder)
    assert "families: row 1 differs between csv and parquet" in verdict_on(folder).violations


def test_a_chain_that_was_made_anew_no_longer_ends_at_the_published_head(copy: Copy) -> None:
    folder = copy("cohort")
    published = json.loads((folder / manifest.MANIFEST).read_text())["chains"]["trading"]["head"]
    path = folder / "csv" / "chain.csv"
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    heads = dict.fromkeys(("trading", "forecast"), GENESIS)
    for row in rows:
        if row["decision"]:
            row["record_sha256"] = link_sha256(row["record_sha256"], "bent")
        row["previous"] = heads[row["protocol"]]
        row["sha256"] = heads[row["protocol"]] = link_sha256(row["previous"], row["record_sha256"])
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows[0]))
        out.writeheader()
        out.writerows(rows)
    seal(folder)
    found = verdict_on(folder).violations
    assert any(published in line for line in found if line.startswith("chain: trading ends")), found


def test_a_row_taken_away_is_found(copy: Copy) -> None:
    folder = copy("cohort")
    path = folder / "csv" / "brier_scores.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    seal(folder)
    found = verdict_on(folder).violations
    assert any("the manifest says" in line for line in found)
    assert any("has none, and its market is resolved" in line for line in found)
