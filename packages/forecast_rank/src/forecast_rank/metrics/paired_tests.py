"""Paired tests: every two forecasters on the questions that both answered."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr, stdtrit

from forecast_rank.metrics.blocks import row_slices
from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.pair_sums import by_event, event_errors
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums

DIFFERENCE = 0.01
"""The Brier difference that `PairedComparisons.questions_needed` asks about."""
POWER = 0.8
ALPHA = 0.05


class PairedComparisons(NamedTuple):
    """One row per pair of forecasters, P = N (N - 1) / 2, ordered by first, then second; arrays of shape (P,).

    Attributes
    ----------
    first, second : array of int
        Codes of the forecasters, first < second.
    n, events : array of int
        Common questions, and the number of their events.
    difference : array
        Mean of first less mean of second on the common questions; NaN without any.
    se : array
        Standard error clustered by event; NaN for fewer than two events.
    p : array
        Two-sided p-value of equal means; NaN where `se` is NaN, or 0 with a difference.
    p_holm, p_bh : array
        p corrected for the number of pairs, by Holm and by Benjamini and Hochberg.
    questions_needed : array
        Common questions needed at the corrected level; NaN where `se` is NaN or 0.
    questions_more : array
        Of these, how many are missing.
    margin : array
        See `corrected_margins`.
    weight, freedom : array
        Weights of the common questions, summed, and degrees of freedom of the test.
    """

    first: Codes
    second: Codes
    n: Codes
    events: Codes
    difference: Floats
    se: Floats
    p: Floats
    p_holm: Floats
    p_bh: Floats
    questions_needed: Floats
    questions_more: Floats
    margin: Floats
    weight: Floats
    freedom: Floats


def paired_tests(
    panel: Panel, values: Floats, *, difference: float = DIFFERENCE, power: float = POWER, alpha: float = ALPHA
) -> PairedComparisons:
    """Paired comparison of every two forecasters on their common questions.

    On question q, d_q is the difference of the two values and w_q the mean of the two weights. Over G common events
    with D_e = sum w_q d_q and W_e = sum w_q: difference m = sum D_e / sum W_e, its standard error and degrees of
    freedom those of `pair_sums.event_errors`, whatever the sizes of the events, and p from m / se by Student's t. The
    difficulty of the questions cancels, so that differences are found that intervals of two means do not show.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A score of each forecast; NaN leaves a forecast out. A forecaster with an infinite value has no mean: NaN in all
        their pairs.
    difference, power, alpha : float
        See `questions_needed`.

    Returns
    -------
    PairedComparisons

    Raises
    ------
    ValueError
        If `values` is not one per forecast, or for an argument of `questions_needed` out of range.

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22. Cameron, A. C. and Miller, D. L. (2015). A practitioner's guide to cluster-robust inference. Journal of Human
    Resources 50, 317-372.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays(np.full((2, 3, 2), 0.5), [[1, 0]] * 3)
    >>> pairs = paired_tests(panel, np.array([0.1, 0.2, 0.1, 0.3, 0.1, 0.4]))
    >>> pairs.difference.round(3).tolist(), pairs.se.round(4).tolist(), pairs.p.round(4).tolist()
    ([-0.2], [0.0577], [0.0742])
    """
    values = panel.one_per_forecast(values)
    forecaster_count = len(panel.forecasters)
    table, weights, starts = by_event(panel, values)
    rows: list[NDArray] = []
    for one in range(forecaster_count - 1):
        for rivals in row_slices(one + 1, forecaster_count, table.shape[1]):
            in_both = (weights[one] > 0) & (weights[rivals] > 0)
            weight = np.where(in_both, (weights[one] + weights[rivals]) / 2, 0.0)
            away = (table[one] - table[rivals]) * weight
            rows.append(_compare(away, weight, in_both.sum(axis=1), starts))
    n, events, gap, se, weight, freedom = np.concatenate(rows, axis=1) if rows else np.zeros((6, 0))
    endless = np.bincount(panel.forecaster[np.isinf(values)], minlength=forecaster_count) > 0
    first, second = np.triu_indices(forecaster_count, 1)
    unknown = endless[first] | endless[second]
    gap, se = np.where(unknown, np.nan, gap), np.where(unknown, np.nan, se)
    return corrected_tests(
        forecaster_count, n, events, gap, se, weight, freedom, difference=difference, power=power, alpha=alpha
    )


def corrected_tests(
    forecaster_count: int,
    n: Floats,
    events: Floats,
    gap: Floats,
    se: Floats,
    weight: Floats,
    freedom: Floats,
    *,
    difference: float = DIFFERENCE,
    power: float = POWER,
    alpha: float = ALPHA,
) -> PairedComparisons:
    """The tests of all pairs from their differences and standard errors, corrected for the number of pairs.

    Parameters
    ----------
    forecaster_count : int
        N.
    n, events, gap, se, weight, freedom : arrays, shape (N (N - 1) / 2,)
        Common questions, their events, difference and its standard error, summed weights, degrees of freedom, by first,
        then second.
    difference, power, alpha : float
        See `questions_needed`.

    Returns
    -------
    PairedComparisons

    References
    ----------
    Cameron, A. C. and Miller, D. L. (2015). A practitioner's guide to cluster-robust inference. Journal of Human
    Resources 50, 317-372.

    Examples
    --------
    >>> one = np.ones(1)
    >>> corrected_tests(2, 3 * one, 3 * one, -0.2 * one, 0.057735 * one, 3 * one, 2 * one).p.round(4).tolist()
    [0.0742]
    """
    first, second = np.triu_indices(forecaster_count, 1)
    p = _p(gap, se, freedom)
    claims = max(int((~np.isnan(p)).sum()), 1)
    questions = questions_needed(n, se, claims=claims, difference=difference, power=power, alpha=alpha)
    return PairedComparisons(
        first=first,
        second=second,
        n=n.astype(np.int64),
        events=events.astype(np.int64),
        difference=gap,
        se=se,
        p=p,
        p_holm=holm(p),
        p_bh=benjamini_hochberg(p),
        questions_needed=questions,
        questions_more=np.maximum(questions - n, 0),
        margin=corrected_margins(se, freedom, p, alpha=alpha),
        weight=weight,
        freedom=freedom,
    )


def questions_needed(
    n: ArrayLike,
    se: ArrayLike,
    *,
    claims: float = 1,
    difference: float = DIFFERENCE,
    power: float = POWER,
    alpha: float = ALPHA,
) -> Floats:
    """Common questions needed to detect a true difference at the level that is left to one of several claims.

    The ceiling of n (se (z_(1 - alpha / (2 claims)) + z_power) / difference)^2. The standard error is taken to fall
    with the square root of the number of questions: new questions cluster into events as the old ones do.

    Parameters
    ----------
    n : array
        Questions so far.
    se : array
        The standard error of the difference, clustered by event.
    claims : float
        Tests that are corrected together, or the factor by which one is.
    difference : float
        True difference to detect, above 0.
    power, alpha : float
        Probability of detecting it, and level of the test; in (0, 1).

    Returns
    -------
    array
        NaN where `se` is NaN or 0.

    Raises
    ------
    ValueError
        For a difference that is not above 0, or a power or alpha outside (0, 1).

    References
    ----------
    Cohen, J. (1988). Statistical Power Analysis for the Behavioral Sciences, 2nd ed., chapter 2.

    Examples
    --------
    >>> questions_needed(n=100, se=0.02).tolist()  # 100 (0.02 x 2.8016 / 0.01)^2 = 3139.6
    3140.0
    """
    if not difference > 0:
        raise ValueError(f"difference: above 0, not {difference}")
    for name, share in (("power", power), ("alpha", alpha)):
        if not 0 < share < 1:
            raise ValueError(f"{name}: between 0 and 1, not {share}")
    count, error = np.asarray(n, dtype=np.float64), np.asarray(se, dtype=np.float64)
    ratio = np.where(error > 0, error, np.nan) * (ndtri(1 - alpha / 2 / claims) + ndtri(power)) / difference
    return np.ceil(count * np.square(ratio))


class MeanTests(NamedTuple):
    """Tests of N means against 0; arrays of shape (N,).

    Attributes
    ----------
    mean, se, p, p_holm, margin : array
        NaN without a test: fewer than two events, or the same value on all.
    freedom, weight : array
        Degrees of freedom, and weights of the values, summed.
    """

    mean: Floats
    se: Floats
    p: Floats
    p_holm: Floats
    margin: Floats
    freedom: Floats
    weight: Floats


def mean_tests(sums: EventSums, *, alpha: float = ALPHA) -> MeanTests:
    """Two-sided t tests of means against 0, such as of alpha, corrected by Holm for their number.

    Parameters
    ----------
    sums : EventSums, shape (N, E)
    alpha : float
        In (0, 1), of the margins.

    Returns
    -------
    MeanTests
        With the errors of `pair_sums.event_errors` and the margins of `corrected_margins`.

    References
    ----------
    Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with multi-stage
    samples. Survey Methodology 28, 169-181.

    Examples
    --------
    >>> from forecast_rank.metrics.uncertainty import table_sums
    >>> mean_tests(table_sums([[0.2, 0.1, 0.3], [0.1, 0.1, 0.1]])).p.round(4).tolist()
    [0.0742, nan]
    """
    errors = event_errors(sums.sums, sums.weights)
    se = np.where(errors.se > 0, errors.se, np.nan)
    p = np.where(np.isnan(se), np.nan, _p(errors.mean, se, errors.freedom))
    margin = corrected_margins(se, errors.freedom, p, alpha=alpha)
    return MeanTests(errors.mean, se, p, holm(p), margin, errors.freedom, errors.weight)


def holm(p: ArrayLike) -> Floats:
    """p-values corrected so that the probability of any false rejection stays below the level.

    The i-th smallest of m becomes max_(j <= i) min(1, (m - j + 1) p_(j)).

    Parameters
    ----------
    p : array, shape (P,)
        NaN is not counted.

    Returns
    -------
    array, shape (P,)

    References
    ----------
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
    65-70.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    return _step(p, lambda ordered, m: np.maximum.accumulate(ordered * (m - np.arange(m))))


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """p-values corrected so that the expected share of false rejections stays below the level.

    The i-th smallest of m becomes min_(j >= i) min(1, m p_(j) / j). Valid for independent tests and under positive
    dependence. Pairs that share a forecaster are dependent: use it to screen, and `holm` to claim.

    Parameters
    ----------
    p : array, shape (P,)
        NaN is not counted.

    Returns
    -------
    array, shape (P,)

    References
    ----------
    Benjamini, Y. and Hochberg, Y. (1995). Controlling the false discovery rate. Journal of the Royal Statistical
    Society B 57, 289-300.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return _step(p, lambda ordered, m: np.minimum.accumulate((ordered * m / np.arange(1, m + 1))[::-1])[::-1])


def corrected_margins(se: ArrayLike, freedom: ArrayLike, p: ArrayLike, *, alpha: float = ALPHA) -> Floats:
    """Half widths of intervals of differences which leave out 0 exactly where Holm's correction finds a difference.

    Student's t SE at the level alpha / k, where k is the factor p_holm / p by which Holm corrects the pair, or the
    number of pairs where p_holm is 1. An interval without the correction can leave out 0 beside a p_holm above alpha.

    Parameters
    ----------
    se, freedom, p : arrays, shape (P,)
        Standard errors, degrees of freedom and p-values of all pairs.
    alpha : float
        In (0, 1).

    Returns
    -------
    array, shape (P,)
        NaN where `p` is NaN, or the standard error 0.

    References
    ----------
    Strassburger, K. and Bretz, F. (2008). Compatible simultaneous lower confidence bounds for the Holm procedure and
    other Bonferroni-based closed tests. Statistics in Medicine 27, 4914-4927, for intervals that fit Holm's tests;
    these are wider.

    Examples
    --------
    >>> corrected_margins([1.0, 1.0], [10, 10], [0.01, 0.4]).round(2).tolist()  # t at 2.5 % / 2, and at 2.5 %
    [2.63, 2.23]
    """
    raw, error = np.asarray(p, dtype=np.float64), np.asarray(se, dtype=np.float64)
    pairs, corrected = int((~np.isnan(raw)).sum()), holm(raw)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(corrected < 1, np.fmin(corrected / raw, pairs), pairs)
        return np.where(error > 0, stdtrit(freedom, 1 - alpha / 2 / factor) * error, np.nan)


def _compare(away: Floats, weight: Floats, n: Codes, starts: Codes) -> Floats:
    """Six figures of each row of weighted differences, (6, rows): questions, then those of `event_errors`."""
    if len(starts) < weight.shape[1]:
        away, weight = np.add.reduceat(away, starts, axis=1), np.add.reduceat(weight, starts, axis=1)
    errors = event_errors(away, weight)
    return np.stack([n, errors.events, errors.mean, errors.se, errors.weight, errors.freedom])


def _p(gap: Floats, se: Floats, freedom: Floats) -> Floats:
    statistic = np.divide(np.abs(gap), se, out=np.full(len(gap), np.nan), where=se > 0)
    p = 2 * stdtr(freedom, -statistic)
    # Differences that are all 0 give p = 1; equal differences other than 0 have no error to test by, p = NaN.
    return np.where((se == 0) & (gap == 0), 1.0, p)


def _step(p: ArrayLike, adjust: Callable[[Floats, int], Floats]) -> Floats:
    """Corrected p-values in the places of the raw ones; `adjust` gets the sorted known ones and their number."""
    raw = np.asarray(p, dtype=np.float64)
    result = np.full(raw.shape, np.nan)
    is_known = np.flatnonzero(~np.isnan(raw))
    if len(is_known):
        ordered = is_known[np.argsort(raw[is_known], kind="stable")]
        result[ordered] = np.minimum(adjust(raw[ordered], len(ordered)), 1.0)
    return result
