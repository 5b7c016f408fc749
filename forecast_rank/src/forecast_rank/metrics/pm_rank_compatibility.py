"""The metrics of the package pm_rank 0.3.1 by its own definitions, for comparison with its output.

Each docstring names the difference from this library's definition. Errors of the package (weights that are not
normalised, a payoff to the losing side, bins that begin too late by rounding) are reproduced only with `defects=True`.

References
----------
Prophet Arena team (2025). pm_rank: scoring and ranking for prediction markets, version 0.3.1.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics import proper_scores
from forecast_rank.metrics.panel import Codes, Floats, Panel, ragged_max
from forecast_rank.metrics.returns import return_stream
from forecast_rank.metrics.staking import NEGLIGIBLE_LOG_RATIO

Mode = Literal["default", "approximate", "yes_only", "market_level"]

PRICES = 0.005, 0.995
EPSILON = 1e-12
SWEEPS = 100
THRESHOLD = 1e-3


def brier(panel: Panel, *, defects: bool = False) -> Floats:
    """1 less the mean Brier score in mean form.

    Parameters
    ----------
    panel : Panel
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (N,)
        Higher is better.

    References
    ----------
    Prophet Arena team (2025). pm_rank 0.3.1, module `model.scoring_rule`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> brier(from_arrays([[[0.8, 0.2]]], [[1, 0]])).round(6).tolist()
    [0.96]
    """
    return _means(panel, 1 - proper_scores.brier(panel), defects)


def log(panel: Panel, clip: float = 0.01, *, defects: bool = False) -> Floats:
    """Mean of ln max(p, clip), p the probability of the outcome.

    Parameters
    ----------
    panel : Panel
    clip : float
        Lowest probability that is charged; the package's is 1 %.
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (N,)
        Higher is better.

    References
    ----------
    Prophet Arena team (2025). pm_rank 0.3.1, module `model.scoring_rule`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> log(from_arrays([[[1.0, 0.0]]], [[0, 1]])).round(6).tolist()
    [-4.60517]
    """
    return _means(panel, proper_scores.log_score(panel, clip), defects)


def spherical(panel: Panel, *, defects: bool = False) -> Floats:
    """Mean spherical score, defined as in this library.

    Parameters
    ----------
    panel : Panel
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (N,)
        Higher is better.

    References
    ----------
    Prophet Arena team (2025). pm_rank 0.3.1, module `model.scoring_rule`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> spherical(from_arrays([[[0.6, 0.8]]], [[1, 0]])).round(6).tolist()
    [0.6]
    """
    return _means(panel, proper_scores.spherical(panel), defects)


def weighted_brier(panel: Panel, discrimination: Floats, *, defects: bool = False) -> Floats:
    """1 less the Brier score, weighted by the discriminations of questions clipped to their quartiles.

    With `defects` the weights have mean 1 over all questions instead of those that a forecaster answered, so that
    answering discriminating questions changes the score by itself.

    Parameters
    ----------
    panel : Panel
    discrimination : array, shape (Q,)
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (N,)
        Higher is better.

    Raises
    ------
    ValueError
        If `discrimination` is not one per question.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.8, 0.2], [0.5, 0.5]]], [[1, 0], [1, 0]])
    >>> weighted_brier(panel, np.array([1.0, 1.0])).round(6).tolist()
    [0.855]
    """
    if discrimination.shape != (len(panel.questions),):
        raise ValueError(f"discrimination: one per question, {len(panel.questions)}, not {discrimination.shape}")
    weights = np.clip(discrimination, *np.quantile(discrimination, [0.25, 0.75]))
    weight = (weights * len(weights) / weights.sum())[panel.question]
    score = 1 - proper_scores.brier(panel)
    if defects:
        return _means(panel, score * weight, defects)
    return panel.forecaster_means(score, panel.weight * weight)


def average_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default", *, defects: bool = False) -> Floats:
    """Gross payoff of a dollar on each question, in the package's four modes.

    Prices are clipped to [0.005, 0.995]. At gamma = 0 the first of tied legs takes all, where this library splits.

    * "default": per option the better of YES and NO (NO if (1 - p)/no > p/yes), then the stakes
      a ~ q (p/q)^(1/gamma) over those legs, though they are not exclusive. The package raises an error at gamma = 1;
      the formula is continued here.
    * "approximate": the same legs, mean-variance stakes (edge - level) / (gamma variance) above a water level.
    * "yes_only": the YES sides alone, as in this library.
    * "market_level": each option a YES/NO market with 1/n of the dollar, as in this library for options that are not
      exclusive. With `defects` it pays the side that lost, as the package does.

    Parameters
    ----------
    panel : Panel
    gamma : float
        Risk aversion, in [0, 1].
    mode : {"default", "approximate", "yes_only", "market_level"}
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (F,)
        NaN without both prices of every option.

    Raises
    ------
    ValueError
        If `gamma` is outside [0, 1], or for another mode.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.2, 0.8]]], [[0, 1]], odds=[[0.5, 0.5]], no_odds=[[0.4, 0.6]])
    >>> [average_return(panel, mode=mode).tolist() for mode in ("default", "yes_only", "market_level")]
    [[2.5], [2.0], [2.25]]
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma: between 0 and 1, not {gamma}")
    low, high = PRICES
    probability, outcome = panel.probability, panel.outcome
    yes, no = np.clip(panel.odds, low, high), np.clip(panel.no_odds, low, high)
    starts, sizes, owner = panel.offsets[:-1], panel.sizes, panel.cell_forecast
    if mode == "yes_only":
        paid = _full_stakes(probability, yes, gamma, starts, sizes, owner) * outcome / yes
    elif mode in ("default", "approximate"):
        flip = (1 - probability) / no > probability / yes
        legs = np.where(flip, 1 - probability, probability), np.where(flip, no, yes)
        staked = (_full_stakes if mode == "default" else _mean_variance_stakes)(*legs, gamma, starts, sizes, owner)
        paid = staked * np.where(flip, 1 - outcome, outcome) / legs[1]
    elif mode == "market_level":
        pairs = np.arange(len(probability))
        chances, prices = np.stack([probability, 1 - probability], axis=1), np.stack([yes, no], axis=1)
        pair_sizes, account = np.full(len(probability), 2), np.repeat(pairs, 2)
        staked = _full_stakes(chances.ravel(), prices.ravel(), gamma, 2 * pairs, pair_sizes, account).reshape(-1, 2)
        wins = np.stack([outcome, 1 - outcome], axis=1)[:, :: -1 if defects else 1]
        paid = (staked * wins / prices).sum(axis=1) / panel.spread(sizes)
    else:
        raise ValueError(f"mode: default, approximate, yes_only or market_level, not {mode}")
    priced = panel.priced & ~np.isnan(panel.sum_cells(panel.no_odds))
    return np.where(priced, panel.sum_cells(paid), np.nan)


