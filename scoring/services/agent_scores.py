"""Scores of external agents adjusted for the questions that each answered, without a say of one agent in another's.

The difficulty of a question comes from models and references alone: everyone's score is the mean of the forecasts'
Brier scores less that difficulty, with events as clusters.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from forecast_rank.metrics.difficulty_adjustment import adjusted_brier
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.simultaneous_ranks import simultaneous_rank_ranges
from forecast_rank.metrics.skill import market_probability
from forecast_rank.metrics.studentised import studentised_interval
from forecast_rank.metrics.uncertainty import EventSums, event_sums, resample_counts
from scoring.constants import MARKET, UNIFORM
from scoring.selectors.forecast_panels import ResolvedEntry, joint_panel_with_lines

LINES = (MARKET, UNIFORM)


class AdjustedScore(NamedTuple):
    """A score adjusted for the questions answered, its interval, and the mean distance to the market's price.

    The interval ends at 0 and 1, the bounds of a Brier score, or at a value beyond them.
    """

    value: float | None
    interval: list[float] | None
    price_distance: float | None


class AgentScores:
    """The adjusted scores of models, lines and agents on all entries of a board's condition."""

    def __init__(self, entries: Sequence[ResolvedEntry], models: Collection[str], agents: Collection[str]) -> None:
        self.names = [*models, *LINES, *agents]
        self._panel = joint_panel_with_lines(entries, self.names)
        has_say = len(self.names) - len(agents)
        self._sums = _adjusted_sums(self._panel, has_say)

    def scores(self) -> dict[str, AdjustedScore]:
        """The scores by name."""
        if not len(self._panel):
            return {}
        counts = resample_counts(self._sums.sums.shape[1])
        intervals, distances = studentised_interval(self._sums, counts), _price_distances(self._panel)
        scores = {}
        for place, name in enumerate(self.names):
            value, distance = _number(self._sums.means[place]), _number(distances[place])
            interval = None
            if value is not None and not np.isnan(intervals[place]).any():
                low, high = intervals[place].tolist()
                interval = [max(low, min(0.0, value)), min(high, max(1.0, value))]
            scores[name] = AdjustedScore(value, interval, None if name == MARKET else distance)
        return scores

    def rank_ranges(self, competitors: Iterable[str]) -> dict[str, list[int]]:
        """The rank range of each competitor among them all."""
        places = [self.names.index(name) for name in competitors]
        if len(places) == 0:
            return {}
        ranges = simultaneous_rank_ranges(EventSums(self._sums.sums[places], self._sums.weights[places]))
        known = {}
        for place, (low, high) in zip(places, ranges.tolist(), strict=True):
            if low == low:  # not NaN
                known[self.names[place]] = [int(low), int(high)]
        return known


def _adjusted_sums(panel: Panel, has_say: int) -> EventSums:
    """Brier scores less the questions' difficulties, as sums by events; `has_say` forecasters make the difficulties."""
    scores = brier(panel)
    is_base = panel.forecaster < has_say
    base = panel.take(is_base)
    fit = adjusted_brier(base, scores[is_base]).value
    residual, weight = scores[is_base] - fit[base.forecaster], base.weight
    is_known = ~np.isnan(residual)
    size = len(panel.questions)
    mass = np.bincount(base.question[is_known], weight[is_known], size)
    total = np.bincount(base.question[is_known], (weight * residual)[is_known], size)
    difficulty = np.divide(total, mass, out=np.full(size, np.nan), where=mass > 0)
    return event_sums(panel, scores - difficulty[panel.question])


def _price_distances(panel: Panel) -> Any:
    """Each forecaster's mean distance to the market's probabilities, over options; NaN without a price."""
    market = market_probability(panel)
    gaps = panel.sum_cells(np.abs(panel.probability - market)) / panel.sizes
    return event_sums(panel, gaps).means


def _number(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
