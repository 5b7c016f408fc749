"""The outcome of whatever the gateway may answer: whether it counts, is asked again, and its cost.

Read by the two functions that decide it, on the gateway's client and with a task of each kind.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from agents.gateway.client import Gateway
from agents.gateway.completions import Accounting, GatewayFailure
from agents.models import Agent, Decision, Elicitation, Release, Task
from agents.prices import TokenPrices
from agents.services.costs import response_cost
from agents.services.model_calls import read_answer
from cohorts.models import Cohort, Methodology
from markets.models import QuestionBatch
from tests.answers import GPT
from tests.faults.upstream import HELD, LENGTH, Act, Fault, answering, completion, faulty, saying
from tests.json_fields import WRONG, replace_field

CENT = Decimal("0.01")


PARTS = [{"type": "reasoning", "text": ""}, {"type": "text", "text": HELD[:20]}, {"type": "text", "text": HELD[20:]}]
TWO = [{"message": {"content": HELD}}, {"message": {"content": "x"}}]
DAY_OVER = answering(429, {"error": {"code": 429, "message": "free-models-per-day"}})
DISTANT = answering(503, None, "Retry-After: Fri, 01 Jan 99999999999 00:00:00 GMT")
COSTLY_ERROR = answering(200, {"error": {"code": 502}, "usage": {"cost": 0.01}})
TOOL = {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "buy"}}]}
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


def reasons(gateway: Any, native: Any) -> dict[str, Any]:
    return {"finish_reason": gateway, "native_finish_reason": native}


TIRED = reasons("tired", "tired")
CUT_BEFORE_USAGE = stream({"delta": {"content": '{"fore'}, "finish_reason": "length"}, {"delta": {}, **NO_REASON})
FAULTY_ENDS = [NETWORK, RESOURCES, NO_REASON, TIRED]
BODY_THEN_DONE = answering(200, BODY + b"\n\ndata: [DONE]\n\n")
FILTERS = ("RECITATION", "SPII", "guardrail_intervened", "IMAGE_SAFETY", "MODEL_ARMOR", "sensitive")
BOOKED = None
"""In place of cents: nothing says what the call cost, so that it counts at its worst case."""
ANSWERS: dict[str, dict[str, Act]] = {
    # the outcome of an answer: the answers to a decision that have it
    "answered": {
        "good": completion(HELD),
        "in parts": completion(PARTS),
        "several choices": completion(HELD, choices=TWO),
        "by a dated release of the model": completion(HELD, model=f"{GPT}-2025-12-11"),
        "an endless finish reason": completion(HELD, choice={"finish_reason": "s" * 9_999}),
        "endless names": completion(HELD, id="g" * 9_999, provider="p" * 9_999),
        "NUL and half a character": completion("\0\ud800" + HELD),
        "dearer than anything": completion(HELD, usage={"cost": 10_001}),
        "for less than nothing": completion(HELD, usage={"cost": -1}),
        "whole beside a tool": completion(HELD, choice=TOOL_END),
        "whole, then the network": completion(HELD, choice=NETWORK),
        "whole, then a lack of resources": completion(HELD, choice=RESOURCES),
        "whole without a reason": completion(HELD, choice=NO_REASON),
        "whole, for a reason that nobody knows": completion(HELD, choice=TIRED),
        "whole, then a filter": completion(HELD, choice={"finish_reason": "content_filter"}),
        "whole beside a refusal": completion(HELD, message=REFUSED),
        "whole beside a refusal, then the network": completion(HELD, message=REFUSED, choice=NETWORK),
        "whole, then cut": completion(HELD, choice=LENGTH),
        "whole, then cut in the prose": completion(f"{HELD} I say", choice=LENGTH),
        "a body, then the end of a stream": BODY_THEN_DONE,
        "a stream with one whole message": stream({"finish_reason": "stop", "message": MESSAGE}, cost=0.01),
        "a stream of thoughts, then one whole message": THOUGHT_THEN_MESSAGE,
        "a stream whose choice has no index": NO_INDEX,
        "a whole stream without an end": answering(200, UNENDED),
        "a whole stream without an end, cut off": CUT_OFF,
        "a whole stream that lost an event after it": answering(200, LOST_NOTICE),
    },
    "declined": {
        "null": completion(None),
        "empty": completion(""),
        "blank": completion(" \n\t "),
        "an empty list of parts": completion([]),
        "empty, both reasons normal": completion("", choice=END_TURN),
        "empty, its native reason null": completion("", choice=ended(None)),
        "a refusal": completion(None, message=REFUSED),
        "a refusal, both reasons normal": completion(None, message=REFUSED, choice=END_TURN),
        "a refusal in prose too": completion("I would rather not.", message=REFUSED),
        "a refusal after billed thoughts": completion("", message=REFUSED, usage=THOUGHT),
        "filtered": completion("", choice={"finish_reason": "content_filter"}),
        "filtered, by a name of the provider's own": completion("", choice=reasons("content_filter", "policy_7")),
        **{f"filtered by {native}": completion("", choice=ended(native)) for native in FILTERS},
    },
    "malformed": {
        "prose": completion(PROSE),
        "half an object": completion("{"),
        "half an object, both reasons normal": completion("{", choice=END_TURN),
        "a call of a tool": completion(None, message=TOOL),
        "a call of a tool, by its end": completion(None, choice=TOOL_END),
        "a call of a function": completion(None, message=FUNCTION),
        "half a million objects": completion("{}" * 499_000),
        "a megabyte of prose": completion("wait " * 220_000),
        "ended natively alone": completion(PROSE, choice=NATIVE_ALONE),
        "empty after billed thoughts": completion("", usage=THOUGHT),
        "thoughts alone, streamed": stream({"delta": {"content": "", "reasoning": "Rain."}} | END_TURN, cost=0.01),
        **{
            f"prose, its native reason {name}": completion(PROSE, choice=ended(word)) for name, word in UNSTATED.items()
        },
        **{
            f"streamed prose, its native reason {name}": stream({"delta": {"content": PROSE}} | ended(word), cost=0.01)
            for name, word in UNSTATED.items()
        },
    },
    "cut": {
        "half an answer": completion(HELD[:-5], choice=LENGTH),
        "nothing but thinking": completion("", choice=LENGTH),
        "null": completion(None, choice=LENGTH),
        "a call of a tool": completion(None, message=TOOL, choice=LENGTH),
        "the context is full": completion("", choice={"finish_reason": "model_context_window_exceeded"}),
        "by the provider's own word": completion("{", choice=NATIVE_CUT),
        "prose, by the native word": completion(PROSE, choice=ended("max_length")),
        "a stream whose last chunk takes its reason back": CUT_STREAM,
        "a stream whose usage chunk says stop after a cut": CUT_THEN_STOPPED,
        "a stream whose usage has no reason": CUT_BEFORE_USAGE,
    },
    "failed": {
        "a call of a tool, ended by the network": completion(None, choice=TOOL_NETWORK),
        "a tool's call in an answer that the network ended": completion(None, message=TOOL, choice=NETWORK),
        "empty by the network": completion("", choice=NETWORK),
        "empty by want of resources": completion(None, choice=RESOURCES),
        "empty without a reason": completion("", choice=NO_REASON),
        "empty with a reason that nobody knows": completion("", choice={"finish_reason": "tired"}),
        "empty, ended natively in an unknown way": completion("", choice=ended("tired")),
        "half an answer by the network": completion(HELD[:-5], choice=NETWORK),
        "half an answer for want of resources": completion(HELD[:-5], choice=RESOURCES),
        "half an answer without a reason": completion(HELD[:-5], choice=NO_REASON),
        "half an answer for a reason that nobody knows": completion(HELD[:-5], choice=TIRED),
        "a stream that ends without a reason": stream({"delta": {"content": ""}, **NO_REASON}),
        "a refusal, then the network": completion(None, message=REFUSED, choice=NETWORK),
        "a refusal without a reason": completion("", message=REFUSED, choice=NO_REASON),
        "filtered, says the gateway, and a network failed": completion("", choice=FILTER_NETWORK),
        "cut, says the gateway, for want of resources": completion("{", choice=LENGTH_RESOURCES),
        "an error beside an answer": completion(HELD, error=NO),
        "an error in the choice": completion("", choice={"error": NO}),
        "content that is no text": completion({"text": HELD}),
        "pictures": completion([{"type": "image_url"}]),
        "by another model": completion(HELD, model="x-ai/grok-4"),
        "by another vendor": completion(HELD, model="azure/gpt-5.2"),
        "the free tier's day is over": DAY_OVER,
        "a page for people, not found": answering(404, b"<html>nothing</html>"),
        "half an error, not found": answering(404, b'{"error": {"mess'),
        "nine megabytes": completion("wait " * 1_900_000),
        **{f"prose, then {word}": completion(PROSE, choice=ended(word)) for word in FAILURE_WORDS},
    },
    "failed, asked again at once": {
        "a whole answer, then an error": completion(HELD, choice=NATIVE_ERROR),
        "broken off by its provider": completion("{", choice={"finish_reason": "error"}),
        "a stream of prose without an end": answering(200, streamed(piece(PROSE), BILL)),
        "a stream that lost a piece": answering(200, LOST_PIECE),
        "a stream of prose that lost an event": answering(200, LOST_PROSE),
        "no choices": completion("", choices=[]),
        "an error with its cost": COSTLY_ERROR,
        "a wait until a year that is none": DISTANT,
        "a number without end": answering(200, b'{"choices": ' + b"9" * 9_999 + b"}"),
        "a page for people": answering(200, b"<!doctype html><title>Down</title>"),
        "a page for people, bad gateway": answering(502, b"<html>bad gateway</html>"),
        "a page for people, too slow": answering(524, b"<html>timeout</html>"),
        "an object that is no completion": answering(200, {"detail": "welcome"}),
        "nested without end": answering(200, b"[" * 200_000),
    },
}
CENTS: dict[tuple[str, str], int | None] = {
    # of answers that cost something else than the cent that their body states
    ("answered", "dearer than anything"): BOOKED,
    ("answered", "for less than nothing"): BOOKED,
    ("cut", "a stream whose last chunk takes its reason back"): 0,
    ("cut", "a stream whose usage chunk says stop after a cut"): 0,
    ("cut", "a stream whose usage has no reason"): 0,
    ("failed", "a stream that ends without a reason"): 0,
    ("failed", "the free tier's day is over"): 0,
    ("failed", "a page for people, not found"): 0,
    ("failed", "half an error, not found"): 0,
    ("failed", "nine megabytes"): BOOKED,
    ("failed, asked again at once", "a wait until a year that is none"): 0,
    ("failed, asked again at once", "a number without end"): BOOKED,
    ("failed, asked again at once", "a page for people"): 0,
    ("failed, asked again at once", "a page for people, bad gateway"): 0,
    ("failed, asked again at once", "a page for people, too slow"): BOOKED,
    ("failed, asked again at once", "an object that is no completion"): 0,
    ("failed, asked again at once", "nested without end"): 0,
}


@pytest.fixture(scope="module")
def decision() -> Task:
    release, methodology = Release(model_id=GPT), Methodology(version="v2")
    return Decision(agent=Agent(release=release, model_id=GPT), cohort=Cohort(methodology=methodology))


def outcome(task: Task, act: Act) -> tuple[str, Decimal | None, str]:
    """The outcome of an answer, its cost if that is known, and the error."""
    with faulty(Fault(act)) as upstream, Gateway(upstream.url, timeout_s=5) as gateway:
        try:
            completion = gateway.complete(
                model=GPT, system="", user="", parameters={}, idempotency_key="1", is_answer=task.is_answer
            )
        except GatewayFailure as failure:
            word = "failed, asked again at once" if failure.retryable else "failed"
            return word, cost_of(failure.accounting, billable=failure.billable), failure.reason
    reading = read_answer(task, completion)
    return reading.result, cost_of(completion, billable=True), reading.error


def cost_of(accounting: Accounting, *, billable: bool) -> Decimal | None:
    cost = response_cost(accounting, TokenPrices(Decimal(1), Decimal(1)), billable=billable)
    return cost and cost[0]


@pytest.mark.parametrize(("word", "name"), [(word, name) for word, answers in ANSWERS.items() for name in answers])
def test_answer_to_a_decision(decision: Task, word: str, name: str) -> None:
    cents = CENTS.get((word, name), 1)
    result, cost, error = outcome(decision, ANSWERS[word][name])
    assert (result, cost) == (word, None if cents is BOOKED else cents * CENT)
    assert bool(error) == (word != "answered")
    assert "\n" not in error


# ── an answer to the questions of a day ───────────────────────────────────────────────────────────

PROBABILITIES = {"question_id": "88", "probabilities": {"YES": 0.6, "NO": 0.4}, "rationale": "-"}
TEXTS = {"": "", "whole": json.dumps({"forecasts": [PROBABILITIES]})}
TEXTS["broken"] = TEXTS["whole"][:-9]
FORECASTS: list[tuple[str, str, Act]] = [
    # the outcome, the content, what the gateway sends
    *[("failed", text, completion(TEXTS[text], choice=end)) for text in ("", "broken") for end in FAULTY_ENDS],
    *[("answered", "whole", completion(TEXTS["whole"], choice=end)) for end in (*FAULTY_ENDS, LENGTH)],
    ("declined", "", completion("", choice=END_TURN)),
    ("malformed", "broken", completion(TEXTS["broken"], choice=END_TURN)),
    ("malformed", "broken", completion(TEXTS["broken"], choice=ended(None))),
    ("malformed", "", completion(None, message=TOOL)),
    ("malformed", "", completion("", usage=THOUGHT)),
    ("cut", "broken", completion(TEXTS["broken"], choice=LENGTH)),
    ("cut", "broken", CUT_BEFORE_USAGE),
    ("failed", "broken", completion(TEXTS["broken"], choice=ended("overloaded"))),
    ("answered", "whole", answering(200, streamed(piece(TEXTS["whole"]), BILL))),
    (
        "failed, asked again at once",
        "whole",
        answering(200, streamed(piece(TEXTS["whole"][:20]), BROKEN, piece(TEXTS["whole"][20:], **STOPPED))),
    ),
]


@pytest.fixture
def elicitation(db: None) -> Task:
    methodology = Methodology.objects.get(version="v2")
    return Elicitation(batch=QuestionBatch(arm="priced"), methodology=methodology, release=Release(model_id=GPT))


@pytest.mark.parametrize(("word", "text", "act"), FORECASTS, ids=[f"{word}-{text}" for word, text, _ in FORECASTS])
def test_answer_to_the_questions_of_a_day(elicitation: Task, word: str, text: str, act: Act) -> None:
    assert outcome(elicitation, act)[0] == word


# ── fields of a completion ────────────────────────────────────────────────────────────────────────

WHOLE = {
    "id": "gen-1",
    "provider": "Scripted",
    "model": GPT,
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": HELD, "refusal": None, "reasoning": None},
        }
    ],
    "usage": {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.001,
    },
}
NOTHING: dict[str, str] = {}
FIELDS = {
    # field: the wrong values by the outcome of the answer; with all others it counts as it is
    "id": NOTHING,
    "model": {"failed": '"x"'},
    "provider": NOTHING,
    "error": {"failed, asked again at once": '7 true "x"'},
    "choices": {"failed, asked again at once": 'absent null 7 true "x" [] {} ""'},
    "choices.index": NOTHING,
    "choices.error": {"failed, asked again at once": '7 true "x"'},
    "choices.finish_reason": NOTHING,
    "choices.message": {"failed, asked again at once": 'absent null 7 true "x" [] ""', "malformed": "{}"},
    "choices.message.role": NOTHING,
    "choices.message.content": {"failed": "7 true {}", "malformed": 'absent null "x" [] ""'},
    "choices.message.refusal": NOTHING,
    "choices.message.reasoning": NOTHING,
    "usage": NOTHING,
    "usage.prompt_tokens": NOTHING,
    "usage.completion_tokens": NOTHING,
    "usage.completion_tokens_details": NOTHING,
    "usage.cost": NOTHING,
}


@pytest.mark.parametrize("name", FIELDS)
def test_field_of_a_completion(decision: Task, name: str) -> None:
    expected = dict.fromkeys(WRONG, "answered")
    for word, values in FIELDS[name].items():
        expected |= dict.fromkeys(values.split(), word)
    assert {
        value: outcome(decision, answering(200, replace_field(WHOLE, name, value)))[0] for value in WRONG
    } == expected