def mean_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default", *, defects: bool = False) -> Floats:
    """Mean of `average_return` over each forecaster's forecasts.

    Parameters
    ----------
    panel : Panel
    gamma, mode, defects
        As in `average_return`.

    Returns
    -------
    array, shape (N,)
    """
    return _means(panel, average_return(panel, gamma, mode, defects=defects), defects)


def stream(panel: Panel, values: Floats, increment: int = 100) -> Floats:
    """Each forecaster's running mean in the order of the file; this library's stream is in order of closing.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
    increment : int
        Questions per step.

    Returns
    -------
    array, shape (N, steps)
    """
    order = np.arange(len(panel.questions), dtype=np.float64)
    return return_stream(replace(panel, questions=replace(panel.questions, closed_at=order)), values, increment).means


def sharpe(panel: Panel, values: Floats) -> Floats:
    """Sharpe ratio (mean - 1) / (s + 1e-8) with the population standard deviation s.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        Gross returns.

    Returns
    -------
    array, shape (N,)

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 2], [[1, 0]] * 2)
    >>> sharpe(panel, np.array([0.5, 2.5])).round(6).tolist()
    [0.5]
    """
    mean = panel.forecaster_means(values)
    variance = panel.forecaster_means(np.square(values - mean[panel.forecaster]))
    return (mean - 1) / (np.sqrt(variance) + 1e-8)


