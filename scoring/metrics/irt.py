"""Item response theory: abilities of forecasters, and how hard and how telling each question was."""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from scoring.metrics.irt_forecasters import ForecastersIntegrated
from scoring.metrics.irt_questions import QuestionsIntegrated
from scoring.metrics.panel import Floats, Panel
from scoring.metrics.proper import brier
from scoring.metrics.responses import Responses, response
from scoring.metrics.sandwich import event_scores, gram

SAMPLE = 1000
"""Questions that the first round is fitted to, evenly taken; the second round starts there, with its curvature."""
FULL_MATRIX = 300
"""Up to so many parameters the second round begins with all second derivatives of the first."""
DIFFERENCE = 1e-5
"""Step of the differences that these are computed from."""
TOLERANCE = 1e-7
"""Largest derivative per answer at which the search ends; ten times as much passes as converged."""
SAME = 1e-6
"""Abilities that spread less than this are equal."""
ROUNDS = 1000
FOLDS = 5

Integrated = Literal["questions", "forecasters"]


class Irt(NamedTuple):
    """Abilities of N forecasters, difficulties and discriminations of Q questions, on one scale.

    ability : (N,), higher is better; NaN for a forecaster without forecasts. Over the forecasters, mean 0 and standard
        deviation 1 where questions are integrated out; else on the scale where they come from N(0, 1)
    ability_se : (N,), standard errors; NaN where not known, see `fit`
    difficulty : (Q,), the ability at which a question is answered half well (up to the shape), in units of ability
    discrimination : (Q,), above 0, how steeply answers get better with ability, per unit of ability
    difficulty_se, discrimination_se : (Q,); all four NaN for a question that nobody answered
    log_likelihood : of all responses, the questions (or forecasters) integrated out
    converged : whether no derivative exceeds 1e-6 per answer
    integrated : "questions" or "forecasters"
    parameters : (P,), what the likelihood was maximised over, see `irt_questions` and `irt_forecasters`
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


def fit(panel: Panel, integrated: Integrated | None = None) -> Irt:
    """Abilities, difficulties and discriminations by the two-parameter logistic model with continuous responses.

    The response v of a forecast is 1 less its Brier score brought to [0, 1] (`responses.response`). With ability
    theta_f, difficulty b_q and discrimination a_q, responses at the six anchors s_k = 0, 0.2 .. 1 have

        P(s_k) proportional to exp( a_q [ s_k (theta_f - b_q) - g_k ] ),   g_0 = g_5 = 0,

    g the shape common to all questions. A response between two anchors counts in both, in shares that keep its mean
    (`anchor_shares`): its log likelihood is a (theta - b) v - a sum_k g_k r_k - log Z, linear in v. With the anchors 0
    and 1 alone this is the two-parameter logistic model. It is the source's model with g_k = s_k p_k, p_k its category
    parameters, but responses are not rounded and the questions' prior is learnt instead of given.

    *Questions integrated* (where forecasters are fewer): log a_q ~ N(0, t^2) and b_q ~ N(m, s^2) are summed over a
    grid; theta, g, m, s, t maximise what remains, under N(0, 3^2) on theta and equally weak priors on the others
    (`irt_questions`). Abilities are then standardised over the forecasters to mean 0 and standard deviation 1, and
    difficulties and discriminations moved with them. Errors of abilities: H^-1 U'U H^-1 with H the exact second
    derivatives by Louis' formula (shape and prior held fixed), U the events' gradients (`sandwich.event_scores`),
    carried through the standardisation; so they hold even if the law of responses is wrong. NaN for a forecaster of
    fewer than two events, and for fewer than three forecasters: two are -1 and 1 by definition, one has no scale at
    all (all NaN, as where all answers are equal). In simulations intervals of 95 %
    held the truth 94 to 95 times in 100 where responses follow the model and 12 forecasters gave 50 answers each or
    more; 89 times with 6 forecasters of 50 answers or 20 of 20, for the scale itself is then uncertain; where responses
    do not follow it, 91 to 93 times with 70 answers each and 93 to 96 with 280. What questions are is their
    posterior mean and standard deviation, at the estimated abilities and their scale (92 to 95 times in 100 with 12
    forecasters).

    *Forecasters integrated* (where they are more): theta ~ N(0, 1) is summed over a grid; a, b, g maximise what
    remains, under weak priors (`irt_forecasters`). Abilities are posterior means, drawn towards 0 where answers are
    few, their errors posterior standard deviations, which trust the law of responses.

    Weights multiply log likelihoods, after division by their mean. Deterministic: two rounds of quasi-Newton steps,
    the first on 1,000 questions evenly taken. Forecasters without a common question are compared on the assumption
    that their questions are alike.

    What it is not: a proper score. Discrimination is learnt from outcomes: on a question that surprised, the confident
    did badly, the model finds little order in it and sets it aside. Overconfidence is so punished less than by the
    Brier score; the learnt spread t keeps this small where data speak against it.

    Parameters
    ----------
    integrated : "questions" or "forecasters"; the more numerous if not given, questions if equally many

    Raises ValueError for another `integrated`.

    References
    ----------
    Bo, Y. E., Budescu, D. V., Lewis, C., Tetlock, P. E. and Mellers, B. (2017). An IRT forecasting model: linking
    proper scoring rules to item response theory. Judgment and Decision Making 12, 90-103. Bock, R. D. and Aitkin, M.
    (1981). Marginal maximum likelihood estimation of item parameters. Psychometrika 46, 443-459. Louis, T. A. (1982).
    Finding the observed information matrix when using the EM algorithm. Journal of the Royal Statistical Society B 44,
    226-233.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> said = np.array([[0.9, 0.8, 0.9, 0.7, 0.8], [0.7, 0.9, 0.6, 0.6, 0.5], [0.5, 0.4, 0.6, 0.3, 0.6]])
    >>> irt = fit(from_arrays(said[:, :, None], np.ones((5, 1)), exclusive=False))
    >>> irt.ability.round(1).tolist(), irt.converged
    ([1.2, 0.1, -1.3], True)
    """
    if integrated not in (None, "questions", "forecasters"):
        raise ValueError(f"integrated: questions or forecasters, not {integrated}")
    data, who, what = _responses(panel)
    if integrated is None:
        integrated = "questions" if len(who) <= len(what) else "forecasters"
    people, asked = len(panel.forecasters), len(panel.questions)
    if len(data.value) == 0:
        blank, empty = np.full(people, np.nan), np.full(asked, np.nan)
        return Irt(blank, blank, empty, empty, empty, empty, 0.0, False, integrated, np.zeros(0))
    found = _fit_abilities(data) if integrated == "questions" else _fit_questions(data)

    def whole(values: Floats, codes: NDArray, size: int) -> Floats:
        result = np.full(size, np.nan)
        result[codes] = values
        return result

    return Irt(
        ability=whole(found.ability, who, people),
        ability_se=whole(found.ability_se, who, people),
        difficulty=whole(found.difficulty, what, asked),
        difficulty_se=whole(found.difficulty_se, what, asked),
        discrimination=whole(found.discrimination, what, asked),
        discrimination_se=whole(found.discrimination_se, what, asked),
        log_likelihood=found.log_likelihood,
        converged=found.converged,
        integrated=integrated,
        parameters=found.parameters,
    )


def discrimination_weights(panel: Panel, irt: Irt, folds: int = FOLDS) -> Floats:
    """How much each forecast's question tells about ability, learnt from the other forecasters: (F,), above 0.

    Forecasters are dealt into folds in order of ability; a forecast weighs the discrimination of its question as the
    answers of the other folds show it, so nobody's own answers decide what counts for them. With the
    questions integrated out that is the posterior mean without the forecaster's fold, at the parameters of the whole
    fit; with the forecasters integrated out, the estimate of a fit without it. A question that nobody else answered has
    the mean weight of the fold's others.

    A score weighted so is not proper, for the others' answers, and with them the weight, depend on what happened.

    Parameters
    ----------
    irt : the fit of the same panel
    folds : at least 2, at most the number of forecasters is used. Weights are 1 where `irt` has no abilities

    Raises ValueError for fewer than two folds.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> said = np.array([[0.9, 0.8, 0.9, 0.7, 0.8], [0.7, 0.9, 0.6, 0.6, 0.5], [0.5, 0.4, 0.6, 0.3, 0.6]])
    >>> panel = from_arrays(said[:, :, None], np.ones((5, 1)), exclusive=False)
    >>> bool((discrimination_weights(panel, fit(panel)) > 0).all())
    True
    """
    if folds < 2:
        raise ValueError(f"folds: at least 2, not {folds}")
    able = np.flatnonzero(~np.isnan(irt.ability))
    if len(able) < 2:
        return np.ones(len(panel))
    fold = np.full(len(panel.forecasters), -1)
    fold[able[np.argsort(-irt.ability[able], kind="stable")]] = np.arange(len(able)) % min(folds, len(able))
    weights, of_forecast = np.empty(len(panel)), fold[panel.forecaster]
    for number in range(min(folds, len(able))):
        mine = of_forecast == number
        telling = _discriminations(panel.take(~mine), irt)[panel.question[mine]]
        known = ~np.isnan(telling)
        mean = telling[known].mean() if known.any() else 1.0
        weights[mine] = np.where(known, telling, mean)
    return weights


def weighted_brier(panel: Panel, weights: Floats) -> Floats:
    """Each forecaster's Brier score (mean form), forecasts counted by `weights` times their own: (N,), lower is better.

    sum(weights w brier) / sum(weights w) over the forecaster's forecasts, so a constant score stays what it is. NaN for
    a forecaster without forecasts; a forecast whose weight is NaN is left out.

    Parameters
    ----------
    weights : array of shape (F,), at least 0

    Raises ValueError if `weights` is not one per forecast or below 0.

    References
    ----------
    Li, S. (2025). How we score and rank LLMs in Prophet Arena (weighting by discrimination).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [0.0]]], [[1], [1]], exclusive=False)
    >>> weighted_brier(panel, np.array([3.0, 1.0])).tolist()  # (3 x 0.25 + 1) / 4
    [0.4375]
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(panel),):
        raise ValueError(f"weights: one per forecast, {len(panel)}, not shape {weights.shape}")
    if (weights < 0).any():
        raise ValueError("weights: at least 0")
    known = ~np.isnan(weights)
    return panel.forecaster_means(np.where(known, brier(panel), np.nan), np.where(known, weights, 0) * panel.weight)


