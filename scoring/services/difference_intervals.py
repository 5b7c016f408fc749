"""Intervals of means of differences between two values from 0 to 1."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from forecast_rank.metrics.sample_mean import cluster_interval
from forecast_rank.metrics.uncertainty import LEVEL


def difference_interval(
    differences: ArrayLike, events: Sequence[str], *, level: float = LEVEL
) -> tuple[float, float] | None:
    """The studentised interval over events, cut at -1 and 1; None for fewer than four events."""
    interval = cluster_interval(differences, events, level=level)
    return None if interval is None else (max(interval[0], -1.0), min(interval[1], 1.0))