def calibration(
    panel: Panel, bins: int = 10, kind: Literal["uniform", "quantile"] = "uniform", *, defects: bool = False
) -> Floats:
    """Expected calibration error over pairs of equal weight, so that a question with many options counts more.

    "quantile" has its edges at NumPy's interpolated quantiles of a forecaster's pairs. With `defects` the edges of
    "uniform" are those of `numpy.linspace`, so that 0.3, 0.6 and 0.7 fall one bin too low.

    Parameters
    ----------
    panel : Panel
    bins : int
        At least 2.
    kind : {"uniform", "quantile"}
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    array, shape (N,)
        Lower is better; NaN without forecasts.

    Raises
    ------
    ValueError
        For fewer than two bins or another kind.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.3], [0.35]]], [[1], [0]], exclusive=False)
    >>> calibration(panel).round(6).tolist(), calibration(panel, defects=True).round(6).tolist()
    ([0.175], [0.525])
    """
    if bins < 2:
        raise ValueError(f"bins: at least 2, not {bins}")
    if kind not in ("uniform", "quantile"):
        raise ValueError(f"kind: uniform or quantile, not {kind}")
    result = np.full(len(panel.forecasters), np.nan)
    forecaster = panel.spread(panel.forecaster)
    order = np.argsort(forecaster, kind="stable")
    grouped = np.split(order, np.cumsum(np.bincount(forecaster, minlength=len(result)))[:-1]) if len(result) else []
    for person, cells in enumerate(grouped):
        if len(cells) == 0:
            continue
        probability, occurred = panel.probability[cells], panel.outcome[cells]
        inner = np.linspace(0, 1, bins + 1)[1:-1] if defects else np.arange(1, bins) / bins
        if kind == "quantile":
            inner = np.unique(np.quantile(probability, np.linspace(0, 1, bins + 1)))[1:-1]
        column = np.digitize(probability, inner)
        result[person] = np.abs(np.bincount(column, probability - occurred)).sum() / len(cells)
    return result


def pool_weights(panel: Panel, sweeps: int = SWEEPS, threshold: float = THRESHOLD) -> Floats:
    """The package's generalized Bradley–Terry skills: a fixed number of sweeps from equal skills.

    A sweep sets t_f = W_f / D_f with W_f = sum_q t_f p_f / sum_g t_g p_g and D_f = sum_q 1 / sum_g t_g over the
    questions that f answered, p the probability of the outcome, and scales to a sum of N; it stops when no skill
    changes by `threshold`. The iteration leads to the linear pool with the highest likelihood, in which one or two
    forecasters have all weight; 100 sweeps do not get there. Questions with probability 0 from every forecaster are
    left out, where the package returns NaN for all.

    Parameters
    ----------
    panel : Panel
    sweeps : int
        Most sweeps.
    threshold : float
        Largest change of a skill at which the sweeps stop.

    Returns
    -------
    array, shape (N,)
        Sums to N; NaN without forecasts.

    References
    ----------
    Huang, T.-K., Weng, R. C. and Lin, C.-J. (2006). Generalized Bradley-Terry models and multi-class probability
    estimates. Journal of Machine Learning Research 7, 85-115.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]] * 2, [[0.6, 0.4]] * 2], [[1, 0]] * 2)
    >>> pool_weights(panel, sweeps=1).round(6).tolist()
    [1.2, 0.8]
    """
    n_forecasters, n_questions = len(panel.forecasters), len(panel.questions)
    mass = panel.sum_cells(panel.probability)
    first = panel.outcome > 0
    outcome_probability = panel.sum_cells(np.where(first, panel.probability, 0.0)) / np.where(mass > 0, mass, 1.0)
    counted = np.bincount(panel.question, outcome_probability, n_questions)[panel.question] > 0
    outcome_probability, forecaster, question = (
        outcome_probability[counted],
        panel.forecaster[counted],
        panel.question[counted],
    )
    skill = np.ones(n_forecasters)
    for _ in range(sweeps):
        before, own_skill = skill, skill[forecaster]
        pool, total = (
            np.bincount(question, own_skill * outcome_probability, n_questions),
            np.bincount(question, own_skill, n_questions),
        )
        # Skills shrink towards 0 without end; where the sum has underflowed the share is 0.
        win_share = np.divide(
            own_skill * outcome_probability, pool[question], out=np.zeros(len(own_skill)), where=pool[question] > 0
        )
        game_share = np.divide(1.0, total[question], out=np.zeros(len(own_skill)), where=total[question] > 0)
        wins, games = (
            np.bincount(forecaster, win_share, n_forecasters),
            np.bincount(forecaster, game_share, n_forecasters),
        )
        skill = np.divide(wins, games, out=skill.copy(), where=games > 0)
        skill = skill * (n_forecasters / skill.sum()) if n_forecasters else skill
        if np.abs(skill - before).max(initial=0.0) < threshold:
            break
    return np.where(np.bincount(panel.forecaster, minlength=n_forecasters) > 0, skill, np.nan)


