"""What becomes of a decision for each thing that the gateway may answer: how often it asks, what it costs, how it ends.

The first run is followed by another an hour later, when the model answers with a HOLD: whatever is not final succeeds.
"""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Count

from agents.models import Decision, Elicitation, Forecast, ModelCall
from agents.services import model_calls
from markets.models import Question
from tests.answers import GPT, HOLD, forecast
from tests.commands import DECISION, run
from tests.faults.upstream import FAULTS, Fault, answering, faulty
from tests.foundation.test_http import Act, saying
from tests.sandbox import Venue
from venue_sandbox.script import Failure

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

ONE = {"family": "gpt-5.1"}
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CENT = Decimal("0.01")


def completion(content: Any, *, choice: Any = None, message: Any = None, **body: Any) -> Act:
    """A completion that costs a cent, with changes at each of its depths."""
    inner = {"role": "assistant", "content": content} | (message or {})
    outer = {"index": 0, "finish_reason": "stop", "message": inner} | (choice or {})
    return answering(200, {"id": "gen-1", "model": GPT, "choices": [outer], "usage": {"cost": 0.01}} | body)


HELD = json.dumps(HOLD)
GOOD, MALFORMED = completion(HELD), completion("{")
LENGTH = {"finish_reason": "length"}
PARTS = [{"type": "reasoning", "text": ""}, {"type": "text", "text": HELD[:20]}, {"type": "text", "text": HELD[20:]}]
TWO = [{"message": {"content": HELD}}, {"message": {"content": "x"}}]
RATE_LIMITED = answering(429, {"error": {"code": 429, "message": "slow down"}}, "Retry-After: 0")
NO_CREDIT = answering(402, {"error": {"code": 402, "message": "insufficient credits"}})
DAY_OVER = answering(429, {"error": {"code": 429, "message": "free-models-per-day"}})
DISTANT = answering(503, None, "Retry-After: Fri, 01 Jan 99999999999 00:00:00 GMT")
COSTLY_ERROR = answering(200, {"error": {"code": 502}, "usage": {"cost": 0.01}})
TOOL = {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "buy"}}]}
NOWHERE = json.dumps({"action": "BET", "bets": [{"market_id": "0", "side": "YES", "amount": 100}]})
NO = {"code": 403, "message": "no"}

FUNCTION = {"content": None, "function_call": {"name": "buy", "arguments": "{}"}}
TOOL_END = {"finish_reason": "tool_calls", "native_finish_reason": "tool_use"}
NETWORK = {"finish_reason": "stop", "native_finish_reason": "network_error"}
RESOURCES = {"finish_reason": "insufficient_system_resource", "native_finish_reason": "insufficient_system_resource"}
TOOL_NETWORK = {"finish_reason": "tool_calls", "native_finish_reason": "network_error"}
FILTER_NETWORK = {"finish_reason": "content_filter", "native_finish_reason": "network_error"}
LENGTH_RESOURCES = {"finish_reason": "length", "native_finish_reason": "INSUFFICIENT_SYSTEM_RESOURCE"}
NO_REASON = {"finish_reason": None, "native_finish_reason": None}
NATIVE_ERROR = {"finish_reason": "stop", "native_finish_reason": "error"}
NATIVE_ALONE = {"finish_reason": None, "native_finish_reason": "end_turn"}
REFUSED = {"refusal": "I can not help with that"}
NATIVE_CUT = {"finish_reason": "stop", "native_finish_reason": "MAX_TOKENS"}
END_TURN = {"finish_reason": "stop", "native_finish_reason": "end_turn"}
MESSAGE = {"role": "assistant", "content": HELD}
BODY = json.dumps({"id": "gen-1", "model": GPT, "choices": [{"finish_reason": "stop", "message": MESSAGE}],
                   "usage": {"cost": 0.01}}).encode()  # fmt: skip


def stream(*choices: Any, cost: float = 0) -> Act:
    """A streamed completion, a chunk for each choice, and its usage at the end."""
    chunks = [{"id": "gen-1", "model": GPT, "choices": [{"index": 0} | choice]} for choice in choices]
    chunks[-1]["usage"] = {"cost": cost}
    lines = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return answering(200, lines + b"data: [DONE]\n\n")


