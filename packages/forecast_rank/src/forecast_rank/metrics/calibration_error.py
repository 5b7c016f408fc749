"""The calibration error without the bias of chance, and intervals of its population value.

The plug-in `calibration.ece` is positive by chance alone. The functions here correct it, or draw it anew from resamples
of the events. The population value is that of the same bins with all forecasts that the forecaster would ever make.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri, stdtrit

from forecast_rank.metrics.blocks import CELLS, block_slices
from forecast_rank.metrics.calibration import BINS
from forecast_rank.metrics.calibration_bins import Kind, bin_pairs, sums_by_code
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import LEVEL, tail_levels

LEAST_EVENTS = 4
"""Events below which there is no interval."""
SPREAD = 0.5
"""Standard errors that are added to the gap of each bin where the error is taken to lie."""
TOLERANCE = 1e-9
"""By how much an inverted test may miss its root."""
FORECASTERS_AT_A_TIME = 32
"""Forecasters whose resamples are drawn together: bounds the table of resamples, forecasters and bins in memory."""
LEAST_DRAWS = 2
"""Draws beyond a quantile for it to be known; further out it is extrapolated as a normal one."""


class UnbiasedEce(NamedTuple):
    """Estimates of the population `ece`.

    Attributes
    ----------
    value : array, shape (N,)
        Median-unbiased estimate, at least 0; NaN without forecasts or with fewer than two events.
    interval : array, shape (N, 2)
        NaN for fewer than four events.
    """

    value: Floats
    interval: Floats


def unbiased_ece(panel: Panel, counts: NDArray, bins: int = BINS, level: float = LEVEL) -> UnbiasedEce:
    """The population `ece`, with bins of equal width: a median-unbiased estimate, and an interval by inverted tests.

    `ece` is sum_b |g_b| of signed gaps g_b = sum w (p - o) / sum w over the pairs in bin b. If the truth is theta, it
    is distributed like T(theta) = sum_b |theta d_b + Z_b|: d is the direction of the gaps, each moved half a standard
    error away from 0, and Z the gaps' error, g* - g in resamples of the events, times sqrt(G / (G - 1)) and the ratio
    of Student's quantile with G - 1 degrees of freedom to the normal one. The estimate is the theta whose T has the
    observed `ece` as its median, and the interval holds every theta between whose tails it lies. At theta = 0, where
    `ece` is all chance, no direction matters; far from 0 the interval is Student's.

    Parameters
    ----------
    panel : Panel
    counts : array of int, shape (R, E)
        `uncertainty.resample_counts` for the events with forecasts.
    bins : int
    level : float
        In (0, 1).

    Returns
    -------
    UnbiasedEce

    Raises
    ------
    ValueError
        For fewer than one bin, a level outside (0, 1), or if `counts` does not have a column per event.

    References
    ----------
    Hansen, B. E. (1999). The grid bootstrap and the autoregressive model. Review of Economics and Statistics 81,
    594-607. Andrews, D. W. K. (1993). Exactly median-unbiased estimation of first order autoregressive/unit root
    models. Econometrica 61, 139-165. Broecker, J. (2012). Estimating reliability and resolution of probability
    forecasts through decomposition of the empirical score. Climate Dynamics 39, 655-667 (the bias).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> from forecast_rank.metrics.uncertainty import resample_counts
    >>> forecasts, outcomes = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] < 60
    >>> estimate = unbiased_ece(from_arrays(forecasts, outcomes, exclusive=False), resample_counts(100))
    >>> estimate.value.round(2).tolist(), estimate.interval.round(2).tolist()
    ([0.1], [[0.0, 0.19]])
    """
    return unbiased_ece_at_levels(panel, counts, (level,), bins)[0]


def unbiased_ece_at_levels(
    panel: Panel, counts: NDArray, levels: Sequence[float], bins: int = BINS
) -> list[UnbiasedEce]:
    """`unbiased_ece` at each of several levels, which share the draws.

    Parameters
    ----------
    panel : Panel
    counts : array of int, shape (R, E)
        `uncertainty.resample_counts` for the events with forecasts.
    levels : sequence of float
        Each in (0, 1).
    bins : int

    Returns
    -------
    list of UnbiasedEce
        One for each level, in their order.

    Raises
    ------
    ValueError
        As `unbiased_ece`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> from forecast_rank.metrics.uncertainty import resample_counts
    >>> forecasts, outcomes = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] < 60
    >>> panel = from_arrays(forecasts, outcomes, exclusive=False)
    >>> both = unbiased_ece_at_levels(panel, resample_counts(100), (0.9, 0.99))
    >>> [estimate.interval.round(2).tolist() for estimate in both]
    [[[0.01, 0.18]], [[0.0, 0.22]]]
    """
    tails = [tail_levels(level) for level in levels]
    gaps, weights = _event_gaps(panel, bins)
    n_forecasters = weights.shape[1]
    _check_counts(counts, len(weights))
    estimates = [UnbiasedEce(np.full(n_forecasters, np.nan), np.full((n_forecasters, 2), np.nan)) for _ in levels]
    for person, errors in _gap_errors(gaps, weights, counts.astype(np.float64)):
        for (low, high), (value, interval) in zip(tails, estimates, strict=True):
            noise = errors.noise * stdtrit(errors.events - 1, high) / ndtri(high)
            tail = max(low, min(LEAST_DRAWS / max(len(noise), 1), 0.5))
            wider = noise * (ndtri(low) / ndtri(tail) if tail < 0.5 else 1.0)
            value[person] = _inverted(errors.observed, errors.direction, noise, 0.5)
            if errors.events >= LEAST_EVENTS:
                interval[person] = [
                    _inverted(errors.observed, errors.direction, wider, end) for end in (1 - tail, tail)
                ]
    return estimates


class _GapErrors(NamedTuple):
    """One forecaster's observed error, the direction of its gaps, (bins,), and draws of their errors, (R, bins)."""

    events: int
    observed: float
    direction: Floats
    noise: Floats


