"""Calibration: whether 70 % of the options forecast at 70 % happened.

All functions use the *pairs* (p_k, o_k) of an option's probability and outcome, each with the forecast's weight over
the number n of its options. A forecast so weighs the same whatever its number of options, and the weighted mean of (p -
o)^2 over pairs is the Brier score in its mean form.

A bin includes its lower edge and excludes its upper edge; the last bin includes both. Bins have equal width, edges b/B,
or equal count: edges at the quantiles of a forecaster's own pairs, with equal probabilities in one bin, so that there
may be fewer bins. Rounding is compensated: 0.3 falls in the bin that begins at 0.3.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from forecast_rank.metrics.blocks import CELLS, block_slices, by_blocks
from forecast_rank.metrics.calibration_bins import Kind, bin_pairs
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel

BINS = 10
LEVEL = 0.95


class ReliabilityCurve(NamedTuple):
    """The reliability curve of each forecaster.

    Attributes
    ----------
    edges : array, shape (N, B + 1)
        NaN beyond a forecaster's last bin, where equal counts make fewer bins.
    forecast, outcome : arrays, shape (N, B)
        Weighted means of p and o in each bin; NaN in an empty bin.
    weight : array, shape (N, B)
        Share of the forecaster's weight; sums to 1.
    pairs : array of int, shape (N, B)
    low, high : arrays, shape (N, B)
        Wilson interval of the mean outcome; NaN in an empty bin.
    """

    edges: Floats
    forecast: Floats
    outcome: Floats
    weight: Floats
    pairs: NDArray[np.int64]
    low: Floats
    high: Floats


class MurphyDecomposition(NamedTuple):
    """Terms of each forecaster's Brier score, all of shape (N,); see `murphy_decomposition`."""

    brier: Floats
    reliability: Floats
    resolution: Floats
    uncertainty: Floats
    within_bin_variance: Floats
    within_bin_covariance: Floats


def reliability_curve(panel: Panel, bins: int = BINS, kind: Kind = "width", level: float = LEVEL) -> ReliabilityCurve:
    """Mean outcome against mean forecast in each bin, with Wilson intervals.

    Parameters
    ----------
    panel : Panel
    bins : int
        B.
    kind : {"width", "count"}
        Bins of equal width or equal count.
    level : float
        Coverage of the Wilson interval, in (0, 1). It uses the effective number of pairs (sum w)^2 / sum w^2 and takes
        pairs as independent. Those of one question or event are not, so that the interval is somewhat too narrow.

    Returns
    -------
    ReliabilityCurve

    Raises
    ------
    ValueError
        For fewer than one bin, another kind, or a level outside (0, 1).

    References
    ----------
    Murphy, A. H. and Winkler, R. L. (1977). Reliability of subjective probability forecasts of precipitation and
    temperature. Applied Statistics 26, 41-47. Wilson, E. B. (1927). Probable inference, the law of succession, and
    statistical inference. Journal of the American Statistical Association 22, 209-212. Kish, L. (1965). Survey
    Sampling (the effective number).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> curve = reliability_curve(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False))
    >>> curve.outcome[0, 3].tolist(), curve.pairs[0].tolist()
    (0.5, [0, 0, 0, 2, 0, 0, 0, 0, 0, 1])
    """
    if not 0 < level < 1:
        raise ValueError(f"level: between 0 and 1, not {level}")
    binned = bin_pairs(panel, bins, kind)
    squares = binned.sums(lambda block: np.square(binned.weight[block]))
    effective_pairs = np.divide(np.square(binned.mass), squares, out=np.ones(len(squares)), where=squares > 0)
    z = float(ndtri((1 + level) / 2))
    rate = np.clip(binned.outcome, 0, 1)
    centre = (rate + z * z / (2 * effective_pairs)) / (1 + z * z / effective_pairs)
    half_width = (
        z
        / (1 + z * z / effective_pairs)
        * np.sqrt(rate * (1 - rate) / effective_pairs + np.square(z / (2 * effective_pairs)))
    )
    return ReliabilityCurve(
        edges=binned.edges,
        forecast=binned.table(binned.forecast),
        outcome=binned.table(binned.outcome),
        weight=binned.share,
        pairs=binned.pairs.reshape(-1, bins),
        low=binned.table(np.maximum(centre - half_width, 0)),
        high=binned.table(np.minimum(centre + half_width, 1)),
    )


