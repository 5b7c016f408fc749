"""Any model as an agent, asked with the prompts of its task, which are the arena's own.

>>> from arena_agent.openrouter import ModelAgent
>>> class Mine(ModelAgent):
...     name = "mine"
...     model = "openai/gpt-5.2"

`OPENROUTER_API_KEY` is the key; `OPENROUTER_BASE_URL` may name any OpenAI-compatible gateway. To try prompts of your
own, override `messages`.
"""

import os
from typing import Any, ClassVar

from arena_agent.agent import Agent
from arena_agent.objects import ArenaTask

BASE_URL = "https://openrouter.ai/api/v1"
TIMEOUT_SECONDS = 600.0


class GatewayError(Exception):
    """The gateway gives no answer; the message says why."""


class ModelAgent(Agent):
    """An agent that hands a task to a model, as the arena does, and its answer back."""

    model: ClassVar[str] = ""
    parameters: ClassVar[dict[str, Any]] = {"temperature": 0}

    def messages(self, task: ArenaTask) -> tuple[str, str]:
        """The system and the user message as the arena sends them to models, which are part of the task."""
        if not task.user_prompt:
            raise GatewayError("the task comes without its prompts")
        return task.system_prompt, task.user_prompt

    def answer(self, task: ArenaTask) -> str:
        """The model's answer."""
        system, user = self.messages(task)
        return complete(self.model, system, user, self.parameters)


def complete(model: str, system: str, user: str, parameters: dict[str, Any]) -> str:
    """The text of a model's answer to two messages. Raises GatewayError."""
    import httpx

    if not model:
        raise GatewayError("the agent names no model")
    base = (os.environ.get("OPENROUTER_BASE_URL") or BASE_URL).rstrip("/")
    key = os.environ.get("OPENROUTER_API_KEY", "").strip()
    if not key:
        raise GatewayError("OPENROUTER_API_KEY is not set")
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    try:
        response = httpx.post(
            f"{base}/chat/completions",
            json={"model": model, "messages": messages, **parameters},
            headers={"Authorization": f"Bearer {key}"},
            timeout=TIMEOUT_SECONDS,
        )
        body = response.json()
        if response.status_code != 200 or "error" in body:
            raise GatewayError(f"{response.status_code} {str(body.get('error', body))[:300]}".replace(key, "…"))
        text = body["choices"][0]["message"]["content"]
    except httpx.HTTPError as error:
        raise GatewayError(f"{base}: {error or type(error).__name__}") from error
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise GatewayError(f"{base} answers what no gateway would") from error
    if not isinstance(text, str) or not text.strip():
        raise GatewayError(f"{model} said nothing")
    return text
