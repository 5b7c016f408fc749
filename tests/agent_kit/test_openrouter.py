"""`arena_agent.openrouter`: a model as an agent, asked with the arena's own prompts."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_agent import Agent
from arena_agent.answering import Answerer
from arena_agent.checking import sample_lines
from arena_agent.loading import load_agent
from arena_agent.objects import ArenaTask
from arena_agent.worker import read_task
from cohorts.forecast_rules import ForecastRules
from cohorts.methodologies import v3
from tests.agent_kit.test_check import agent_file, checked

HEAD = "from arena_agent.openrouter import ModelAgent\n\nclass Mine(ModelAgent):\n    name = 'mine'\n"
BODY = "model = 'openai/gpt-5.2'"


@pytest.fixture
def gateway(monkeypatch: pytest.MonkeyPatch) -> Any:
    with HTTPServer(threaded=True) as server:
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
        (Response('{"choices": []}'), "answers what no gateway would"),
        (Response("<html>"), "answers what no gateway would"),
        (Response('{"choices": [{"message": {"content": ""}}]}'), "openai/gpt-5.2 said nothing"),
        (Response('{"choices": [{"message": {"content": "I can not."}}]}'), "no JSON object in the answer"),
    ],
)
def test_gateway_without_an_answer_is_a_fault(
    gateway: HTTPServer, tmp_path: Path, response: Response, fault: str
) -> None:
    gateway.expect_request("/api/v1/chat/completions").respond_with_response(response)
    answerer = Answerer(load_agent(agent_file(tmp_path, BODY, HEAD)))
    assert fault in answerer.answer(read_task(sample_lines()[0])).faults[0]


def test_fault_of_the_gateway_is_named_without_the_key(
    gateway: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    response = Response('{"error": {"message": "no credit on sk-secret"}}', 402)
    gateway.expect_request("/api/v1/chat/completions").respond_with_response(response)
    code, summary = checked(capfd, agent_file(tmp_path, BODY, HEAD))
    assert code == 1
    assert "GatewayError: 402" in summary["tasks"][0]["faults"][0]
    assert "sk-secret" not in json.dumps(summary)


def test_fault_that_passes_is_asked_again_as_late_as_the_gateway_says_and_costs_are_summed(
    gateway: HTTPServer, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = json.dumps({"forecasts": [{"question_id": "88", "probabilities": {"Alpha": 1, "Beta": 0, "Other": 0}}]})
    body = {"choices": [{"message": {"content": answer}}], "usage": {"cost": 0.25}}
    responses = [
        Response("{}", 429, {"Retry-After": "0"}, content_type="application/json"),
        Response("<h1>Bad Gateway</h1>", 502),
        Response(json.dumps({"error": {"code": 503, "message": "overloaded"}}), content_type="application/json"),
    ]

    def respond(request: Request) -> Response:
        return responses.pop(0) if responses else Response(json.dumps(body), content_type="application/json")

    gateway.expect_request("/api/v1/chat/completions").respond_with_handler(respond)
    head = "import arena_agent.openrouter\narena_agent.openrouter.FIRST_PAUSE = 0.01\n" + HEAD
    file = agent_file(tmp_path, BODY, head)
    _, summary = checked(capfd, file)
    first = summary["tasks"][0]
    assert first["answer"]["forecasts"][0]["probabilities"] == {"Alpha": 1, "Beta": 0, "Other": 0}
    task = json.loads(sample_lines()[0])
    asked = Answerer(load_agent(file)).answer(ArenaTask("x", task["blocks"], user_prompt="Who?"))
    assert asked.cost_usd == 0.25


def test_no_more_requests_at_once_than_the_agent_allows(gateway: HTTPServer, tmp_path: Path) -> None:
    lock, running, most = threading.Lock(), 0, 0

    def respond(request: Request) -> Response:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        everyone.wait(0.2)
        with lock:
            running -= 1
        return Response(json.dumps({"choices": [{"message": {"content": "0.5"}}]}), content_type="application/json")

    everyone = threading.Event()
    gateway.expect_request("/api/v1/chat/completions").respond_with_handler(respond)
    body = (
        "model, concurrency = 'openai/gpt-5.2', 2\n"
        "answer = Agent.answer\n"
        "async def forecast(self, question):\n    await self.complete('', 'Who?')\n    return question.even()"
    )
    agent = load_agent(agent_file(tmp_path, body, f"from arena_agent import Agent\n{HEAD}"))
    questions = json.loads(sample_lines()[0])["blocks"]
    result = Answerer(agent).answer(ArenaTask("x", questions))
    assert (len(result.probabilities), most) == (3, 2)


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
    '{"bets": []}': 'action is missing: it must be "BET", "SELL" or "HOLD"',
    "[1, 2]": "no JSON object in the answer",
    '{"action": }': "line 1 is not valid JSON: Expecting value",
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
