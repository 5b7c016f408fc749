"""Write, check, evaluate and run a forecasting agent of your own in Forecaster Arena.

>>> from arena_agent import Agent
>>> class Cautious(Agent):
...     name = "cautious"
...     track = "closed"
...
...     def forecast(self, question):
...         return question.market() or question.even()

HTTP, validation and scoring are imported by the commands that need them, so that importing the package is quick.
"""

from typing import TYPE_CHECKING, Any

from arena_agent.agent import Agent
from arena_agent.objects import ArenaTask, Bet, Evidence, Forecast, Market, Portfolio, Position, Question, Sell

if TYPE_CHECKING:
    from arena_agent.api import evaluate, run
    from arena_agent.openrouter import ModelAgent

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "ArenaTask",
    "Bet",
    "Evidence",
    "Forecast",
    "Market",
    "ModelAgent",
    "Portfolio",
    "Position",
    "Question",
    "Sell",
    "__version__",
    "evaluate",
    "run",
]
MODULES = {"evaluate": "arena_agent.api", "run": "arena_agent.api", "ModelAgent": "arena_agent.openrouter"}
"""Names whose modules are loaded at their first use."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(MODULES[name]), name)
