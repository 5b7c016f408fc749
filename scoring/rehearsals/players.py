"""Players of a rehearsal, which answer its tasks: the agent of a file, or a URL."""

import json
import time
from abc import ABC, abstractmethod
from typing import Any

import httpx

from arena_agent.loading import UnusableAgent
from arena_agent.worker import AgentEnded, AgentLate, AgentProcess

MAX_ANSWER_BYTES = 1_000_000
"""The API takes no longer answer either."""


class AgentFailure(Exception):
    """The agent gave no answer to a task; the message says why."""


class LateAnswer(AgentFailure):
    """The agent did not answer in time."""


class Player(ABC):
    """An agent that is handed tasks as the API shows them and gives back the text of its answers."""

    name: str
    forecasts = trades = True
    """The protocols that it plays."""

    @abstractmethod
    def answer(self, task: dict[str, Any], seconds: float) -> str:
        """The answer to a task. Raises AgentFailure, and LateAnswer after some seconds."""


class FilePlayer(Player):
    """The agent of a file of the package `arena_agent`, in a process of its own."""

    def __init__(self, process: AgentProcess) -> None:
        self._process = process
        card = process.card()
        self.name, self.forecasts, self.trades = card.name, card.forecasts, card.trades

    def answer(self, task: dict[str, Any], seconds: float) -> str:
        try:
            checked = self._process.answer(json.dumps(task), seconds)
        except AgentLate as error:
            raise LateAnswer(str(error)) from None
        except (AgentEnded, UnusableAgent, ValueError) as error:
            raise AgentFailure(str(error)) from None
        if checked.body is None:
            raise AgentFailure("; ".join(checked.faults) or "the agent gave no answer")
        return _usable(checked.body.encode("utf-8", "surrogatepass"))


class UrlPlayer(Player):
    """A URL to which each task is posted as JSON, and whose response is the answer."""

    def __init__(self, url: httpx.URL, client: httpx.Client) -> None:
        self._url, self._client = url, client
        self.name = url.host

    def answer(self, task: dict[str, Any], seconds: float) -> str:
        until, body = time.monotonic() + seconds, b""
        try:
            with self._client.stream("POST", self._url, json=task, timeout=seconds) as response:
                if response.status_code != httpx.codes.OK:
                    raise AgentFailure(f"{self._url.host} answered with HTTP status {response.status_code}")
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_ANSWER_BYTES:
                        break
                    if time.monotonic() > until:
                        raise LateAnswer(f"{self._url.host} did not answer within {seconds:.0f} seconds")
        except httpx.TimeoutException:
            raise LateAnswer(f"{self._url.host} did not answer within {seconds:.0f} seconds") from None
        except httpx.HTTPError as error:
            raise AgentFailure(f"{self._url.host}: {error}") from None
        return _usable(body)


def _usable(body: bytes) -> str:
    """The text of an answer that the API would take. Raises AgentFailure."""
    if len(body) > MAX_ANSWER_BYTES:
        raise AgentFailure(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise AgentFailure("the answer is not UTF-8") from None
    if not text.strip() or "\0" in text:
        raise AgentFailure("the answer is empty, or holds a NUL character")
    return text
