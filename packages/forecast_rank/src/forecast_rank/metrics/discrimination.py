"""Discrimination: whether what happened was forecast higher than what did not."""

import numpy as np

from forecast_rank.metrics.distinct_pairs import distinct_pairs
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel


def auc(panel: Panel) -> Floats:
    """The area under the ROC curve of each forecaster.

    It is the chance that an option that happened was forecast higher than one that did not, ties counted half:
    sum_ij w_i w_j (1[p_i > p_j] + 1[p_i = p_j] / 2) / (sum_i w_i sum_j w_j) over the pairs i that happened and j that
    did not, of all questions together and weighted w/n as in the calibration. A fractional outcome o counts as o that
    happened and 1 - o that did not. A question with two exclusive options gives both p and 1 - p.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (N,)
        In [0, 1], higher is better, 0.5 for forecasts that are all the same; NaN where everything or nothing happened.

    References
    ----------
    Hanley, J. A. and McNeil, B. J. (1982). The meaning and use of the area under a receiver operating characteristic
    (ROC) curve. Radiology 143, 29-36. Mason, S. J. and Graham, N. E. (2002). Areas beneath the relative operating
    characteristics (ROC) and relative operating levels (ROL) curves. Quarterly Journal of the Royal Meteorological
    Society 128, 2145-2166.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.4], [0.4], [0.1]]], [[1], [1], [0], [0]], exclusive=False)
    >>> auc(panel).tolist()  # of four pairs three are in order and one is a tie
    [0.875]
    """
    area = np.full(len(panel.forecasters), np.nan)
    for person, pairs in distinct_pairs(panel):
        if pairs.any_happened.any() and pairs.any_failed.any():
            failed = pairs.mass - pairs.happened
            lower = np.cumsum(failed) - failed
            area[person] = pairs.happened @ (lower + failed / 2) / (pairs.happened.sum() * failed.sum())
    return area
