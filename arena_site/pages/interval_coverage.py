"""How often the boards' 95 % intervals hold the true figure, measured in simulated worlds where it is known."""

from datetime import date
from typing import NamedTuple


class Coverage(NamedTuple):
    """The share of intervals that hold, in per cent, in the worst and in the best of the worlds.

    few, many : with 10 and with 50 events, or of returns with 6 and with 26 cohorts
    """

    figure: str
    few: tuple[float, float]
    many: tuple[float, float]


MEASURED_ON = date(2026, 11, 29)
SCORES_COMMAND = "python -m tests.benchmarks.coverage --worlds 100 --events 10 50"
RETURNS_COMMAND = "python -m tests.benchmarks.trading_intervals --worlds 400"
SCORES = (
    Coverage("Brier score", (96.6, 97.8), (96.2, 97.3)),
    Coverage("Adjusted Brier score", (96.6, 97.8), (96.1, 97.3)),
    Coverage("Alpha", (95.1, 97.1), (95.0, 96.3)),
    Coverage("Log score", (94.4, 97.2), (95.7, 97.2)),
)
"""The coverage that docs/which-metric.md lists: seven worlds of ten forecasters, from independent to heavy-tailed."""
RETURNS = Coverage("Mean return", (78, 99), (80, 98))
"""The coverage that docs/methodology.md lists: five worlds of weekly cohorts, two of which have rare shared wins."""
