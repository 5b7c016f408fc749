"""`verify_arena.py`, which is in every archive: sound archives pass, forged ones do not, hostile ones are refused."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arena_verifier import intervals
from arena_verifier.standalone import program_text
from forecast_rank.metrics.sample_mean import bounded_cluster_interval
from scoring.exports.archive_record import MANIFEST, manifest_text
from scoring.exports.verification.verifier import verify_archive
from tests.scoring.exports.forgeries import cell, every
from tests.scoring.exports.forgery import (
    keep_csv_alone,
    rewrite,
    rewrite_board,
    standalone_violations,
    update_manifest,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.own_database]
Copy = Callable[[str], Path]


def run_alone(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The archive's own copy, in a process that sees neither this project nor any installed package."""
    command = [sys.executable, "-I", "-S", str(folder / "verify_arena.py"), str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60)


@pytest.mark.parametrize(("name", "code"), [("whole", 0), ("cohort", 3), ("day", 3)])
def test_sound_archive_verifies_with_the_standard_library_alone(exported: Path, name: str, code: int) -> None:
    ran = run_alone(exported / name)
    assert (ran.returncode, ran.stderr) == (code, ""), ran.stdout
    lines = ran.stdout.splitlines()
    assert json.loads(lines[-1])["violations"] == 0
    assert any(line.startswith("left to verify_export: leaderboard_forecast: rank_low") for line in lines)
    assert "left to verify_export: leaderboard_trading" not in ran.stdout
    assert ("not proven: trading leaderboard" in ran.stdout) == (name != "whole")
    assert ("not proven: journals" in ran.stdout) == (name == "day")


def test_program_is_short_and_imports_the_standard_library_alone() -> None:
    source = program_text()
    assert len(source.splitlines()) < 4_200
    imported = {
        line.split()[1].partition(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))
    }
    assert imported <= sys.stdlib_module_names
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.ImportFrom):
            names += [alias.name for alias in node.names]
    assert len(names) == len(set(names))  # of many modules in one file


