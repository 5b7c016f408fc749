"""The trend of scores over the dates of forecasters: a least-squares line, its band, and where it meets a reference."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from forecast_rank.metrics.event_groups import grouped_events
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.uncertainty import (
    LEVEL,
    RESAMPLES,
    EventSums,
    bootstrap_means,
    resample_counts,
    tail_levels,
)

LEAST_DATES, LEAST_EVENTS = 3, 4
"""Different dates, and events of each forecaster, below which there is no trend."""


class Crossing(NamedTuple):
    """The date at which a trend meets a reference, and the ends of its interval."""

    x: float
    low: float
    high: float


class ScoreTrend(NamedTuple):
    """The line level + slope (x - center).

    Attributes
    ----------
    center : float
        The mean date.
    level, slope : float
        The line's value there, and its change for a unit of x.
    covariance : array, shape (2, 2)
        Of level and slope, over resamples of the events.
    quantile : float
        Student's t for both ends of an interval.
    """

    center: float
    level: float
    slope: float
    covariance: Floats
    quantile: float

    @property
    def slope_interval(self) -> tuple[float, float]:
        margin = self.quantile * math.sqrt(self.covariance[1, 1])
        return self.slope - margin, self.slope + margin

    def values(self, x: ArrayLike) -> Floats:
        """The line at some dates and the ends of its band there, (3, n)."""
        away = np.asarray(x, dtype=np.float64) - self.center
        line = self.level + self.slope * away
        (of_level, covariance), (_, of_slope) = self.covariance
        margin = self.quantile * np.sqrt(np.maximum(of_level + 2 * covariance * away + of_slope * away**2, 0.0))
        return np.stack([line, line - margin, line + margin])

    def crossing(self, reference: float = 0.0) -> Crossing | None:
        """Where the line meets a reference, with the dates at which its band holds it; None if they are unbounded.

        They are the roots of (a + b u)² = t² (V_aa + 2 u V_ab + u² V_bb) with u = x - center and a = level - reference,
        and bounded where b² > t² V_bb, that is, where the interval of the slope leaves out 0.

        References
        ----------
        Fieller, E. C. (1954). Some problems in interval estimation. Journal of the Royal Statistical Society B 16,
        175-185.
        """
        a, b, squared = self.level - reference, self.slope, self.quantile**2
        (of_level, covariance), (_, of_slope) = squared * self.covariance
        leading = b**2 - of_slope
        if leading <= 0:
            return None
        middle = -(a * b - covariance) / leading
        width = math.sqrt(max(0.0, middle**2 - (a**2 - of_level) / leading))
        return Crossing(self.center - a / b, self.center + middle - width, self.center + middle + width)


def score_trend(
    sums: EventSums, x: ArrayLike, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> ScoreTrend | None:
    """The least-squares line of forecasters' means over their dates; its errors are from resampled events.

    The errors are those of the questions that were asked, the same resamples for all forecasters. They do not say how
    other forecasters of the same dates would have scored. To compare with a reference that answered the same questions,
    give the sums of differences to it, and look for a crossing with 0; a reference that is one number is given to
    `ScoreTrend.crossing`.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    x : array, shape (N,)
        Dates as numbers; NaN leaves a forecaster out.
    level : float
        In (0, 1).
    resamples, seed : int

    Returns
    -------
    ScoreTrend or None
        None for fewer than three different dates of forecasters with at least four events each.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> sums = table_sums([[0.3, 0.5, 0.4, 0.4], [0.2, 0.4, 0.3, 0.3], [0.1, 0.3, 0.2, 0.2]])
    >>> trend = score_trend(sums, [0, 1, 2])
    >>> round(trend.level, 9), round(trend.slope, 9)
    (0.3, -0.1)
    """
    dates = np.asarray(x, dtype=np.float64)
    is_dated = ~np.isnan(dates) & (sums.events >= LEAST_EVENTS)
    dates, used_sums = dates[is_dated], EventSums(sums.sums[is_dated], sums.weights[is_dated])
    if len(np.unique(dates)) < LEAST_DATES:
        return None
    center = float(dates.mean())
    away = dates - center
    slopes = away / np.square(away).sum()
    groups = grouped_events(used_sums)
    draws = bootstrap_means(groups, resample_counts(groups.sums.shape[1], resamples, seed))
    draws = draws[~np.isnan(draws).any(axis=1)]  # a resample without an event of some forecaster has no line
    covariance = np.atleast_2d(np.cov(np.stack([draws.mean(axis=1), draws @ slopes])))
    events = int((used_sums.weights > 0).any(axis=0).sum())
    quantile = float(stdtrit(events - 1, tail_levels(level)[1]))
    means = used_sums.means
    return ScoreTrend(center, float(means.mean()), float(means @ slopes), covariance, quantile)
