"""Calibration: of what was called 70 % likely, did 70 % happen?

All functions look at *pairs* (p_k, o_k) of an option's probability and what happened to it, each weighted with its
forecast's weight over the number n of its options. So a forecast weighs the same however many options it has, and the
weighted mean of (p - o)^2 over pairs is the Brier score in its mean form.

Bins hold what is at or above their lower edge and below their upper one; the last is closed. They are of equal width,
edges b/B, or of equal count: edges at the quantiles of a forecaster's own pairs, equal probabilities in one bin, so
that there may be fewer. Decimal probabilities fall where a reader expects them, 0.3 in the bin that begins at 0.3.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from scoring.metrics.binning import Kind, sort_into_bins, sums_by
from scoring.metrics.panel import Codes, Floats, Panel

BINS = 10
LEVEL = 0.95
LOGIT_CLIP = 1e-6
STEPS = 50
CHUNK = 200
"""Resamples that are worked through at a time."""


class Reliability(NamedTuple):
    """The reliability curve of each forecaster, arrays of (N, B) but for the edges.

    edges : (N, B + 1), NaN beyond a forecaster's last bin where equal counts make fewer
    forecast, outcome : weighted means of p and o in each bin, NaN in an empty one
    weight : the bin's share of the forecaster's weight; sums to 1
    pairs : how many are in the bin
    low, high : Wilson interval of the mean outcome, NaN in an empty bin
    """

    edges: Floats
    forecast: Floats
    outcome: Floats
    weight: Floats
    pairs: NDArray[np.int64]
    low: Floats
    high: Floats


class Murphy(NamedTuple):
    """Parts of each forecaster's Brier score, all (N,); see `murphy`."""

    brier: Floats
    reliability: Floats
    resolution: Floats
    uncertainty: Floats
    within_bin_variance: Floats
    within_bin_covariance: Floats


def reliability(panel: Panel, bins: int = BINS, kind: Kind = "width", level: float = LEVEL) -> Reliability:
    """How often what each forecaster called so likely happened, bin by bin, with intervals.

    Parameters
    ----------
    bins : B, how many
    kind : "width" or "count", see above
    level : of the Wilson interval, computed with the effective number of pairs (sum w)^2 / sum w^2. It takes pairs as
        independent; those of one question or event are not, so it is rather too narrow.

    Raises ValueError for fewer than one bin, another kind, or a level outside (0, 1).

    References
    ----------
    Murphy, A. H. and Winkler, R. L. (1977). Reliability of subjective probability forecasts of precipitation and
    temperature. Applied Statistics 26, 41-47. Wilson, E. B. (1927). Probable inference, the law of succession, and
    statistical inference. Journal of the American Statistical Association 22, 209-212. Kish, L. (1965). Survey
    Sampling (the effective number).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> curve = reliability(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False))
    >>> curve.outcome[0, 3].tolist(), curve.pairs[0].tolist()
    (0.5, [0, 0, 0, 2, 0, 0, 0, 0, 0, 1])
    """
    if not 0 < level < 1:
        raise ValueError(f"level: between 0 and 1, not {level}")
    binned = sort_into_bins(panel, bins, kind)
    squares = binned.sums(np.square(binned.weight))
    number = np.divide(np.square(binned.mass), squares, out=np.ones(len(squares)), where=squares > 0)
    z = float(ndtri((1 + level) / 2))
    rate = np.clip(binned.outcome, 0, 1)
    centre = (rate + z * z / (2 * number)) / (1 + z * z / number)
    reach = z / (1 + z * z / number) * np.sqrt(rate * (1 - rate) / number + np.square(z / (2 * number)))
    return Reliability(
        edges=binned.edges,
        forecast=binned.table(binned.forecast),
        outcome=binned.table(binned.outcome),
        weight=binned.share,
        pairs=binned.pairs.reshape(-1, bins),
        low=binned.table(np.maximum(centre - reach, 0)),
        high=binned.table(np.minimum(centre + reach, 1)),
    )


