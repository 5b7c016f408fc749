"""Item response theory: abilities of forecasters, difficulties and discriminations of questions."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from forecast_rank.blas_threads import one_blas_thread
from forecast_rank.metrics.cluster_robust import event_scores
from forecast_rank.metrics.flat_arrays import Floats, distinct_codes
from forecast_rank.metrics.irt_marginal_over_forecasters import MarginalOverForecasters
from forecast_rank.metrics.irt_marginal_over_questions import MarginalOverQuestions
from forecast_rank.metrics.irt_responses import IrtResponses, response
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.uncertainty import EventSums, linearised_sums

SAMPLE = 1000
"""Questions that the first round is fitted to at most, evenly taken; the second starts there, with its curvature."""
COARSE = 2.0
"""Steps of the first round's grid, in those of the second: half as many nodes in each direction."""
FULL_MATRIX = 300
"""Up to so many parameters the second round begins with all second derivatives of the first."""
DIFFERENCE = 1e-5
"""Step of the differences that these are computed from."""
TOLERANCE = 1e-7
"""Largest derivative per answer at which the search ends; ten times as much passes as converged."""
ROUGH_TOLERANCE = 1e-4
"""The same in the first round where the second starts with its curvature. Without that, a fit of 400 forecasters moved
abilities by 0.0025."""
EQUAL_ABILITIES = 1e-6
"""Standard deviation of abilities below which they count as equal."""
ROUNDS = 1000
FOLDS = 5

Integrated = Literal["questions", "forecasters"]


class IrtFit(NamedTuple):
    """Abilities of N forecasters, difficulties and discriminations of Q questions, on one scale.

    Attributes
    ----------
    ability : array, shape (N,)
        Higher is better; NaN without forecasts. Mean 0 and standard deviation 1 over the forecasters if questions are
        integrated out; otherwise on the scale of the prior N(0, 1).
    ability_se : array, shape (N,)
        NaN where unknown, see `fit_irt`.
    difficulty : array, shape (Q,)
        The ability at which the expected response is one half (up to the shape), in units of ability. Where abilities
        hardly differ that unit is small, so that difficulties and their errors are large.
    discrimination : array, shape (Q,)
        Above 0: the increase of responses per unit of ability.
    difficulty_se, discrimination_se : arrays, shape (Q,)
        All four are NaN for a question without forecasts.
    log_likelihood : float
        Of all responses, with the questions (or forecasters) integrated out.
    converged : bool
        Whether no derivative exceeds 1e-6 per response.
    integrated : {"questions", "forecasters"}
    parameters : array, shape (P,)
        The parameters of the marginal likelihood, see `irt_marginal_over_questions` and
        `irt_marginal_over_forecasters`.
    sums : EventSums, shape (N, E)
        `ability` as means over events (`uncertainty.linearised_sums`); without weights where `ability_se` is NaN, or
        with forecasters integrated out.
    """

    ability: Floats
    ability_se: Floats
    difficulty: Floats
    difficulty_se: Floats
    discrimination: Floats
    discrimination_se: Floats
    log_likelihood: float
    converged: bool
    integrated: Integrated
    parameters: Floats
    sums: EventSums


