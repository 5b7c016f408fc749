"""Datasets of the past: what an agent is handed holds no outcome, and its figures are those of `rank`."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.models import Forecast, ModelCall
from markets.models import QuestionBatch
from scoring.exports.public_datasets import names_to_drop
from tests.answers import GEMINI, GPT, GROK, forecast
from tests.commands import SUNDAY, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.lazy_modules import pl
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.slow

RAIN, SNOW = "Will it rain?", "Will it snow?"
DAY = timedelta(days=1)
FIGURES = ("n", "coverage", "brier", "brier_ci", "alpha", "alpha_ci", "adjusted_brier")
AGENT = """
from arena_agent import Agent


class Even(Agent):
    name = "even"
    track = "closed"

    def forecast(self, question):
        return question.even()
"""


def play(venue: Venue) -> None:
    """Two questions that were asked on one day in both prompt conditions, one of which has resolved."""
    venue.market(RAIN)
    venue.market(SNOW)
    venue.says(GPT, forecast(lean=0.2), forecast(lean=0.1))
    line_up(GPT, GEMINI, GROK)
    venue.start_first_cohort()
    run("run_forecasts", SUNDAY + timedelta(hours=2))
    venue.resolve(RAIN, "Yes")
    assert run("check_resolutions", SUNDAY + 2 * DAY).code == 0


season = shared_rows_at_venue(play)


@pytest.fixture
def resolved(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def build(folder: Path, **window: Any) -> Any:
    bounds = {"from": "2026-03-08", "to": "2026-03-09", **window}
    return run("build_dataset", SUNDAY + 2 * DAY, *(f"--{name}={value}" for name, value in bounds.items()), out=folder)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_dataset_has_the_blocks_that_models_saw_and_outcomes_apart(resolved: Venue, tmp_path: Path) -> None:
    built = build(tmp_path / "data")
    assert (built.code, built["tasks"], built["questions"], built["forecasters"]) == (0, 2, 1, 3)
    tasks = lines(tmp_path / "data" / "tasks.jsonl")
    blocks = dict(QuestionBatch.objects.values_list("pk", "block"))
    assert {task["task"]: task["blocks"]["QUESTIONS"] for task in tasks} == {
        f"batch-{pk}": block for pk, block in blocks.items()
    }
    for task in tasks:
        (call, *_) = ModelCall.objects.filter(elicitation__batch=task["task"].removeprefix("batch-"))
        assert (task["system_prompt"], task["user_prompt"]) == (call.system_prompt, call.user_prompt)
    assert "outcome" not in (tmp_path / "data" / "tasks.jsonl").read_text()
    outcomes = lines(tmp_path / "data" / "outcomes.jsonl")
    assert [(row["option"], row["outcome"]) for row in outcomes] == [("YES", 1), ("NO", 0)] * 2
    forecast_rows = pl.read_parquet(tmp_path / "data" / "forecasts.parquet")
    (question,) = {row["question_id"] for row in outcomes}
    assert forecast_rows.height == 2 * Forecast.objects.filter(question=int(question)).count()
    gpt = forecast_rows.filter((pl.col("forecaster") == "gpt-5.1") & (pl.col("option") == "YES"))
    assert sorted(gpt["probability"]) == [0.6, 0.7]


@pytest.mark.thorough
def test_agent_is_evaluated_on_a_dataset(resolved: Venue, tmp_path: Path) -> None:
    assert build(tmp_path / "data").code == 0
    (tmp_path / "even.py").write_text(AGENT)
    command = [sys.executable, "-m", "arena_agent", "evaluate", "even.py", "--data", "data", "--out", "out", "--json"]
    for condition, gpt_brier in {"blind": 0.3**2, "priced": 0.4**2}.items():
        choice = [] if condition == "priced" else ["--condition", condition]  # without a choice that of the boards
        ran = subprocess.run(
            [*command, *choice], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stderr
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert (report["n"], report["brier"], report["coverage"]) == (1, pytest.approx(0.25), 1.0)
        assert report["condition"] == condition
        assert report["forecasters"]["gpt-5.1"]["brier"] == pytest.approx(gpt_brier)
        assert run("rank", None, tmp_path / "out" / "forecasts.csv", out=tmp_path / "ranked.json").code == 0
        ranked = json.loads((tmp_path / "ranked.json").read_text())["forecasters"]
        for name in ("even", "gpt-5.1"):
            figures = report if name == "even" else report["forecasters"][name]
            assert {key: figures[key] for key in FIGURES} == {key: ranked[name][key] for key in FIGURES}
        assert report["adjusted_brier"] is not None
    ran = subprocess.run([*command, "--condition", "full"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, "no task is of the condition full; there are blind, priced" in ran.stderr) == (2, True)


def test_nights_dataset_is_listed_and_an_agent_is_evaluated_on_it_by_its_address(
    resolved: Venue, tmp_path: Path, settings: Any, client: Client, server: str
) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path / "exports"
    assert "No dataset yet" in client.get("/datasets/").content.decode()
    published = run("publish_archive", SUNDAY + 2 * DAY)
    assert (published.code, published["dataset"], published["tasks"]) == (0, "forecasts-2026w11", 2)
    page = client.get("/datasets/").content.decode()
    for text in (published["dataset_sha256"], "CC BY 4.0", 'href="/datasets/forecasts-2026w11/tasks.jsonl"'):
        assert text in page
    assert 'href="/datasets/"' in client.get("/data/").content.decode()
    (tmp_path / "even.py").write_text(AGENT)
    command = [sys.executable, "-m", "arena_agent", "evaluate", "even.py", "--json", "--data"]
    environment = os.environ | {"ARENA_AGENT_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    ran = subprocess.run(
        [*command, "latest", "--url", server],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["brier"] == pytest.approx(0.25)
    latest, named = (client.get(f"/datasets/{name}/tasks.jsonl") for name in ("latest", "forecasts-2026w11"))
    assert b"".join(latest) == b"".join(named) != b""
    for missing in ("forecasts-2026w11/nothing.jsonl", "forecasts-2020w01/tasks.jsonl"):
        assert client.get(f"/datasets/{missing}").status_code == 404
    assert client.get("/datasets/latest//etc/passwd").status_code == 400


def test_version_of_a_week_never_changes_and_has_a_card(
    resolved: Venue, tmp_path: Path, settings: Any, client: Client
) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path
    published = [run("publish_archive", SUNDAY + day * DAY) for day in (3, 5, 9)]
    assert [row["dataset"] for row in published] == ["forecasts-2026w11", "forecasts-2026w11", "forecasts-2026w12"]
    first, second, third = (row["dataset_sha256"] for row in published)
    assert (first == second, first == third) == (True, False)
    card = client.get("/datasets/latest/README.md")
    assert (card["Content-Type"], b"".join(card).decode().count(third)) == ("text/markdown; charset=utf-8", 1)


def test_versions_are_retained_for_a_quarter_then_one_a_month() -> None:
    names = [f"forecasts-2026w{week:02d}" for week in range(30, 0, -1)]
    retained = [name for name in names if name not in names_to_drop(names)]
    firsts = [f"forecasts-2026w{week:02d}" for week in (15, 10, 6, 2, 1)]  # from April back to the Monday of December
    assert retained == names[:13] + firsts


def test_no_dataset_is_published_before_a_question_has_resolved(venue: Venue, tmp_path: Path, settings: Any) -> None:
    settings.ARENA_EXPORT_DIR = tmp_path
    assert run("publish_archive", SUNDAY)["dataset"] is None
    assert not list(tmp_path.glob("public-*/datasets/*"))


def test_window_without_questions_is_an_empty_dataset(resolved: Venue, tmp_path: Path) -> None:
    built = build(tmp_path / "data", **{"from": "2026-04-01", "to": "2026-04-02"})
    assert (built.code, built["tasks"], built["questions"], built["forecasters"]) == (0, 0, 0, 0)


def test_folder_with_something_else_is_left_alone(resolved: Venue, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    refused = build(tmp_path)
    assert refused.code == 2
    assert (tmp_path / "mine.txt").read_text() == "mine"
    assert build(tmp_path / "data", to="2026-03-08").code == 2


@pytest.mark.forged_record
def test_forecast_that_counts_on_no_board_is_in_no_dataset(resolved: Venue, tmp_path: Path) -> None:
    with guards_removed(Forecast):
        Forecast.objects.filter(family__slug="gpt-5.1").update(excluded="a search showed a venue")
    assert build(tmp_path / "data").code == 0
    assert "gpt-5.1" not in pl.read_parquet(tmp_path / "data" / "forecasts.parquet")["forecaster"]
