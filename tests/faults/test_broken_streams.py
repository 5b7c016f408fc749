"""Streamed answers whose events were broken on the way: each is read as it was sent, or lost, and never another one."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from httpx import Headers

from agents.gateway.completions import CompletionParser, GatewayFailure
from agents.models import Agent, Decision, Elicitation, ModelCall, Release, Task
from agents.services.model_calls import AnswerReading, read_answer
from cohorts.models import Cohort, Methodology
from foundation.http import Exchange
from markets.models import QuestionBatch
from tests.answers import GPT

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


def decision(release: Release, methodology: Methodology) -> Task:
    return Decision(agent=Agent(release=release, model_id=GPT), cohort=Cohort(methodology=methodology))


def elicitation(release: Release, methodology: Methodology) -> Task:
    return Elicitation(batch=QuestionBatch(arm="priced"), methodology=methodology, release=release)


@pytest.mark.django_db
@pytest.mark.parametrize(("answer", "task_of"), [(BET, decision), (FORECAST, elicitation)])
def test_broken_stream_is_read_as_it_was_sent_or_lost(
    answer: Any, task_of: Callable[[Release, Methodology], Task]
) -> None:
    task, content = task_of(Release(model_id=GPT), Methodology.objects.get(version="v2")), json.dumps(answer)

    def read(stream: bytes) -> AnswerReading:
        exchange = Exchange(200, Headers(), stream, latency_ms=1)
        return read_answer(task, CompletionParser(exchange, str, task.is_answer).parse())

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