def _gap_errors(gaps: Floats, weights: Floats, counts: Floats) -> Iterator[tuple[int, _GapErrors]]:
    """Each forecaster with two events or more, and what `unbiased_ece` takes from the sums of these events."""
    n_forecasters = weights.shape[1]
    for start in range(0, n_forecasters, FORECASTERS_AT_A_TIME):
        part = slice(start, start + FORECASTERS_AT_A_TIME)
        weight, mass = weights[:, part], weights[:, part].sum(axis=0)
        means = gaps[:, part].sum(axis=0) / np.where(mass > 0, mass, 1.0)[:, None]
        residuals = gaps[:, part] - means * weight[:, :, None]
        of_draw = counts @ weight
        drawn = (counts @ residuals.reshape(len(gaps), means.size)).reshape(len(counts), *means.shape)
        for place, events in enumerate((weight > 0).sum(axis=0).tolist()):
            if events < 2:
                continue
            is_used, valid = np.any(gaps[:, start + place] != 0, axis=0), of_draw[:, place] > 0
            gap, scale = means[place, is_used], np.sqrt(events / (events - 1))
            error = scale * np.sqrt(np.square(residuals[:, place, is_used]).sum(axis=0)) / mass[place]
            direction = np.where(gap < 0, -1.0, 1.0) * (np.abs(gap) + SPREAD * error)
            total = np.abs(direction).sum()
            noise = scale * drawn[valid, place][:, is_used] / of_draw[valid, place, None]
            yield (
                start + place,
                _GapErrors(events, float(np.abs(gap).sum()), direction / total if total > 0 else direction, noise),
            )