def scores(panel: Panel, gammas: Sequence[float] = (0.0, 0.5, 1.0), *, defects: bool = False) -> dict[str, Floats]:
    """The package's metrics by name.

    Parameters
    ----------
    panel : Panel
    gammas : list of float
        Risk aversions of the averaged return.
    defects : bool
        Reproduce the package's known errors.

    Returns
    -------
    dict of str to array, shape (N,)
        With the keys brier, log, spherical, average_return:GAMMA, calibration and pool_weight. Higher is better, except
        for calibration.
    """
    returns = {f"average_return:{gamma:g}": mean_return(panel, gamma, defects=defects) for gamma in gammas}
    return {
        "brier": brier(panel, defects=defects),
        "log": log(panel, defects=defects),
        "spherical": spherical(panel, defects=defects),
        **returns,
        "calibration": calibration(panel, defects=defects),
        "pool_weight": pool_weights(panel),
    }


def _means(panel: Panel, values: Floats, defects: bool) -> Floats:
    """Weighted means; with `defects` the mean of weight x value, which is wrong unless all weights are 1."""
    if not defects:
        return panel.forecaster_means(values)
    return panel.forecaster_means(values * panel.weight, np.ones(len(panel)))


def _full_stakes(probability: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes) -> Floats:
    """q (p/q)^(1/gamma) over its sum in each group of legs; at gamma = 0 all on the first of the largest p/q."""
    if gamma == 0:
        edge = probability / price
        return _first(edge >= ragged_max(edge, starts, sizes)[owner], owner)
    with np.errstate(divide="ignore"):
        edge = np.log(probability) - np.log(price)
    top = ragged_max(edge, starts, sizes)
    gap = edge - np.where(top > -np.inf, top, 0.0)[owner]
    demand = price * np.exp(np.maximum(gap, -NEGLIGIBLE_LOG_RATIO * gamma) / gamma)
    total = np.bincount(owner, demand, len(starts))[owner]
    return np.divide(demand, total, out=np.full(len(demand), np.nan), where=total > 0)


def _mean_variance_stakes(
    probability: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes
) -> Floats:
    """Stakes by edge a = p/q - 1 and variance b = p (1 - p)/q^2 of each leg, as if legs were independent.

    Legs with an edge above a level are staked by (a - level) / (gamma b), scaled to a dollar. Equal edges share it
    equally; without an edge above 0, or at gamma = 0, all goes on the largest.
    """
    probability = np.clip(probability, EPSILON, 1 - EPSILON)
    edge, variance = probability / price - 1, probability * (1 - probability) / np.square(price)
    first = edge[starts][owner]
    equal = np.bincount(owner, np.abs(edge - first) > 1e-8 + 1e-5 * np.abs(first), len(starts)) == 0
    best = _first(edge >= ragged_max(edge, starts, sizes)[owner], owner)
    positive = np.bincount(owner, edge > 0, len(starts)).astype(np.int64)
    order = np.lexsort((-edge, owner))
    filled, level = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts))
    inverse, ratio = np.zeros(len(starts)), np.zeros(len(starts))
    rising, rank = np.flatnonzero((positive > 0) & ~equal & (gamma >= EPSILON)), 0
    while len(rising):
        leg = order[starts[rising] + rank]
        inverse[rising] += 1 / variance[leg]
        ratio[rising] += edge[leg] / variance[leg]
        level[rising] = (ratio[rising] - gamma) / inverse[rising]
        rank += 1
        filled[rising] = rank
        rising = rising[positive[rising] > rank]
        rising = rising[edge[order[starts[rising] + rank]] > level[rising]]
    place = np.empty(len(edge), dtype=np.int64)
    place[order] = np.arange(len(edge)) - starts[owner]  # `order` keeps groups where they are
    excess = np.where(place < filled[owner], np.maximum(edge - level[owner], 0.0), 0.0) / variance
    total = np.bincount(owner, excess, len(starts))[owner]
    spread = np.divide(excess, total, out=best.copy(), where=total > max(gamma, EPSILON) * EPSILON)
    return np.where(equal[owner], 1 / sizes[owner], spread)


def _first(mask: NDArray[np.bool_], owner: Codes) -> Floats:
    """1 at the first leg of each group where `mask` holds, 0 elsewhere."""
    legs = np.flatnonzero(mask)
    groups = owner[legs]
    chosen = np.zeros(len(mask))
    chosen[legs[np.append(True, groups[1:] != groups[:-1])[: len(legs)]]] = 1.0
    return chosen