def ece(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """The expected calibration error of each forecaster: sum_b share_b |mean forecast_b - mean outcome_b|, (N,).

    In [0, 1]. Chance alone makes it positive: read it beside `ece_noise_floor`, or take `ece_debiased`. NaN for a
    forecaster without forecasts.

    Raises ValueError as `reliability`.

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 29, 2901-2907.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> ece(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False)).round(6).tolist()  # (0.4 + 0.1) / 3
    [0.166667]
    """
    binned = sort_into_bins(panel, bins, kind)
    return binned.mean(binned.gap)


def ece_draws(panel: Panel, counts: NDArray, bins: int = BINS) -> Floats:
    """The `ece` of each forecaster in each resample of the events, bins of equal width: (R, N).

    sum_b |sum_e c_e g_eb| / sum_e c_e w_e, g_eb the sum of weight x (p - o) over the pairs of event e in bin b.
    A resample repeats the noise of the sample on top of its own, so draws lie above `ece`: turn them round it (2 ece -
    draw, the basic bootstrap) for an interval; ranks within a resample need no such turn. NaN where a resample holds
    nothing of the forecaster's.

    Parameters
    ----------
    counts : array of shape (R, E), `uncertainty.resample_counts` over the events that the panel has forecasts on

    Raises ValueError as `reliability`, or if `counts` is not over those events.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, sections 3.8 and 5.2.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False)
    >>> ece_draws(panel, np.array([[1, 1, 1], [3, 0, 0]])).round(6).tolist()
    [[0.166667], [0.3]]
    """
    binned = sort_into_bins(panel, bins, "width")
    seen, column = np.unique(panel.questions.event[panel.question], return_inverse=True)
    events, people = len(seen), len(panel.forecasters)
    if counts.ndim != 2 or counts.shape[1] != events:
        raise ValueError(f"counts: one column per event, {events}, not shape {counts.shape}")
    width = people * (bins + 1)
    row = panel.spread(column) * width
    both = sums_by(row + binned.code, binned.weight * (panel.probability - panel.outcome), events * width)
    both += sums_by(column * width + people * bins + panel.forecaster, panel.weight, events * width)
    table = both.reshape(events, width)
    draws = np.full((len(counts), people), np.nan)
    for start in range(0, len(counts), CHUNK):
        part = slice(start, start + CHUNK)
        drawn = counts[part].astype(np.float64) @ table
        gaps = np.abs(drawn[:, : people * bins]).reshape(-1, people, bins).sum(axis=2)
        mass = drawn[:, people * bins :]
        np.divide(gaps, mass, out=draws[part], where=mass > 0)
    return draws


def max_error(panel: Panel, bins: int = BINS, kind: Kind = "width", least: int = 1) -> Floats:
    """The largest |mean forecast - mean outcome| among each forecaster's bins of at least `least` pairs: (N,).

    NaN where no bin holds so many. A bin of few pairs is mostly chance: with `least` = 1 the figure says little.

    Raises ValueError as `reliability`.

    References
    ----------
    Naeini, M. P., Cooper, G. F. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI 29, 2901-2907.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> max_error(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False)).round(6).tolist()
    [0.2]
    """
    binned = sort_into_bins(panel, bins, kind)
    enough = binned.pairs.reshape(-1, bins) >= max(least, 1)
    largest = np.where(enough, np.nan_to_num(binned.gap), -1.0).max(axis=1)
    return np.where(largest >= 0, largest, np.nan)


def ece_noise_floor(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """What `ece` would be, expected, if every option happened with just the probability that was said: (N,).

    sum_b share_b s_b sqrt(2 / pi): the mean of |N(0, s_b^2)|, where s_b^2 is the variance of the bin's mean outcome for
    outcomes drawn from the forecasts. A forecast's options that exclude each other are drawn together: if P is the sum
    of those of its probabilities that lie in the bin, it adds (w/n)^2 P (1 - P), else (w/n)^2 sum p (1 - p). The normal
    approximation is within some percent for ten pairs in a bin. NaN for a forecaster without forecasts.

    Raises ValueError as `reliability`.

    References
    ----------
    Broecker, J. and Smith, L. A. (2007). Increasing the reliability of reliability diagrams. Weather and Forecasting
    22, 651-661 (outcomes drawn from the forecasts). Broecker, J. (2012). Estimating reliability and resolution of
    probability forecasts through decomposition of the empirical score. Climate Dynamics 39, 655-667 (the bias).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> said, happened = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] % 2
    >>> ece_noise_floor(from_arrays(said, happened, exclusive=False)).round(4).tolist()  # 0.05 x 0.7979
    [0.0399]
    """
    binned = sort_into_bins(panel, bins, kind)
    # What a forecast gave to all options in the bin of each of its options: drawn together where they are exclusive.
    place = panel.cell_forecast * bins + binned.code % bins
    together = np.bincount(place, panel.probability, len(panel) * bins)[place]
    together = np.where(panel.spread(panel.exclusive), np.minimum(together, 1.0), panel.probability)
    variance = binned.sums(np.square(binned.weight) * panel.probability * (1 - together))
    deviation = np.divide(np.sqrt(variance), binned.mass, out=np.zeros(len(variance)), where=binned.mass > 0)
    return binned.mean(binned.table(deviation) * np.sqrt(2 / np.pi))


def ece_debiased(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """`ece` less most of its bias, estimated bin by bin: (N,), below 0 by chance.

    sum_b share_b (2 d_b - E|N(d_b, s_b^2)|) with the observed gap d_b and s_b^2 = o(1 - o) / m, o the bin's mean
    outcome and m its effective number of pairs: the bias is taken to be what a further draw of the same noise would
    add. Nothing is left of it where gaps are well above their noise; for a calibrated forecaster 2 - sqrt(2) = 0.59 of
    `ece_noise_floor` is left. NaN for a forecaster without forecasts.

    Raises ValueError as `reliability`.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32 (the idea, and the normal form
    for p = 1 in the authors' software).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> said, happened = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] < 60
    >>> panel = from_arrays(said, happened, exclusive=False)
    >>> ece(panel).round(6).tolist(), ece_debiased(panel).round(6).tolist()
    ([0.1], [0.099256])
    """
    binned = sort_into_bins(panel, bins, kind)
    squares = binned.sums(np.square(binned.weight))
    inverse = np.divide(squares, np.square(binned.mass), out=np.zeros(len(squares)), where=binned.mass > 0)
    rate = np.clip(np.nan_to_num(binned.outcome), 0, 1)
    deviation = binned.table(np.sqrt(rate * (1 - rate) * inverse))
    gap = np.nan_to_num(binned.gap)
    z = np.divide(gap, deviation, out=np.full(gap.shape, np.inf), where=deviation > 0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-np.square(z) / 2) + gap * (1 - 2 * ndtr(-z))
    return binned.mean(2 * gap - folded)


def murphy(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Murphy:
    """Each forecaster's Brier score in parts that add up exactly, bins or not: six arrays (N,).

    brier = reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance, with weighted means
    f_b, o_b in bin b, shares s_b, and o the mean outcome of all pairs:

    * reliability: sum_b s_b (f_b - o_b)^2, lower is better
    * resolution: sum_b s_b (o_b - o)^2, higher is better
    * uncertainty: the variance of the outcomes, o (1 - o) where they are 0 or 1; the same for everybody on the same
      questions
    * within_bin_variance: sum_b s_b mean_b (p - f_b)^2
    * within_bin_covariance: 2 sum_b s_b mean_b (p - f_b)(y - o_b)

    Murphy's three terms alone add up only if all forecasts in a bin are equal. NaN for a forecaster without forecasts.

    Raises ValueError as `reliability`.

    References
    ----------
    Murphy, A. H. (1973). A new vector partition of the probability score. Journal of Applied Meteorology 12, 595-600.
    Stephenson, D. B., Coelho, C. A. S. and Jolliffe, I. T. (2008). Two extra components in the Brier score
    decomposition. Weather and Forecasting 23, 752-757.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> parts = murphy(from_arrays([[[0.3], [0.3], [0.9]]], [[0], [1], [1]], exclusive=False))
    >>> [float(part[0].round(6)) for part in parts]
    [0.196667, 0.03, 0.055556, 0.222222, 0.0, 0.0]
    """
    binned = sort_into_bins(panel, bins, kind)
    share = binned.share
    rate = np.nan_to_num(binned.table(binned.outcome))
    base = (share * rate).sum(axis=1, keepdims=True)
    away, off = panel.probability - binned.forecast[binned.code], panel.outcome - binned.outcome[binned.code]

    def within(products: Floats) -> Floats:
        sums = binned.table(binned.sums(binned.weight * products)).sum(axis=1)
        mass = binned.table(binned.mass).sum(axis=1)
        return np.divide(sums, mass, out=np.full(len(mass), np.nan), where=mass > 0)

    resolution = binned.mean(np.square(rate - base))
    return Murphy(
        brier=within(np.square(panel.probability - panel.outcome)),
        reliability=binned.mean(np.square(binned.gap)),
        resolution=resolution,
        uncertainty=resolution + within(np.square(off)),
        within_bin_variance=within(np.square(away)),
        within_bin_covariance=2 * within(away * off),
    )


def slope_intercept(panel: Panel, clip: float = LOGIT_CLIP) -> Floats:
    """Logistic recalibration of each forecaster, logit P(o = 1) = intercept + slope logit(p): (N, 2), slope first.

    The weighted maximum likelihood over pairs, by Newton's method. Slope 1 and intercept 0 are calibration; a slope
    below 1 says that forecasts are too extreme, above 1 too timid; an intercept above 0 that too little is called
    likely. With both options of two in the pairs the intercept is 0 by symmetry.

    Parameters
    ----------
    clip : probabilities are brought within [clip, 1 - clip], where their logits are finite; in (0, 0.5)

    NaN where no finite maximum exists: what happened and what did not do not overlap, or all said the same.

    Raises ValueError for a clip outside (0, 0.5).

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565. Miller, M. E.,
    Hui, S. L. and Tierney, W. M. (1991). Validation techniques for logistic regression models. Statistics in Medicine
    10, 1213-1226.

    Examples
    --------
    Of what was called 20 % likely a third happened, of what was called 80 % likely two thirds: ln 2 / ln 4.

    >>> from scoring.metrics.panel import from_arrays
    >>> said, happened = [[[0.2]] * 3 + [[0.8]] * 3], [[1], [0], [0], [1], [1], [0]]
    >>> (slope_intercept(from_arrays(said, happened, exclusive=False)).round(6) + 0.0).tolist()
    [[0.5, 0.0]]
    """
    if not 0 < clip < 0.5:
        raise ValueError(f"clip: between 0 and 0.5, not {clip}")
    people = len(panel.forecasters)
    who, weight = panel.spread(panel.forecaster), panel.spread(panel.weight / panel.sizes)
    said = np.clip(panel.probability, clip, 1 - clip)
    outcome, logit = panel.outcome, np.log(said / (1 - said))

    def sums(values: Floats) -> Floats:
        return sums_by(who, values, people)

    weight /= sums(weight)[who]
    target, moment = sums(weight * outcome), sums(weight * outcome * logit)
    exists = _overlap(who, logit, outcome, people)
    best, least = np.stack([np.ones(people), np.zeros(people)]), np.full(people, np.inf)
    step = np.zeros((2, people))
    for _ in range(STEPS):
        slope, intercept = best + step
        line = slope[who] * logit + intercept[who]
        decay = np.exp(-np.abs(line))
        loss = sums(weight * (np.maximum(line, 0) + np.log1p(decay))) - slope * moment - intercept * target
        rate = np.where(line >= 0, 1.0, decay) / (1 + decay)
        bend = weight * rate * (1 - rate)
        tilt = bend * logit
        a, b, c = sums(tilt * logit), sums(tilt), sums(bend)
        down, level = moment - sums(weight * rate * logit), target - sums(weight * rate)
        # A step that makes it worse, by more than rounding, was too long: half of it is tried from where it began.
        good = loss <= least + 1e-12
        best, least = np.where(good, [slope, intercept], best), np.where(good, loss, least)
        across = a * c - b * b
        newton = np.stack([c * down - b * level, a * level - b * down])
        newton = np.divide(newton, across, out=np.zeros(newton.shape), where=across > 0)
        step = np.where(good, newton, step / 2)
        if (np.abs(step).max(axis=0)[exists] <= 1e-10).all():
            break
    done = exists & (np.abs(step).max(axis=0) <= 1e-8)
    return np.where(done, best, np.nan).T


def sharpness(panel: Panel) -> Floats:
    """How far each forecaster's forecasts are from saying nothing: weighted mean of (1/n) sum_k (p_k - u)^2, (N,).

    u is 1/n, 0.5 where options are not exclusive. 0 for who always says u; (1/n)(1 - 1/n) on a question of n exclusive
    options for who is certain, 0.25 on a binary one. A property of the forecasts alone: good only with calibration.
    NaN for a forecaster without forecasts.

    References
    ----------
    Gneiting, T., Balabdaoui, F. and Raftery, A. E. (2007). Probabilistic forecasts, calibration and sharpness. Journal
    of the Royal Statistical Society B 69, 243-268.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> sharpness(from_arrays([[[0.5, 0.5], [1.0, 0.0]]], [[1, 0], [0, 1]])).tolist()
    [0.125]
    """
    uniform = np.where(panel.exclusive, 1 / panel.sizes, 0.5)
    return panel.forecaster_means(panel.sum_cells(np.square(panel.probability - panel.spread(uniform))) / panel.sizes)


def _overlap(who: Codes, logit: Floats, outcome: Floats, people: int) -> NDArray[np.bool_]:
    """Whether the logits of what happened and of what did not overlap, so that a likeliest line exists, (people,)."""
    low, high = np.full((2, people, 2), np.inf)
    high = -high
    for column, mask in enumerate((outcome > 0, outcome < 1)):
        np.minimum.at(low[:, column], who[mask], logit[mask])
        np.maximum.at(high[:, column], who[mask], logit[mask])
    return (low[:, 0] < high[:, 1]) & (low[:, 1] < high[:, 0])