def streamed(*events: Any) -> bytes:
    """A stream of these events, without its end; a text is an event that can not be read."""
    lines = []
    for event in events:
        chunk = event if isinstance(event, str) else json.dumps({"id": "gen-1", "model": GPT} | event)
        lines.append(f"data: {chunk}\n\n")
    return "".join(lines).encode()


def piece(text: str, **choice: Any) -> dict[str, Any]:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": text}} | choice]}


BILL = {"choices": [], "usage": {"cost": 0.01}}
THOUGHT = {"cost": 0.01, "completion_tokens": 1100, "completion_tokens_details": {"reasoning_tokens": 1100}}
STOPPED = {"finish_reason": "stop"}
PROSE = "I would rather wait."
UNENDED = streamed(piece(HELD), BILL, {"choices": [], "cost": "0"})
CUT_OFF = saying(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n" + UNENDED)
BROKEN = '{"choices": [{"ind'
LOST_PIECE = streamed(piece(HELD[:20]), BROKEN, piece(HELD[20:], **STOPPED), BILL) + b"data: [DONE]\n\n"
LOST_PROSE = streamed(piece(PROSE), BROKEN, piece("", **STOPPED), BILL) + b"data: [DONE]\n\n"
LOST_NOTICE = streamed(piece(HELD), BROKEN, piece("", **STOPPED), BILL) + b"data: [DONE]\n\n"
UNSTATED = {"null": None, "absent": ..., "a number": 7, "empty": "", "another word": "tired"}
"""Native reasons that state nothing beside a normal end."""
FAILURE_WORDS = ("provider_overloaded", "UPSTREAM_RESET", "aborted", "timed out", "insufficient_quota", "fetch failed")


def ended(native: Any, **reasons: Any) -> dict[str, Any]:
    """A normal end with this native reason, or without one."""
    return STOPPED | ({} if native is ... else {"native_finish_reason": native}) | reasons


CUT_STREAM = stream({"delta": {"content": HELD[:-5]}, "finish_reason": "length"}, {"delta": {}, "finish_reason": ""})
CUT_THEN_STOPPED = stream(
    {"delta": {"content": HELD[:-5]}, "finish_reason": "length"}, {"delta": {}, "finish_reason": "stop"}
)
THOUGHT_THEN_MESSAGE = stream(
    {"delta": {"role": "assistant", "reasoning": "Rain."}}, {"finish_reason": "stop", "message": MESSAGE}, cost=0.01
)
NO_INDEX = stream({"index": None, "delta": {"content": HELD}, "finish_reason": "stop"}, cost=0.01)
FREE = completion(HELD, usage={"cost": 0})

BOOKED = None
"""In place of cents: nothing says what the calls cost, so each counts at its worst case."""
FAILS, HOLDS, COMPLETES = "failed", "held by fallback", "completed"
CASES: dict[str, Any] = {
    # what is answered: (results of the calls, their cost in cents, the decision's end, the answers, the last for ever)
    "good": ("answered", 1, COMPLETES, GOOD),
    "in parts": ("answered", 1, COMPLETES, completion(PARTS)),
    "several choices": ("answered", 1, COMPLETES, completion(HELD, choices=TWO)),
    "by a dated release of the model": ("answered", 1, COMPLETES, completion(HELD, model=f"{GPT}-2025-12-11")),
    "an endless finish reason": ("answered", 1, COMPLETES, completion(HELD, choice={"finish_reason": "s" * 9_999})),
    "endless names": ("answered", 1, COMPLETES, completion(HELD, id="g" * 9_999, provider="p" * 9_999)),
    "NUL and half a character": ("answered", 1, COMPLETES, completion("\0\ud800" + HELD)),
    "dearer than anything": ("answered", BOOKED, COMPLETES, completion(HELD, usage={"cost": 10_001})),
    "for less than nothing": ("answered", BOOKED, COMPLETES, completion(HELD, usage={"cost": -1})),
    "null": ("declined", 1, HOLDS, completion(None)),
    "empty": ("declined", 1, HOLDS, completion("")),
    "blank": ("declined", 1, HOLDS, completion(" \n\t ")),
    "an empty list of parts": ("declined", 1, HOLDS, completion([])),
    "a call of a tool": ("malformed malformed malformed", 3, HOLDS, completion(None, message=TOOL)),
    "a call of a tool, then good": ("malformed answered", 2, COMPLETES, completion(None, choice=TOOL_END), GOOD),
    "a call of a function": ("malformed answered", 2, COMPLETES, completion(None, message=FUNCTION), GOOD),
    "a call of a tool, cut": ("cut answered", 2, COMPLETES, completion(None, message=TOOL, choice=LENGTH), GOOD),
    "a call of a tool, ended by the network": ("failed", 1, FAILS, completion(None, choice=TOOL_NETWORK)),
    "a tool's call in an answer that the network ended": (
        "failed",
        1,
        FAILS,
        completion(None, message=TOOL, choice=NETWORK),
    ),
    "a whole answer beside a tool": ("answered", 1, COMPLETES, completion(HELD, choice=TOOL_END)),
    "a whole answer, then the network": ("answered", 1, COMPLETES, completion(HELD, choice=NETWORK)),
    "a whole answer, then a filter": (
        "answered",
        1,
        COMPLETES,
        completion(HELD, choice={"finish_reason": "content_filter"}),
    ),
    "a whole answer, then an error": ("failed failed", 2, FAILS, completion(HELD, choice=NATIVE_ERROR)),
    "empty by the network": ("failed", 1, FAILS, completion("", choice=NETWORK)),
    "empty by want of resources": ("failed", 1, FAILS, completion(None, choice=RESOURCES)),
    "empty without a reason": ("failed", 1, FAILS, completion("", choice=NO_REASON)),
    "empty with a reason that nobody knows": ("failed", 1, FAILS, completion("", choice={"finish_reason": "tired"})),
    "half an answer by the network": ("failed", 1, FAILS, completion(HELD[:-5], choice=NETWORK)),
    "half an answer without a reason": (
        "malformed failed",
        2,
        FAILS,
        MALFORMED,
        completion(HELD[:-5], choice=NO_REASON),
    ),
    "empty, both reasons normal": ("declined", 1, HOLDS, completion("", choice=END_TURN)),
    "malformed, both reasons normal": ("malformed answered", 2, COMPLETES, completion("{", choice=END_TURN), GOOD),
    "the context is full": (
        "cut cut",
        2,
        FAILS,
        completion("", choice={"finish_reason": "model_context_window_exceeded"}),
    ),
    "cut by the provider's own word": ("cut answered", 2, COMPLETES, completion("{", choice=NATIVE_CUT), GOOD),
    "half a million objects": ("malformed answered", 2, COMPLETES, completion("{}" * 499_000), GOOD),
    "a body, then the end of a stream": ("answered", 1, COMPLETES, answering(200, BODY + b"\n\ndata: [DONE]\n\n")),
    "a stream with one whole message": (
        "answered",
        1,
        COMPLETES,
        stream({"finish_reason": "stop", "message": MESSAGE}, cost=0.01),
    ),
    "a stream whose last chunk takes its reason back": ("cut answered", 0, COMPLETES, CUT_STREAM, FREE),
    "a stream whose usage chunk says stop after a cut": ("cut answered", 0, COMPLETES, CUT_THEN_STOPPED, FREE),
    "a stream of thoughts, then one whole message": ("answered", 1, COMPLETES, THOUGHT_THEN_MESSAGE),
    "a stream whose choice has no index": ("answered", 1, COMPLETES, NO_INDEX),
    "a stream that ends without a reason": ("failed", 0, FAILS, stream({"delta": {"content": ""}, **NO_REASON})),
    "a refusal": ("declined", 1, HOLDS, completion(None, message=REFUSED)),
    "a refusal, both reasons normal": ("declined", 1, HOLDS, completion(None, message=REFUSED, choice=END_TURN)),
    "a refusal in prose too": ("declined", 1, HOLDS, completion("I would rather not.", message=REFUSED)),
    "a refusal, then the network": ("failed", 1, FAILS, completion(None, message=REFUSED, choice=NETWORK)),
    "a refusal without a reason": ("failed", 1, FAILS, completion("", message=REFUSED, choice=NO_REASON)),
    "a whole answer beside a refusal": ("answered", 1, COMPLETES, completion(HELD, message=REFUSED)),
    "a whole answer beside a refusal, then the network": (
        "answered",
        1,
        COMPLETES,
        completion(HELD, message=REFUSED, choice=NETWORK),
    ),
    "filtered": ("declined", 1, HOLDS, completion("", choice={"finish_reason": "content_filter"})),
    "filtered, says the gateway, and a network failed": ("failed", 1, FAILS, completion("", choice=FILTER_NETWORK)),
    "cut, says the gateway, for want of resources": ("failed", 1, FAILS, completion("{", choice=LENGTH_RESOURCES)),
    **{
        f"filtered by {native}": (
            "declined",
            1,
            HOLDS,
            completion("", choice={"finish_reason": "stop", "native_finish_reason": native}),
        )
        for native in ("RECITATION", "SPII", "guardrail_intervened", "IMAGE_SAFETY", "MODEL_ARMOR", "sensitive")
    },
    "filtered, by a name of the provider's own": (
        "declined",
        1,
        HOLDS,
        completion("", choice={"finish_reason": "content_filter", "native_finish_reason": "policy_7"}),
    ),
    "nothing but thinking": ("cut cut", 2, FAILS, completion("", choice=LENGTH)),
    "nothing but thinking, then good": ("cut answered", 2, COMPLETES, completion(None, choice=LENGTH), GOOD),
    "whole, then cut in the prose": ("answered", 1, COMPLETES, completion(f"{HELD} I say", choice=LENGTH)),
    "malformed, then cut, then good": (
        "malformed cut answered",
        3,
        COMPLETES,
        MALFORMED,
        completion("", choice=LENGTH),
        GOOD,
    ),
    **{
        f"prose, its native reason {name}": (
            "malformed answered",
            2,
            COMPLETES,
            completion(PROSE, choice=ended(native)),
            GOOD,
        )
        for name, native in UNSTATED.items()
    },
    **{
        f"streamed prose, its native reason {name}": (
            "malformed malformed malformed",
            3,
            HOLDS,
            stream({"delta": {"content": PROSE}} | ended(native), cost=0.01),
        )
        for name, native in UNSTATED.items()
    },
    **{f"prose, then {word}": ("failed", 1, FAILS, completion(PROSE, choice=ended(word))) for word in FAILURE_WORDS},
    "prose, cut by the native word": (
        "cut answered",
        2,
        COMPLETES,
        completion(PROSE, choice=ended("max_length")),
        GOOD,
    ),
    "empty, ended natively in an unknown way": ("failed", 1, FAILS, completion("", choice=ended("tired"))),
    "empty, its native reason null": ("declined", 1, HOLDS, completion("", choice=ended(None))),
    "ended natively alone": ("malformed answered", 2, COMPLETES, completion(PROSE, choice=NATIVE_ALONE), GOOD),
    "empty after billed thoughts": ("malformed malformed malformed", 3, HOLDS, completion("", usage=THOUGHT)),
    "empty after billed thoughts, then good": ("malformed answered", 2, COMPLETES, completion("", usage=THOUGHT), GOOD),
    "thoughts alone, streamed": (
        "malformed answered",
        2,
        COMPLETES,
        stream({"delta": {"content": "", "reasoning": "Rain."}} | END_TURN, cost=0.01),
        GOOD,
    ),
    "a refusal after billed thoughts": ("declined", 1, HOLDS, completion("", message=REFUSED, usage=THOUGHT)),
    "a whole stream without an end": ("answered", 1, COMPLETES, answering(200, UNENDED)),
    "a whole stream without an end, cut off": ("answered", 1, COMPLETES, CUT_OFF),
    "a stream of prose without an end": ("failed failed", 2, FAILS, answering(200, streamed(piece(PROSE), BILL))),
    "a stream that lost a piece": ("failed failed", 2, FAILS, answering(200, LOST_PIECE)),
    "a stream of prose that lost an event": ("failed failed", 2, FAILS, answering(200, LOST_PROSE)),
    "a whole stream that lost an event after it": ("answered", 1, COMPLETES, answering(200, LOST_NOTICE)),
    "malformed for ever": ("malformed malformed malformed", 3, HOLDS, completion("I would rather wait.")),
    "malformed twice, then null": ("malformed malformed declined", 3, HOLDS, MALFORMED, MALFORMED, completion(None)),
    "malformed, then good": ("malformed answered", 2, COMPLETES, MALFORMED, GOOD),
    "broken off": ("cut answered", 2, COMPLETES, completion(HELD[:-5], choice=LENGTH), GOOD),
    "a megabyte of prose": ("malformed answered", 2, COMPLETES, completion("wait " * 220_000), GOOD),
    "malformed, then a rate limit": ("malformed failed answered", 2, COMPLETES, MALFORMED, RATE_LIMITED, GOOD),
    "a rate limit, then good": ("failed answered", 1, COMPLETES, RATE_LIMITED, GOOD),
    "malformed, then no credit": ("malformed failed", 1, FAILS, MALFORMED, NO_CREDIT),
    "a bet on nothing": ("refused", 1, FAILS, completion(NOWHERE)),
    "no choices": ("failed failed", 2, FAILS, completion("", choices=[])),
    "an error with its cost": ("failed failed", 2, FAILS, COSTLY_ERROR),
    "an error beside an answer": ("failed", 1, FAILS, completion(HELD, error=NO)),
    "an error in the choice": ("failed", 1, FAILS, completion("", choice={"error": NO})),
    "broken off by its provider": ("failed failed", 2, FAILS, completion("{", choice={"finish_reason": "error"})),
    "content that is no text": ("failed", 1, FAILS, completion({"text": HELD})),
    "pictures": ("failed", 1, FAILS, completion([{"type": "image_url"}])),
    "by another model": ("failed", 1, FAILS, completion(HELD, model="x-ai/grok-4")),
    "by another vendor": ("failed", 1, FAILS, completion(HELD, model="azure/gpt-5.2")),
    "the free tier's day is over": ("failed", 0, FAILS, DAY_OVER),
    "a wait until a year that is none": ("failed failed", 0, FAILS, DISTANT),
    "a number without end": ("failed failed", BOOKED, FAILS, answering(200, b'{"choices": ' + b"9" * 9_999 + b"}")),
    "a page for people": ("failed failed", 0, FAILS, answering(200, b"<!doctype html><title>Down</title>")),
    "a page for people, not found": ("failed", 0, FAILS, answering(404, b"<html>nothing</html>")),
    "a page for people, bad gateway": ("failed failed", 0, FAILS, answering(502, b"<html>bad gateway</html>")),
    "a page for people, too slow": ("failed failed", BOOKED, FAILS, answering(524, b"<html>timeout</html>")),
    "an object that is no completion": ("failed failed", 0, FAILS, answering(200, {"detail": "welcome"})),
    "nested without end": ("failed failed", 0, FAILS, answering(200, b"[" * 200_000)),
    "nine megabytes": ("failed", BOOKED, FAILS, completion("wait " * 1_900_000)),
    "a text compressed badly": ("failed failed", BOOKED, FAILS, answering(200, b"none", "Content-Encoding: gzip")),
}


@pytest.fixture(autouse=True)
def patience(venue: Venue, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    """One retry of the transport, without a wait; one market, one cohort."""
    settings.ARENA_LLM_TRANSPORT_RETRIES = 1
    settings.ARENA_LLM_TIMEOUT_S = 5
    monkeypatch.setattr(model_calls, "FIRST_PAUSE_S", 0)
    venue.market("Will it rain?")
    venue.start_first_cohort()


@pytest.mark.parametrize("name", CASES)
def test_answer_of_the_gateway(venue: Venue, settings: Any, name: str) -> None:
    results, cents, end, *answers = CASES[name]
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
    settings.OPENROUTER_BASE_URL = address
    later = run("run_decisions", DECISION + HOUR, **ONE)
    assert (later.code, later["asked"], later["completed"]) == (0, *[int(end == FAILS)] * 2)
    decision.refresh_from_db()
    assert (decision.status, decision.action, decision.fallback) == ("completed", "HOLD", end == HOLDS)
    stored = ModelCall.objects.order_by("sequence")[: len(calls)]
    assert [(call.raw_response, call.cost_usd) for call in stored] == [
        (stored_call.raw_response, stored_call.cost_usd) for stored_call in calls
    ]


def test_what_came_before_the_cut_is_kept_with_the_call(venue: Venue, settings: Any) -> None:
    half = b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"id": "gen-1", "choices": [{"mess'
    with faulty(Fault(saying(half))) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        assert run("run_decisions", DECISION, **ONE)["failed"] == 1
    call = ModelCall.objects.order_by("sequence").first()
    assert call is not None
    assert (call.raw_response, call.http_status) == ('{"id": "gen-1", "choices": [{"mess', 200)
    assert call.error == "gateway: POST /chat/completions was cut off before the response was complete"


def test_gateway_that_hangs_for_all_ends_in_time_and_is_named_for_each(venue: Venue, settings: Any) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    settings.ARENA_LLM_TIMEOUT_S = 0.1
    with faulty(FAULTS["drips its body"]) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_decisions", DECISION)
    assert (ran.code, ran["asked"], ran["failed"], upstream.requests) == (1, 7, 7, 7)
    assert len(ran.stderr.strip().splitlines()) == 7


KEY_SPENT = answering(403, {"error": {"code": 403, "message": "Key limit exceeded (total limit)."}})
USED_UP = answering(429, {"error": {"code": 429, "message": "Rate limit exceeded"}}, "X-RateLimit-Remaining: 0")
UPSTREAM = {"provider_name": "DigitalOcean", "limit_source": "upstream_provider_shared_pool"}
OF_PROVIDER = answering(429, {"error": {"code": 429, "message": "Provider returned error", "metadata": UPSTREAM}})


@pytest.mark.parametrize("refusal", [NO_CREDIT, answering(401), answering(402), KEY_SPENT, DAY_OVER, USED_UP])
def test_error_of_the_account_ends_the_run_and_the_next_one_asks_everybody(
    venue: Venue, settings: Any, refusal: Act
) -> None:
    address, settings.ARENA_LLM_TRANSPORT_RETRIES = settings.OPENROUTER_BASE_URL, 0
    with faulty(Fault(refusal)) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_decisions", DECISION)
    assert (ran.code, ran["asked"], ran["failed"], ran["unasked"], upstream.requests) == (1, 1, 1, 6, 1)
    ((status, error, number),) = Decision.objects.order_by().values_list("status", "error").annotate(Count("pk"))
    assert (status, error.partition(": ")[0], number) == ("failed", "the account was refused, not the model", 7)
    settings.OPENROUTER_BASE_URL = address
    later = run("run_decisions", DECISION + HOUR)
    assert (later.code, later["completed"], later["unasked"]) == (0, 7, 0)


def test_rate_limit_of_a_provider_stops_its_model_alone(venue: Venue, settings: Any) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    with faulty(Fault(OF_PROVIDER)) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_decisions", DECISION)
        assert (ran["failed"], ran["unasked"], upstream.requests) == (7, 0, 7)
        for number in range(3):
            venue.market(f"Question {number}?")
        forecast = run("run_forecasts", DECISION, **ONE)
    assert (forecast["failed"], upstream.requests) == (1, 8)
    assert forecast["unasked"] >= 1


OF_ACCOUNT = Failure(429, {"error": {"code": 429, "message": "Rate limit exceeded"}}, {"X-RateLimit-Remaining": "0"})
OF_MODEL = Failure(429, {"error": {"code": 429, "message": "Provider returned error", "metadata": UPSTREAM}})


@pytest.mark.parametrize("command", ["run_decisions", "run_forecasts"])
def test_rate_limit_of_the_account_stops_all_and_a_models_that_model(venue: Venue, settings: Any, command: str) -> None:
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    for number in range(60):  # more than one batch of forecasts holds
        venue.market(f"Question {number}?")
    run("sync_markets", DECISION)
    venue.says(GPT, OF_MODEL)
    of_model = run(command, DECISION)
    tasks = of_model["completed"] + of_model["failed"] + of_model["unasked"]
    of_gpt = tasks // 7
    assert (of_model["failed"], of_model["unasked"]) == (1, of_gpt - 1)
    assert [prompt.model for prompt in venue.asked].count(GPT) == 1
    assert len(venue.asked) == tasks - of_gpt + 1, "the six others answer all of theirs"
    venue.asked.clear()
    venue.says(GPT, OF_ACCOUNT)
    following = DECISION + timedelta(weeks=1)
    run("sync_markets", following)
    of_account = run(command, following)
    assert (of_account["failed"], len(venue.asked)) == (1, of_account["asked"])
    assert of_account["unasked"] > 0
    assert [prompt.model for prompt in venue.asked].count(GPT) == 1
    assert venue.asked[-1].model == GPT, "after it nobody is asked"


TIRED = {"finish_reason": "tired", "native_finish_reason": "tired"}
CUT_BEFORE_USAGE = stream({"delta": {"content": '{"fore'}, "finish_reason": "length"}, {"delta": {}, **NO_REASON})
FAULTY_ENDS = {"network": NETWORK, "resources": RESOURCES, "none": NO_REASON, "unknown": TIRED}
FORECAST_CASES: dict[tuple[str, str], Any] = {
    # the kind of content, how it ends: (results of a task's calls, whether the task fails)
    **{(content, end): ("failed", True) for content in ("empty", "broken") for end in FAULTY_ENDS},
    **{("whole", end): ("answered", False) for end in FAULTY_ENDS},
    ("empty", "normal"): ("declined", False),
    ("broken", "normal"): ("malformed malformed malformed", False),
    ("whole", "length"): ("answered", False),
    ("broken", "length"): ("cut cut", True),
    ("broken", "length before usage"): ("cut cut", True),
    ("tool", "normal"): ("malformed malformed malformed", False),
    ("broken", "native null"): ("malformed malformed malformed", False),
    ("broken", "overloaded"): ("failed", True),
    ("empty", "billed"): ("malformed malformed malformed", False),
    ("whole", "unended stream"): ("answered", False),
    ("gap", "unreadable event"): ("failed", True),
    ("broken", "unreadable event"): ("failed", True),
}
ENDS: dict[str, Any] = {
    **FAULTY_ENDS,
    "normal": END_TURN,
    "length": LENGTH,
    "native null": ended(None),
    "overloaded": ended("overloaded"),
    "billed": STOPPED,
}


@pytest.mark.parametrize("case", FORECAST_CASES, ids="-".join)
def test_end_of_an_answer_to_the_questions_of_a_day(venue: Venue, settings: Any, case: tuple[str, str]) -> None:
    address, (content, end) = settings.OPENROUTER_BASE_URL, case
    with faulty(Fault(answering(503))) as upstream:
        settings.OPENROUTER_BASE_URL, settings.ARENA_LLM_TRANSPORT_RETRIES = upstream.url, 0
        assert run("run_forecasts", DECISION, **ONE)["failed"] == 2  # with prices and without
    first = ModelCall.objects.latest("pk").pk
    answer = {"question_id": str(Question.objects.get().pk), "probabilities": {"YES": 0.6, "NO": 0.4}, "rationale": "-"}
    answer_text = json.dumps({"forecasts": [answer]})
    text = {"empty": "", "broken": answer_text[:-9], "whole": answer_text, "gap": answer_text, "tool": ""}[content]
    bill = {"usage": THOUGHT} if end == "billed" else {}
    act = {
        "length before usage": CUT_BEFORE_USAGE,
        "unended stream": answering(200, streamed(piece(text), BILL)),
        "unreadable event": answering(200, streamed(piece(text[:20]), BROKEN, piece(text[20:], **STOPPED))),
    }.get(end) or completion(text or None, choice=ENDS[end], message=TOOL if content == "tool" else None, **bill)
    with faulty(Fault(act)) as upstream:
        settings.OPENROUTER_BASE_URL = upstream.url
        ran = run("run_forecasts", DECISION + MINUTE, **ONE)
    results, fails = FORECAST_CASES[case]
    for task in Elicitation.objects.all():
        calls = ModelCall.objects.filter(elicitation=task, pk__gt=first).order_by("sequence")
        assert " ".join(call.result for call in calls) == results
        assert (task.status, task.declined) == (("failed", False) if fails else ("completed", content != "whole"))
    assert (ran.code, ran["failed"], Forecast.objects.count()) == (int(fails), 2 * fails, 2 * (content == "whole"))
    settings.OPENROUTER_BASE_URL = address
    venue.says(GPT, forecast())
    later = run("run_forecasts", DECISION + HOUR, **ONE)
    assert (later.code, Forecast.objects.count()) == (0, 2 * (fails or content == "whole"))
