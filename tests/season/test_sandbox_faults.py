"""A season on the sandbox's gateway: streams that fail, answers without their bill, own keys, and limits."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import httpx
import pytest
import time_machine
from django.db.models import Sum
from django.utils import timezone

from agents.models import Decision, Forecast, ModelCall, Release
from agents.services import model_calls
from agents.services.run_settings import set_condition_paused
from cohorts.models import Methodology
from foundation.models import Run
from markets.models import UniverseEntry
from tests.answers import CLAUDE, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN
from tests.commands import DECISION, SUNDAY, CommandOutput, run
from venue_sandbox.server import Addresses, running

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

ONE = {"family": "gpt-5.1"}
WEEK, MINUTE = timedelta(weeks=1), timedelta(minutes=1)
MERGER = "Will the Kessel stock exchange merge with Ellery's by summer?"
START, FIRST_DECISION = SUNDAY - WEEK, DECISION - WEEK


@pytest.fixture
def sandbox(
    request: pytest.FixtureRequest, settings: Any, db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Addresses]:
    """A sandbox that the settings point at, on the Sunday of the first cohort, with the 30 largest markets."""
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    settings.ARENA_LLM_TRANSPORT_RETRIES, settings.ARENA_LLM_STALL_S = 1, 0.5
    settings.OPENROUTER_API_KEY = "sk-or-v1-0123456789abcdef"
    Methodology.objects.update(universe_size=getattr(request, "param", 30))
    with running() as addresses:
        settings.GAMMA_BASE_URL, settings.CLOB_BASE_URL = addresses.gamma, addresses.clob
        settings.OPENROUTER_BASE_URL = addresses.openrouter
        assert at_clock(addresses, "sync_markets", START).code == 0
        assert at_clock(addresses, "start_cohort", START).code == 0
        yield addresses


@cache
def client() -> httpx.Client:
    """One client for all requests: making it reads every certificate of the machine."""
    return httpx.Client()


def post(sandbox: Addresses, path: str, **body: Any) -> None:
    client().post(f"{sandbox.root}/sandbox/{path}", json=body).raise_for_status()


def at_clock(sandbox: Addresses, command: str, at: datetime, **options: Any) -> CommandOutput:
    """The output of a command at an instant to which the sandbox's clock is set, too."""
    post(sandbox, "clock", now=at.isoformat())
    return run(command, at, **options)


def cost_on_record() -> Decimal:
    return ModelCall.objects.aggregate(total=Sum("cost_usd"))["total"].quantize(Decimal("1e-9"))


def billed(sandbox: Addresses) -> Decimal:
    """What the gateway and the customer's own providers took for all answers, as the key states it."""
    key = client().get(f"{sandbox.openrouter}/key").json()["data"]
    return (Decimal(str(key["usage"])) + Decimal(str(key["byok_usage"]))).quantize(Decimal("1e-9"))


STALLED = "gateway: POST /chat/completions sent nothing for 0.5 s"
BROKEN_OFF = "gateway: POST /chat/completions was cut off before the response was complete"
DISCONNECTED = "gateway answered 502: Provider disconnected unexpectedly"
TOO_LONG = "out of tokens before the answer was complete: 16000 taken, 16000 of them to reason"
FAULTS = {
    # model: (fault, results of its calls, the first one's error and the source of its cost)
    GPT: ("stall", "failed answered", STALLED, "booked"),
    GEMINI: ("cut", "failed answered", BROKEN_OFF, "booked"),
    GROK: ("error", "failed answered", DISCONNECTED, "booked"),
    CLAUDE: ("length", "cut answered", TOO_LONG, "stated"),
    DEEPSEEK: ("provider", "answered", "", "stated"),
    KIMI: ("byok", "answered", "", "stated"),
    QWEN: ("no_usage", "answered", "", "booked"),
}


def test_fault_of_an_answer_and_its_bill(sandbox: Addresses) -> None:
    for model, (fault, *_) in FAULTS.items():
        post(sandbox, "faults", model=model, faults=[fault])
    ran = at_clock(sandbox, "run_decisions", FIRST_DECISION)
    assert (ran.code, ran["completed"]) == (0, 7)
    for model, (fault, results, error, source) in FAULTS.items():
        calls = list(ModelCall.objects.filter(model=model).order_by("sequence"))
        assert " ".join(call.result for call in calls) == results
        assert (calls[0].error, calls[0].cost_source) == (error, source)
        assert calls[0].generation_id.startswith("gen-")
        assert calls[0].provider.endswith("elsewhere") == (fault == "provider")
        stored = json.loads(calls[-1].raw_response)
        assert stored["choices"][0]["message"]["content"] == calls[-1].content
        assert stored.get("usage", {}).get("completion_tokens") == calls[-1].tokens_output
    assert not Decision.objects.filter(fallback=True).exists()
    assert cost_on_record() > billed(sandbox)
    post(sandbox, "clock", now=(FIRST_DECISION + MINUTE).isoformat())
    assert run("reconcile_costs")["corrected"] == 4
    assert cost_on_record() == billed(sandbox) > 0


