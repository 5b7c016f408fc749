"""Discrimination: whether what happened was forecast higher than what did not."""

import numpy as np

from forecast_rank.metrics.distinct_pairs import distinct_pairs
from forecast_rank.metrics.flat_arrays import Floats, spans
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums, linearised_sums


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


def auc_sums(panel: Panel) -> EventSums:
    """`auc` as means over events, for its intervals and rank ranges.

    A cell's share in the error is how much more often than the area says it was on its right side: of an option that
    happened the mass that did not happen and was forecast lower, less the area, and the reverse of one that did not.
    Shares are summed by event.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    EventSums, shape (N, E)
        As of `uncertainty.linearised_sums`; without weight where the area is NaN.

    References
    ----------
    DeLong, E. R., DeLong, D. M. and Clarke-Pearson, D. L. (1988). Comparing the areas under two or more correlated
    receiver operating characteristic curves. Biometrics 44, 837-845. Obuchowski, N. A. (1997). Nonparametric analysis
    of clustered ROC curve data. Biometrics 53, 567-578.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.4], [0.4], [0.1]]], [[1], [1], [0], [0]], exclusive=False)
    >>> auc_sums(panel).means.tolist()
    [0.875]
    """
    area, (event_codes, event) = auc(panel), panel.events
    influence = np.zeros((len(event_codes), len(panel.forecasters)))
    forecasts_of = np.argsort(panel.forecaster, kind="stable")
    bounds = np.searchsorted(panel.forecaster[forecasts_of], np.arange(len(panel.forecasters) + 1))
    for person, pairs in distinct_pairs(panel):
        if np.isnan(area[person]):
            continue
        failed = pairs.mass - pairs.happened
        lower = (np.cumsum(failed) - failed / 2) / failed.sum()
        higher = 1 - (np.cumsum(pairs.happened) - pairs.happened / 2) / pairs.happened.sum()
        rows = forecasts_of[bounds[person] : bounds[person + 1]]
        sizes = panel.sizes[rows]
        cells = spans(panel.offsets[rows], sizes)
        place = np.searchsorted(pairs.probability, panel.probability[cells])
        weight = np.repeat(panel.weight[rows] / sizes, sizes)
        happened = weight * panel.outcome[cells]
        shares = happened * (lower[place] - area[person]) / pairs.happened.sum()
        shares += (weight - happened) * (higher[place] - area[person]) / failed.sum()
        influence[:, person] = np.bincount(np.repeat(event[rows], sizes), shares, len(event_codes))
        events = len(np.unique(event[rows]))
        influence[:, person] *= np.sqrt(events / max(events - 1, 1))
    return linearised_sums(panel, area, influence, event_codes)
