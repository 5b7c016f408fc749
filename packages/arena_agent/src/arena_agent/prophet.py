"""Agents of Prophet Arena's SDK (`from arena import Agent`), played here unchanged.

`arena-agent check FILE` finds such an agent in FILE by itself. An event is a question: `slug` is its id, `title` its
text, `criteria` its rules, `crowd` its prices (empty where none are shown), `context` its evidence. What their agents
state is sent as it is: where `mutually_exclusive` is true, probabilities that do not sum to 1 within 0.02 are refused.
"""

from collections.abc import Awaitable
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any, ClassVar

from arena_agent.agent import Agent
from arena_agent.objects import ArenaTask, Forecast, Question

TRACKS = {"fixed_context": "closed", "agentic": "open"}
NO_CLOSE = datetime(9999, 12, 31, tzinfo=UTC)
"""The close of a question that names none; their events need one."""


class ProphetAgent(Agent):
    """An agent of theirs as one of ours."""

    theirs: ClassVar[type]

    def __init__(self) -> None:
        self._agent = self.theirs()

    def setup(self) -> None:
        """Their `setup`, if they have one."""
        if setup := getattr(self._agent, "setup", None):
            setup()

    def teardown(self) -> None:
        """Their `teardown`, if they have one."""
        if teardown := getattr(self._agent, "teardown", None):
            teardown()

    def on_error(self, task: ArenaTask | Question, error: Exception) -> None:
        """Their `on_error`, if they have one; it is told the event."""
        if isinstance(task, Question) and (hook := getattr(self._agent, "on_error", None)):
            hook(event_of(task), error)

    def forecast(self, question: Question) -> Forecast | Awaitable[Forecast]:
        """Their forecast of the question as an event."""
        event = event_of(question)
        if hasattr(self._agent, "forecast_async"):
            return self._wait(event)
        return _forecast_of(self._agent.forecast(event))

    async def _wait(self, event: Any) -> Forecast:
        return _forecast_of(await self._agent.forecast_async(event))


def is_prophet_agent(value: type) -> bool:
    """True for a class that inherits from the agent of the package `arena`."""
    return any(base.__name__ == "Agent" and base.__module__.split(".")[0] == "arena" for base in value.__mro__[1:])


def adapted(theirs: type) -> type[Agent]:
    """A class of theirs as a class of ours."""
    track = getattr(theirs, "track", "")
    members = {"theirs": theirs, "name": getattr(theirs, "name", ""), "track": TRACKS.get(track, track)}
    return type(theirs.__name__, (ProphetAgent,), members)


def event_of(question: Question) -> Any:
    """The question as an event: their own class where their package is installed."""
    event, outcome, source = _classes()
    close_at = datetime.fromisoformat(question.closes) if question.closes else NO_CLOSE
    return event(
        slug=question.id,
        title=question.text,
        criteria=question.rules,
        close_at=close_at if close_at.tzinfo else close_at.replace(tzinfo=UTC),
        outcomes=[outcome(name=option, criteria=question.rules) for option in question.options],
        crowd=dict(question.prices or {}),
        context=[source(title=text.title, url=text.url, summary=text.text) for text in question.evidence],
        mutually_exclusive=question.exclusive,
    )


def _classes() -> tuple[Any, Any, Any]:
    try:
        arena = import_module("arena")
        return arena.Event, arena.Outcome, arena.Source
    except (ImportError, AttributeError):
        return SimpleNamespace, SimpleNamespace, SimpleNamespace


def _forecast_of(answer: Any) -> Forecast:
    return Forecast(getattr(answer, "probabilities", answer), getattr(answer, "rationale", None) or "")