def ece(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """The expected calibration error, sum_b share_b |mean forecast_b - mean outcome_b|.

    Chance alone makes it positive: report it beside `ece_noise_floor`, or use `calibration_error.unbiased_ece`.

    Parameters
    ----------
    panel : Panel
    bins : int
    kind : {"width", "count"}

    Returns
    -------
    array, shape (N,)
        In [0, 1], lower is better; NaN without forecasts.

    Raises
    ------
    ValueError
        For fewer than one bin or another kind.

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 29, 2901-2907.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> ece(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False)).round(6).tolist()  # (0.4 + 0.1) / 3
    [0.166667]
    """
    binned = bin_pairs(panel, bins, kind)
    return binned.mean(binned.gap)


def max_calibration_error(panel: Panel, bins: int = BINS, kind: Kind = "width", least: int = 1) -> Floats:
    """The largest |mean forecast - mean outcome| among each forecaster's bins with at least `least` pairs.

    Parameters
    ----------
    panel : Panel
    bins : int
    kind : {"width", "count"}
    least : int
        With 1 the figure mostly shows the noise of sparse bins.

    Returns
    -------
    array, shape (N,)
        In [0, 1], lower is better; NaN where no bin has enough pairs.

    Raises
    ------
    ValueError
        For fewer than one bin or another kind.

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 29, 2901-2907.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> max_calibration_error(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False)).round(6).tolist()
    [0.2]
    """
    binned = bin_pairs(panel, bins, kind)
    enough = binned.pairs.reshape(-1, bins) >= max(least, 1)
    largest = np.where(enough, np.nan_to_num(binned.gap), -1.0).max(axis=1)
    return np.where(largest >= 0, largest, np.nan)


def ece_noise_floor(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """The expected `ece` of a perfectly calibrated forecaster with the same forecasts.

    sum_b share_b s_b sqrt(2 / pi): the mean of |N(0, s_b^2)|, where s_b^2 is the variance of the bin's mean outcome if
    outcomes were drawn from the forecasts. Exclusive options of a forecast are drawn together: if P is the sum of those
    of its probabilities that lie in the bin, it adds (w/n)^2 P (1 - P), otherwise (w/n)^2 sum p (1 - p). The normal
    approximation is accurate to some percent with ten pairs in a bin.

    Parameters
    ----------
    panel : Panel
    bins : int
    kind : {"width", "count"}

    Returns
    -------
    array, shape (N,)
        NaN without forecasts.

    Raises
    ------
    ValueError
        For fewer than one bin or another kind.

    References
    ----------
    Broecker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting
    22, 651-661 (outcomes drawn from the forecasts). Broecker, J. (2012). Estimating reliability and resolution of
    probability forecasts through decomposition of the empirical score. Climate Dynamics 39, 655-667 (the bias).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts, outcomes = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] % 2
    >>> ece_noise_floor(from_arrays(forecasts, outcomes, exclusive=False)).round(4).tolist()  # 0.05 x 0.7979
    [0.0399]
    """
    binned = bin_pairs(panel, bins, kind)
    variance = np.zeros(len(binned.mass))
    for rows, cells in block_slices(panel):
        sizes, probability, code = panel.sizes[rows], panel.probability[cells], binned.code[cells]
        # The sum of a forecast's probabilities in the bin of each option: exclusive options are drawn together.
        place = np.repeat(np.arange(len(sizes)) * bins, sizes) + code % bins
        joint = np.minimum(np.bincount(place, probability, len(sizes) * bins)[place], 1.0)
        joint = np.where(np.repeat(panel.exclusive[rows], sizes), joint, probability)
        spread = np.square(binned.weight[cells]) * probability * (1 - joint)
        variance += np.bincount(code, spread, len(variance))
    deviation = np.divide(np.sqrt(variance), binned.mass, out=np.zeros(len(variance)), where=binned.mass > 0)
    return binned.mean(binned.table(deviation) * np.sqrt(2 / np.pi))


def murphy_decomposition(panel: Panel, bins: int = BINS, kind: Kind = "width") -> MurphyDecomposition:
    """Each forecaster's Brier score as a sum of terms, exact for any bins.

    brier = reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance, with weighted means
    f_b and o_b in bin b, shares s_b, and o the mean outcome of all pairs:

    * reliability: sum_b s_b (f_b - o_b)^2, lower is better
    * resolution: sum_b s_b (o_b - o)^2, higher is better
    * uncertainty: variance of the outcomes, o (1 - o) where they are 0 or 1; the same for all on the same questions
    * within_bin_variance: sum_b s_b mean_b (p - f_b)^2
    * within_bin_covariance: 2 sum_b s_b mean_b (p - f_b)(y - o_b)

    Murphy's first three terms add up only if all forecasts in a bin are equal.

    Parameters
    ----------
    panel : Panel
    bins : int
    kind : {"width", "count"}

    Returns
    -------
    MurphyDecomposition
        NaN without forecasts.

    Raises
    ------
    ValueError
        For fewer than one bin or another kind.

    References
    ----------
    Murphy, A. H. (1973). A new vector partition of the probability score. Journal of Applied Meteorology 12, 595-600.
    Stephenson, D. B., Coelho, C. A. S. and Jolliffe, I. T. (2008). Two extra components in the Brier score
    decomposition. Weather and Forecasting 23, 752-757.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> parts = murphy_decomposition(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False))
    >>> [float(part[0].round(6)) for part in parts]
    [0.196667, 0.03, 0.055556, 0.222222, 0.0, 0.0]
    """
    binned = bin_pairs(panel, bins, kind)
    share = binned.share
    rate = np.nan_to_num(binned.table(binned.outcome))
    base = (share * rate).sum(axis=1, keepdims=True)
    # By bin: the squared error, the squared deviations of outcome and forecast from its means, and their product.
    sums = np.zeros((4, len(binned.mass)))
    for rows, block in block_slices(panel, max(CELLS, len(binned.mass))):
        code, probability, happened = binned.code[block], panel.probability[block], panel.outcome_of(rows)
        away, missed = probability - binned.forecast[code], happened - binned.outcome[code]
        products = (np.square(probability - happened), np.square(missed), np.square(away), away * missed)
        for total, product in zip(sums, products, strict=True):
            total += np.bincount(code, binned.weight[block] * product, len(total))
    mass = binned.table(binned.mass).sum(axis=1)
    totals = sums.reshape(4, len(mass), binned.bins).sum(axis=2)
    error, missed, away, covariance = np.divide(totals, mass, out=np.full(totals.shape, np.nan), where=mass > 0)
    resolution = binned.mean(np.square(rate - base))
    return MurphyDecomposition(
        brier=error,
        reliability=binned.mean(np.square(binned.gap)),
        resolution=resolution,
        uncertainty=resolution + missed,
        within_bin_variance=away,
        within_bin_covariance=2 * covariance,
    )


def sharpness(panel: Panel) -> Floats:
    """Distance of the forecasts from the uniform forecast u, the weighted mean of (1/n) sum_k (p_k - u)^2.

    u is 1/n, 0.5 where options are not exclusive. 0 for uniform forecasts; (1/n)(1 - 1/n) for certain ones on n
    exclusive options, 0.25 on a binary question. A property of the forecasts alone: good only together with
    calibration.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    array, shape (N,)
        NaN without forecasts.

    References
    ----------
    Gneiting, T., Balabdaoui, F. and Raftery, A. E. (2007). Probabilistic forecasts, calibration and sharpness. Journal
    of the Royal Statistical Society B 69, 243-268.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> sharpness(from_arrays([[[0.5, 0.5], [1.0, 0.0]]], [[1, 0], [0, 1]])).tolist()
    [0.125]
    """
    return panel.forecaster_means(_distance_from_uniform(panel))


@by_blocks
def _distance_from_uniform(panel: Panel) -> Floats:
    """(1/n) sum_k (p_k - u)^2 of each forecast, (F,)."""
    uniform = np.where(panel.exclusive, 1 / panel.sizes, 0.5)
    return panel.sum_cells(np.square(panel.probability - panel.spread(uniform))) / panel.sizes