def _responses(panel: Panel) -> tuple[Responses, NDArray, NDArray]:
    """The responses, with the codes of the forecasters and of the questions that have any."""
    who, forecaster = np.unique(panel.forecaster, return_inverse=True)
    what, question = np.unique(panel.question, return_inverse=True)
    weight = panel.weight / panel.weight.mean() if len(panel) else panel.weight
    event = panel.questions.event[panel.question]
    return Responses(len(who), len(what), forecaster, question, response(panel), weight, event), who, what


class _Estimates(NamedTuple):
    """What `Irt` holds, for those with answers only."""

    ability: Floats
    ability_se: Floats
    difficulty: Floats
    difficulty_se: Floats
    discrimination: Floats
    discrimination_se: Floats
    log_likelihood: float
    converged: bool
    parameters: Floats


def _fit_abilities(data: Responses) -> _Estimates:
    """With the questions integrated out."""
    model, start, inverse = QuestionsIntegrated(data), None, None
    step = -(-data.questions // SAMPLE)
    if step > 1:
        part = data.sample(step)
        sample = QuestionsIntegrated(part)
        start, _ = _minimise(sample, len(part.value))
        inverse = _inverse_curvature(sample, start)
        inverse = inverse * len(part.value) / len(data.value) if inverse is not None else None
    z, steepest = _minimise(model, len(data.value), start, inverse)
    size, theta = data.forecasters, z[: data.forecasters]
    mean, sd = theta.mean(), theta.std()
    b, b_se, a, a_se, likelihood = model.questions_at(z)
    end = likelihood, steepest <= 10 * TOLERANCE, z
    if size < 2 or sd <= SAME:
        blank, empty = np.full(size, np.nan), np.full(data.questions, np.nan)
        return _Estimates(blank, blank, empty, empty, empty, empty, *end)
    ability = (theta - mean) / sd
    hessian, pull, information = model.curvature(z, data)
    pulls, known = event_scores(pull, information, data.event, data.forecaster, size)
    # d ability / d theta: the mean and the standard deviation move along.
    jacobian = (np.eye(size) - 1 / size - np.outer(ability, ability) / size) / sd
    spread = jacobian @ np.linalg.inv(hessian)
    variance = np.einsum("ij,jk,ik->i", spread, gram(pulls), spread, optimize=True)
    error = np.where(known & (size > 2), np.sqrt(np.maximum(variance, 0)), np.nan)
    return _Estimates(ability, error, (b - mean) / sd, b_se / sd, a * sd, a_se * sd, *end)


def _fit_questions(data: Responses) -> _Estimates:
    """With the forecasters integrated out."""
    model = ForecastersIntegrated(data)
    z, steepest = _minimise(model, len(data.value))
    ability, error = model.abilities(z)
    a, b = np.exp(z[: data.questions]), z[data.questions : 2 * data.questions]
    log_a_se, b_se = model.question_errors(z, data)
    likelihood = float(model.penalty(z)[0] - model.loss(z)[0])
    return _Estimates(ability, error, b, b_se, a, a * log_a_se, likelihood, steepest <= 10 * TOLERANCE, z)


def _discriminations(panel: Panel, irt: Irt) -> Floats:
    """Discriminations of all questions as part of the forecasters show them, (Q,), NaN where none of them answered."""
    data, who, what = _responses(panel)
    result = np.full(len(panel.questions), np.nan)
    if len(data.value) == 0:
        return result
    if irt.integrated == "forecasters":
        result[what] = _fit_questions(data).discrimination
        return result
    able = np.flatnonzero(~np.isnan(irt.ability))
    kept = np.concatenate([np.isin(able, who), np.ones(len(irt.parameters) - len(able), dtype=bool)])
    result[what] = QuestionsIntegrated(data).questions_at(irt.parameters[kept])[2]
    return result


def _minimise(
    model: QuestionsIntegrated | ForecastersIntegrated,
    answers: int,
    start: Floats | None = None,
    inverse: Floats | None = None,
) -> tuple[Floats, float]:
    """Where the loss is least, and its largest slope there per answer.

    With a `start` and the `inverse` of the curvature there: BFGS. Else, or if that leaves the bounds: L-BFGS within
    them.
    """
    low, high = np.array(model.bounds).T
    z = model.start if start is None else start
    if inverse is not None:
        options = {"gtol": TOLERANCE * answers, "maxiter": ROUNDS, "hess_inv0": inverse}
        found = minimize(model.loss, z, jac=True, method="BFGS", options=options)
        if ((found.x > low) & (found.x < high)).all():
            return found.x, float(np.abs(found.jac).max()) / answers
    options = {"gtol": TOLERANCE * answers, "ftol": 1e-14, "maxiter": ROUNDS, "maxfun": ROUNDS, "maxcor": 50}
    found = minimize(model.loss, z, jac=True, method="L-BFGS-B", bounds=model.bounds, options=options)
    # At a bound the slope may point outward.
    outward = (found.x <= low) & (found.jac > 0) | (found.x >= high) & (found.jac < 0)
    return found.x, float(np.abs(np.where(outward, 0.0, found.jac)).max()) / answers


def _inverse_curvature(model: QuestionsIntegrated, z: Floats) -> Floats | None:
    """The inverse of the loss's second derivatives by differences; None if too many, or if they are not positive."""
    if len(z) > FULL_MATRIX:
        return None
    slope = model.loss(z)[1]
    curvature = np.stack([model.loss(z + DIFFERENCE * unit)[1] - slope for unit in np.eye(len(z))]) / DIFFERENCE
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    roots = vectors / np.sqrt(np.maximum(values, 1e-300))
    return np.asarray(roots @ roots.T) if (values > 0).all() else None  # symmetric to the last bit
