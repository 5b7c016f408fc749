"""Means per unit where units share clusters, such as portfolios that share weeks: CR3 errors and paired tests."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.paired_tests import ALPHA, DIFFERENCE, POWER, PairedComparisons, corrected_tests, holm
from forecast_rank.metrics.uncertainty import LEVEL, tail_levels

NO_SPREAD = 1e-10
"""A standard error below this share of the values' size is rounding."""


class ClusterMeans(NamedTuple):
    """Means per unit with their standard errors; arrays of shape (N,).

    Attributes
    ----------
    value : array
        NaN without units.
    standard_error : array
        NaN for fewer than two clusters.
    freedom : array
        Degrees of freedom of Student's t; NaN for fewer than two clusters.
    """

    value: Floats
    standard_error: Floats
    freedom: Floats

    def intervals(self, level: float = LEVEL) -> Floats:
        """Student's intervals, (N, 2); NaN for fewer than two clusters, or where nothing varies between them."""
        _, high = tail_levels(level)
        half = stdtrit(self.freedom, high) * np.where(self.standard_error > 0, self.standard_error, np.nan)
        return np.stack([self.value - half, self.value + half], axis=1)


def cluster_means(sums: ArrayLike, observed: ArrayLike, units: ArrayLike) -> ClusterMeans:
    """Means per unit of sums over clusters, with CR3 standard errors, the jackknife's, by cluster.

    With Y_t the sum of the values in cluster t, n_t the number of units observed in it, G clusters and C units: the
    mean is sum Y / C, r_t = Y_t - (sum Y / sum n) n_t, h_t = n_t / sum n, SE = sqrt((G - 1) / G sum (r_t / (1 -
    h_t))^2) / C, and the degrees of freedom are max(1, min((sum Y^2)^2 / sum Y^4, (sum n)^2 / sum n^2 - 1)): few where
    few clusters hold most of the result, or most of the units.

    Parameters
    ----------
    sums, observed : arrays, shape (N, G)
        Y and n; a cluster in which no unit is observed takes no part.
    units : array, shape (N,)
        C. A unit may be observed in several clusters.

    Returns
    -------
    ClusterMeans

    Raises
    ------
    ValueError
        For a sum of a cluster in which no unit is observed, or shapes that do not match.

    References
    ----------
    Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28, 169-181. MacKinnon, J. G., Nielsen, M. O. and Webb, M. D. (2023). Cluster-robust
    inference: a guide to empirical practice. Journal of Econometrics 232, 272-299. The first bound of the degrees of
    freedom is Satterthwaite's, with Y^2 for the variance of a cluster.

    Examples
    --------
    >>> means = cluster_means([[1.0, 2.0, 3.0]], [[1, 1, 1]], [3])  # one unit a cluster: s / sqrt(n)
    >>> means.value.tolist(), means.standard_error.round(4).tolist(), means.freedom.round(4).tolist()
    ([2.0], [0.5774], [2.0])
    """
    total, count = (np.atleast_2d(np.asarray(table, dtype=np.float64)) for table in (sums, observed))
    divisor = np.asarray(units, dtype=np.float64)
    if total.shape != count.shape or divisor.shape != total.shape[:1]:
        shapes = f"{total.shape}, {count.shape} and {divisor.shape}"
        raise ValueError(f"sums, observed, units: shapes (N, G), (N, G) and (N,), not {shapes}")
    if ((count == 0) & (total != 0)).any():
        raise ValueError("sums: not 0 in a cluster in which no unit is observed")
    clusters, mass = (count > 0).sum(axis=1), count.sum(axis=1)
    is_known = clusters > 1
    with np.errstate(divide="ignore", invalid="ignore"):
        share = count / mass[:, None]
        residual = (total - total.sum(axis=1, keepdims=True) * share) / np.where(share < 1, 1 - share, np.nan)
        spread = np.sqrt((clusters - 1) / clusters * np.square(residual).sum(axis=1))
        spread = np.where(spread > NO_SPREAD * np.abs(total).sum(axis=1), spread, 0.0)
        squares = np.square(total)
        freedom = np.fmin(
            squares.sum(axis=1) ** 2 / np.square(squares).sum(axis=1), 1 / np.square(share).sum(axis=1) - 1
        )
        value, error = total.sum(axis=1) / divisor, spread / divisor
    value = np.where(divisor > 0, value, np.nan)
    return ClusterMeans(value, np.where(is_known, error, np.nan), np.where(is_known, np.maximum(freedom, 1.0), np.nan))


