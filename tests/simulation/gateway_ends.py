"""The ends of a model's answer among which a world chooses, each as a script of the gateway.

Bodies follow the shapes of recorded answers: streamed or whole, ended by every reason that a provider has stated.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.answers import HOLD
from venue_sandbox.http_messages import Reply
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Answer, Failure, ModelAnswer

USAGE = {"prompt_tokens": 900, "completion_tokens": 40, "cost": 0.002}
EVENT = b"data: "
WAIT = {"id": "g", "choices": [{"message": {"content": "Wait."}, "finish_reason": "stop"}], "usage": USAGE}


def answer_of(dice: Random) -> Callable[[ModelRequest], Any]:
    """A sensible answer to whatever is asked: bets and sales at random, or a probability for each option."""
    seed = dice.random()

    def answer(prompt: ModelRequest) -> Any:
        chance = Random(seed)
        return _forecasts(prompt, chance) if "\nQUESTIONS\n" in prompt.user else _decision(prompt, chance)

    return answer


def _forecasts(prompt: ModelRequest, chance: Random) -> Any:
    forecasts = []
    for question in prompt.questions:
        first = round(chance.uniform(0.05, 0.9), 3)
        share = (1 - first) / (len(question["options"]) - 1)
        others = dict.fromkeys(question["options"][1:], share)
        vector = {question["options"][0]: first, **others}
        forecasts.append({"question_id": question["question_id"], "probabilities": vector, "rationale": "because"})
    return {"forecasts": forecasts}


def _decision(prompt: ModelRequest, chance: Random) -> Any:
    if prompt.positions and chance.random() < 0.4:
        held = chance.choice(prompt.positions)
        percentage = chance.choice([25, 50, 100, 33.3, 0])
        sells = [{"position_id": held["position_id"], "percentage": percentage}]
        return {"action": "SELL", "sells": sells, "reasoning": "less of it"}
    bets = []
    for market in chance.sample(prompt.markets, k=min(3, len(prompt.markets))):
        side = chance.choice(list(market["prices"]))
        amount = chance.choice([50, 123.45, 900, 40, 9000])
        bets.append({"market_id": market["market_id"], "side": side, "amount": amount})
    return {"action": "BET", "bets": bets, "reasoning": "more of it"} if bets else HOLD


def streamed(dice: Random, *, end: Any = "stop", native: Any = "stop", done: bool = True, cut: bool = False) -> Answer:
    """A sensible answer as a stream in three pieces, ended or cut as told."""
    script = answer_of(dice)

    def answer(prompt: ModelRequest) -> Reply:
        text = json.dumps(script(prompt))
        pieces = [text[:7], text[7 : len(text) // 2], "" if cut else text[len(text) // 2 :]]
        events = [_event(prompt, {"delta": {"content": piece}}) for piece in pieces]
        last = {"delta": {"content": ""}, "finish_reason": end, "native_finish_reason": native}
        events.append(_event(prompt, last, usage=USAGE))
        return _stream(events, done=done)

    return answer


def damaged(dice: Random) -> Answer:
    """A sensible stream in which one event can not be read."""
    script, place = answer_of(dice), dice.randrange(3)

    def answer(prompt: ModelRequest) -> Reply:
        text = json.dumps(script(prompt))
        events = [_event(prompt, {"delta": {"content": piece}}) for piece in (text[:9], text[9:30], text[30:])]
        events[place] = events[place][: len(events[place]) // 2]
        events.append(_event(prompt, {"delta": {}, "finish_reason": "stop"}, usage=USAGE))
        return _stream(events, done=True)

    return answer


def _event(prompt: ModelRequest, choice: Any, **body: Any) -> bytes:
    return json.dumps({"id": "gen-1", "model": prompt.model, "choices": [{"index": 0, **choice}], **body}).encode()


def _stream(events: list[bytes], *, done: bool) -> Reply:
    lines = [EVENT + event + b"\n\n" for event in events]
    content = b"".join([*lines, EVENT + b"[DONE]\n\n"] if done else lines)
    return Reply(200, content, {"Content-Type": "text/event-stream"})


def _fixed(**fields: Any) -> Callable[[Random], Answer]:
    return lambda dice: ModelAnswer(**fields)


def _failing(status: int) -> Callable[[Random], Answer]:
    return lambda dice: Failure(status)


ENDS: dict[str, Callable[[Random], Answer]] = {
    "a stream": streamed,
    "a stream without reasons": lambda dice: streamed(dice, end=None, native=None),
    "a stream without [DONE]": lambda dice: streamed(dice, end=None, native=None, done=False),
    "a stream cut by the network": lambda dice: streamed(dice, end="network_error", native="network_error", cut=True),
    "a stream cut by its length": lambda dice: streamed(dice, end="length", native="max_tokens", cut=True),
    "a stream with an unreadable event": damaged,
    "prose": _fixed(content="I would rather wait."),
    "prose, no native reason": lambda dice: Reply(200, WAIT),
    "nothing, unbilled": _fixed(content="", usage={"prompt_tokens": 900, "completion_tokens": 0, "cost": 0}),
    "nothing, billed": _fixed(content="", usage=USAGE),
    "nothing, by the network": _fixed(content="", finish_reason="network_error"),
    "nothing, out of resources": _fixed(content="", finish_reason="insufficient_system_resource"),
    "nothing, cut": _fixed(content="", finish_reason="length"),
    "a refusal": _fixed(content=None, refusal="I can not help with that."),
    "an answer by another model": _fixed(content=json.dumps(HOLD), returned_model="another/maker"),
    "two objects": _fixed(content=json.dumps(HOLD) + json.dumps(HOLD | {"action": "BET", "bets": []})),
    "402": _failing(402),
    "404": _failing(404),
    "429": _failing(429),
    "503": _failing(503),
}