def _inverted(observed: float, direction: Floats, noise: Floats, level: float) -> float:
    """The theta at which the quantile of sum |theta d + Z| is the observed value; 0 if it is larger at 0 already."""
    if len(noise) == 0 or len(direction) == 0:
        return observed
    place = min(int(level * len(noise)), len(noise) - 1)
    by_bin = np.ascontiguousarray(noise.T)  # sums over bins then run along the draws

    def excess(theta: float) -> float:
        totals = np.abs(theta * direction[:, None] + by_bin).sum(axis=0)
        totals.partition(place)
        return float(totals[place]) - observed

    if excess(0.0) >= 0:
        return 0.0
    # There the quantile is larger, since sum |theta d| is theta; by a hair more than rounding where Z is 0.
    high = (observed + 2 * float(np.abs(by_bin).sum(axis=0).max())) * (1 + TOLERANCE)
    return min(float(brentq(excess, 0.0, high, xtol=TOLERANCE)), 1.0)


def ece_debiased(panel: Panel, bins: int = BINS, kind: Kind = "width") -> Floats:
    """`ece` less most of its bias, estimated bin by bin.

    sum_b share_b (2 d_b - E|N(d_b, s_b^2)|) with the observed gap d_b and s_b^2 = o(1 - o) / m, o the bin's mean
    outcome and m its effective number of pairs: the bias is estimated by what another draw of the same noise would add.
    It vanishes where gaps are well above their noise; for a calibrated forecaster 2 - sqrt(2) = 0.59 of
    `ece_noise_floor` remains.

    Parameters
    ----------
    panel : Panel
    bins : int
    kind : {"width", "count"}

    Returns
    -------
    array, shape (N,)
        Lower is better, negative by chance; NaN without forecasts.

    Raises
    ------
    ValueError
        For fewer than one bin or another kind.

    References
    ----------
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS 32 (the idea, and the normal form
    for p = 1 in the authors' software).

    Examples
    --------
    >>> from forecast_rank.metrics.calibration import ece
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts, outcomes = np.full((1, 100, 1), 0.5), np.arange(100)[:, None] < 60
    >>> panel = from_arrays(forecasts, outcomes, exclusive=False)
    >>> ece(panel).round(6).tolist(), ece_debiased(panel).round(6).tolist()
    ([0.1], [0.099256])
    """
    binned = bin_pairs(panel, bins, kind)
    squares = binned.sums(lambda block: np.square(binned.weight[block]))
    inverse = np.divide(squares, np.square(binned.mass), out=np.zeros(len(squares)), where=binned.mass > 0)
    rate = np.clip(np.nan_to_num(binned.outcome), 0, 1)
    deviation = binned.table(np.sqrt(rate * (1 - rate) * inverse))
    gap = np.nan_to_num(binned.gap)
    z = np.divide(gap, deviation, out=np.full(gap.shape, np.inf), where=deviation > 0)
    folded = deviation * np.sqrt(2 / np.pi) * np.exp(-np.square(z) / 2) + gap * (1 - 2 * ndtr(-z))
    return binned.mean(2 * gap - folded)


def _event_gaps(panel: Panel, bins: int) -> tuple[Floats, Floats]:
    """Sums of weight x (p - o) by event, forecaster and bin, (E, N, bins), and of weights, (E, N)."""
    return panel.shared(("gaps by event", bins), lambda: _summed_gaps(panel, bins))


def _summed_gaps(panel: Panel, bins: int) -> tuple[Floats, Floats]:
    binned = bin_pairs(panel, bins, "width")
    event_codes, column = panel.events
    events, n_forecasters = len(event_codes), len(panel.forecasters)
    width = n_forecasters * bins
    gaps = np.zeros(events * width)
    for rows, block in block_slices(panel, max(CELLS, len(gaps))):
        code = np.repeat(column[rows] * width, panel.sizes[rows]) + binned.code[block]
        gaps += np.bincount(code, binned.weight[block] * (panel.probability[block] - panel.outcome_of(rows)), len(gaps))
    weights = sums_by_code(
        lambda block: column[block] * n_forecasters + panel.forecaster[block],
        panel.weight.__getitem__,
        len(panel),
        events * n_forecasters,
    )
    return gaps.reshape(events, n_forecasters, bins), weights.reshape(events, n_forecasters)


def _check_counts(counts: NDArray, events: int) -> None:
    if counts.ndim != 2 or counts.shape[1] != events:
        raise ValueError(f"counts: one column per event, {events}, not shape {counts.shape}")