def observed_means(values: ArrayLike) -> ClusterMeans:
    """`cluster_means` of each forecaster's units, observed in some of the clusters.

    Parameters
    ----------
    values : array, shape (N, U, G)
        The value of each unit in each cluster; NaN where it is not observed.

    Returns
    -------
    ClusterMeans

    Examples
    --------
    >>> nan = np.nan
    >>> observed_means([[[4.0, 2.0, nan], [nan, 1.0, -1.0]]]).value.tolist()  # units of 6 and 0
    [3.0]
    """
    table = np.asarray(values, dtype=np.float64)
    is_present = ~np.isnan(table)
    return cluster_means(np.nan_to_num(table).sum(axis=1), is_present.sum(axis=1), is_present.any(axis=2).sum(axis=1))


def paired_by_cluster(
    values: ArrayLike,
    *,
    least_units: int = 1,
    difference: float = DIFFERENCE,
    power: float = POWER,
    alpha: float = ALPHA,
) -> PairedComparisons:
    """Paired comparison of every two forecasters on their common units, by cluster.

    The differences of the common units are summed by cluster and tested by `cluster_means`. Units that share clusters
    are no independent trials: tests by unit claim differences between equals in most worlds of overlapping portfolios.

    Parameters
    ----------
    values : array, shape (N, U, G)
        The value of each forecaster's unit in each cluster; NaN where it is not observed. Where only one of two is
        observed, the other's value is 0.
    least_units : int
        Fewer common units give no test.
    difference, power, alpha : float
        See `paired_tests.questions_needed`, with units for questions.

    Returns
    -------
    PairedComparisons
        With units for questions and clusters for events.

    References
    ----------
    See `cluster_means`, and `paired_tests.holm` for the correction.

    Examples
    --------
    >>> tests = paired_by_cluster([[[3.0, 2.0, 4.0]], [[1.0, 1.0, 1.0]]])
    >>> tests.difference.tolist(), tests.se.round(4).tolist(), tests.p.round(4).tolist()  # 2, 1, 3: p of t = 3.4641
    ([6.0], [1.7321], [0.0742])
    """
    table = np.asarray(values, dtype=np.float64)
    forecaster_count, _, clusters = table.shape
    is_present = ~np.isnan(table)
    filled = np.nan_to_num(table)
    plays = is_present.sum(axis=2) > 0
    first, second = np.triu_indices(forecaster_count, 1)
    away, observed = np.zeros((len(first), clusters)), np.zeros((len(first), clusters))
    common = plays[first] & plays[second]
    for pair, (first_player, second_player) in enumerate(zip(first, second, strict=True)):
        in_both = plays[first_player] & plays[second_player]
        away[pair] = (filled[first_player, in_both] - filled[second_player, in_both]).sum(axis=0)
        observed[pair] = (is_present[first_player, in_both] | is_present[second_player, in_both]).sum(axis=0)
    units, events = common.sum(axis=1), (observed > 0).sum(axis=1)
    means = cluster_means(away, observed, units)
    error = np.where(units >= least_units, means.standard_error, np.nan)
    return corrected_tests(
        forecaster_count,
        units,
        events,
        means.value,
        error,
        freedom=means.freedom,
        difference=difference,
        power=power,
        alpha=alpha,
    )


def rank_ranges_of_tests(tests: PairedComparisons, forecasters: int, *, level: float = LEVEL) -> Floats:
    """Ranges of ranks from paired tests of all pairs, the higher value better, which hold together with `level`.

    A forecaster's best rank is 1 plus the number of those who are significantly better after Holm's correction, the
    worst is the number of forecasters less that of those who are significantly worse. So a range never contradicts a
    test.

    Parameters
    ----------
    tests : PairedComparisons
        Of all pairs.
    forecasters : int
        N.
    level : float
        In (0, 1).

    Returns
    -------
    array, shape (N, 2)

    References
    ----------
    Mogstad, M., Romano, J. P., Shaikh, A. M. and Wilhelm, D. (2024). Inference for ranks with applications to mobility
    across neighbourhoods and academic achievement across countries. Review of Economic Studies 91, 476-518.

    Examples
    --------
    >>> tests = paired_by_cluster([[[3.0, 3.1, 2.9, 3.0]], [[1.0, 1.1, 1.0, 1.0]], [[1.0, 1.0, 1.1, 1.0]]])
    >>> rank_ranges_of_tests(tests, 3).tolist()
    [[1.0, 1.0], [2.0, 3.0], [2.0, 3.0]]
    """
    tail_levels(level)
    claimed = holm(tests.p) < 1 - level
    first_wins, second_wins = claimed & (tests.difference > 0), claimed & (tests.difference < 0)
    better = np.bincount(tests.second, first_wins, forecasters) + np.bincount(tests.first, second_wins, forecasters)
    worse = np.bincount(tests.first, first_wins, forecasters) + np.bincount(tests.second, second_wins, forecasters)
    return np.stack([1 + better, forecasters - worse], axis=1)
