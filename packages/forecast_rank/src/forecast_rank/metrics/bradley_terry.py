"""Three models named after Bradley and Terry, of which only the last measures ability.

*Pool weights*: the weight of each forecaster in the best weighted mean of all forecasts. *Exponential form*: the same
contest of teams in logits. Both describe a team: a copy of a good forecaster adds nothing and shares its weight.
*Pairwise ability*: who scored better on common questions, as in chess.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from forecast_rank.metrics.cluster_robust import event_scores, weighted_gram
from forecast_rank.metrics.connectivity import connected_components
from forecast_rank.metrics.flat_arrays import Codes, Floats, distinct_codes
from forecast_rank.metrics.linear_pool import (
    ITERATIONS,
    TOLERANCE,
    PoolContests,
    maximise_pool_likelihood,
    pool_contests,
)
from forecast_rank.metrics.pairwise_comparisons import (
    fit_strengths,
    likelihood_contributions,
    pairwise_comparisons,
    win_matrix,
)
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums, linearised_sums


class PoolWeights(NamedTuple):
    """Weights of a linear pool, not abilities.

    Attributes
    ----------
    weight : array, shape (N,)
        At least 0, summing to 1 over the forecasters of a component; NaN without forecasts.
    log_likelihood : float
        Weighted mean over contests of the log of the pool's probability of the outcome.
    kkt_gap : float
        Largest gain per unit of weight moved to a forecaster, in nats per question; 0 at a maximum.
    iterations : int
    converged : bool
        Whether the gap is at most 1e-9.
    pseudo_count : float
    component : array of int, shape (N,)
        See `connectivity`. Weights of different components cannot be compared.
    impossible : int
        Contests left out because every forecaster gave the outcome probability 0.
    """

    weight: Floats
    log_likelihood: float
    kkt_gap: float
    iterations: int
    converged: bool
    pseudo_count: float
    component: Codes
    impossible: int


def pool_weights(panel: Panel, pseudo_count: float = 0.01, *, contests: PoolContests | None = None) -> PoolWeights:
    """Weights theta of the linear pool under which the outcomes are most likely.

    The maximum of sum_q w_q log(sum_f theta_f p_f(outcome) / sum_f theta_f) + c sum_f log(theta_f / sum theta), both
    inner sums over the forecasters with a forecast; theta >= 0, w_q the mean weight of the question's forecasts. The
    pseudo-count c, in questions, keeps weights off zero and lets equal forecasters share equally. With c = 0 most
    weights are zero, copies of a forecaster can share their weight in any way, and with missing forecasts there may be
    no maximum (`converged` is then False).

    This is the generalized Bradley–Terry model with individual contributions, solved by a primal-dual interior point
    method to a Karush–Kuhn–Tucker gap that is returned. Concave where everybody answered everything; otherwise the
    result is a stationary point reached from equal weights. It is not an ability: the best pool weights forecasters
    with different errors, and gives none to a good forecaster with a similar one in it.

    Parameters
    ----------
    panel : Panel
    pseudo_count : float
        c, at least 0.
    contests : PoolContests, optional
        `pool_contests(panel)`, if it is known.

    Returns
    -------
    PoolWeights

    Raises
    ------
    ValueError
        For a negative pseudo-count.

    References
    ----------
    Huang, T.-K., Weng, R. C. and Lin, C.-J. (2006). Generalized Bradley-Terry models and multi-class probability
    estimates. Journal of Machine Learning Research 7, 85-115. Nocedal, J. and Wright, S. J. (2006). Numerical
    Optimization, 2nd edition, chapter 19.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.1], [0.6]], [[0.5], [0.5], [0.5]]], [[1], [1], [1]], exclusive=False)
    >>> pool = pool_weights(panel, pseudo_count=0.0)
    >>> pool.weight.round(4).tolist(), pool.converged  # the root of .4/(.5+.4x) - .4/(.5-.4x) + .1/(.5+.1x)
    ([0.1495, 0.8505], True)
    """
    if not pseudo_count >= 0:
        raise ValueError(f"pseudo_count: at least 0, not {pseudo_count}")
    n_forecasters = len(panel.forecasters)
    component = connected_components(panel).forecaster
    compared = np.flatnonzero(component >= 0)
    data = pool_contests(panel) if contests is None else contests
    if len(compared) == 0 or len(data.weight) == 0:
        weight = np.full(n_forecasters, np.nan)
        return PoolWeights(weight, np.nan, np.nan, 0, False, pseudo_count, component, data.impossible)
    support, present = data.support[:, compared], data.present[:, compared]
    total = data.weight.sum()
    share, of_question = data.weight / total, np.bincount(data.question, data.weight, data.present.shape[0]) / total
    theta, gap, iterations = maximise_pool_likelihood(support, present, share, of_question, pseudo_count / total)
    likelihood = share @ np.log(support @ theta) - of_question @ np.log(present @ theta)
    weight = np.full(n_forecasters, np.nan)
    weight[compared] = theta / np.bincount(component[compared], theta)[component[compared]]
    return PoolWeights(
        weight, float(likelihood), gap, iterations, gap <= TOLERANCE, pseudo_count, component, data.impossible
    )


class ExponentialForm(NamedTuple):
    """Weights in logits, not abilities.

    Attributes
    ----------
    value : array, shape (N,)
        Logits per unit of probability; NaN without forecasts.
    slope : float
        Largest remaining derivative, per question; 0 at the maximum.
    iterations : int
    converged : bool
        Whether the slope is at most 1e-9.
    ridge : float
    """

    value: Floats
    slope: float
    iterations: int
    converged: bool
    ridge: float


def exponential_form(panel: Panel, ridge: float = 1.0, *, contests: PoolContests | None = None) -> ExponentialForm:
    """Prophet Arena's contest of two teams, P(outcome) = sigma(sum_f (2 p_f(outcome) - 1) theta_f).

    A forecaster adds p_f theta_f to the team of the outcome and (1 - p_f) theta_f to the other; the chance to win is
    e^first / (e^first + e^second). Maximises sum_q w_q ln P_q - ridge / 2 sum_f theta_f^2: logistic regression without
    intercept on all forecasters together. theta_f so measures what f adds to the others, can be negative for a good
    forecaster beside a better copy, and grows with the number of questions. Without the ridge there is no maximum
    whenever a combination of forecasters was right each time. Questions weigh as in `pool_weights`. The maximum is
    unique.

    Parameters
    ----------
    panel : Panel
    ridge : float
        Questions per squared logit, like a prior with standard deviation 1 / sqrt(ridge); above 0.
    contests : PoolContests, optional
        `pool_contests(panel)`, if it is known.

    Returns
    -------
    ExponentialForm

    Raises
    ------
    ValueError
        Unless `ridge` is above 0.

    References
    ----------
    Li, S. (2025). How we score and rank LLMs in Prophet Arena, section on the generalized Bradley-Terry model.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.2]], [[0.5], [0.5]]], [[1], [1]], exclusive=False)
    >>> exponential_form(panel).value.round(4).tolist()  # 0.8 sigma(-0.8 t) - 0.6 sigma(0.6 t) = t
    [0.08, 0.0]
    """
    if not ridge > 0:
        raise ValueError(f"ridge: above 0, not {ridge}")
    n_forecasters, data = len(panel.forecasters), pool_contests(panel) if contests is None else contests
    has_forecast = np.bincount(panel.forecaster, minlength=n_forecasters) > 0
    sides = 2 * data.support - data.present[data.question]
    total = max(float(data.weight.sum()), 1e-300)
    share, penalty, theta = data.weight / total, ridge / total, np.zeros(n_forecasters)

    def loss(values: Floats) -> float:
        return float(share @ np.logaddexp(0, -(sides @ values)) + penalty / 2 * (values @ values))

    slope, iteration = np.inf, 0
    for iteration in range(1, ITERATIONS + 1):  # noqa: B007
        loss_probability = expit(-(sides @ theta))
        gradient = np.asarray(sides.T @ (share * loss_probability)) - penalty * theta
        slope = float(np.abs(gradient).max(initial=0.0))
        if slope <= TOLERANCE:
            break
        step = np.linalg.solve(
            weighted_gram(sides, share * loss_probability * (1 - loss_probability)) + penalty * np.eye(n_forecasters),
            gradient,
        )
        length, before = 1.0, loss(theta)
        while length > 1e-10 and loss(theta + length * step) > before - 1e-4 * length * (gradient @ step) + 1e-15:
            length /= 2
        theta = theta + length * step
    return ExponentialForm(np.where(has_forecast, theta, np.nan), slope, iteration, slope <= TOLERANCE, ridge)


class PairwiseAbility(NamedTuple):
    """Ability in logits: value_i - value_j is the log odds that i scores better than j.

    Attributes
    ----------
    value : array, shape (N,)
        Mean 0 over the forecasters compared; NaN outside the largest component.
    se : array, shape (N,)
        Standard error clustered by event; NaN for a forecaster with fewer than two events, and for all if `separable`.
    components : array of int, shape (N,)
        See `connectivity`; -1 for a forecaster without a comparison.
    separable : bool
        Whether a group of forecasters never lost to another group nor tied. The distance of the groups is then set by
        the ridge, not by data.
    groups : array of int, shape (N,)
        Groups whose members beat each other, directly or through others; -1 outside component 0.
    ridge : float
    sums : EventSums, shape (N, E)
        `value` as means over events (`uncertainty.linearised_sums`); without weights where `se` is NaN.
    """

    value: Floats
    se: Floats
    components: Codes
    separable: bool
    groups: Codes
    ridge: float
    sums: EventSums


def pairwise_ability(panel: Panel, ridge: float = 0.1) -> PairwiseAbility:
    """Bradley–Terry abilities from pairwise comparisons on common questions.

    Every two forecasters with a common question are compared on it: the lower Brier score wins, equal scores are half a
    win each. Maximises the sum over comparisons of u ln sigma(theta_i - theta_j) - ridge / 2 sum_i theta_i^2. On a
    question with m forecasts a comparison weighs u = w / (m - 1), w their mean weight, so that a forecast counts once,
    against the average of the others. Strictly concave. Standard errors are `cluster_robust.event_scores`.

    Wins count whatever the margin: the ability is robust against a few disasters, and blind to them. It is not proper:
    an honest forecast is not always the best way to beat a given opponent.

    Parameters
    ----------
    panel : Panel
    ridge : float
        Comparisons per squared logit, like a prior with standard deviation 1 / sqrt(ridge); above 0.

    Returns
    -------
    PairwiseAbility

    Raises
    ------
    ValueError
        Unless `ridge` is above 0.

    References
    ----------
    Bradley, R. A. and Terry, M. E. (1952). Rank analysis of incomplete block designs. Biometrika 39, 324-345. Ford,
    L. R. (1957). Solution of a ranking problem from binary comparisons. American Mathematical Monthly 64, 28-33 (when a
    maximum exists without ridge). Davidson, R. R. and Solomon, D. L. (1973). A Bayesian approach to paired comparison
    experimentation. Biometrika 60, 477-487 (the penalty).

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> better = np.array([0.9, 0.9, 0.9, 0.4])[:, None]
    >>> panel = from_arrays([better, 1.1 - better], [[1]] * 4, exclusive=False)
    >>> ability = pairwise_ability(panel, ridge=1e-9)
    >>> float((ability.value[0] - ability.value[1]).round(4)), ability.separable  # ln(3 / 1)
    (1.0986, False)
    """
    if not ridge > 0:
        raise ValueError(f"ridge: above 0, not {ridge}")
    n_forecasters = len(panel.forecasters)
    shared = np.bincount(panel.question, minlength=len(panel.questions))[panel.question] > 1
    component = connected_components(panel, shared).forecaster
    nans, no_group = np.full(n_forecasters, np.nan), np.full(n_forecasters, -1)
    compared = np.flatnonzero(component == 0)
    if len(compared) == 0:
        no_sums = linearised_sums(panel, nans, np.zeros((0, n_forecasters)), np.zeros(0, dtype=np.int64))
        return PairwiseAbility(nans, nans, component, False, no_group, ridge, no_sums)
    compared_panel = panel.take(shared & (component[panel.forecaster] == 0))
    _, forecaster = distinct_codes(compared_panel.forecaster)
    comparisons = pairwise_comparisons(compared_panel, forecaster)
    wins = win_matrix(comparisons, len(compared))
    count, group = sparse.csgraph.connected_components(wins > 0, connection="strong")
    theta = fit_strengths(wins, ridge)
    value, se, groups = nans.copy(), nans.copy(), no_group.copy()
    value[compared], groups[compared] = theta, group
    events, _ = compared_panel.events
    influence = np.full((len(events), n_forecasters), np.nan)
    if count == 1:
        gradient, information = likelihood_contributions(comparisons, theta)
        event = compared_panel.questions.event[compared_panel.question]
        contributions, is_known = event_scores(gradient, information, event, forecaster, len(compared))
        chance = expit(theta[:, None] - theta)
        spread = (wins + wins.T) * chance * (1 - chance)
        centred = np.linalg.inv(np.diag(spread.sum(axis=1) + ridge) - spread) - 1 / (ridge * len(compared))
        influence[:, compared] = np.where(is_known, np.asarray(contributions @ centred), np.nan)
        se[compared] = np.sqrt(np.square(influence[:, compared]).sum(axis=0))
    sums = linearised_sums(panel, np.where(np.isnan(se), np.nan, value), influence, events)
    return PairwiseAbility(value, se, component, bool(count > 1), groups, ridge, sums)
