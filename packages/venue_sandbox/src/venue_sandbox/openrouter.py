"""OpenRouter's API in front of the personas: completions with their cost, outages, faults and refusals."""

import json
from collections import defaultdict, deque
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from threading import Lock
from typing import Any

from venue_sandbox import rows
from venue_sandbox.answer_formats import terse
from venue_sandbox.billing import BYOK_FEE, MAX_STORED, NO_CREDIT, Billing, refused
from venue_sandbox.exchange import Exchange
from venue_sandbox.forecasting import forecast, is_batch
from venue_sandbox.http_messages import EventStream, Reply, Request
from venue_sandbox.personas import PERSONAS, DecisionContext, Persona
from venue_sandbox.prompt import ModelRequest, Prompt
from venue_sandbox.script import USAGE, Failure, ModelAnswer, Script
from venue_sandbox.searching import Searches, offered_tool, search
from venue_sandbox.seeded_random import seeded_random

CHARACTERS_PER_TOKEN = 4
DEFAULT_MAX_TOKENS = 65_536
SHORT_ANSWER = 16_000
"""Tokens that a garbled model may use up; with more it comes to the end of its answer."""
OUTAGE = timedelta(hours=3)
FORESIGHT = timedelta(hours=18)  # lead of a well-informed forecaster over the crowd
OUTAGE_MESSAGES = {402: NO_CREDIT, 503: "Service temporarily unavailable"}
ANSWER_FAULTS = {
    "none": "a sound answer, to count those before the next fault",
    "byok": "the provider bills a key of the customer's own: the cost is the gateway's fee alone",
    "cut": "the connection closes in the middle",
    "endless": "with a search tool: the model uses up its searches and answers nothing",
    "error": "an error ends the stream in the middle, and nothing is billed",
    "excluded": "with a search tool: a search shows a page of an excluded host",
    "length": "reasoning uses up max_tokens, and the content is empty",
    "no_usage": "neither tokens nor cost are stated",
    "provider": "another provider answers",
    "stall": "the stream falls silent in the middle",
}
"""The faults of a model's answer that a client may switch on."""
ENDPOINT_FAULTS = {"missing": 404, "refused": 401, "down": 503}
"""The statuses that `models`, `generation`, `key` and `credits` may answer with."""


class OpenRouter:
    """The endpoints of the gateway, one method each."""

    def __init__(self, script: Script, exchange: Exchange, *more_exchanges: Exchange):
        self.script = script
        self.exchange = exchange
        self.billing = Billing()
        self._exchanges = (exchange, *more_exchanges)
        self._answers: dict[str, Reply] = {}
        self._faults: defaultdict[str, deque[str]] = defaultdict(deque)
        self._lock = Lock()
        self._last_days: dict[str, tuple[date, str | None]] = {}

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
            raise refused(400, 'expected {"id": …, "ends": "2026-03-20", "successor": …}') from None
        if model not in PERSONAS:
            raise refused(404, f"No such model: {model}")
        self._last_days[model] = (ends, successor)
        return self.models(request)

    def _listed(self, at: datetime) -> dict[str, tuple[Persona, date | None]]:
        """The models on offer by id, each with its announced end; a successor is offered from the announcement on."""
        listed: dict[str, tuple[Persona, date | None]] = {}
        for persona in PERSONAS.values():
            ends, successor = self._last_days.get(persona.id, (None, None))
            if ends is None or at.date() < ends:
                listed[persona.id] = (persona, ends)
            if successor is not None:
                listed[successor] = (replace(persona, id=successor, follows=persona.id), None)
        return listed

    def set_faults(self, request: Request) -> Reply:
        """Sets what is wrong with the next answers of a model or an endpoint, in their order.

        `{"model": id, "faults": ["none", "stall"]}`; `*` is any model that has no faults of its own. Or
        `{"endpoint": "generation", "faults": ["down"]}`.
        """
        body = request.json()
        expected = ANSWER_FAULTS if "model" in body else ENDPOINT_FAULTS
        if not set(body["faults"]) <= set(expected):
            raise refused(400, f"faults: expected some of {', '.join(expected)}")
        self._faults[body.get("model") or body["endpoint"]].extend(body["faults"])
        return Reply(200, {name: list(faults) for name, faults in self._faults.items()})

    def endpoint(self, request: Request, name: str) -> Reply:
        """The reply of the endpoint `models`, `generation`, `key` or `credits`."""
        with self._lock:
            fault = self._next_fault(name)
        if fault in ENDPOINT_FAULTS:
            raise refused(ENDPOINT_FAULTS[fault], f"the endpoint {name} is {fault}")
        if self.script.bills is not None and name != "models":
            return self._bill_by_hand(request.parameter("id") or name)
        billing = self.billing
        endpoints = {"generation": billing.generation, "key": billing.key, "credits": billing.credits}
        return endpoints.get(name, self.models)(request)

    def complete(self, request: Request) -> Reply:
        """A chat completion; a repeated idempotency key gets the stored one, unless the model is down."""
        body = _body(request)
        answer = self.script.answer(ModelRequest(body, dict(request.headers.items())))
        if answer is not None:
            return self._scripted(request, body["model"], answer)
        persona, _ = self._listed(request.at).get(body["model"], (None, None))
        if persona is None:
            raise refused(404, f"No endpoints found for {body['model']}.")
        if status := self._outage(persona, request.at):
            # The sandbox's clock stands still, so that waiting does not end an outage.
            raise refused(status, OUTAGE_MESSAGES[status], {"Retry-After": "0"})
        key = request.headers.get("Idempotency-Key")
        with self._lock:
            if key in self._answers:
                return self._answers[key]
            reply = self._complete(request, persona, body)
            if key is not None and not getattr(reply, "fault", ""):
                self._answers[key] = reply
            if len(self._answers) > MAX_STORED:
                del self._answers[next(iter(self._answers))]
            return reply

    def _scripted(self, request: Request, model: str, answer: Any) -> Reply:
        """The reply with an answer of the script. It is whole, even where a stream was asked for."""
        if isinstance(answer, Reply):
            return answer
        if isinstance(answer, Failure):
            error = refused(answer.status, f"scripted {answer.status}").reply.body
            return Reply(answer.status, answer.body or error, dict(answer.headers))
        if not isinstance(answer, ModelAnswer):
            answer = ModelAnswer(answer if isinstance(answer, str) else json.dumps(answer))
        message = {"content": answer.content, "refusal": answer.refusal}
        completion = rows.completion(
            id=f"gen-{len(self.script.asked)}",
            model=answer.returned_model or model,
            provider=answer.provider,
            created=int(request.at.timestamp()),
            message=message | ({"annotations": answer.annotations} if answer.annotations != () else {}),
            finish=answer.finish_reason,
            native_finish=answer.finish_reason,
        )
        usage = USAGE if answer.usage is None else answer.usage
        return Reply(200, completion | {"quantization": answer.quantization, "usage": usage})

    def _bill_by_hand(self, name: str) -> Reply:
        if data := (self.script.bills or {}).get(name):
            return Reply(200, {"data": data})
        raise refused(404, "not found")

    def _complete(self, request: Request, persona: Persona, body: dict[str, Any]) -> Reply:
        allowance, prices = body.get("max_tokens", DEFAULT_MAX_TOKENS), persona.prices
        prompt_tokens = sum(_tokens(message["content"]) for message in body["messages"])
        user = "\n".join(message["content"] for message in body["messages"] if message["role"] == "user")
        tool = offered_tool(body)
        if tool and "response_format" in body and persona.id.startswith("google/"):
            raise refused(400, "response_format is not supported beside tools")
        searches_price = tool.highest_price if tool else 0
        self.billing.check_funds(prompt_tokens * prices[0] + allowance * prices[1] + searches_price)
        text, finish = self._answer(persona, user, request.at, body.get("max_tokens"))
        if _tokens(text) > allowance:
            text, finish = text[: allowance * CHARACTERS_PER_TOKEN], "length"
        fault = self._next_fault(persona.id, "*")
        searches = Searches()
        if tool is not None:
            rng = seeded_random(self.exchange.seed, persona.id, "search", user, request.at.date())
            searches = search(tool, user, rng, fault=fault)
            prompt_tokens = searches.prompt_tokens(prompt_tokens)
        if tool is not None and fault == "endless":
            text, finish = "", "tool_calls"
        thought = 0
        if fault == "length":
            text, finish, thought = "", "length", allowance
        completion_tokens = thought or _tokens(text)
        prompt_cost, completion_cost = prompt_tokens * prices[0], completion_tokens * prices[1]
        cost = prompt_cost + completion_cost
        own_key = fault == "byok"
        billed = (cost * BYOK_FEE if own_key else cost) + searches.cost
        completion = _completion(persona, request, text, finish, fault) | {
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
                "cost": Decimal(0) if fault == "error" else billed,
                "is_byok": own_key,
                "prompt_tokens_details": {"cached_tokens": 0},
                "cost_details": {
                    "upstream_inference_cost": cost,
                    "upstream_inference_prompt_cost": prompt_cost,
                    "upstream_inference_completions_cost": completion_cost,
                },
                "completion_tokens_details": {"reasoning_tokens": thought},
            },
        }
        if tool is not None:
            completion["usage"]["server_tool_use_details"] = searches.usage
            completion["choices"][0]["message"]["annotations"] = list(searches.annotations)
        self.billing.add(completion, request.at)
        if fault == "no_usage":
            del completion["usage"]
        broken = fault if fault in ("cut", "error", "stall") else ""
        return EventStream(200, completion, fault=broken) if broken or body.get("stream") else Reply(200, completion)

    def _next_fault(self, *names: str) -> str:
        """The next fault of the first of these models or endpoints that has one."""
        queue = next((self._faults[name] for name in names if self._faults[name]), None)
        return queue.popleft() if queue else "none"

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
            return self.exchange.chances(question, at + FORESIGHT).get(side.casefold())

        decision = persona.decide(DecisionContext(prompt, rng, estimate))
        text, finish = persona.answer_format(decision, rng)
        return terse(decision, rng) if finish == "length" and patient else (text, finish)


def _body(request: Request) -> dict[str, Any]:
    """The request's body. Raises Refusal with 400 for an invalid one."""
    try:
        body = request.json()
    except ValueError:
        raise refused(400, "The body is not valid JSON") from None
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise refused(400, "No models provided")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refused(400, 'Input required: specify "prompt" or "messages"')
    if not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) and isinstance(m.get("content"), str) for m in messages
    ):
        raise refused(400, "messages: every message needs a role and content")
    allowance = body.get("max_tokens")
    if allowance is not None and (type(allowance) is not int or allowance < 1):
        raise refused(400, "max_tokens: expected a positive integer")
    return body


def _tokens(text: str) -> int:
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _completion(persona: Persona, request: Request, text: str, finish: str, fault: str) -> dict[str, Any]:
    """A completion without its usage. Its id is another one after a fault, as each generation's is."""
    created = int(request.at.timestamp())
    key = request.headers.get("Idempotency-Key", "")
    name = sha256(request.body + f"{key}{fault}".encode()).hexdigest()[:20]
    spent = fault == "length"
    return rows.completion(
        id=f"gen-{created}-{name}",
        model=persona.listing["canonical_slug"],
        provider=f"{persona.provider} elsewhere" if fault == "provider" else persona.provider,
        created=created,
        message={"content": None if spent else text, "reasoning": "Let me think." if spent else None},
        finish=finish,
        native_finish="max_tokens" if spent else finish,
    )
