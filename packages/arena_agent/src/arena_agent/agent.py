"""The base class of agents."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from arena_agent.objects import ArenaTask, Bet, Forecast, Market, Portfolio, Question, Sell

TRACKS = ("closed", "open")


class Agent:
    """An agent: give it a `name`, a `track`, and `forecast`, `trade` or both; each may be `async`.

    On the track `closed` an agent uses only what the task shows; on `open` it may use anything.
    """

    name: ClassVar[str] = ""
    track: ClassVar[str] = "closed"
    version: ClassVar[int | None] = None
    """The number of the version that is registered; None plays under whichever is."""
    cost_usd: float = 0.0
    """The dollars spent so far: an agent that buys answers adds to it."""

    def setup(self) -> Awaitable[None] | None:
        """Opens what the agent needs, once before its first task."""

    def teardown(self) -> Awaitable[None] | None:
        """Closes what `setup` opened, once after the last task."""

    def on_error(self, task: ArenaTask | Question, error: Exception) -> None:
        """Is told each exception of the agent, with the question or the task at which it arose."""

    def forecast(self, question: Question) -> Mapping[str, Any] | Forecast | Awaitable[Mapping[str, Any] | Forecast]:
        """A probability for each option of a question."""
        raise NotImplementedError

    def trade(
        self, portfolio: Portfolio, markets: Sequence[Market]
    ) -> Sequence[Bet | Sell] | Awaitable[Sequence[Bet | Sell]]:
        """Bets, or sales of positions; an empty list holds."""
        raise NotImplementedError

    def answer(self, task: ArenaTask) -> str | Awaitable[str]:
        """The whole answer to a task as text, in the models' own format; for agents that wrap a model."""
        raise NotImplementedError

    @classmethod
    def overrides(cls, method: str) -> bool:
        """True if the agent defines the method itself."""
        return getattr(cls, method) is not getattr(Agent, method)
