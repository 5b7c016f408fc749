"""Difficulty-adjusted scores: forecaster and question effects, fitted together by least squares."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forecast_rank.metrics.cluster_robust import event_scores, sum_table, weighted_gram
from forecast_rank.metrics.connectivity import connected_components
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums, linearised_sums

BLOCK = 4_000_000
"""Numbers handled at a time where a table of events by forecasters is worked through."""


class AdjustedScores(NamedTuple):
    """Scores adjusted for the difficulty of the questions that each forecaster answered.

    Values are NaN outside component 0, which no common question links to it; errors also for a forecaster with fewer
    than two events.

    Attributes
    ----------
    value : array, shape (N,)
        Forecaster effect + mean question effect, in the units of the scores.
    se : array, shape (N,)
        Standard error of `value`, with events as a sample of those that might have been asked.
    effect : array, shape (N,)
        `value` less its mean over forecasters.
    effect_se : array, shape (N,)
        Standard error of `effect`. Smaller than `se`, since the common difficulty of the questions cancels.
    coverage : array, shape (N,)
        Share of the answered questions that the forecaster answered.
    component : array of int, shape (N,)
        See `connectivity`; 0 the largest, -1 without forecasts.
    sums : EventSums, shape (N, E)
        `value` as means over events (`uncertainty.linearised_sums`), for intervals and tests of differences.
    effect_sums : EventSums, shape (N, E)
        `effect` in the same way.
    residual_deviation : float
        Weighted standard deviation of the scores about both effects; NaN without degrees of freedom.
    """

    value: Floats
    se: Floats
    effect: Floats
    effect_se: Floats
    coverage: Floats
    component: Codes
    sums: EventSums
    effect_sums: EventSums
    residual_deviation: float


def adjusted_brier(panel: Panel, values: Floats) -> AdjustedScores:
    """Each forecaster's mean score, adjusted for the difficulty of the questions answered.

    Weighted least squares of v_fq = alpha_f + beta_q + error over all forecasts. The adjusted score is
    alpha_f + sum_q omega_q beta_q / sum_q omega_q, omega_q the mean weight of the forecasts on question q: the plain
    weighted mean where everybody answered everything with the same weights.

    The question effects are eliminated: S alpha = sum_q w (v - mean of q) with S = diag(W_f) - A diag(1 / W_q) A', A
    the weights as forecasters x questions and W its sums (the forecasters are eliminated if they are more). Standard
    errors are leave-one-event-out jackknife errors (`cluster_robust.event_scores`); `se` adds the spread of the events'
    mean effects.

    The model assumes that a forecaster gains as much on hard questions as on easy ones, and that the choice of
    questions does not depend on how well the forecaster knows them beyond the two effects. Selective answering is not
    undone: report `coverage` beside it.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A score of each forecast, Brier or any other; NaN leaves a forecast out.

    Returns
    -------
    AdjustedScores

    Raises
    ------
    ValueError
        If `values` is not one per forecast.

    References
    ----------
    Abowd, J. M., Kramarz, F. and Margolis, D. N. (1999). High wage workers and high wage firms. Econometrica 67,
    251-333 (two-way effects, linked groups). Merkle, E. C., Steyvers, M., Mellers, B. and Tetlock, P. E. (2016). Item
    response models of probability judgments. Decision 3, 1-19 (why difficulty must be adjusted for).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> from forecast_rank.metrics.proper_scores import brier
    >>> half = from_arrays([[[0.9], [0.5], [np.nan]], [[0.8], [0.4], [0.3]]], [[1], [1], [1]], exclusive=False)
    >>> adjusted = adjusted_brier(half, brier(half))  # f0 missed the hardest question; raw: 0.13 against 0.297
    >>> adjusted.value.round(3).tolist(), adjusted.coverage.round(3).tolist()
    ([0.227, 0.297], [0.667, 1.0])
    """
    values = panel.one_per_forecast(values)
    n_forecasters = len(panel.forecasters)
    is_counted = ~np.isnan(values)
    part = connected_components(panel, is_counted)
    answered = np.bincount(panel.forecaster[is_counted], minlength=n_forecasters)
    n_questions = int((part.question >= 0).sum())
    coverage = answered / n_questions if n_questions else np.full(n_forecasters, np.nan)
    compared = np.flatnonzero(part.forecaster == 0)
    nans = np.full(n_forecasters, np.nan)
    if len(compared) == 0:
        no_sums = linearised_sums(panel, nans, np.zeros((0, n_forecasters)), np.zeros(0, dtype=np.int64))
        return AdjustedScores(nans, nans, nans, nans, coverage, part.forecaster, no_sums, no_sums, np.nan)

    # Codes within the component; forecasts stay sorted by question, then forecaster.
    is_used = is_counted & (part.forecaster[panel.forecaster] == 0)
    forecaster_code, questions, weight, score = panel.forecaster, panel.question, panel.weight, values
    if not is_used.all():
        forecaster_code, questions, weight, score = (
            forecaster_code[is_used],
            questions[is_used],
            weight[is_used],
            score[is_used],
        )
    _, forecaster = distinct_codes(forecaster_code)
    asked_codes, question = distinct_codes(questions)
    event = panel.questions.event[questions]
    alpha, solve = _effects(forecaster, question, weight, score)
    mass = np.bincount(question, weight)
    beta = np.bincount(question, weight * (score - alpha[forecaster])) / mass
    omega = mass / np.bincount(question)
    omega = omega / omega.sum()
    level = omega @ beta

    residual = score - alpha[forecaster] - beta[question]
    contributions, is_known = event_scores(
        weight * residual, weight * (1 - weight / mass[question]), event, forecaster, len(compared)
    )
    # Contribution of each event to the mean difficulty, corrected as in `event_scores`.
    event_codes, owner = distinct_codes(panel.questions.event[asked_codes])
    share = np.bincount(owner, omega)
    events = len(share)
    level_contributions = np.bincount(owner, omega * (beta - level))
    level_contributions *= np.sqrt((events - 1) / events) / np.maximum(1 - share, 1e-12)
    sensitivity = np.bincount(forecaster, (omega / mass)[question] * weight)
    effect_error, influence = _influence(contributions, solve, sensitivity, level_contributions)
    del contributions, solve  # tables of events and of questions by forecasters
    error = np.sqrt(np.square(influence).sum(axis=0))
    is_known &= events > 1

    def expand(part_values: Floats) -> Floats:
        result = nans.copy()
        result[compared] = part_values
        return result

    def as_sums(estimates: Floats, moves: Floats) -> EventSums:
        if len(compared) < n_forecasters:
            spread = np.zeros((events, n_forecasters))
            spread[:, compared] = moves
            moves = spread
        return linearised_sums(panel, estimates, moves, event_codes)

    value, effect = expand(alpha + level), expand(alpha - alpha.mean())
    freedom = len(score) - len(alpha) - len(beta) + 1
    variance = np.average(np.square(residual), weights=weight) * len(score) / freedom if freedom > 0 else np.nan
    value_sums = as_sums(value, influence)
    # The moves of centred effects add up to 0, so that their mean is what each event adds to all values alike.
    influence -= influence.mean(axis=1, keepdims=True)
    return AdjustedScores(
        value=value,
        se=expand(np.where(is_known, error, np.nan)),
        effect=effect,
        effect_se=expand(np.where(is_known, effect_error, np.nan)),
        coverage=coverage,
        component=part.forecaster,
        sums=value_sums,
        effect_sums=as_sums(effect, influence),
        residual_deviation=float(np.sqrt(variance)),
    )


class _Solver(NamedTuple):
    """Solves S alpha = u for the centred alpha, S as in `adjusted_brier`; `inverse` is of the smaller side."""

    links: NDArray | sparse.csr_array
    mass: NDArray
    inverse: Floats
    by_question: bool

    def __call__(self, contributions: NDArray) -> Floats:
        """Row by row: (K, N) to (K, N)."""
        contributions = contributions - contributions.mean(axis=1, keepdims=True)
        if self.by_question:
            return np.asarray(contributions @ self.inverse)
        scaled = contributions / self.mass
        solved = scaled + ((scaled @ self.links) @ self.inverse @ self.links.T) / self.mass
        return np.asarray(solved - solved.mean(axis=1, keepdims=True))


def _effects(forecaster: Codes, question: Codes, weight: Floats, score: Floats) -> tuple[Floats, _Solver]:
    """The centred forecaster effects, (N,), and the solver of their equations."""
    n_forecasters, n_questions = int(forecaster.max()) + 1, int(question.max()) + 1
    of_forecaster, of_question = np.bincount(forecaster, weight), np.bincount(question, weight)
    if n_forecasters <= n_questions:
        links = sum_table(question, forecaster, weight, (n_questions, n_forecasters))
        inverse = _pseudo_inverse(of_forecaster, weighted_gram(links, 1 / of_question))
    else:
        links = sum_table(forecaster, question, weight, (n_forecasters, n_questions))
        inverse = _pseudo_inverse(of_question, weighted_gram(links, 1 / of_forecaster))
    solver = _Solver(links, of_forecaster, inverse, by_question=n_forecasters <= n_questions)
    mean = np.bincount(question, weight * score) / of_question
    right_side = np.bincount(forecaster, weight * (score - mean[question]))
    return solver(right_side[None, :])[0], solver


def _pseudo_inverse(diagonal: NDArray, shared: Floats) -> Floats:
    """The pseudo-inverse of diag(diagonal) - shared, whose only null vector is the constant one."""
    size, scale = len(diagonal), diagonal.mean()
    system = np.diag(diagonal) - shared
    return np.linalg.inv(system + scale / size) - 1 / (scale * size)


def _influence(
    contributions: NDArray | sparse.csr_array, solve: _Solver, sensitivity: NDArray, level_contributions: NDArray
) -> tuple[Floats, Floats]:
    """Errors of the effects, (N,), and what each event adds to the error of each value, a block at a time."""
    events, n_forecasters = contributions.shape
    squares, influence = np.zeros(n_forecasters), np.empty((events, n_forecasters))
    step = max(BLOCK // n_forecasters, 1)
    for start in range(0, events, step):
        part = slice(start, start + step)
        block = contributions[part]
        effects = solve(block if isinstance(block, np.ndarray) else block.toarray())  # the centred effects
        squares += np.square(effects).sum(axis=0)
        influence[part] = effects + (level_contributions[part] - effects @ sensitivity)[:, None]
    return np.sqrt(squares), influence