def fit_irt(panel: Panel, integrated: Integrated | None = None) -> IrtFit:
    """Abilities, difficulties and discriminations by a two-parameter logistic model of continuous responses.

    The response v of a forecast is 1 less its Brier score rescaled to [0, 1] (`irt_responses.response`). With ability
    theta_f, difficulty b_q and discrimination a_q, responses at the six anchors s_k = 0, 0.2 .. 1 have

        P(s_k) proportional to exp( a_q [ s_k (theta_f - b_q) - g_k ] ),   g_0 = g_5 = 0,

    g the shape common to all questions. A response between two anchors counts in both, in shares that preserve its mean
    (`anchor_shares`): its log likelihood is a (theta - b) v - a sum_k g_k r_k - log Z, linear in v. With the anchors 0
    and 1 alone this is the two-parameter logistic model. It is the model of Bo et al. with g_k = s_k p_k, p_k its
    category parameters, but responses are not rounded and the questions' prior is estimated.

    *Questions integrated out* (with fewer forecasters than questions): log a_q ~ N(0, t^2) and b_q ~ N(m, s^2) are
    summed over a grid; theta, g, m, s, t maximise the marginal likelihood, under N(0, 3^2) on theta and equally weak
    priors on the others. Abilities are then standardised to mean 0 and standard deviation 1, with difficulties and
    discriminations on the same scale. Standard errors of abilities are H^-1 U'U H^-1 with H the exact second
    derivatives by Louis' formula (shape, prior and unit held fixed) and U the events' gradients
    (`cluster_robust.event_scores`), so that they hold even if the response distribution is wrong. They are NaN for a
    forecaster with fewer than two events, and with fewer than three forecasters: two are -1 and 1 by definition, one
    has no scale (all NaN, as where all responses are equal). The unit is estimated too: the spread of few estimates is
    mostly that of their errors, which draws abilities to 0. The intervals of a report allow for it and held the
    abilities of a run of 8,000 events in 96 to 98 % of cases, with 10 forecasters and 50 events, in all of
    the simulated worlds; in the worst for one forecaster in 93 %. Difficulties and discriminations are posterior means
    and standard deviations at the estimated abilities (coverage 92 to 95 % with 12 forecasters).

    *Forecasters integrated out* (with more forecasters than questions): theta ~ N(0, 1) is summed over a grid; a, b, g
    maximise the marginal likelihood under weak priors. Abilities are posterior means, shrunk to 0 where responses are
    few; their errors are posterior standard deviations, which rely on the response distribution.

    Weights, divided by their mean, multiply log likelihoods. Deterministic: two rounds of quasi-Newton steps, the first
    on 1,000 evenly spaced questions and, with questions integrated out, a coarse grid. Forecasters without a common
    question are compared on the assumption that their questions are alike.

    The ability is not a proper score. Discrimination is estimated from outcomes: on a surprising question confident
    forecasters did badly, the model finds little order in it and gives it a low weight, so that overconfidence costs
    less than in the Brier score. The estimated spread t limits this effect.

    Parameters
    ----------
    panel : Panel
    integrated : {"questions", "forecasters"}, optional
        The more numerous by default; questions if equally many.

    Returns
    -------
    IrtFit

    Raises
    ------
    ValueError
        For another `integrated`.

    References
    ----------
    Bo, Y. E., Budescu, D. V., Lewis, C., Tetlock, P. E. and Mellers, B. (2017). An IRT forecasting model: linking
    proper scoring rules to item response theory. Judgment and Decision Making 12, 90-103. Bock, R. D. and Aitkin, M.
    (1981). Marginal maximum likelihood estimation of item parameters. Psychometrika 46, 443-459. Louis, T. A. (1982).
    Finding the observed information matrix when using the EM algorithm. Journal of the Royal Statistical Society B 44,
    226-233.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts = np.array([[0.9, 0.8, 0.9, 0.7, 0.8], [0.7, 0.9, 0.6, 0.6, 0.5], [0.5, 0.4, 0.6, 0.3, 0.6]])
    >>> irt = fit_irt(from_arrays(forecasts[:, :, None], np.ones((5, 1)), exclusive=False))
    >>> irt.ability.round(1).tolist(), irt.converged
    ([1.2, 0.1, -1.3], True)
    """
    if integrated not in (None, "questions", "forecasters"):
        raise ValueError(f"integrated: questions or forecasters, not {integrated}")
    data, forecaster_codes, question_codes = _responses(panel)
    if integrated is None:
        integrated = "questions" if len(forecaster_codes) <= len(question_codes) else "forecasters"
    n_forecasters, n_questions = len(panel.forecasters), len(panel.questions)
    if len(data.value) == 0:
        nans, empty = np.full(n_forecasters, np.nan), np.full(n_questions, np.nan)
        no_sums = linearised_sums(panel, nans, np.zeros((0, n_forecasters)), np.zeros(0, dtype=np.int64))
        return IrtFit(nans, nans, empty, empty, empty, empty, 0.0, False, integrated, np.zeros(0), no_sums)
    with one_blas_thread():
        estimates = _fit_abilities(data) if integrated == "questions" else _fit_questions(data)

    def expand(values: Floats, codes: NDArray, size: int) -> Floats:
        result = np.full(size, np.nan)
        result[codes] = values
        return result

    ability = expand(estimates.ability, forecaster_codes, n_forecasters)
    influence = np.full((len(estimates.influence), n_forecasters), np.nan)
    influence[:, forecaster_codes] = estimates.influence
    is_known = ~np.isnan(influence).any(axis=0) & (len(influence) > 0)
    return IrtFit(
        ability=ability,
        ability_se=expand(estimates.ability_se, forecaster_codes, n_forecasters),
        difficulty=expand(estimates.difficulty, question_codes, n_questions),
        difficulty_se=expand(estimates.difficulty_se, question_codes, n_questions),
        discrimination=expand(estimates.discrimination, question_codes, n_questions),
        discrimination_se=expand(estimates.discrimination_se, question_codes, n_questions),
        log_likelihood=estimates.log_likelihood,
        converged=estimates.converged,
        integrated=integrated,
        parameters=estimates.parameters,
        sums=linearised_sums(
            panel, np.where(is_known, ability, np.nan), influence, np.unique(data.event)[: len(influence)]
        ),
    )


