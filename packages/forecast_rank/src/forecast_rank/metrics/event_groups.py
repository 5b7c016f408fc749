"""Groups of events, which are resampled in place of events that are very many."""

import numpy as np

from forecast_rank.metrics.uncertainty import EventSums

MOST_EVENTS = 2_000
"""More events than this are resampled in as many groups: the cost of a bootstrap is events x resamples."""


def grouped_events(sums: EventSums, most: int = MOST_EVENTS, seed: int = 0) -> EventSums:
    """The sums with events dealt at random into at most `most` groups of almost the same number.

    Groups of independent events are independent, the mean is the same, and so is the skewness of a mean over them. The
    standard error of a mean from K groups instead of its events varies by about 1 / sqrt(2 K) of itself from deal to
    deal: 1.6 % with 2,000 groups, while a quantile at 97.5 % of 1,000 resamples varies by 4 %.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    most : int
    seed : int
        Of the deal; sums of the same events are dealt alike.

    Returns
    -------
    EventSums, shape (N, min(E, most))

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 3.8 (resampling groups).
    Kleiner, A., Talwalkar, A., Sarkar, P. and Jordan, M. I. (2014). A scalable bootstrap for massive data. Journal of
    the Royal Statistical Society B 76, 795-816 (why whole resamples are not needed).

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> sums = table_sums([[1.0, 2.0, 3.0, 4.0, 5.0]])
    >>> groups = grouped_events(sums, most=2)
    >>> groups.means.tolist(), sorted(groups.weights[0].tolist())
    ([3.0], [2.0, 3.0])
    """
    events = sums.sums.shape[1]
    if events <= most:
        return sums
    group = np.empty(events, dtype=np.int64)
    sizes = np.diff(np.arange(most + 1) * events // most)
    group[np.random.default_rng(seed).permutation(events)] = np.repeat(np.arange(most), sizes)
    return EventSums(*(np.array([np.bincount(group, row) for row in table]).reshape(-1, most) for table in sums))
