"""`verify_export`: sound archives pass; damaged and forged ones do not, even with all manifest hashes recomputed."""

import json
import random
import shutil
import zipfile
from collections.abc import Callable
from decimal import Decimal
from operator import itemgetter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from django.core.management import call_command

from agents.records import GENESIS, link_sha256
from forecast_rank.files.checksums import check_zip_checksum, file_sha256
from scoring.exports.archive_record import MANIFEST, InvalidManifest, read_manifest
from scoring.exports.tables import TABLES
from scoring.exports.verification.verifier import verify_archive
from tests.commands import run
from tests.scoring.exports.archives import table_rows
from tests.scoring.exports.forgery import Cells, keep_csv_alone, rewrite, standalone_violations, update_manifest
from tests.selection import chosen, one_per_rule

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


FORGED_CELLS = [
    ("trades", "amount", "2400.00", "trading link"),
    ("trades", "price", "0.4400000000", "its universe's price"),
    ("trades", "implied_confidence", "0.9", "states implied_confidence"),
    ("journal", "amount", "9999.00", "journal: no. 1 of agent"),
    ("journal", "balance", "10000.01", "journal: no. 1 of agent"),
    ("positions", "shares", "1.000000", "positions: position"),
    ("settlements", "payout", "1.00", "settlements: settlement"),
    ("agents", "positions_value", "77777.00", "states positions_value"),
    ("after_costs", "return_after_costs", "12.5", "states return_after_costs"),
    ("books", "asks", '[["0.02","5"],["0.01","5"]]', "not in the order of their prices"),
    ("leaderboard_trading", "return_after_costs", "12.5", "states return_after_costs"),
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
]


@pytest.mark.parametrize(("table", "column", "value", "message"), one_per_rule(FORGED_CELLS, itemgetter(0)))
def test_both_verifiers_find_a_forged_cell_although_manifest_hashes_match(
    copy: Copy, table: str, column: str, value: str, message: str
) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)

    def forge(rows: list[dict[str, str]]) -> None:
        assert rows[0][column] != value
        rows[0][column] = value

    rewrite(folder, table, forge, record=True)
    violations = verify_archive(folder).violations
    assert any(message in line for line in violations), violations
    assert [line for line in standalone_violations(folder) if not line.startswith("anchor.json: ")]


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


# clever forgeries, of which the record of the archive was rewritten as well


def forge_every(column: str, value: Callable[[dict[str, str]], str]) -> Callable[[Cells], None]:
    def forge(rows: Cells) -> None:
        for row in rows:
            row[column] = value(row)

    return forge


def lift_one_curve(rows: Cells) -> None:
    agent = rows[0]["agent"]
    for row in rows:
        if row["agent"] == agent:
            value, pnl = Decimal(row["positions_value"]) + 1000, Decimal(row["pnl"]) + 1000
            row |= {"positions_value": str(value), "total_value": str(Decimal(row["cash"]) + value), "pnl": str(pnl)}
            row["pnl_percent"] = f"{pnl / 100:.4f}"


def swap_ids(rows: Cells) -> None:
    rows[0]["id"], rows[-1]["id"] = rows[-1]["id"], rows[0]["id"]


Forgery = tuple[str, Callable[[Cells], object], str]
FORGERIES: list[Forgery] = [
    ("journal", lambda rows: rows.append(rows[-1]), "journal: there are two rows with agent, sequence"),
    ("trades", swap_ids, "journal: no."),
    ("trades", forge_every("market", lambda row: "99999"), "which does not exist"),
    ("markets", forge_every("status", lambda row: "open"), "has the unknown status 'open'"),
    ("prices", forge_every("price", lambda row: row["price"] and "0.5000000000"), "the price 0.5"),
]
MORE_FORGERIES: list[Forgery] = [
    ("agents", forge_every("cash", lambda row: "99999.00"), "its journal ends at"),
    ("leaderboard_trading", forge_every("return_percent", lambda row: "999.0"), "states return_percent 999.0"),
    ("snapshots", lift_one_curve, "states positions_value"),
    ("decisions", forge_every("reasoning", lambda row: row["reasoning"] and "I knew."), "states reasoning"),
    ("questions", forge_every("text", lambda row: f"{row['text']}!"), "is not what its questions make"),
    ("instructions", forge_every("executed", lambda row: str(row["executed"] != "true").lower()), "instructions: no."),
    ("refused_forecasts", lambda rows: rows.clear(), "refused_forecasts: those of call"),
    ("trades", lambda rows: rows.pop(), "trades"),
    ("decisions", swap_ids, "decisions: decision"),
    ("forecasts", lambda rows: rows.pop(), "has other forecasts than its answers state"),
]
"""Of tables of which a cell or a row is forged elsewhere too."""


@pytest.mark.parametrize(("table", "forge", "message"), chosen(FORGERIES, [*FORGERIES, *MORE_FORGERIES]))
def test_clever_forgery_is_found(copy: Copy, table: str, forge: Callable[[Cells], object], message: str) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    rewrite(folder, table, forge, record=True)
    violations = verify_archive(folder).violations
    assert any(message in line for line in violations), violations
    assert not any("record of this archive" in line for line in violations), violations


def test_selection_in_the_manifest_turns_no_check_off(copy: Copy) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    selection = {"cohort": None, "from": "2026-01-01T00:00:00.000000Z", "to": None}
    rewrite(folder, "agents", forge_every("cash", lambda row: "99999.00"))
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
