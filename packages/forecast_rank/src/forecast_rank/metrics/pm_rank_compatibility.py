"""The metrics of the package pm_rank 0.3.1 by its own definitions, for comparison with its output.

Each docstring names the difference from this library's definition. Errors of the package (weights that are not
normalised, a payoff to the losing side, bins that begin too late by rounding) are not reproduced.

References
----------
Prophet Arena team (2025). pm_rank: scoring and ranking for prediction markets, version 0.3.1.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from forecast_rank.metrics import proper_scores
from forecast_rank.metrics.flat_arrays import Floats, stable_order
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.pm_rank_returns import Mode, average_return

SWEEPS = 100
THRESHOLD = 1e-3


def brier(panel: Panel) -> Floats:
    """1 less the mean Brier score in mean form.

    Parameters
    ----------
    panel : Panel

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
    return panel.forecaster_means(1 - proper_scores.brier(panel))


def log(panel: Panel, clip: float = 0.01) -> Floats:
    """Mean of ln max(p, clip), p the probability of the outcome.

    Parameters
    ----------
    panel : Panel
    clip : float
        Lowest probability that is charged; the package's is 1 %.

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
    return panel.forecaster_means(proper_scores.log_score(panel, clip))


def spherical(panel: Panel) -> Floats:
    """Mean spherical score, defined as in this library.

    Parameters
    ----------
    panel : Panel

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
    return panel.forecaster_means(proper_scores.spherical(panel))


def weighted_brier(panel: Panel, discrimination: Floats) -> Floats:
    """1 less the Brier score, weighted by the discriminations of questions clipped to their quartiles.

    Parameters
    ----------
    panel : Panel
    discrimination : array, shape (Q,)

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
    return panel.forecaster_means(score, panel.weight * weight)


def mean_return(panel: Panel, gamma: float = 0.0, mode: Mode = "default") -> Floats:
    """Mean of `average_return` over each forecaster's forecasts.

    Parameters
    ----------
    panel : Panel
    gamma, mode
        As in `average_return`.

    Returns
    -------
    array, shape (N,)
    """
    return panel.forecaster_means(average_return(panel, gamma, mode))


def calibration(panel: Panel, bins: int = 10, kind: Literal["uniform", "quantile"] = "uniform") -> Floats:
    """Expected calibration error over pairs of equal weight, so that a question with many options counts more.

    "quantile" has its edges at NumPy's interpolated quantiles of a forecaster's pairs.

    Parameters
    ----------
    panel : Panel
    bins : int
        At least 2.
    kind : {"uniform", "quantile"}

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
    >>> calibration(panel).round(6).tolist()
    [0.175]
    """
    if bins < 2:
        raise ValueError(f"bins: at least 2, not {bins}")
    if kind not in ("uniform", "quantile"):
        raise ValueError(f"kind: uniform or quantile, not {kind}")
    result = np.full(len(panel.forecasters), np.nan)
    forecaster = panel.spread(panel.forecaster)
    order = stable_order(forecaster, len(result))
    grouped = np.split(order, np.cumsum(np.bincount(forecaster, minlength=len(result)))[:-1]) if len(result) else []
    for person, cells in enumerate(grouped):
        if len(cells) == 0:
            continue
        probability, occurred = panel.probability[cells], panel.outcome[cells]
        inner = np.arange(1, bins) / bins
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
    is_counted = np.bincount(panel.question, outcome_probability, n_questions)[panel.question] > 0
    outcome_probability, forecaster, question = (
        outcome_probability[is_counted],
        panel.forecaster[is_counted],
        panel.question[is_counted],
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


def scores(panel: Panel, gammas: Sequence[float] = (0.0, 0.5, 1.0)) -> dict[str, Floats]:
    """The package's metrics by name.

    Parameters
    ----------
    panel : Panel
    gammas : list of float
        Risk aversions of the averaged return.

    Returns
    -------
    dict of str to array, shape (N,)
        With the keys brier, log, spherical, average_return:GAMMA, calibration and pool_weight. Higher is better, except
        for calibration.
    """
    returns = {f"average_return:{gamma:g}": mean_return(panel, gamma) for gamma in gammas}
    return {
        "brier": brier(panel),
        "log": log(panel),
        "spherical": spherical(panel),
        **returns,
        "calibration": calibration(panel),
        "pool_weight": pool_weights(panel),
    }
