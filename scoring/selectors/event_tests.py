"""Tests and intervals of mean differences on questions, bets and options, with events as clusters."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from forecast_rank import EventSums, mean_tests, to_json_value
from forecast_rank.metrics.sample_mean import cluster_interval
from forecast_rank.metrics.uncertainty import LEVEL


def difference_interval(
    differences: ArrayLike, events: Sequence[str], *, level: float = LEVEL
) -> tuple[float, float] | None:
    """The studentised interval over events, cut at -1 and 1; None for fewer than four events."""
    interval = cluster_interval(differences, events, level=level)
    return None if interval is None else (max(interval[0], -1.0), min(interval[1], 1.0))


def difference_test(differences: ArrayLike, events: Sequence[str]) -> dict[str, Any] | None:
    """The test of a mean difference against 0, whatever the sizes of the events; None where there is none."""
    values = np.asarray(differences, dtype=np.float64)
    if not len(values):
        return None
    _, codes = np.unique(np.asarray(events), return_inverse=True)
    sums = np.bincount(codes, values).astype(np.float64)
    weights = np.bincount(codes).astype(np.float64)
    tests = mean_tests(EventSums(sums[None, :], weights[None, :]))
    if np.isnan(tests.p[0]):
        return None
    figures = {name: to_json_value(getattr(tests, name)[0]) for name in ("se", "freedom", "p", "margin")}
    return figures | {"events": len(weights)}
