"""OpenRouter's API in front of the personas: completions with their cost, outages and refusals."""

from collections import OrderedDict, defaultdict, deque
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from threading import Lock
from typing import Any

from arena_site.sandbox.answer_formats import terse
from arena_site.sandbox.exchange import Exchange
from arena_site.sandbox.forecasting import forecast, is_batch
from arena_site.sandbox.http_messages import Refusal, Reply, Request
from arena_site.sandbox.personas import PERSONAS, DecisionContext, Persona
from arena_site.sandbox.prompt import Prompt
from arena_site.sandbox.seeded_random import seeded_random
from arena_site.sandbox.streaming import FAULTS, EventStream

MAX_STORED_ANSWERS = 10_000  # by idempotency key
CHARACTERS_PER_TOKEN = 4
SHORT_ANSWER = 16_000
"""Tokens that a garbled model may use up; with more it comes to the end of its answer."""
OUTAGE = timedelta(hours=3)
FORESIGHT = timedelta(hours=18)  # lead of a well-informed forecaster over the crowd
OUTAGE_MESSAGES = {
    402: "This request requires more credits, or fewer max_tokens. To increase, visit the settings page.",
    503: "Service temporarily unavailable",
}


class OpenRouter:
    """The endpoints of the gateway, one method each."""

    def __init__(self, exchange: Exchange, *others: Exchange):
        self.exchange = exchange
        self._exchanges = (exchange, *others)
        self._answers: OrderedDict[str, Reply] = OrderedDict()
        self._faults: defaultdict[str, deque[str]] = defaultdict(deque)
        self._lock = Lock()
        self._endings: dict[str, tuple[date, str | None]] = {}

    def models(self, request: Request) -> Reply:
        entries = [
            persona.listing | {"expiration_date": ends and ends.isoformat()}
            for persona, ends in self._listed(request.at).values()
        ]
        return Reply(200, {"data": entries})

    def end_model(self, request: Request) -> Reply:
        """Announces a model's last day, `{"id": …, "ends": "2026-03-20", "successor": id or null}`."""
        try:
            body = request.json()
            model, ends, successor = body["id"], date.fromisoformat(body["ends"]), body.get("successor")
        except (ValueError, TypeError, KeyError):
            raise _refused(400, 'expected {"id": …, "ends": "2026-03-20", "successor": …}') from None
        if model not in PERSONAS:
            raise _refused(404, f"No such model: {model}")
        self._endings[model] = (ends, successor)
        return self.models(request)

    def _listed(self, at: datetime) -> dict[str, tuple[Persona, date | None]]:
        """The models on offer by id, each with its announced end; a successor is offered from the announcement on."""
        listed: dict[str, tuple[Persona, date | None]] = {}
        for persona in PERSONAS.values():
            ends, successor = self._endings.get(persona.id, (None, None))
            if ends is None or at.date() < ends:
                listed[persona.id] = (persona, ends)
            if successor is not None:
                listed[successor] = (replace(persona, id=successor, follows=persona.id), None)
        return listed

    def set_faults(self, request: Request) -> Reply:
        """Sets what is wrong with the next answers of a model, in their order: {"model": …, "faults": ["stall"]}."""
        body = request.json()
        if not set(body["faults"]) <= set(FAULTS):
            raise _refused(400, f"faults: expected some of {', '.join(FAULTS)}")
        self._faults[body["model"]].extend(body["faults"])
        return Reply(200, {name: list(faults) for name, faults in self._faults.items()})

    def complete(self, request: Request) -> Reply:
        """A chat completion; a repeated idempotency key gets the stored one, unless the model is down."""
        body = _body(request)
        persona, _ = self._listed(request.at).get(body["model"], (None, None))
        if persona is None:
            raise _refused(404, f"No endpoints found for {body['model']}.")
        if status := self._outage(persona, request.at):
            # The sandbox's clock stands still, so that waiting does not end an outage.
            raise _refused(status, OUTAGE_MESSAGES[status], {"Retry-After": "0"})
        key = request.headers.get("Idempotency-Key")
        if key is None:
            return self._complete(request, persona, body)
        with self._lock:
            if key in self._answers:
                return self._answers[key]
        reply = self._complete(request, persona, body)
        with self._lock:
            if getattr(reply, "fault", ""):
                return reply
            reply = self._answers.setdefault(key, reply)
            if len(self._answers) > MAX_STORED_ANSWERS:
                self._answers.popitem(last=False)
        return reply

    def _complete(self, request: Request, persona: Persona, body: dict[str, Any]) -> Reply:
        allowance = body.get("max_tokens")
        text, finish = self._answer(persona, _message_text(body, "user"), request.at, allowance)
        if allowance is not None and _tokens(text) > allowance:
            text, finish = text[: allowance * CHARACTERS_PER_TOKEN], "length"
        prompt_tokens = sum(_tokens(_text(message)) for message in body["messages"])
        completion = _completion(persona, request, text, finish, prompt_tokens)
        faults = self._faults[persona.id]
        fault = faults.popleft() if faults else ""
        if fault == "provider":
            completion["provider"] = f"{persona.provider} elsewhere"
        elif fault == "length":
            completion["choices"][0] |= {"finish_reason": "length", "native_finish_reason": "max_tokens"}
            completion["choices"][0]["message"] |= {"content": None, "reasoning": "Let me think."}
            spent = {"completion_tokens": allowance, "completion_tokens_details": {"reasoning_tokens": allowance}}
            completion["usage"] |= spent
        elif fault or body.get("stream"):
            return EventStream(200, completion, fault=fault)
        return EventStream(200, completion) if body.get("stream") else Reply(200, completion)

    def _outage(self, persona: Persona, at: datetime) -> int | None:
        """The status of a persona's responses while it is down."""
        since = self.exchange.season.since(at)
        week, into = since // timedelta(weeks=1) + 1, since % timedelta(weeks=1)
        return persona.outages.get(week) if into < OUTAGE else None

    def _answer(self, persona: Persona, user: str, at: datetime, allowance: int | None) -> tuple[str, str]:
        patient = (allowance or 0) > SHORT_ANSWER
        try:
            if is_batch(user):
                return forecast(self._exchanges, persona, user, at, patient=patient)
            prompt = Prompt.read(user)
        except ValueError as why:
            return f"I can not answer this message: {why}.", "stop"
        rng = seeded_random(self.exchange.seed, persona.id, prompt.week, prompt.date, prompt.trailing_text)

        def estimate(question: str, side: str) -> float | None:
            return self._estimate(question, side, at + FORESIGHT)

        decision = persona.decide(DecisionContext(prompt, rng, estimate))
        text, finish = persona.answer_format(decision, rng)
        return terse(decision, rng) if finish == "length" and patient else (text, finish)

    def _estimate(self, question: str, side: str, at: datetime) -> float | None:
        market = self.exchange.by_question.get(question)
        sides = [outcome.casefold() for outcome in market.outcomes] if market else []
        if market is None or side.casefold() not in sides:
            return None
        return self.exchange.truth(market, at)[sides.index(side.casefold())]


