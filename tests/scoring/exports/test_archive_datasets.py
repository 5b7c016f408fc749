"""Datasets follow from an archive alone, and the market's line on one is that of the arena's board."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from arena_agent.cli import main
from scoring.exports.archive_record import read_manifest
from tests.commands import CommandOutput, run
from tests.lazy_modules import pl
from tests.scoring.exports.archives import csv_cells
from tests.scoring.exports.conftest import END

AGENT = """
from arena_agent import Agent


class Even(Agent):
    name, track = "even", "closed"

    def forecast(self, question):
        return question.even()
"""


def cut(archive: Path, out: Path) -> CommandOutput:
    return run("build_dataset", END, "--from=2026-03-08", f"--to={END.isoformat()}", archive=archive, out=out)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_row_of_a_dataset_is_proven_by_the_archive(exported: Path, tmp_path: Path, db: None) -> None:
    """The database is empty: the dataset comes from the archive's folder, or its zip file, and nothing else."""
    archive, data = exported / "whole", tmp_path / "data"
    built = cut(archive, data)
    assert built.code == 0, built.stderr
    assert built["tasks"] > 0
    csv.field_size_limit(10**9)
    texts = {row["sha256"]: row["text"] for row in csv_cells(archive, "prompts")}
    blocks = {row["id"]: texts[row["sha256"]] for row in csv_cells(archive, "blocks") if row["kind"] == "questions"}
    tasks = {task["task"].removeprefix("batch-"): task for task in lines(data / "tasks.jsonl")}
    assert {name: task["blocks"]["QUESTIONS"] for name, task in tasks.items()} == {name: blocks[name] for name in tasks}
    happened = {(row["question"], row["name"]): row["happened"] for row in csv_cells(archive, "question_options")}
    for row in lines(data / "outcomes.jsonl"):
        assert happened[row["question_id"], row["option"]] == ("true" if row["outcome"] else "false")
    batches = {row["id"]: row["batch"] for row in csv_cells(archive, "elicitations")}
    resolved = {row["question_id"] for row in lines(data / "outcomes.jsonl")}
    published = set()
    for row in csv_cells(archive, "forecasts"):
        for option, probability in json.loads(row["probabilities"]).items():
            if row["question"] in resolved and happened[row["question"], option] and not row["excluded"]:
                published.add(
                    (row["family"], f"batch-{batches[row['elicitation']]}", row["question"], option, probability)
                )
    assert set(pl.read_parquet(data / "forecasts.parquet").rows()) == published
    manifest = json.loads((data / "manifest.json").read_text())
    assert manifest["archive"]["sha256"] == read_manifest(archive)["sha256"]
    assert manifest["names"]["gpt-5.1"] == "GPT-5.2"
    assert cut(exported / "whole.zip", tmp_path / "again")["sha256"] == built["sha256"]


def test_market_and_models_have_the_figures_of_the_board(
    exported: Path, tmp_path: Path, db: None, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cut(exported / "whole", tmp_path / "data").code == 0
    (tmp_path / "even.py").write_text(AGENT)
    board: dict[str, dict[str, tuple[float, float | None]]] = {"priced": {}, "blind": {}}
    for row in csv_cells(exported / "whole", "leaderboard_forecast"):
        if row["brier"] and not (row["category"] or row["methodology"] or row["forecaster"].startswith("ensemble")):
            alpha = float(row["alpha"]) if row["alpha"] else None
            board[row["arm"]][row["forecaster"]] = float(row["brier"]), alpha
    for arm, expected in board.items():
        choice = ["--condition", arm, "--out", str(tmp_path / arm), "--json"]
        capfd.readouterr()
        assert main(["evaluate", str(tmp_path / "even.py"), "--data", str(tmp_path / "data"), *choice]) == 0
        report = json.loads(capfd.readouterr().out)
        figures = report["forecasters"] | report["references"]
        assert {name: (figures[name]["brier"], figures[name]["alpha"]) for name in expected} == expected
        assert expected["market"] == (figures["market"]["brier"], 0.0)


def test_forged_archive_gives_no_dataset(copy: Callable[[str], Path], tmp_path: Path, db: None) -> None:
    archive = copy("whole")
    forecasts = archive / "csv" / "forecasts.csv"
    forecasts.write_text(forecasts.read_text().replace("0.5", "0.6", 1))
    refused = cut(archive, tmp_path / "data")
    assert (refused.code, "not a sound archive" in refused.stderr) == (2, True)
    assert not (tmp_path / "data").exists()