def test_successor_of_a_model_that_ends_forecasts_as_that_did(sandbox: Addresses, settings: Any) -> None:
    settings.ARENA_LINEUP = "approve"
    post(sandbox, "models", id=GPT, ends="2026-03-05", successor="openai/gpt-5.9")
    assert at_clock(sandbox, "approve_lineup", SUNDAY - 12 * 60 * MINUTE).code == 0
    for command in ("sync_markets", "start_cohort"):
        assert at_clock(sandbox, command, SUNDAY).code == 0
    ran = at_clock(sandbox, "run_forecasts", SUNDAY + 26 * 60 * MINUTE, questions=2, **ONE)
    assert (ran.code, ran["failed"]) == (0, 0), ran.stderr
    assert set(Forecast.objects.values_list("elicitation__release__model_id", flat=True)) == {"openai/gpt-5.9"}


def test_own_key_costs_the_providers_price_and_the_gateways_fee(sandbox: Addresses) -> None:
    post(sandbox, "faults", model=GPT, faults=["byok"])
    at_clock(sandbox, "run_decisions", FIRST_DECISION, **ONE)
    call = ModelCall.objects.get()
    price = call.tokens_input * Decimal("0.00000175") + call.tokens_output * Decimal("0.000014")
    assert call.cost_usd == price * Decimal("1.05")
    key = client().get(f"{sandbox.openrouter}/key").json()["data"]
    assert (key["usage"], key["byok_usage"]) == pytest.approx((float(price) * 0.05, float(price)))


def test_searches_of_a_day_are_stored_as_they_are_billed(sandbox: Addresses, settings: Any) -> None:
    """One model is shown an excluded host, one never ends its search, one takes no schema beside the tool."""
    settings.ARENA_SEARCH = True
    Methodology.objects.filter(version="v3").update(published_at=SUNDAY)
    for name in ("priced", "blind"):
        set_condition_paused(name, paused=True)
    Release.objects.update(supported_parameters=["structured_outputs"])
    post(sandbox, "faults", model=GPT, faults=["excluded"])
    post(sandbox, "faults", model=GROK, faults=["endless"])
    ran = at_clock(sandbox, "run_forecasts", START + timedelta(hours=2), questions=4)
    assert (ran["asked"], ran["failed"]) == (7, 1), ran.stderr
    calls = ModelCall.objects.filter(http_status=200)
    assert all(0 <= call.searches <= 3 and len(call.results) <= 15 for call in calls)
    assert {call.searches for call in calls} > {0, 3}
    for call in calls:
        assert call.search_cost_usd == call.searches * Decimal("0.007")
    endless = ModelCall.objects.get(model=GROK)
    assert (endless.result, endless.searches, endless.finish_reason) == ("failed", 3, "tool_calls")
    marked = set(Forecast.objects.exclude(excluded="").values_list("family__slug", flat=True))
    assert marked == {"gpt-5.1"}
    schemas = ModelCall.objects.filter(model=GEMINI).order_by("sequence").values_list("http_status", "parameters")
    assert [(status, "response_format" in body) for status, body in schemas] == [(400, True), (200, False)]
    assert cost_on_record() == billed(sandbox) > 0


def credits_left(sandbox: Addresses) -> str:
    data = client().get(f"{sandbox.openrouter}/credits").json()["data"]
    return f"{data['total_credits'] - data['total_usage']:.2f}"


def test_bills_replace_what_every_tenth_answer_was_booked_at(sandbox: Addresses) -> None:
    post(sandbox, "faults", model="*", faults=(["none"] * 9 + ["no_usage"]) * 10)
    for week in range(3):
        for command in ("sync_markets", "start_cohort"):
            assert at_clock(sandbox, command, START + week * WEEK).code == 0
        at_clock(sandbox, "run_decisions", FIRST_DECISION + week * WEEK)
    answers = ModelCall.objects.filter(http_status=200)
    booked = list(answers.filter(cost_source="booked"))
    assert len(booked) == answers.count() // 10 >= 4
    assert all(call.cost_usd == call.booked_usd and call.tokens_output is None for call in booked)
    assert cost_on_record() > billed(sandbox)
    first = run("reconcile_costs")
    assert (first["checked"], first["corrected"]) == (4, 1)  # those of the last week are not told for a minute
    assert cost_on_record() > billed(sandbox)
    post(sandbox, "clock", now=(FIRST_DECISION + 2 * WEEK + MINUTE).isoformat())
    summary = run("reconcile_costs").summary
    assert summary == {"checked": 3, "corrected": 3, "credits_left_usd": credits_left(sandbox)}
    assert cost_on_record() == billed(sandbox)
    in_runs = Run.objects.filter(kind="run_decisions").values_list("summary__cost_usd", flat=True)
    assert sum(map(Decimal, in_runs)) == pytest.approx(billed(sandbox), abs=Decimal("1e-5"))