def _body(request: Request) -> dict[str, Any]:
    """The request's body. Raises Refusal with 400 for an invalid one."""
    try:
        body = request.json()
    except ValueError:
        raise _refused(400, "The body is not valid JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise _refused(400, "No models provided")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _refused(400, 'Input required: specify "prompt" or "messages"')
    if not all(isinstance(message, dict) and isinstance(message.get("role"), str) for message in messages):
        raise _refused(400, "messages: every message needs a role and content")
    allowance = body.get("max_tokens")
    if allowance is not None and (type(allowance) is not int or allowance < 1):
        raise _refused(400, "max_tokens: expected a positive integer")
    return body


def _refused(status: int, message: str, headers: dict[str, str] | None = None) -> Refusal:
    return Refusal(Reply(status, {"error": {"message": message, "code": status}}, headers or {}))


def _message_text(body: dict[str, Any], role: str) -> str:
    return "\n".join(_text(message) for message in body["messages"] if message["role"] == role)


def _text(message: dict[str, Any]) -> str:
    """A message's text, whether its content is a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _completion(persona: Persona, request: Request, text: str, finish: str, prompt_tokens: int) -> dict[str, Any]:
    completion_tokens = _tokens(text)
    prices = persona.listing["pricing"]
    cost = prompt_tokens * Decimal(prices["prompt"]) + completion_tokens * Decimal(prices["completion"])
    created = int(request.at.timestamp())
    name = sha256(request.body + request.headers.get("Idempotency-Key", "").encode()).hexdigest()[:20]
    message = {"role": "assistant", "content": text, "refusal": None, "reasoning": None}
    return {
        "id": f"gen-{created}-{name}",
        "provider": persona.provider,
        "model": persona.listing["canonical_slug"],
        "object": "chat.completion",
        "created": created,
        "choices": [
            {"logprobs": None, "finish_reason": finish, "native_finish_reason": finish, "index": 0, "message": message}
        ],
        "system_fingerprint": None,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "cost": cost,
            "is_byok": False,
            "prompt_tokens_details": {"cached_tokens": 0},
            "cost_details": {"upstream_inference_cost": cost},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }
