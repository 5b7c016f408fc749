"""The metrics of the package pm_rank 0.3.1 by its own definitions, for comparison with what it printed.

Each function says where it differs from the suite's own. What the package does but can not mean (weights that are not
normalised, a payoff to the losing side, bins that begin a rounding error late) is done only with `defects=True`.

References
----------
Prophet Arena team (2025). pm_rank: scoring and ranking for prediction markets, version 0.3.1.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from scoring.metrics import proper
from scoring.metrics.accounts import DEEP
from scoring.metrics.panel import Codes, Floats, Panel, ragged_max
from scoring.metrics.returns import return_stream

Mode = Literal["default", "approximate", "yes_only", "market_level"]

PRICES = 0.005, 0.995
EPSILON = 1e-12
SWEEPS = 100
THRESHOLD = 1e-3


def brier(panel: Panel, *, defects: bool = False) -> Floats:
    """1 less the mean Brier score in mean form, (N,): higher is better.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> brier(from_arrays([[[0.8, 0.2]]], [[1, 0]])).round(6).tolist()
    [0.96]
    """
    return _means(panel, 1 - proper.brier(panel), defects)


def log(panel: Panel, clip: float = 0.01, *, defects: bool = False) -> Floats:
    """The mean of ln max(p, clip) of what happened, (N,), clipped at 0.01: a forecast below 1 % is charged as 1 %.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> log(from_arrays([[[1.0, 0.0]]], [[0, 1]])).round(6).tolist()
    [-4.60517]
    """
    return _means(panel, proper.log_score(panel, clip), defects)


def spherical(panel: Panel, *, defects: bool = False) -> Floats:
    """The mean spherical score, (N,): the suite's own.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> spherical(from_arrays([[[0.6, 0.8]]], [[1, 0]])).round(6).tolist()
    [0.6]
    """
    return _means(panel, proper.spherical(panel), defects)


def weighted_brier(panel: Panel, discrimination: Floats, *, defects: bool = False) -> Floats:
    """1 less the Brier score, weighted with each question's discrimination, (Q,), clipped to its quartiles: (N,).

    With `defects` the weights are scaled to a mean of 1 over all questions, not over those that a forecaster answered,
    so that who answers the discriminating ones gains or loses by it.

    Raises ValueError if `discrimination` is not one per question.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.8, 0.2], [0.5, 0.5]]], [[1, 0], [1, 0]])
    >>> weighted_brier(panel, np.array([1.0, 1.0])).round(6).tolist()
    [0.855]
    """
    if discrimination.shape != (len(panel.questions),):
        raise ValueError(f"discrimination: one per question, {len(panel.questions)}, not {discrimination.shape}")
    weights = np.clip(discrimination, *np.quantile(discrimination, [0.25, 0.75]))
    weight = (weights * len(weights) / weights.sum())[panel.question]
    score = 1 - proper.brier(panel)
    if defects:
        return _means(panel, score * weight, defects)
    return panel.forecaster_means(score, panel.weight * weight)


def average_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default", *, defects: bool = False) -> Floats:
    """What a dollar on each question paid, gross, in the package's four ways, as one value per forecast: (F,).

    Prices are clipped to [0.005, 0.995]. At gamma = 0 the first of tied legs takes all, where the suite splits.

    * "default": per option the better of YES and NO (NO if (1 - p)/no > p/yes), then the stakes a ~ q (p/q)^(1/gamma)
      over those legs, though they do not exclude each other. The package raises an error at gamma = 1; here the
      formula goes on.
    * "approximate": the same legs, stakes by mean and variance: (edge - level) / (gamma variance) above a water level.
    * "yes_only": the YES sides alone; the suite's own form.
    * "market_level": each option a YES/NO market with 1/n of the dollar; the suite's form for options that do not
      exclude each other. With `defects` it pays the side that lost, as the package does.

    NaN without both prices of every option.

    Raises ValueError for a gamma outside [0, 1] or another mode.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.2, 0.8]]], [[0, 1]], odds=[[0.5, 0.5]], no_odds=[[0.4, 0.6]])
    >>> [average_return(panel, mode=mode).tolist() for mode in ("default", "yes_only", "market_level")]
    [[2.5], [2.0], [2.25]]
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma: between 0 and 1, not {gamma}")
    low, high = PRICES
    said, outcome = panel.probability, panel.outcome
    yes, no = np.clip(panel.odds, low, high), np.clip(panel.no_odds, low, high)
    starts, sizes, owner = panel.offsets[:-1], panel.sizes, panel.cell_forecast
    if mode == "yes_only":
        paid = _full_stakes(said, yes, gamma, starts, sizes, owner) * outcome / yes
    elif mode in ("default", "approximate"):
        flip = (1 - said) / no > said / yes
        legs = np.where(flip, 1 - said, said), np.where(flip, no, yes)
        staked = (_full_stakes if mode == "default" else _mean_variance_stakes)(*legs, gamma, starts, sizes, owner)
        paid = staked * np.where(flip, 1 - outcome, outcome) / legs[1]
    elif mode == "market_level":
        pairs = np.arange(len(said))
        chances, prices = np.stack([said, 1 - said], axis=1), np.stack([yes, no], axis=1)
        twos, owners = np.full(len(said), 2), np.repeat(pairs, 2)
        staked = _full_stakes(chances.ravel(), prices.ravel(), gamma, 2 * pairs, twos, owners).reshape(-1, 2)
        wins = np.stack([outcome, 1 - outcome], axis=1)[:, :: -1 if defects else 1]
        paid = (staked * wins / prices).sum(axis=1) / panel.spread(sizes)
    else:
        raise ValueError(f"mode: default, approximate, yes_only or market_level, not {mode}")
    priced = panel.priced & ~np.isnan(panel.sum_cells(panel.no_odds))
    return np.where(priced, panel.sum_cells(paid), np.nan)


