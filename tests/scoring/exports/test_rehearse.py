"""Rehearsals: an agent plays an archive's past by the live services, in a database that is thrown away."""

import csv
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pytest_httpserver import HTTPServer

from agents.models import Decision, Family
from foundation.models import Run
from tests.answers import GEMINI
from tests.commands import CommandOutput, run
from tests.scoring.exports.conftest import END

pytestmark = [pytest.mark.slow, pytest.mark.own_database]

SPAN = {"from": "2026-03-08", "to": END.isoformat()}
ECHO = '''
import csv, json
from datetime import date, timedelta
from pathlib import Path

from arena_agent import Agent

ARCHIVE, FAMILY = Path({archive!r}), {family!r}
csv.field_size_limit(10**9)


def table(name):
    with (ARCHIVE / f"{{name}}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Echo(Agent):
    """Repeats a model's published answers."""

    name, track = "echo", "closed"

    def __init__(self):
        starts = {{row["number"]: date.fromisoformat(row["week_start"][:10]) for row in table("cohorts")}}
        agents = {{row["id"]: starts[row["cohort"]] for row in table("agents") if row["family"] == FAMILY}}
        decisions = {{row["id"]: row for row in table("decisions") if row["agent"] in agents}}
        calls = {{row["id"]: decisions.get(row["decision"]) for row in table("calls")}}
        self.instructions = {{}}
        for row in table("instructions"):
            if row["executed"] == "true" and (decision := calls[row["call"]]):
                key = agents[decision["agent"]], int(decision["week"])
                self.instructions.setdefault(key, []).append(json.loads(row["payload"]))
        sides = {{row["id"]: row["side"] for row in table("outcomes")}}
        self.sides = {{row["id"]: (row["market"], sides[row["outcome"]]) for row in table("positions")}}
        batches = {{row["id"]: row["batch"] for row in table("elicitations")}}
        self.forecasts = {{}}
        for row in table("forecasts"):
            if row["family"] == FAMILY:
                stated = {{"question_id": row["question"], "probabilities": json.loads(row["stated"])}}
                self.forecasts.setdefault("batch-" + batches[row["elicitation"]], []).append(stated)

    def answer(self, task):
        if not task.trading:
            return json.dumps({{"forecasts": self.forecasts[task.id]}})
        portfolio = json.loads(task.blocks["PORTFOLIO"])
        start = date.fromisoformat(portfolio["date"]) - timedelta(weeks=portfolio["week"] - 1)
        rows = self.instructions.get((start, portfolio["week"]), [])
        held = {{}}
        for line in task.blocks["POSITIONS"].splitlines()[1:]:
            position, market, _, side = json.loads(line)[:4]
            held[market, side] = position
        bets = [row for row in rows if "market_id" in row]
        sells = [row | {{"position_id": held[self.sides[row["position_id"]]]}} for row in rows if "position_id" in row]
        if bets:
            return json.dumps({{"action": "BET", "bets": bets, "reasoning": ""}})
        if sells:
            return json.dumps({{"action": "SELL", "sells": sells, "reasoning": ""}})
        return json.dumps({{"action": "HOLD", "reasoning": ""}})
'''
HOSTILE = """
import os, threading
from arena_agent import Agent

class Hostile(Agent):
    name, track = "\u202e<b>odd</b>", "closed"

    def trade(self, portfolio, markets):
        if portfolio.week > 1:
            os._exit(7)
        raise RuntimeError(str(sorted(name for name in os.environ if name in ("DATABASE_URL", "SECRET_KEY"))))

    def forecast(self, question):
        threading.Event().wait()
"""


@pytest.fixture
def rehearse(exported: Path, tmp_path: Path) -> Callable[..., CommandOutput]:
    """Runs a rehearsal of the exported season, of an agent whose file has this text, or of a URL."""

    def rehearse(agent: str, archive: Path = exported / "whole", **options: Any) -> CommandOutput:
        if not agent.startswith("http"):
            (tmp_path / "agent.py").write_text(textwrap.dedent(agent), encoding="utf-8")
            agent = str(tmp_path / "agent.py")
        options = {**SPAN, **options}
        return run("rehearse", None, agent, *(f"--{name}={value}" for name, value in options.items()), archive=archive)

    return rehearse


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / "csv" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_agent_that_repeats_a_models_answers_ends_with_its_balance_and_its_score(
    rehearse: Callable[..., CommandOutput], exported: Path, db: None
) -> None:
    slug = next(row["family"] for row in table(exported / "whole", "releases") if row["model_id"] == GEMINI)
    ran = rehearse(ECHO.format(archive=str(exported / "whole" / "csv"), family=slug))
    assert ran.code == 0, ran.stderr
    agents = [row for row in table(exported / "whole", "agents") if row["family"] == slug]
    assert [(row["cash"], row["total_value"]) for row in agents] == [
        (row["cash"], row["total_value"]) for row in ran["cohorts"]
    ]
    assert {row["cash"] for row in agents} != {"10000.00"}
    board = {row["forecaster"]: row for row in ran["board"]["trading"]}
    figures = ("total_value", "bet_brier", "resolved_bets", "cohorts")
    assert [board["rehearsal-of-echo"][name] for name in figures] == [board[slug][name] for name in figures]
    assert ran["total_value"] == "9891.66"  # the mean of both cohorts
    published = {
        (row["forecaster"], row["arm"]): float(row["brier"])
        for row in table(exported / "whole", "leaderboard_forecast")
        if row["brier"] and not (row["category"] or row["methodology"])
    }
    for arm, rows in ran["board"]["forecasts"].items():
        briers = {row["forecaster"]: row["brier"] for row in rows}
        assert briers["rehearsal-of-echo"] == briers[slug] == published[slug, arm]
        assert briers["market"] == published["market", arm]
    assert (ran["brier"], ran["unanswered"], ran["refused"]) == (published[slug, "priced"], 0, 0)
    assert "the past, which the agent's model may know" in ran["note"]
    written = (Run.objects.all(), Family.objects.filter(external=True), Decision.objects.all())
    assert [rows.exists() for rows in written] == [False, False, False]


