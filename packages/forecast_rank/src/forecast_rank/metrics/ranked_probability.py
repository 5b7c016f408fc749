"""Ranked probability score: for options in an order, such as the rungs of a ladder of numbers."""

import numpy as np

from forecast_rank.metrics.blocks import by_blocks
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import settled


@by_blocks
def ranked_probability(panel: Panel) -> Floats:
    """The ranked probability score of each forecast, (1/(n-1)) sum_(k<n) (P_k - O_k)^2 of cumulated p and o.

    The options are taken in the order of the question's first forecast. Unlike the Brier score it charges less for
    probability beside the option that happened than for probability far from it. Where options are not exclusive, such
    as nested thresholds ("above 100", "above 110"), each states a cumulated probability itself: the score is the mean
    of (p_k - o_k)^2.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (F,)
        In [0, 1], lower is better; NaN where `settled` is false. The Brier score on a question with two options.

    References
    ----------
    Epstein, E. S. (1969). A scoring system for probability forecasts of ranked categories. Journal of Applied
    Meteorology 8, 985-987. Murphy, A. H. (1971). A note on the ranked probability score. Journal of Applied Meteorology
    10, 155-156 (this form).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> near, far = [[0.2, 0.8, 0.0]], [[0.2, 0.0, 0.8]]  # the first option happened
    >>> ranked_probability(from_arrays([near, far], [[1, 0, 0]])).round(2).tolist()
    [0.32, 0.64]
    """
    errors = panel.probability - panel.outcome
    total = np.cumsum(errors)
    before = np.concatenate([[0.0], total])[panel.offsets[:-1]]
    cumulated = np.where(panel.spread(panel.exclusive), total - panel.spread(before), errors)
    last = np.zeros(len(errors), dtype=bool)
    last[panel.offsets[1:] - 1] = True
    is_counted = ~last | ~panel.spread(panel.exclusive)
    steps = np.where(panel.exclusive, panel.sizes - 1, panel.sizes)
    squares = panel.sum_cells(np.where(is_counted, np.square(cumulated), 0.0))
    score = np.divide(squares, steps, out=np.zeros(len(panel)), where=steps > 0)
    return np.where(settled(panel), score, np.nan)