def test_generation_that_is_not_told_stays_booked(sandbox: Addresses) -> None:
    post(sandbox, "faults", model=GPT, faults=["no_usage"])
    at_clock(sandbox, "run_decisions", FIRST_DECISION, **ONE)
    post(sandbox, "clock", now=(FIRST_DECISION + MINUTE).isoformat())
    for fault, code, error in (
        ("missing", 0, ""),
        ("down", 1, "gateway: GET /generation answered 503"),
        ("refused", 1, "gateway: GET /generation answered 401"),
    ):
        post(sandbox, "faults", endpoint="generation", faults=[fault])
        ran = run("reconcile_costs")
        assert (ran.code, ran["corrected"]) == (code, 0)
        assert error in ran.stderr
        assert ModelCall.objects.get().cost_source == "booked"
    assert run("reconcile_costs")["corrected"] == 1
    assert cost_on_record() == billed(sandbox)


def test_credits_tell_the_cost_of_a_generation_that_is_never_found(sandbox: Addresses) -> None:
    post(sandbox, "faults", model=GPT, faults=["no_usage"])
    post(sandbox, "faults", endpoint="generation", faults=["missing"])
    with time_machine.travel(timezone.now() - timedelta(hours=2)):
        run("reconcile_costs")
        at_clock(sandbox, "run_decisions", FIRST_DECISION, **ONE)
    assert cost_on_record() > billed(sandbox)
    summary = run("reconcile_costs").summary
    assert summary == {"checked": 1, "corrected": 1, "credits_left_usd": credits_left(sandbox)}
    assert cost_on_record() == billed(sandbox) > 0


def test_key_without_funds_buys_nothing(sandbox: Addresses) -> None:
    for limits, error in (
        ({"limit": 0}, "gateway answered 403: Key limit exceeded"),
        ({"limit": None, "credits": 0.001}, "gateway answered 402: This request requires more credits"),
    ):
        post(sandbox, "key", **limits)
        ran = at_clock(sandbox, "run_decisions", FIRST_DECISION, **ONE)
        assert (ran.code, ran["failed"], ran["cost_usd"]) == (1, 1, "0.000000")
        assert ModelCall.objects.latest("sequence").error.startswith(error)
        assert billed(sandbox) == 0
        (fault,) = [item for item in run("doctor", START)["items"] if item["name"] == "gateway credits"]
        assert (fault["ok"], fault["remedy"]) == (False, "Buy credits, or raise the key's limit at the gateway.")


def test_endpoint_that_refuses_is_diagnosed(sandbox: Addresses, settings: Any) -> None:
    settings.ARENA_LINEUP = "approve"
    items = {item["name"]: item for item in run("doctor", START)["items"]}
    assert items["gateway key"]["ok"]
    assert items["catalogue"]["ok"]
    post(sandbox, "faults", endpoint="key", faults=["refused"])
    post(sandbox, "faults", endpoint="models", faults=["down"])
    items = {item["name"]: item for item in run("doctor", START)["items"]}
    down = "gateway: GET /models answered 503: the endpoint models is down"
    assert (items["gateway key"]["ok"], items["gateway key"]["detail"]) == (False, "refused with 401")
    assert (items["catalogue"]["ok"], items["catalogue"]["detail"]) == (False, down)


def test_unknown_fault_is_refused_with_the_known_ones(sandbox: Addresses) -> None:
    for target, names in (({"model": GPT}, "none, byok, cut"), ({"endpoint": "key"}, "missing, refused, down")):
        reply = client().post(f"{sandbox.root}/sandbox/faults", json=target | {"faults": ["nonsense"]})
        assert reply.status_code == 400
        assert reply.json()["error"]["message"].startswith(f"faults: expected some of {names}")


@pytest.mark.parametrize("sandbox", [500], indirect=True)
def test_market_of_the_second_protocol_is_priced_by_its_position_ids_and_waits(sandbox: Addresses) -> None:
    for command, at in (("sync_markets", START), ("start_cohort", START), ("run_decisions", FIRST_DECISION)):
        at_clock(sandbox, command, at + 4 * WEEK)
    entry = UniverseEntry.objects.get(market__question=MERGER)
    assert {price["source"] for price in entry.sources.values()} == {"midpoint"}
    for command in ("sync_markets", "check_resolutions"):
        ran = at_clock(sandbox, command, START + 10 * WEEK)
    entry.market.refresh_from_db()
    assert (ran.code, entry.market.status) == (0, "closed")
    assert ran["waiting"] >= 1
