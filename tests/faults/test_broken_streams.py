"""Streamed answers whose events were broken on the way: each is read as it was sent, or lost, and never another one."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from agents.gateway.client import Gateway
from agents.gateway.completions import GatewayFailure
from agents.models import Agent, Decision, Elicitation, ModelCall, Release, Task
from agents.services.model_calls import AnswerReading, read_answer
from cohorts.models import Cohort, Methodology
from markets.models import QuestionBatch
from tests.answers import GPT

pytestmark = pytest.mark.each_database

BET = {"reasoning": "Clouds.", "action": "BET", "bets": [{"market_id": "12", "side": "YES", "amount": 1500}]}
FORECAST = {"forecasts": [{"question_id": "88", "rationale": "Clouds.", "probabilities": {"YES": 0.625, "NO": 0.375}}]}
USAGE = {"prompt_tokens": 900, "completion_tokens": 40, "cost": 0.0021}
PIECE = 14
"""Characters of the content in an event: an amount is divided between two."""


def events(content: str) -> list[str]:
    """The events of a streamed answer: thoughts, its pieces, its end and its bill."""
    pieces = [content[start : start + PIECE] for start in range(0, len(content), PIECE)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "", "reasoning": "hm"}]
    deltas += [{"content": piece} for piece in pieces]
    head: dict[str, Any] = {"id": "gen-1", "object": "chat.completion.chunk", "model": GPT, "provider": "P"}
    open_choice: dict[str, Any] = {"index": 0, "finish_reason": None, "native_finish_reason": None}
    chunks = [head | {"choices": [open_choice | {"delta": delta}]} for delta in deltas]
    end = open_choice | {"delta": {"content": ""}, "finish_reason": "stop", "native_finish_reason": "stop"}
    chunks += [head | {"choices": [end]}, head | {"choices": [], "usage": USAGE}]
    return [json.dumps(chunk) for chunk in chunks]


Mutation = Callable[[str], str]
MUTATIONS: dict[str, Mutation] = {
    "cut in the middle": lambda event: event[: len(event) // 2],
    "cut before its end": lambda event: event[:-1],
    "without its beginning": lambda event: event[9:],
    "empty": lambda event: "",
    "a page": lambda event: "<html>bad gateway</html>",
    "a list": lambda event: f"[{event}]",
    "a text": json.dumps,
    "null": lambda event: "null",
    "twice in one": lambda event: event + event,
    "NaN bare": lambda event: event.replace('"index": 0', '"index": NaNa'),
    "single quotes": lambda event: event.replace('"', "'"),
    "other choices": lambda event: event.replace('"choices"', '"choicez"'),
    "choices null": lambda event: re.sub(r'"choices": \[.*\]', '"choices": null', event),
    "an object of choices": lambda event: event.replace("[{", "{").replace("}]", "}"),
    "a choice that is a text": lambda event: re.sub(r"\[\{.*\}\]", '["x"]', event),
    "another index": lambda event: event.replace('"index": 0', '"index": "0"'),
    "another delta": lambda event: event.replace('"delta"', '"dlta"'),
    "a delta that is a list": lambda event: re.sub(r'"delta": (\{.*?\})', r'"delta": [\1]', event),
    "another field": lambda event: event.replace('"content"', '"contant"'),
    "a number as content": lambda event: re.sub(r'"content": "(?:[^"\\]|\\.)*"', '"content": 7', event),
    "an object as content": lambda event: re.sub(r'"content": ("(?:[^"\\]|\\.)*")', r'"content": {"text": \1}', event),
}


def mutated_streams(content: str) -> Iterator[tuple[str, bytes]]:
    """Each mutation of each event, in a stream that ends and in one that breaks off after its last event."""
    sound = events(content)
    for name, mutate in MUTATIONS.items():
        for place, event in enumerate(sound):
            mutated = [*sound[:place], mutate(event), *sound[place + 1 :]]
            if mutated != sound:
                body = "".join(f"data: {data}\n\n" for data in mutated).encode()
                yield f"event {place}: {name}", body + b"data: [DONE]\n\n"
                yield f"event {place}: {name}, without an end", body
    frames = [f"data: {event}\n\n".encode() for event in sound]
    for place, frame in enumerate(frames):
        yield f"event {place}: joined to the next", b"".join([*frames[:place], frame[:-1], *frames[place + 1 :]])
        yield f"event {place}: the first that is missing", b"".join(frames[:place])


def decision() -> Task:
    release = Release.objects.get(model_id=GPT)
    cohort = Cohort(methodology=Methodology.objects.get(version="v1"))
    return Decision(agent=Agent(release=release, family=release.family, model_id=GPT), cohort=cohort)


def elicitation() -> Task:
    methodology, release = Methodology.objects.get(version="v1"), Release.objects.get(model_id=GPT)
    return Elicitation(batch=QuestionBatch(arm="priced"), methodology=methodology, release=release)


@pytest.mark.django_db
@pytest.mark.parametrize(("answer", "task_of"), [(BET, decision), (FORECAST, elicitation)])
def test_broken_stream_is_read_as_it_was_sent_or_lost(
    httpserver: HTTPServer, answer: Any, task_of: Callable[[], Task]
) -> None:
    task, content = task_of(), json.dumps(answer)
    streams: list[bytes] = []
    httpserver.expect_request("/chat/completions").respond_with_handler(
        lambda request: Response(streams[-1], content_type="text/event-stream")
    )
    with Gateway(httpserver.url_for("")) as gateway:

        def read(stream: bytes) -> AnswerReading:
            streams.append(stream)
            parameters: dict[str, Any] = {}
            completion = gateway.complete(
                model=GPT, system="", user="", parameters=parameters, idempotency_key="", is_answer=task.is_answer
            )
            return read_answer(task, completion)

        sound = "".join(f"data: {event}\n\n" for event in events(content)).encode()
        assert read(sound + b"data: [DONE]\n\n") == AnswerReading(ModelCall.Result.ANSWERED, parsed=task.parse(content))
        ends, faults = Counter[str](), []
        for name, stream in mutated_streams(content):
            try:
                reading = read(stream)
            except GatewayFailure as failure:
                ends["lost" if failure.retryable else "refused"] += 1
                continue
            ends[reading.result] += 1
            if reading.result not in ("answered", "failed") or reading.parsed not in (None, task.parse(content)):
                faults.append(f"{name}: {reading.result} {reading.error or reading.parsed}")
        assert faults == []
        assert ends == {"answered": 112, "lost": 354}