HOLDER = """
from arena_agent import Agent

class Holder(Agent):
    name = "holder"

    def trade(self, portfolio, markets):
        return []

    def forecast(self, question):
        return question.even()
"""


@pytest.mark.thorough
def test_command_of_the_kit_rehearses_without_a_database(exported: Path, tmp_path: Path, db: None) -> None:
    """The arena's own database is an empty file; conditions and methodologies are those of the archive."""
    (tmp_path / "holder.py").write_text(HOLDER)
    command = [sys.executable, "-m", "arena_agent", "rehearse", "holder.py", "--arena", str(settings.BASE_DIR)]
    command += ["--from", SPAN["from"], "--to", SPAN["to"], "--archive", str(exported / "whole")]
    environment = {"PATH": os.environ["PATH"], "DATABASE_URL": f"sqlite:///{tmp_path / 'empty.sqlite3'}"}
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "→ Rehearsal of holder" in ran.stdout
    assert "Forecasts " in ran.stdout


@pytest.mark.thorough
@pytest.mark.slow
def test_agent_that_raises_dies_or_is_late_costs_its_tasks_only(rehearse: Callable[..., CommandOutput]) -> None:
    ran = rehearse(HOSTILE, timeout=1)
    assert (ran.code, ran["decisions"], ran["forecasts"]) == (1, 0, 0)
    batches = 4
    assert (ran["unanswered"], ran["late"]) == (batches + 3, batches)
    assert any("RuntimeError: []" in reason for reason in ran["reasons"])
    assert any("process ended with code 7" in reason for reason in ran["reasons"])
    assert [row["total_value"] for row in ran["cohorts"]] == ["10000.00", "10000.00"]


@pytest.mark.thorough
@pytest.mark.slow
def test_url_answers_tasks_and_is_told_what_was_wrong(
    rehearse: Callable[..., CommandOutput], httpserver: HTTPServer
) -> None:
    prompts: list[str] = []

    def answer(request: Any) -> Any:
        from werkzeug import Response

        task = request.get_json()
        prompts.append(task["user_prompt"])
        if "QUESTIONS" in task["blocks"]:
            return Response(status=302, headers={"Location": "http://127.0.0.1:9/"})
        if len(prompts) == 1:
            return Response("<html>", content_type="text/html")
        return Response(json.dumps({"action": "HOLD", "reasoning": "waits"}))

    httpserver.expect_request("/agent", method="POST").respond_with_handler(answer)
    ran = rehearse(httpserver.url_for("/agent"))
    assert (ran.code, ran["decisions"], ran["forecasts"], ran["refused"]) == (0, 3, 0, 1)
    assert "no JSON object" in prompts[1]
    assert "answered with HTTP status 302" in ran["reasons"][-1]


NOBODY = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("agent", "options", "why"),
    [
        ("x = 1", {}, "it needs a class that inherits from arena_agent.Agent"),
        (NOBODY, {"from": "2027-01-03", "to": "2027-01-10"}, "no week from 2027-01-03"),
        (NOBODY, {"to": "2026-03-08"}, "is not after --from"),
        (NOBODY, {"archive": Path("/nowhere")}, "there is no such archive"),
    ],
)
def test_what_can_not_be_played_is_refused(
    rehearse: Callable[..., CommandOutput], agent: str, options: dict[str, Any], why: str
) -> None:
    ran = rehearse(agent, **options)
    assert ran.code == 2
    assert why in ran.stderr


def test_forged_archive_is_refused(rehearse: Callable[..., CommandOutput], copy: Callable[[str], Path]) -> None:
    archive = copy("whole")
    trades = archive / "csv" / "universe_entries.csv"
    trades.write_text(trades.read_text().replace("0.45", "0.46"))
    ran = rehearse(NOBODY, archive)
    assert ran.code == 2
    assert "not a sound archive" in ran.stderr
