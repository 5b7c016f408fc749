"""Constants of the leaderboards, without NumPy and SciPy, for the code that only reads stored leaderboards."""

from collections.abc import Sequence

TRADING, FORECAST = "trading", "forecast"
"""The protocols."""
ALL_METHODOLOGIES = ""
MARKET, UNIFORM, ENSEMBLE = "market", "uniform", "ensemble"
ENSEMBLE_MEDIAN, ENSEMBLE_EXTREMISED = "ensemble_median", "ensemble_extremised"
REFERENCES = (MARKET, UNIFORM, ENSEMBLE, ENSEMBLE_MEDIAN, ENSEMBLE_EXTREMISED)
SHOWN_REFERENCES = REFERENCES[:3]
"""The references in charts and short tables; the other ensembles lie close to the first."""
EXTREMISING = 1.5
"""Factor on the log odds of the mean forecast, which loses what only single forecasters know."""
RANKED_BY = ("adjusted_brier", "brier")
"""The scores that may rank the families: the adjusted one where coverage differs, else the plain one."""
SIGNIFICANCE = 0.05
"""The bound of corrected p: a difference is significant below it."""
GAMMAS = ("0", "0.5", "1")
"""Risk aversions of the averaged returns."""
DETECTABLE_DIFFERENCE = 5.0
"""The difference of two families' returns, in percentage points, that a comparison should be able to find."""
CLOSED, OPEN = TRACKS = "closed", "open"
"""The tracks of external agents."""
LEAST_QUESTIONS, LEAST_DECISIONS, LEAST_COVERAGE = 25, 4, 0.5
"""The least that a ranked agent answers: resolved questions, decisions, and the share of all since its first."""
RISK_SIMULATIONS = 10_000
"""Bettors at the market's own odds behind the figures of luck."""
TOTAL_LOSS = -100.0
"""In per cent: no portfolio loses more, and no interval says so."""
AFTER_CUTOFF = "after-cutoff"
"""The value of `created` that restricts a board to questions created after each model's knowledge cut-off."""
DAYS_AHEAD: Sequence[tuple[int, int | None]] = ((0, 1), (1, 3), (3, 7), (7, 14), (14, 30), (30, None))
"""Bins of the days from a forecast to the market's close: from, and below; the last one has no end."""
LEAST_COMPARED = 10
"""Resolved questions from which on it is said how often a model was closer than the market."""


def days_label(low: int, high: int | None) -> str:
    """A bin of days in words."""
    if high is None:
        return f"{low} and more"
    return f"{low} to {high}" if low else f"under {high}"
