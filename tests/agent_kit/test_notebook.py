"""`from arena_agent import evaluate, run`: the commands as functions, for classes that no file holds."""

import json
import threading
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

import arena_agent
from arena_agent import Agent, Question, evaluate, run
from arena_agent.cli import main
from arena_agent.dataset import InvalidDataset
from tests.agent_kit.datasets import write_dataset
from tests.agent_kit.scripted_arena import TOKEN, ScriptedArena

EXAMPLES = Path(arena_agent.__file__).parent / "examples"


class Own(Agent):
    name = "own"
    events: list[str] = []

    def setup(self) -> None:
        self.events.append("setup")

    def teardown(self) -> None:
        self.events.append("teardown")

    def on_error(self, task: Any, error: Exception) -> None:
        self.events.append(f"{task.id}: {error}")

    def forecast(self, question: Question) -> dict[str, float]:
        if question.id in ("88", "1000"):
            raise ValueError("no idea")
        self.cost_usd += 0.5
        return question.even()


@pytest.fixture(autouse=True)
def _fresh_events(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Own, "events", [])
    monkeypatch.setenv("ARENA_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARENA_AGENT_TOKEN", TOKEN)


def test_class_is_evaluated_as_a_file_is_and_its_report_is_a_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_dataset(tmp_path / "data")
    report = evaluate(Own, data)
    assert Own.events == ["setup", "teardown", "setup", "1000: no idea", "teardown"][-3:]
    assert (report["n"], report["faults"]["count"], report["cost_usd"]) == (39, 1, 19.5)
    table = str(report)
    assert "own beside the models on the same questions" in table
    assert f"{report['brier']:.4f}" in table
    assert "the agent spent 19.5000 dollars" in table
    html = report._repr_html_()
    assert html.startswith("<table>")
    assert "<td>Model [0]</td>" in html
    file = tmp_path / "own.py"
    file.write_text(
        "from arena_agent import Agent\nclass Own(Agent):\n    name = 'own'\n    def forecast(self, question):\n"
        "        if question.id == '1000': raise ValueError('no idea')\n        return question.even()\n"
    )
    assert main(["evaluate", str(file), "--data", str(data), "--out", str(tmp_path / "out")]) == 0
    assert table.splitlines()[1:5] == capsys.readouterr().out.splitlines()[1:5]
    assert evaluate(Own(), data, workers=3)["digest"] == report["digest"]


def test_class_runs_at_an_arena(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    with HTTPServer(threaded=True) as server:
        arena = ScriptedArena(server, batches=2)
        report = run(Own, url=arena.url, once=True, show=events.append)
    assert (report.answered, report.ok, report.cost_usd) == (2, True, 2.0)
    assert [event["event"] for event in events] == ["left out", "answered"] * 2
    assert Own.events == ["setup", "88: no idea", "88: no idea", "teardown"]


def test_class_that_hangs_is_left_alone(tmp_path: Path) -> None:
    class Sleeper(Own):
        def forecast(self, question: Question) -> dict[str, float]:
            if question.id == "1001":
                threading.Event().wait(5)
            return question.even()

    report = evaluate(Sleeper, write_dataset(tmp_path / "data", tasks=8), timeout=0.5)
    assert (report["n"], report["faults"]["first"]) == (7, ["batch-1: the agent did not answer within 0 seconds"])


def test_dataset_by_name_is_that_of_the_arena(tmp_path: Path) -> None:
    data = write_dataset(tmp_path / "data", tasks=8)
    with HTTPServer() as server:
        for file in data.iterdir():
            address = f"/datasets/forecasts-2026w12/{file.name}"
            server.expect_request(address).respond_with_data(file.read_bytes())
        report = evaluate(Own, "forecasts-2026w12", url=server.url_for("/"))
    assert report["dataset"] == json.loads((data / "manifest.json").read_text())["sha256"]
    with pytest.raises(InvalidDataset, match="forecasts-2026w12: there is no such folder; a dataset by its name"):
        evaluate(Own, "forecasts-2026w12")


@pytest.mark.parametrize("name", ["shrinkage", "trader"])
def test_example_passes_the_check(capsys: pytest.CaptureFixture[str], name: str) -> None:
    code = main(["check", str(EXAMPLES / f"{name}.py"), "--json"])
    summary = json.loads(capsys.readouterr().out)
    assert (code, summary["ok"]) == (0, True)


def test_trader_sells_what_has_won(capsys: pytest.CaptureFixture[str]) -> None:
    from arena_agent.examples.trader import Trader
    from arena_agent.objects import Market, Portfolio, Position

    def position(number: str, price: str) -> Position:
        return Position(number, "7", "?", "YES", D(100), D("0.5"), D(price), D(50), D(0))

    market = Market("9", "?", "Politics", {"YES": 0.8, "NO": 0.2})
    held = (position("1", "0.97"), position("2", "0.60"), position("3", "0.05"))
    portfolio = Portfolio(D(10000), D(2500), held, D(0), D(10000), D(0), 1, "2026-03-08")
    assert [sale.position.id for sale in Trader().trade(portfolio, [market])] == ["1", "3"]
    (bet,) = Trader().trade(Portfolio(D(10000), D(2500), held[1:2], D(0), D(10000), D(0), 1, ""), [market])
    assert (bet.side, bet.amount) == ("YES", D("833.33"))


def test_model_of_any_address_is_asked_without_a_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"forecasts": [{"question_id": "88", "probabilities": {"Alpha": 1, "Beta": 0, "Other": 0}}]}
    body = {"choices": [{"message": {"content": json.dumps(answer)}}]}
    with HTTPServer() as server:
        server.expect_request("/v1/chat/completions").respond_with_json(body)
        monkeypatch.setenv("MODEL_URL", server.url_for("/v1"))
        main(["check", str(EXAMPLES / "any_model.py"), "--json"])
        (first, *_) = [request for request, _ in server.log]
    summary = json.loads(capsys.readouterr().out)
    assert summary["tasks"][0]["answer"]["forecasts"][0]["question_id"] == "88"
    assert "Authorization" not in first.headers
    assert first.get_json()["messages"][1]["content"].startswith("Begin with the base rate")