def mean_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default", *, defects: bool = False) -> Floats:
    """The mean of `average_return` over each forecaster's forecasts, (N,)."""
    return _means(panel, average_return(panel, gamma, mode, defects=defects), defects)


def stream(panel: Panel, values: Floats, increment: int = 100) -> Floats:
    """Each forecaster's mean of `values`, (F,), after every `increment` questions in the order of the file: (N, steps).

    The suite's own stream is in order of closing.
    """
    order = np.arange(len(panel.questions), dtype=np.float64)
    return return_stream(replace(panel, questions=replace(panel.questions, closed_at=order)), values, increment).means


def sharpe(panel: Panel, values: Floats) -> Floats:
    """The marginal Sharpe ratio (mean - 1) / (s + 1e-8) of gross `values`, (F,), with the population's s: (N,).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
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
    """The expected calibration error over pairs of equal weight, a question of many options counting more: (N,).

    "quantile" has its edges at NumPy's (interpolated) quantiles of a forecaster's pairs. With `defects` the edges of
    "uniform" are those of `numpy.linspace`, so that 0.3, 0.6 and 0.7 fall a bin too low.

    Raises ValueError for fewer than two bins or another kind.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.3], [0.35]]], [[1], [0]], exclusive=False)
    >>> calibration(panel).round(6).tolist(), calibration(panel, defects=True).round(6).tolist()
    ([0.175], [0.525])
    """
    if bins < 2:
        raise ValueError(f"bins: at least 2, not {bins}")
    if kind not in ("uniform", "quantile"):
        raise ValueError(f"kind: uniform or quantile, not {kind}")
    result = np.full(len(panel.forecasters), np.nan)
    who = panel.spread(panel.forecaster)
    order = np.argsort(who, kind="stable")
    grouped = np.split(order, np.cumsum(np.bincount(who, minlength=len(result)))[:-1]) if len(result) else []
    for person, cells in enumerate(grouped):
        if len(cells) == 0:
            continue
        said, happened = panel.probability[cells], panel.outcome[cells]
        inner = np.linspace(0, 1, bins + 1)[1:-1] if defects else np.arange(1, bins) / bins
        if kind == "quantile":
            inner = np.unique(np.quantile(said, np.linspace(0, 1, bins + 1)))[1:-1]
        column = np.digitize(said, inner)
        result[person] = np.abs(np.bincount(column, said - happened)).sum() / len(cells)
    return result


def pool_weights(panel: Panel, sweeps: int = SWEEPS, threshold: float = THRESHOLD) -> Floats:
    """The package's generalized Bradley-Terry skills, (N,), which sum to N: a fixed number of sweeps from 1.

    One sweep sets t_f = W_f / D_f with W_f = sum_q t_f p_f / sum_g t_g p_g and D_f = sum_q 1 / sum_g t_g over the
    questions that f answered, p the probability of what happened, then scales to a sum of N; it stops early when none
    moves by `threshold`. That is the way to the maximum of the linear pool, where one or two forecasters hold all
    weight, and 100 sweeps are not there: what is read as skill is how far they got. A question where nobody gave
    anything to what happened is left out; the package makes everybody's skill NaN. NaN for who has no forecasts.

    References
    ----------
    Huang, T.-K., Weng, R. C. and Lin, C.-J. (2006). Generalized Bradley-Terry models and multi-class probability
    estimates. Journal of Machine Learning Research 7, 85-115.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9, 0.1]] * 2, [[0.6, 0.4]] * 2], [[1, 0]] * 2)
    >>> pool_weights(panel, sweeps=1).round(6).tolist()
    [1.2, 0.8]
    """
    people, asked = len(panel.forecasters), len(panel.questions)
    mass = panel.sum_cells(panel.probability)
    first = panel.outcome > 0
    given = panel.sum_cells(np.where(first, panel.probability, 0.0)) / np.where(mass > 0, mass, 1.0)
    counted = np.bincount(panel.question, given, asked)[panel.question] > 0
    given, who, question = given[counted], panel.forecaster[counted], panel.question[counted]
    skill = np.ones(people)
    for _ in range(sweeps):
        before, mine = skill, skill[who]
        pool, total = np.bincount(question, mine * given, asked), np.bincount(question, mine, asked)
        # Weights shrink towards 0 without end: who is alone with such a weight keeps it.
        won = np.divide(mine * given, pool[question], out=np.zeros(len(mine)), where=pool[question] > 0)
        played = np.divide(1.0, total[question], out=np.zeros(len(mine)), where=total[question] > 0)
        wins, games = np.bincount(who, won, people), np.bincount(who, played, people)
        skill = np.divide(wins, games, out=skill.copy(), where=games > 0)
        skill = skill * (people / skill.sum()) if people else skill
        if np.abs(skill - before).max(initial=0.0) < threshold:
            break
    return np.where(np.bincount(panel.forecaster, minlength=people) > 0, skill, np.nan)


def scores(panel: Panel, gammas: Sequence[float] = (0.0, 0.5, 1.0), *, defects: bool = False) -> dict[str, Floats]:
    """All of these by name, each (N,): brier, log, spherical, average_return:GAMMA, calibration, pool_weight.

    Higher is better but for calibration.
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
    """Weighted means; with `defects` the mean of weight x value, which is no mean unless the weights are 1."""
    if not defects:
        return panel.forecaster_means(values)
    return panel.forecaster_means(values * panel.weight, np.ones(len(panel)))


