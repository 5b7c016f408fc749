"""`arena_agent.openrouter`: a model as an agent, asked with the arena's own prompts."""

import json
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_agent import Agent
from arena_agent.answering import Answerer
from arena_agent.checking import sample_lines
from arena_agent.objects import ArenaTask
from cohorts.forecast_rules import ForecastRules
from cohorts.methodologies import v3
from tests.agent_kit.test_check import agent_file, checked

HEAD = "from arena_agent.openrouter import ModelAgent\n\nclass Mine(ModelAgent):\n    name = 'mine'\n"
BODY = "model = 'openai/gpt-5.2'"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Any:
    with HTTPServer() as server:
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url_for("/api/v1"))
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-secret")
        yield server


def test_sample_is_shown_as_the_newest_methodology_shows_tasks() -> None:
    rules = ForecastRules.model_validate(v3.FORECAST)
    *batches, decision = map(json.loads, sample_lines())
    for task in batches:
        condition = rules.condition(task["task"].removeprefix("sample-"))
        questions = task["blocks"]["QUESTIONS"]
        assert json.loads(questions.split("\n")[0]) == v3.FORECAST["question_columns"]
        message = rules.user_message(condition, date="2026-03-08", questions=questions, evidence="")
        assert (task["system_prompt"], task["user_prompt"]) == (v3.SYSTEM_PROMPT, message)
    portfolio, positions, markets = (decision["blocks"][name] for name in ("PORTFOLIO", "POSITIONS", "MARKETS"))
    assert json.loads(markets.split("\n")[0]) == v3.TRADING["market_columns"]
    message = v3.V3["user_prompt"].format(portfolio=portfolio, positions=positions, awaiting="none", markets=markets)
    assert (decision["system_prompt"], decision["user_prompt"]) == (v3.TRADING_SYSTEM_PROMPT, message)


def test_model_is_asked_with_the_arenas_prompts_and_its_answer_taken(
    gateway: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requests = []

    def answer(request: Request) -> Response:
        requests.append(request.get_json())
        rows = [
            json.loads(line) for line in requests[-1]["messages"][1]["content"].splitlines() if line.startswith('["8')
        ]
        forecasts = [
            {"question_id": row[0], "rationale": "even", "probabilities": dict.fromkeys(row[5], 1 / len(row[5]))}
            for row in rows
        ]
        text = f"<think>{{}}</think>Here it is:\n```json\n{json.dumps({'forecasts': forecasts})}\n```"
        body = {"choices": [{"message": {"content": text}}]}
        return Response(json.dumps(body), content_type="application/json")

    gateway.expect_request("/api/v1/chat/completions", method="POST").respond_with_handler(answer)
    code, summary = checked(capfd, agent_file(tmp_path, BODY, HEAD))
    system, user = requests[0]["messages"]
    task = json.loads(sample_lines()[0])
    assert (system["content"], user["content"]) == (task["system_prompt"], task["user_prompt"])
    assert (requests[0]["model"], requests[0]["temperature"]) == ("openai/gpt-5.2", 0)
    first = summary["tasks"][0]
    assert [forecast["question_id"] for forecast in first["answer"]["forecasts"]] == ["88", "89"]
    assert first["answer"]["forecasts"][0]["rationale"] == "even"
    assert first["faults"] == ["question 90: no forecast"]
    assert code == 1


@pytest.mark.parametrize(
    ("response", "fault"),
    [
        (Response('{"error": {"message": "no credit on sk-secret"}}', 402), "GatewayError: 402"),
        (Response('{"choices": []}'), "answers what no gateway would"),
        (Response("<html>"), "answers what no gateway would"),
        (Response('{"choices": [{"message": {"content": ""}}]}'), "openai/gpt-5.2 said nothing"),
        (Response('{"choices": [{"message": {"content": "I can not."}}]}'), "no JSON object in the answer"),
    ],
)
def test_gateway_without_an_answer_is_a_fault_without_the_key(
    gateway: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], response: Response, fault: str
) -> None:
    gateway.expect_request("/api/v1/chat/completions").respond_with_response(response)
    code, summary = checked(capfd, agent_file(tmp_path, BODY, HEAD))
    assert code == 1
    assert fault in summary["tasks"][0]["faults"][0]
    assert "sk-secret" not in json.dumps(summary)


DECISIONS = {
    # the model's answer to the sample's decision: what is sent, or the fault
    '{"action": "BET", "bets": [{"market_id": 1204, "side": "yes", "amount": "$500"}], "reasoning": "stale"}': {
        "action": "BET",
        "bets": [{"market_id": "1204", "side": "yes", "amount": "500"}],
        "reasoning": "stale",
    },
    '{"action": "BET", "bets": [{"market_id": 1204, "side": "YES", "reason": "polls", "amount": 60}]}': {
        "action": "BET",
        "bets": [{"market_id": "1204", "side": "YES", "reason": "polls", "amount": "60"}],
    },
    '{"action": "sell", "sells": [{"position_id": "31", "percentage": 50}]}': {
        "action": "SELL",
        "sells": [{"position_id": "31", "percentage": "50"}],
    },
    '{"action": "HOLD", "reasoning": "no edge"}': {"action": "HOLD", "reasoning": "no edge"},
    '{"action": "HOLD", "bets": [{}]}': 'bets must be empty when action is "HOLD"',
    '{"action": "BET", "bets": []}': 'bets must not be empty when action is "BET"',
    '{"action": "BET", "bets": 7}': "bets must be a list, not 7",
    '{"action": "BET", "bets": ["all"]}': 'bets[0] must be an object, not "all"',
    '{"action": "BET", "bets": [{"side": "YES"}]}': "bets[0].market_id is missing",
    '{"bets": []}': 'action must be "BET", "SELL" or "HOLD"',
    "[1, 2]": "no JSON object in the answer",
    '{"action": }': "the answer is not valid JSON",
}


@pytest.mark.parametrize("text", DECISIONS)
def test_decision_of_a_model_is_sent_or_its_fault_named(text: str) -> None:
    class Scripted(Agent):
        name = "scripted"

        def answer(self, task: ArenaTask) -> str:
            return text

    task = ArenaTask("sample", json.loads(sample_lines()[2])["blocks"])
    result = Answerer(Scripted()).answer(task)
    expected = DECISIONS[text]
    if isinstance(expected, str):
        assert result.body is None
        assert expected in result.faults[0]
    else:
        assert json.loads(result.body or "") == expected
