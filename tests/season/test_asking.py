"""How models are asked, through the command: what is sent to whom, and what becomes of streams that fail."""

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from agents.models import Decision, ModelCall, Release
from agents.services import model_calls
from arena_site.sandbox.server import Addresses, running
from cohorts.models import Methodology
from markets.models import Alert
from tests.commands import run
from tests.venue import DECISION, GPT, HOLD, SUNDAY, Failure, ModelAnswer, Venue

ONE = {"family": "gpt-5.1"}
WEEK = timedelta(weeks=1)
CUT = ModelAnswer(None, finish_reason="length")
REQUEST = {"max_tokens", "temperature", "reasoning", "response_format", "provider"}


@pytest.fixture
def opened(venue: Venue) -> Venue:
    venue.market("Will it rain?")
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY).code == 0
    return venue


def say(**catalogue: Any) -> None:
    """What the catalogue says of the release that is asked."""
    Release.objects.filter(model_id=GPT).update(**catalogue)


PINNED = {"allow_fallbacks": False}
ALL = {"max_tokens": 16_000, "temperature": 0.0, "reasoning": {"effort": "medium"}, "provider": PINNED}


@pytest.mark.parametrize(
    ("supported", "sent"),
    [
        (None, ALL),
        (["temperature", "reasoning", "response_format"], ALL),
        (["reasoning", "seed"], {name: ALL[name] for name in ("max_tokens", "reasoning", "provider")}),
        (["temperature"], {name: ALL[name] for name in ("max_tokens", "temperature", "provider")}),
        ([], {name: ALL[name] for name in ("max_tokens", "provider")}),
        (
            ["structured_outputs"],
            {"max_tokens": 16_000, "provider": PINNED | {"require_parameters": True}, "response_format": "trading"},
        ),
    ],
)
def test_release_is_sent_what_it_honours(opened: Venue, supported: list[str] | None, sent: dict[str, Any]) -> None:
    say(supported_parameters=supported)
    assert run("run_decisions", DECISION, **ONE)["completed"] == 1
    (prompt,) = opened.asked
    body = {name: value for name, value in prompt.body.items() if name in REQUEST}
    assert ModelCall.objects.get().parameters == body
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]
        assert (body["response_format"]["type"], schema["strict"]) == ("json_schema", True)
        assert schema["schema"]["required"] == ["action", "bets", "sells", "reasoning"]
        body["response_format"] = schema["name"]
    assert body == sent


def test_schema_that_an_endpoint_refuses_is_left_out(opened: Venue, settings: Any) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1
    say(supported_parameters=["temperature", "structured_outputs"])
    opened.says(GPT, Failure(404))
    assert run("run_decisions", DECISION, **ONE)["completed"] == 1
    assert ["response_format" in prompt.body for prompt in opened.asked] == [True, False]
    assert opened.asked[1].body["provider"] == PINNED


@pytest.mark.parametrize(
    ("maximum", "budgets", "failed"), [(None, [16_000, 32_000], 0), (20_000, [16_000, 20_000], 0), (9_000, [9_000], 1)]
)
def test_larger_budget_stays_within_the_releases_maximum(
    opened: Venue, maximum: int | None, budgets: list[int], failed: int
) -> None:
    say(max_completion_tokens=maximum)
    opened.says(GPT, CUT)
    assert run("run_decisions", DECISION, **ONE)["failed"] == failed
    assert [prompt.body["max_tokens"] for prompt in opened.asked] == budgets
    assert len({prompt.headers["Idempotency-Key"] for prompt in opened.asked}) == len(budgets)
    assert len({prompt.user for prompt in opened.asked}) == 1


def test_methodology_pins_the_provider_of_a_model(venue: Venue) -> None:
    pin = {"order": ["openai"], "quantizations": ["fp8"], "allow_fallbacks": False}
    Methodology.objects.filter(version="v2").update(provider_pins={GPT: pin})
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    assert {prompt.model: prompt.body["provider"] for prompt in venue.asked if prompt.model == GPT} == {GPT: pin}
    assert [prompt.body["provider"] for prompt in venue.asked if prompt.model != GPT] == [PINNED] * 6


def test_change_of_what_answers_raises_an_alert(opened: Venue) -> None:
    dated = [f"{GPT}-2025-12-11", f"{GPT}-2025-12-11", f"{GPT}-2026-03-20"]
    opened.says(GPT, *(ModelAnswer(json.dumps(HOLD), returned_model=model) for model in dated))
    alerts = []
    for week in range(3):
        run("run_decisions", DECISION + week * WEEK, **ONE)
        alerts.append(Alert.objects.count())
    assert alerts == [0, 0, 1]
    assert Alert.objects.get().message.endswith(
        f": the returned model changed from {dated[0]} to {dated[2]} between two calls."
    )


# the sandbox's streams


@pytest.fixture
def sandbox(settings: Any, db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Addresses]:
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    settings.ARENA_LLM_TRANSPORT_RETRIES, settings.ARENA_LLM_STALL_S = 1, 0.5
    with running() as addresses:
        settings.GAMMA_BASE_URL, settings.CLOB_BASE_URL = addresses.gamma, addresses.clob
        settings.OPENROUTER_BASE_URL = addresses.openrouter
        start = SUNDAY - WEEK
        httpx.post(addresses.clock, json={"now": start.isoformat()}).raise_for_status()
        assert run("sync_markets", start).code == 0
        run("start_cohort", start)
        yield addresses


@pytest.mark.parametrize(
    ("fault", "results", "error"),
    [
        ("stall", "failed answered", "gateway: POST /chat/completions sent nothing for 0.5 s"),
        ("cut", "failed answered", "gateway: POST /chat/completions was cut off before the response was complete"),
        ("error", "failed answered", "gateway answered 502: Provider disconnected unexpectedly"),
        (
            "length",
            "cut answered",
            "out of tokens before the answer was complete: 16000 taken, 16000 of them to reason",
        ),
        ("provider", "answered", ""),
    ],
)
def test_stream_that_fails_is_asked_again(sandbox: Addresses, fault: str, results: str, error: str) -> None:
    faults = {"model": GPT, "faults": [fault]}
    httpx.post(f"{sandbox.root}/sandbox/faults", json=faults).raise_for_status()
    ran = run("run_decisions", DECISION - WEEK, **ONE)
    assert (ran.code, ran["completed"]) == (0, 1)
    calls = list(ModelCall.objects.order_by("sequence"))
    assert " ".join(call.result for call in calls) == results
    assert calls[0].error == error
    assert calls[0].generation_id.startswith("gen-")
    assert calls[0].provider == ("OpenAI elsewhere" if fault == "provider" else "OpenAI")
    assert Decision.objects.get().fallback is False
    stored = json.loads(calls[-1].raw_response)
    assert stored["choices"][0]["message"]["content"] == calls[-1].content
    assert stored["usage"]["completion_tokens"] == calls[-1].tokens_output
    assert run("verify_ledger", DECISION - WEEK).code == 0