def discrimination_weights(panel: Panel, irt: IrtFit, folds: int = FOLDS) -> Floats:
    """Discrimination of each forecast's question, estimated from other forecasters.

    Forecasters are dealt into folds in order of ability; a forecast is weighted by the discrimination of its question
    in the responses of the other folds, so that no response affects its own weight. With questions integrated out this
    is the posterior mean without the forecaster's fold, at the parameters of the whole fit; with forecasters integrated
    out, the estimate of a fit without the fold. A question with no other forecaster has the mean weight of the fold's
    others.

    A score with these weights is not proper, since the others' responses depend on the outcome.

    Parameters
    ----------
    panel : Panel
    irt : IrtFit
        The fit of the same panel.
    folds : int
        At least 2; at most the number of forecasters is used.

    Returns
    -------
    array, shape (F,)
        Above 0; 1 where `irt` has no abilities.

    Raises
    ------
    ValueError
        For fewer than two folds.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> forecasts = np.array([[0.9, 0.8, 0.9, 0.7, 0.8], [0.7, 0.9, 0.6, 0.6, 0.5], [0.5, 0.4, 0.6, 0.3, 0.6]])
    >>> panel = from_arrays(forecasts[:, :, None], np.ones((5, 1)), exclusive=False)
    >>> bool((discrimination_weights(panel, fit_irt(panel)) > 0).all())
    True
    """
    if folds < 2:
        raise ValueError(f"folds: at least 2, not {folds}")
    rated = np.flatnonzero(~np.isnan(irt.ability))
    if len(rated) < 2:
        return np.ones(len(panel))
    fold = np.full(len(panel.forecasters), -1)
    fold[rated[np.argsort(-irt.ability[rated], kind="stable")]] = np.arange(len(rated)) % min(folds, len(rated))
    weights, fold_of_forecast = np.empty(len(panel)), fold[panel.forecaster]
    for number in range(min(folds, len(rated))):
        in_fold = fold_of_forecast == number
        discrimination = _discriminations(panel.take(~in_fold), irt)[panel.question[in_fold]]
        is_known = ~np.isnan(discrimination)
        mean = discrimination[is_known].mean() if is_known.any() else 1.0
        weights[in_fold] = np.where(is_known, discrimination, mean)
    return weights


def weighted_brier(panel: Panel, weights: Floats) -> Floats:
    """Each forecaster's Brier score, mean form, with forecasts weighted by `weights` times their own weight.

    sum(weights w brier) / sum(weights w) over the forecaster's forecasts: a constant score is unchanged.

    Parameters
    ----------
    panel : Panel
    weights : array, shape (F,)
        At least 0; NaN leaves a forecast out.

    Returns
    -------
    array, shape (N,)
        In [0, 1], lower is better; NaN without forecasts.

    Raises
    ------
    ValueError
        If `weights` is not one per forecast, or negative.

    References
    ----------
    Li, S. (2025). How we score and rank LLMs in Prophet Arena (weighting by discrimination).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [0.0]]], [[1], [1]], exclusive=False)
    >>> weighted_brier(panel, np.array([3.0, 1.0])).tolist()  # (3 x 0.25 + 1) / 4
    [0.4375]
    """
    weights = panel.one_per_forecast(weights, "weights")
    if (weights < 0).any():
        raise ValueError("weights: at least 0")
    is_known = ~np.isnan(weights)
    return panel.forecaster_means(
        np.where(is_known, brier(panel), np.nan), np.where(is_known, weights, 0) * panel.weight
    )


def _responses(panel: Panel) -> tuple[IrtResponses, NDArray, NDArray]:
    """The responses, and the codes of the forecasters and questions that have any."""
    forecaster_codes, forecaster = distinct_codes(panel.forecaster)
    question_codes, question = distinct_codes(panel.question)
    weight = panel.weight / panel.weight.mean() if len(panel) else panel.weight
    event = panel.questions.event[panel.question]
    return (
        IrtResponses(len(forecaster_codes), len(question_codes), forecaster, question, response(panel), weight, event),
        forecaster_codes,
        question_codes,
    )


class _Estimates(NamedTuple):
    """The figures of `IrtFit` for forecasters and questions with responses."""

    ability: Floats
    ability_se: Floats
    difficulty: Floats
    difficulty_se: Floats
    discrimination: Floats
    discrimination_se: Floats
    log_likelihood: float
    converged: bool
    parameters: Floats
    influence: Floats
    """The part of each event in the error of each ability, (events, N); no events if errors do not follow from them."""


