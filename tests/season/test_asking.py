"""How models are asked, through the command: what is sent to whom."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent, Decision, ModelCall, Release
from agents.services.model_calls import request_parameters
from cohorts.models import Methodology
from foundation.models import Alert
from tests.answers import GPT, HOLD
from tests.commands import DECISION, run
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure, ModelAnswer

ONE = {"family": "gpt-5.1"}
WEEK = timedelta(weeks=1)
DATED, LATER = f"{GPT}-2025-12-11", f"{GPT}-2026-03-20"
CUT = ModelAnswer(None, finish_reason="length")


def open_season(venue: Venue) -> None:
    venue.market("Will it rain?")
    venue.start_first_cohort()


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def say(**catalogue: Any) -> None:
    """What the catalogue says of the release that is asked."""
    Release.objects.filter(model_id=GPT).update(**catalogue)


PINNED = {"allow_fallbacks": False}
ALL = {"max_tokens": 16_000, "temperature": 0.0, "reasoning": {"effort": "medium"}, "provider": PINNED}


@pytest.mark.parametrize(
    ("supported", "parameters"),
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
def test_release_is_sent_what_it_honours(
    opened: Venue, supported: list[str] | None, parameters: dict[str, Any]
) -> None:
    say(supported_parameters=supported)
    agent = Agent.objects.get(model_id=GPT)
    body = request_parameters(Decision(agent=agent, cohort=agent.cohort), max_tokens=16_000)
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]
        assert (body["response_format"]["type"], schema["strict"]) == ("json_schema", True)
        assert schema["schema"]["required"] == ["action", "bets", "sells", "reasoning"]
        body["response_format"] = schema["name"]
    assert body == parameters


def test_parameters_of_a_request_are_sent_and_stored(opened: Venue) -> None:
    assert run("run_decisions", DECISION, **ONE)["completed"] == 1
    (prompt,) = opened.asked
    assert ModelCall.objects.get().parameters == ALL
    assert {name: prompt.body[name] for name in ALL} == ALL
    assert "response_format" not in prompt.body


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
    venue.start_first_cohort()
    run("run_decisions", DECISION)
    assert {prompt.model: prompt.body["provider"] for prompt in venue.asked if prompt.model == GPT} == {GPT: pin}
    assert [prompt.body["provider"] for prompt in venue.asked if prompt.model != GPT] == [PINNED] * 6


@pytest.mark.parametrize(
    ("answers", "change"),
    [
        (({}, {"provider": None}, {"provider": "Other"}), "provider changed from Scripted to Other"),
        (
            ({"returned_model": DATED}, {"provider": None, "returned_model": DATED}, {"returned_model": LATER}),
            f"returned model changed from {DATED} to {LATER}",
        ),
        (
            ({"provider": None, "quantization": "fp8"}, {}, {"provider": None, "quantization": "int4"}),
            "quantization changed from fp8 to int4",
        ),
    ],
)
def test_change_of_what_answers_raises_an_alert(opened: Venue, answers: Any, change: str) -> None:
    opened.says(GPT, *(ModelAnswer(json.dumps(HOLD), **answer) for answer in answers))
    messages = []
    for week in range(3):
        run("run_decisions", DECISION + week * WEEK, **ONE)
        messages.append(list(Alert.objects.values_list("message", flat=True)))
    assert messages[2][-1].endswith(f": the {change} between two calls.")
    assert len(messages[1]) == len(messages[2]) - 1
