"""Any model as an agent, asked with the prompts of its task, which are the arena's own.

>>> from arena_agent.openrouter import ModelAgent
>>> class Mine(ModelAgent):
...     name = "mine"
...     model = "openai/gpt-5.2"

`OPENROUTER_API_KEY` is the key; `OPENROUTER_BASE_URL`, or `base_url` of the class, may name any OpenAI-compatible
address. To try prompts of your own, override `messages`; to ask several times, call `complete` from an own `forecast`.
"""

import asyncio
import logging
import os
import random
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from arena_agent.agent import Agent
from arena_agent.objects import ArenaTask

if TYPE_CHECKING:
    import httpx

BASE_URL = "https://openrouter.ai/api/v1"
TIMEOUT_SECONDS = 600.0
TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request is sent again."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
log = logging.getLogger("arena_agent")


class GatewayError(Exception):
    """The gateway gives no answer; the message says why."""


class GatewayBusy(GatewayError):
    """The gateway gives no answer for now; `retry_after` is the wait that it asks for, in seconds."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ModelAgent(Agent):
    """An agent that hands a task to a model, as the arena does, and its answer back."""

    model: ClassVar[str] = ""
    parameters: ClassVar[dict[str, Any]] = {"temperature": 0}
    base_url: ClassVar[str] = ""
    """By default OPENROUTER_BASE_URL, else OpenRouter."""
    key_variable: ClassVar[str] = "OPENROUTER_API_KEY"
    """The variable of the environment that holds the key; empty for an address that needs none."""
    retries: ClassVar[int] = 4
    """How often a request is sent again after a fault that may pass."""
    concurrency: ClassVar[int] = 4
    """The number of requests at once."""

    @cached_property
    def _turns(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.concurrency)

    def messages(self, task: ArenaTask) -> tuple[str, str]:
        """The system and the user message as the arena sends them to models, which are part of the task."""
        if not task.user_prompt:
            raise GatewayError("the task comes without its prompts")
        return task.system_prompt, task.user_prompt

    async def answer(self, task: ArenaTask) -> str:
        """The model's answer."""
        system, user = self.messages(task)
        return await self.complete(system, user)

    async def complete(self, system: str, user: str) -> str:
        """The text of the model's answer to two messages; what it cost is added to `cost_usd`. Raises GatewayError."""
        if not self.model:
            raise GatewayError("the agent names no model")
        key = os.environ.get(self.key_variable, "").strip() if self.key_variable else ""
        if self.key_variable and not key:
            raise GatewayError(f"{self.key_variable} is not set")
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        payload = {"model": self.model, "messages": messages, **self.parameters}
        pause = FIRST_PAUSE
        async with self._turns:
            for retries_left in range(self.retries, -1, -1):
                try:
                    return await self._ask(payload, key)
                except GatewayBusy as error:
                    if not retries_left:
                        raise
                    wait = max(pause * random.uniform(0.5, 1.5), error.retry_after)
                    log.warning("%s; again in %.1f s", error, wait)
                await asyncio.sleep(wait)
                pause = min(pause * 2, LONGEST_PAUSE)
        raise AssertionError("unreachable")

    async def _ask(self, payload: dict[str, Any], key: str) -> str:
        import httpx

        base = (self.base_url or os.environ.get("OPENROUTER_BASE_URL") or BASE_URL).rstrip("/")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as http:
                response = await http.post(f"{base}/chat/completions", json=payload, headers=headers)
        except httpx.TransportError as error:
            raise GatewayBusy(f"{base}: {error or type(error).__name__}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise GatewayError(f"{base}: {error or type(error).__name__}") from error
        try:
            body = response.json()
            if response.status_code != 200 or "error" in body:
                reason = f"{response.status_code} {str(body.get('error', body))[:300]}"
                raise _fault(response, _status(response, body), reason.replace(key, "…") if key else reason)
            self.cost_usd += float((body.get("usage") or {}).get("cost") or 0)
            text = body["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise _fault(response, response.status_code, f"{base} answers what no gateway would") from error
        if not isinstance(text, str) or not text.strip():
            raise GatewayError(f"{self.model} said nothing")
        return text


def _status(response: "httpx.Response", body: dict[str, Any]) -> Any:
    """The status of a fault: of the response, or the one that a gateway states in the body of a success."""
    return body["error"].get("code") if response.status_code == 200 else response.status_code


def _fault(response: "httpx.Response", status: Any, reason: str) -> GatewayError:
    """The error of a response, by whether it may pass."""
    if status not in TRANSIENT:
        return GatewayError(reason)
    text = response.headers.get("Retry-After", "")
    return GatewayBusy(reason, float(text) if re.fullmatch(r"\d{1,4}", text) else 0.0)