def _fit_abilities(data: IrtResponses) -> _Estimates:
    """The fit with questions integrated out."""
    model, part = MarginalOverQuestions(data), data.sample(-(-data.questions // SAMPLE))
    rough = MarginalOverQuestions(part, spacing=COARSE)
    tolerance = ROUGH_TOLERANCE if len(rough.start) <= FULL_MATRIX else TOLERANCE
    start, _ = _minimise(rough, len(part.value), tolerance=tolerance)
    inverse = _inverse_curvature(rough, start)
    if inverse is not None:
        inverse *= len(part.value) / len(data.value)
    z, max_slope = _minimise(model, len(data.value), start, inverse)
    size, theta = data.forecasters, z[: data.forecasters]
    mean, sd = theta.mean(), theta.std()
    b, b_se, a, a_se, likelihood = model.questions_at(z)
    end = likelihood, max_slope <= 10 * TOLERANCE, z
    if size < 2 or sd <= EQUAL_ABILITIES:
        nans, empty = np.full(size, np.nan), np.full(data.questions, np.nan)
        return _Estimates(nans, nans, empty, empty, empty, empty, *end, np.zeros((0, size)))
    ability = (theta - mean) / sd
    hessian, gradient, information = model.curvature(z, data)
    contributions, is_known = event_scores(gradient, information, data.event, data.forecaster, size)
    # d ability / d theta at a fixed unit: through the unit too, a difference that is itself an error would have none.
    jacobian = (np.eye(size) - 1 / size) / sd
    spread = jacobian @ np.linalg.inv(hessian)
    influence = np.where(is_known & (size > 2), np.asarray(contributions @ spread.T), np.nan)
    error = np.sqrt(np.square(influence).sum(axis=0))
    return _Estimates(ability, error, (b - mean) / sd, b_se / sd, a * sd, a_se * sd, *end, influence)


def _fit_questions(data: IrtResponses) -> _Estimates:
    """The fit with forecasters integrated out."""
    model = MarginalOverForecasters(data)
    z, max_slope = _minimise(model, len(data.value))
    ability, error = model.abilities(z)
    a, b = np.exp(z[: data.questions]), z[data.questions : 2 * data.questions]
    log_a_se, b_se = model.question_errors(z, data)
    likelihood = float(model.penalty(z)[0] - model.loss(z)[0])
    converged, no_contributions = max_slope <= 10 * TOLERANCE, np.zeros((0, data.forecasters))
    return _Estimates(ability, error, b, b_se, a, a * log_a_se, likelihood, converged, z, no_contributions)


def _discriminations(panel: Panel, irt: IrtFit) -> Floats:
    """Discriminations of all questions estimated from a part of the forecasters, (Q,); NaN without a response."""
    data, forecaster_codes, question_codes = _responses(panel)
    result = np.full(len(panel.questions), np.nan)
    if len(data.value) == 0:
        return result
    if irt.integrated == "forecasters":
        result[question_codes] = _fit_questions(data).discrimination
        return result
    rated = np.flatnonzero(~np.isnan(irt.ability))
    mask = np.concatenate([np.isin(rated, forecaster_codes), np.ones(len(irt.parameters) - len(rated), dtype=bool)])
    result[question_codes] = MarginalOverQuestions(data).questions_at(irt.parameters[mask])[2]
    return result


def _minimise(
    model: MarginalOverQuestions | MarginalOverForecasters,
    answers: int,
    start: Floats | None = None,
    inverse: Floats | None = None,
    tolerance: float = TOLERANCE,
) -> tuple[Floats, float]:
    """The minimum of the loss, and its largest slope there per response: at most `tolerance` if the search converged.

    BFGS with a `start` and the `inverse` of the curvature there; otherwise, or if that leaves the bounds, L-BFGS-B.
    """
    low, high = np.array(model.bounds).T
    z = model.start if start is None else start
    if inverse is not None:
        options = {"gtol": tolerance * answers, "maxiter": ROUNDS, "hess_inv0": inverse}
        result = minimize(model.loss, z, jac=True, method="BFGS", options=options)
        if ((result.x > low) & (result.x < high)).all():
            return result.x, float(np.abs(result.jac).max()) / answers
    options = {"gtol": tolerance * answers, "ftol": 1e-14, "maxiter": ROUNDS, "maxfun": ROUNDS, "maxcor": 50}
    result = minimize(model.loss, z, jac=True, method="L-BFGS-B", bounds=model.bounds, options=options)
    # At a bound the slope may point outward.
    outward = (result.x <= low) & (result.jac > 0) | (result.x >= high) & (result.jac < 0)
    return result.x, float(np.abs(np.where(outward, 0.0, result.jac)).max()) / answers


def _inverse_curvature(model: MarginalOverQuestions, z: Floats) -> Floats | None:
    """The inverse of the loss's second derivatives by differences; None if too many, or not positive definite."""
    if len(z) > FULL_MATRIX:
        return None
    slope = model.loss(z)[1]
    curvature = np.stack([model.loss(z + DIFFERENCE * unit)[1] - slope for unit in np.eye(len(z))]) / DIFFERENCE
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    roots = vectors / np.sqrt(np.maximum(values, 1e-300))
    return np.asarray(roots @ roots.T) if (values > 0).all() else None  # symmetric to the last bit