def _full_stakes(said: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes) -> Floats:
    """q (p/q)^(1/gamma) over its sum in each group of legs; at gamma = 0 all on the first of the largest p/q."""
    if gamma == 0:
        edge = said / price
        return _first(edge >= ragged_max(edge, starts, sizes)[owner], owner)
    with np.errstate(divide="ignore"):
        edge = np.log(said) - np.log(price)
    top = ragged_max(edge, starts, sizes)
    gap = edge - np.where(top > -np.inf, top, 0.0)[owner]
    pull = price * np.exp(np.maximum(gap, -DEEP * gamma) / gamma)
    total = np.bincount(owner, pull, len(starts))[owner]
    return np.divide(pull, total, out=np.full(len(pull), np.nan), where=total > 0)


def _mean_variance_stakes(
    said: Floats, price: Floats, gamma: float, starts: Codes, sizes: Codes, owner: Codes
) -> Floats:
    """Stakes by edge a = p/q - 1 and variance b = p (1 - p)/q^2 of each leg, as if legs were independent.

    Legs with an edge above a level are staked by (a - level) / (gamma b), scaled to a dollar. Equal edges share it
    equally; without an edge above 0, or at gamma = 0, all goes on the largest.
    """
    said = np.clip(said, EPSILON, 1 - EPSILON)
    edge, variance = said / price - 1, said * (1 - said) / np.square(price)
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
