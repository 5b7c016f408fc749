"""The calls, the cost and the end of a decision by the outcomes of what the gateway answers.

The first run is followed by another an hour later, when the model answers with a HOLD: whatever is not final succeeds.
`tests.agents.test_gateway_answers` tells which answer has which outcome.
"""

import json
from datetime import timedelta
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from django.db.models import Count

from agents.models import Decision, ModelCall
from agents.services import model_calls
from tests.answers import GPT
from tests.commands import DECISION, run
from tests.faults.upstream import FAULTS, HELD, LENGTH, Act, Fault, answering, completion, faulty, saying
from tests.sandbox import Venue
from tests.selection import one_per_rule
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.slow

ONE = {"family": "gpt-5.1"}
HOUR = timedelta(hours=1)
CENT = Decimal("0.01")
GOOD, MALFORMED, CUT, DECLINED = completion(HELD), completion("{"), completion("{", choice=LENGTH), completion(None)
BY_ANOTHER = completion(HELD, model="x-ai/grok-4")
RATE_LIMITED = answering(429, {"error": {"code": 429, "message": "slow down"}}, "Retry-After: 0")
NO_CREDIT = answering(402, {"error": {"code": 402, "message": "insufficient credits"}})
COSTLY_ERROR = answering(200, {"error": {"code": 502}, "usage": {"cost": 0.01}})
CUT_OFF = saying(b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"choices": [{"mess')
NOWHERE = json.dumps({"action": "BET", "bets": [{"market_id": "0", "side": "YES", "amount": 100}]})
BOOKED = None
"""In place of cents: nothing says what the calls cost, so each counts at its worst case."""
FAILS, HOLDS, COMPLETES = "failed", "held by fallback", "completed"
CASES: list[Any] = [
    # results of the calls, their cost in cents, the decision's end, the answers, the last for ever
    ("answered", 1, COMPLETES, [GOOD]),
    ("declined", 1, HOLDS, [DECLINED]),
    ("malformed malformed malformed", 3, HOLDS, [MALFORMED]),
    ("malformed malformed declined", 3, HOLDS, [MALFORMED, MALFORMED, DECLINED]),
    ("malformed cut answered", 3, COMPLETES, [MALFORMED, CUT, GOOD]),
    ("malformed failed answered", 2, COMPLETES, [MALFORMED, RATE_LIMITED, GOOD]),
    ("cut cut", 2, FAILS, [CUT]),
    ("failed", 1, FAILS, [BY_ANOTHER]),
    ("malformed failed", 1, FAILS, [MALFORMED, NO_CREDIT]),
    ("failed failed", 2, FAILS, [COSTLY_ERROR]),
    ("failed failed", BOOKED, FAILS, [CUT_OFF]),
    ("refused", 1, FAILS, [completion(NOWHERE)]),
]


def open_cohort(venue: Venue) -> None:
    venue.market("Will it rain?")
    venue.start_first_cohort()


season = shared_rows_at_venue(open_cohort)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Venue:
    """One market, one cohort; one retry of the transport, without a wait."""
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1
    settings.ARENA_LLM_TIMEOUT_S = 5
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    return venue.as_left(season[0])


@pytest.mark.parametrize(("results", "cents", "end", "answers"), one_per_rule(CASES, itemgetter(2)))
def test_outcomes_of_answers_decide_the_decision(
    opened: Venue, settings: Any, results: str, cents: int | None, end: str, answers: list[Act]
) -> None:
    address = settings.OPENROUTER_BASE_URL
    with faulty(Fault(answers[-1]), *answers[:-1]) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_decisions", DECISION, **ONE)
    decision, calls = Decision.objects.get(), list(ModelCall.objects.order_by("sequence"))
    assert " ".join(call.result for call in calls) == results
    assert upstream.requests == len(calls)
    cost = sum(call.cost_usd for call in calls)
    assert (Decimal(ran["cost_usd"]), ran["trades"]) == (cost.quantize(Decimal("0.000001")), 0)
    assert (cents is BOOKED) == any(call.cost_source == "booked" for call in calls)
    assert cost == (sum(call.booked_usd or 0 for call in calls) if cents is BOOKED else cents * CENT) >= 0
    assert (ran.code, ran["failed"], ran["fallback_holds"]) == (end == FAILS, end == FAILS, end == HOLDS)
    assert (decision.status, decision.action) == (("failed", None) if end == FAILS else ("completed", "HOLD"))
    assert decision.fallback is (end == HOLDS)
    assert all(call.error for call in calls if call.result != "answered")
    assert all(call.raw_response for call in calls), "a call keeps its raw response"
    settings.OPENROUTER_BASE_URL = address
    later = run("run_decisions", DECISION + HOUR, **ONE)
    assert (later.code, later["asked"], later["completed"]) == (0, *[int(end == FAILS)] * 2)
    decision.refresh_from_db()
    assert (decision.status, decision.action, decision.fallback) == ("completed", "HOLD", end == HOLDS)
    stored = ModelCall.objects.order_by("sequence")[: len(calls)]
    assert [(call.raw_response, call.cost_usd) for call in stored] == [
        (stored_call.raw_response, stored_call.cost_usd) for stored_call in calls
    ]


def test_failure_of_a_request_stops_no_other_and_is_named_for_each(opened: Venue, settings: Any) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    with faulty(FAULTS["resets the connection"]) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_forecasts", DECISION)
    assert (ran.code, ran["asked"], ran["failed"], upstream.requests) == (1, 14, 14, 14)
    assert len(ran.stderr.strip().splitlines()) == 14


def test_error_of_the_account_ends_the_run_and_the_next_one_asks_everybody(opened: Venue, settings: Any) -> None:
    address, settings.ARENA_LLM_TRANSPORT_RETRIES = settings.OPENROUTER_BASE_URL, 0
    with faulty(Fault(NO_CREDIT)) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_decisions", DECISION)
    assert (ran.code, ran["asked"], ran["failed"], ran["unasked"], upstream.requests) == (1, 1, 1, 6, 1)
    ((status, error, number),) = Decision.objects.order_by().values_list("status", "error").annotate(Count("pk"))
    assert (status, error.partition(": ")[0], number) == ("failed", "the account was refused, not the model", 7)
    settings.OPENROUTER_BASE_URL = address
    later = run("run_decisions", DECISION + HOUR)
    assert (later.code, later["completed"], later["unasked"]) == (0, 7, 0)


@pytest.mark.thorough
def test_rate_limit_of_a_model_stops_that_model_and_of_the_account_all(opened: Venue, settings: Any) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    for number in range(60):  # more than one batch of forecasts holds
        opened.market(f"Question {number}?")
    run("sync_markets", DECISION)
    opened.says(GPT, Failure(429, {"error": {"code": 429, "message": "Provider returned error"}}))
    of_model = run("run_forecasts", DECISION)
    tasks = of_model["completed"] + of_model["failed"] + of_model["unasked"]
    of_gpt = tasks // 7
    assert (of_model["failed"], of_model["unasked"]) == (1, of_gpt - 1)
    assert [prompt.model for prompt in opened.asked].count(GPT) == 1
    assert len(opened.asked) == tasks - of_gpt + 1, "the six others answer all of theirs"
    opened.asked.clear()
    opened.says(GPT, Failure(429, {"error": {"code": 429, "message": "no"}}, {"X-RateLimit-Remaining": "0"}))
    following = DECISION + timedelta(weeks=1)
    run("sync_markets", following)
    of_account = run("run_forecasts", following)
    assert (of_account["failed"], len(opened.asked)) == (1, of_account["asked"])
    assert of_account["unasked"] > 0
    assert [prompt.model for prompt in opened.asked].count(GPT) == 1
    assert opened.asked[-1].model == GPT, "after it nobody is asked"
