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

from arena_agent.agent import Agent
from arena_agent.objects import Bet, Evidence, Forecast, Market, Portfolio, Position, Question, Sell

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Bet",
    "Evidence",
    "Forecast",
    "Market",
    "Portfolio",
    "Position",
    "Question",
    "Sell",
    "__version__",
]