def test_intervals_of_bets_are_those_of_the_library() -> None:
    generator = np.random.default_rng(11)
    for number in (3, 4, 9, 60, 300):
        values, events = generator.random(number) ** 3, generator.integers(0, max(5, number // 2), number)
        for sample in (values, values > 0.5, np.ones(number)):
            expected = bounded_cluster_interval(sample, events)
            computed = intervals.bounded_interval(sample.tolist(), events.tolist())
            assert computed == (expected if expected is None else pytest.approx(list(expected), abs=1e-10))


def test_signature_is_checked_against_a_published_key(exported: Path, copy: Copy) -> None:
    key = json.loads((exported / "day" / "anchor.json").read_text())["public_key"]
    assert run_alone(exported / "day", "--key", key).returncode == 3
    output_of_wrong_key = run_alone(exported / "day", "--key", "00" * 32)
    assert output_of_wrong_key.returncode == 1
    assert f"anchor.json: it is signed by {key}" in output_of_wrong_key.stdout
    folder = copy("day")
    document = json.loads((folder / "anchor.json").read_text())
    document["at"] = "2026-03-09T00:00:00.000000Z"
    (folder / "anchor.json").write_text(json.dumps(document))
    update_manifest(folder)
    assert "anchor.json: its signature is not that of its key" in standalone_violations(folder)
    assert "anchor.json: its signature is not that of its key" in verify_archive(folder).violations


def worse(entry: dict[str, Any]) -> None:
    entry["rank"] = 7


def dearer(entry: dict[str, Any]) -> None:
    entry["total_value"] = "12000.00"


def of_another(entry: dict[str, Any]) -> None:
    entry["brier_ci"] = [0.1, 0.2]


@pytest.mark.parametrize(
    ("protocol", "change"), [("trading", dearer), ("trading", worse), ("forecast", worse), ("forecast", of_another)]
)
def test_both_verifiers_prove_the_newest_boards_though_hashes_and_chain_were_put_right(
    copy: Copy, protocol: str, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    rewrite_board(folder, protocol, change, newest=True)
    for violations in (standalone_violations(folder), verify_archive(folder).violations):
        found = [line for line in violations if not line.startswith("anchor.json: ")]
        assert all(line.startswith(f"published_boards: {protocol}") for line in found), found
        assert any(" states " in line for line in found), violations


def test_earlier_board_whose_chain_was_put_right_is_found_by_the_signed_head(copy: Copy) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    rewrite_board(folder, "trading", worse, newest=False)
    for violations in (standalone_violations(folder), verify_archive(folder).violations):
        assert violations
        assert all(line.startswith("anchor.json: ") for line in violations), violations


def test_both_verifiers_find_a_change_that_only_the_record_of_the_archive_shows(copy: Copy) -> None:
    columns = {"prices": "reason", "markets": "slug", "families": "display_name", "calls": "latency_ms",
               "leaderboard_forecast": "figures"}  # fmt: skip
    folder = copy("whole")
    keep_csv_alone(folder)
    for table, column in columns.items():
        rewrite(folder, table, cell(column, '{"1":1}' if table == "leaderboard_forecast" else "1"))
    expected = {f"{table}: its rows are not those in the record of this archive" for table in columns}
    assert expected <= set(standalone_violations(folder))
    assert expected <= set(verify_archive(folder).violations)


def test_whole_archive_is_no_window_by_its_manifest_alone(copy: Copy) -> None:
    folder = copy("whole")
    keep_csv_alone(folder)
    selection = {"cohort": None, "from": "2026-01-01T00:00:00.000000Z", "to": None}
    update_manifest(folder, selection=selection)
    expected = "leaderboard_trading: it has rows, and only an archive of everything has leaderboards"
    assert expected in standalone_violations(folder)
    assert run_alone(folder).returncode == 1


def test_row_outside_the_window_is_a_violation(copy: Copy) -> None:
    folder = copy("day")
    rewrite(folder, "trades", every("executed_at", lambda text: text and "2026-04-01T00:00:00.000000Z"), record=True)
    assert any("outside the window" in line for line in standalone_violations(folder))


# hostile archives


def huge_number(folder: Path) -> None:
    rewrite(folder, "trades", every("amount", lambda text: text and "1E999999999"))


def nested_record(folder: Path) -> None:
    rewrite(folder, "chain", cell("record", "[" * 100_000))


def costly_template(folder: Path) -> None:
    path = folder / "methodologies.json"
    rows = json.loads(path.read_text())
    for row in rows:
        row["user_prompt"] = "{markets:>99999999999}"
    path.write_text(json.dumps(rows))
    update_manifest(folder)


def pipe_instead_of_a_table(folder: Path) -> None:
    (folder / "csv" / "trades.csv").unlink()
    os.mkfifo(folder / "csv" / "trades.csv")


def dictionary_of_nonsense(folder: Path) -> None:
    (folder / "dictionary.json").write_text('[{"table": "trades", "columns": 7}]')
    update_manifest(folder)


def outside_file(folder: Path) -> None:
    contents: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    contents["files"]["../../../etc/passwd"] = contents["files"]["README.md"]
    (folder / MANIFEST).write_text(manifest_text(contents))


@pytest.mark.parametrize(
    ("harm", "code"),
    [(huge_number, 1), (nested_record, 1), (costly_template, 1), (pipe_instead_of_a_table, 1),
     (dictionary_of_nonsense, 2), (outside_file, 1)],
)  # fmt: skip
def test_hostile_archive_ends_with_a_clear_line(copy: Copy, harm: Callable[[Path], None], code: int) -> None:
    folder = copy("cohort")
    harm(folder)
    ran = run_alone(folder)
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.stdout or ran.stderr
    assert verify_archive(folder).violations


def test_folder_without_an_archive_and_one_beyond_a_limit_are_refused(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    alone = tmp_path_factory.mktemp("program") / "verify_arena.py"
    alone.write_text(program_text(), encoding="utf-8")
    for folder, message in ((tmp_path / "none", "there is no such folder"), (tmp_path, "manifest.json: is missing")):
        command = [sys.executable, "-I", str(alone), str(folder)]
        ran = subprocess.run(command, capture_output=True, text=True)
        assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr
    with (tmp_path / "big.csv").open("wb") as file:
        file.truncate(2**32 + 1)
    ran = subprocess.run([sys.executable, "-I", str(alone), str(tmp_path)], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.strip() == "4,294,967,297 bytes, above the limit of 4,294,967,296 bytes"
