"""Three models that go by the name of Bradley and Terry; only the last measures ability.

*Pool weights*: how much each forecaster should count in a weighted mean of all forecasts. *Exponential form*: the same
contest of teams in logits. Both describe a team: a copy of a good forecaster adds nothing to it and loses its share.
*Pairwise ability*: who scored better on common questions, as in chess.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit

from scoring.metrics.contests import ITERATIONS, TOLERANCE, best_pool, contests
from scoring.metrics.games import games_of, shares_of, strengths_of, wins_of
from scoring.metrics.linked import parts
from scoring.metrics.panel import Codes, Floats, Panel
from scoring.metrics.sandwich import event_scores, gram


class PoolWeights(NamedTuple):
    """Weights of a linear pool of N forecasters, not abilities.

    weight : (N,), at least 0, sum to 1 over the forecasters of a component; NaN for one without forecasts
    log_likelihood : mean over contests (weighted) of the log of the pool's probability of what happened
    kkt_gap : the largest gain per unit of weight moved to any one forecaster, in nats per question: 0 at a maximum. If
        all answered all, no weights are better than these by more than it.
    iterations, converged : of the interior point method; converged if the gap is at most 1e-9
    pseudo_count : what was added, see `pool_weights`
    component : (N,), linked part of the panel, 0 the largest, -1 without forecasts; weights of different ones cannot be
        compared
    impossible : contests left out because everybody gave 0 to what happened
    """

    weight: Floats
    log_likelihood: float
    kkt_gap: float
    iterations: int
    converged: bool
    pseudo_count: float
    component: Codes
    impossible: int


def pool_weights(panel: Panel, pseudo_count: float = 0.01) -> PoolWeights:
    """The weights theta with which a linear pool of the forecasters present would have said most of what happened.

    The maximum of sum_q w_q log(sum_f theta_f p_f(won) / sum_f theta_f) + c sum_f log(theta_f / sum theta), both inner
    sums over the forecasters present; theta >= 0, w_q the mean weight of the question's forecasts. The pseudo-count c
    is in questions: as if every forecaster had once been alone in believing what happened, with weight c. It keeps
    weights off zero, and makes equal forecasters share equally. With c = 0 most weights lie on the boundary, copies of
    a forecaster can share their weight in any way, and where forecasts are missing there may be no maximum at all
    (weights that fall to 0 together, their ratio mattering where nobody else spoke): `converged` is then False.

    This is the generalized Bradley-Terry model with individual contributions, winning side against all, whose usual
    sweeps theta_f <- theta_f W_f / D_f need thousands of rounds; here by a primal-dual interior point method, to a
    Karush-Kuhn-Tucker gap that is returned. Concave where everybody answered everything; else what is returned is a
    stationary point reached from equal weights.

    What it is not: an ability. The best pool gives weight to those who err differently, none to a good forecaster
    whose like is already there.

    Raises ValueError for a negative pseudo-count.

    References
    ----------
    Huang, T.-K., Weng, R. C. and Lin, C.-J. (2006). Generalized Bradley-Terry models and multi-class probability
    estimates. Journal of Machine Learning Research 7, 85-115. Nocedal, J. and Wright, S. J. (2006). Numerical
    Optimization, 2nd edition, chapter 19.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.1], [0.6]], [[0.5], [0.5], [0.5]]], [[1], [1], [1]], exclusive=False)
    >>> pool = pool_weights(panel, pseudo_count=0.0)
    >>> pool.weight.round(4).tolist(), pool.converged  # the root of .4/(.5+.4x) - .4/(.5-.4x) + .1/(.5+.1x)
    ([0.1495, 0.8505], True)
    """
    if not pseudo_count >= 0:
        raise ValueError(f"pseudo_count: at least 0, not {pseudo_count}")
    people = len(panel.forecasters)
    component = parts(panel).forecaster
    here = np.flatnonzero(component >= 0)
    data = contests(panel)
    if len(here) == 0 or len(data.weight) == 0:
        weight = np.full(people, np.nan)
        return PoolWeights(weight, np.nan, np.nan, 0, False, pseudo_count, component, data.impossible)
    support, present = data.support[:, here], data.present[:, here]
    total = data.weight.sum()
    share, of_question = data.weight / total, np.bincount(data.question, data.weight, data.present.shape[0]) / total
    theta, gap, iterations = best_pool(support, present, share, of_question, pseudo_count / total)
    likelihood = share @ np.log(support @ theta) - of_question @ np.log(present @ theta)
    weight = np.full(people, np.nan)
    weight[here] = theta / np.bincount(component[here], theta)[component[here]]
    return PoolWeights(
        weight, float(likelihood), gap, iterations, gap <= TOLERANCE, pseudo_count, component, data.impossible
    )


class ExponentialForm(NamedTuple):
    """Weights in logits, not abilities, N forecasters.

    value : (N,), logits per unit of probability; NaN for a forecaster without forecasts
    slope : the largest remaining derivative, per question: 0 at the maximum
    iterations, converged : of Newton's method; converged if the slope is at most 1e-9
    ridge : the penalty, see `exponential_form`
    """

    value: Floats
    slope: float
    iterations: int
    converged: bool
    ridge: float


def exponential_form(panel: Panel, ridge: float = 1.0) -> ExponentialForm:
    """The source's contest of two teams: weights theta, P(what happened) = sigma(sum_f (2 p_f(won) - 1) theta_f).

    A forecaster lends p_f(won) theta_f to the winning team and (1 - p_f(won)) theta_f to the losing one; the chance to
    win is e^winners / (e^winners + e^losers). The maximum of sum_q w_q ln P_q - ridge / 2 sum_f theta_f^2: logistic
    regression without intercept on the forecasters together, so theta_f says what f adds to the others, can be negative
    for a good forecaster beside a better twin, and grows with the number of questions that all were right on. Without
    the ridge there is no maximum whenever some combination of forecasters was right each time; the ridge is in
    questions per squared logit, like a prior with standard deviation 1 / sqrt(ridge). Questions weigh as in
    `pool_weights`. Convex, so the maximum is unique.

    Raises ValueError unless the ridge is above 0.

    References
    ----------
    Li, S. (2025). How we score and rank LLMs in Prophet Arena, section on the generalized Bradley-Terry model.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.9], [0.2]], [[0.5], [0.5]]], [[1], [1]], exclusive=False)
    >>> exponential_form(panel).value.round(4).tolist()  # 0.8 sigma(-0.8 t) - 0.6 sigma(0.6 t) = t
    [0.08, 0.0]
    """
    if not ridge > 0:
        raise ValueError(f"ridge: above 0, not {ridge}")
    people, data = len(panel.forecasters), contests(panel)
    spoke = np.bincount(panel.forecaster, minlength=people) > 0
    sides = 2 * data.support - data.present[data.question]
    total = max(float(data.weight.sum()), 1e-300)
    share, penalty, theta = data.weight / total, ridge / total, np.zeros(people)

    def loss(values: Floats) -> float:
        return float(share @ np.logaddexp(0, -(sides @ values)) + penalty / 2 * (values @ values))

    slope, iteration = np.inf, 0
    for iteration in range(1, ITERATIONS + 1):  # noqa: B007
        lost = expit(-(sides @ theta))
        downhill = np.asarray(sides.T @ (share * lost)) - penalty * theta
        slope = float(np.abs(downhill).max(initial=0.0))
        if slope <= TOLERANCE:
            break
        step = np.linalg.solve(gram(sides, share * lost * (1 - lost)) + penalty * np.eye(people), downhill)
        length, before = 1.0, loss(theta)
        while length > 1e-10 and loss(theta + length * step) > before - 1e-4 * length * (downhill @ step) + 1e-15:
            length /= 2
        theta = theta + length * step
    return ExponentialForm(np.where(spoke, theta, np.nan), slope, iteration, slope <= TOLERANCE, ridge)


class Ability(NamedTuple):
    """Ability from pairwise comparison, N forecasters, in logits: value_i - value_j is the log odds that i beats j.

    value : (N,), mean 0 over the forecasters compared; NaN outside the largest linked part of the panel
    se : (N,), standard error of `value`, clustered by event; NaN for a forecaster of fewer than two events, and for all
        if the data are separable
    components : (N,), linked part of the panel by common questions, 0 the largest, -1 for a forecaster never compared
    separable : whether a group of forecasters never lost to another group (nor tied). Then how far the groups lie apart
        is the ridge's doing, not the data's
    groups : (N,), forecasters of one group beat each other in turn, directly or through others; -1 outside part 0
    ridge : the penalty, see `pairwise_ability`
    """

    value: Floats
    se: Floats
    components: Codes
    separable: bool
    groups: Codes
    ridge: float


def pairwise_ability(panel: Panel, ridge: float = 0.1) -> Ability:
    """How much better each forecaster is than the others on the questions they have in common, in logits.

    Every two forecasters with a question in common play one game on it: the lower Brier score wins, equal scores are
    half a win each. The maximum of sum over games u ln sigma(theta_i - theta_j) - ridge / 2 sum_i theta_i^2. On a
    question of m forecasts a game weighs u = w / (m - 1), w their mean weight: a forecast counts once, against the
    average of the others, however many they are. The ridge is in games per squared logit, like a prior with standard
    deviation 1 / sqrt(ridge): small beside real data, it bounds what data leave open. Strictly concave.

    Only who was better counts, not by how much: robust against a few disasters, blind to them too. Not proper: saying
    the truth is not always the best way of beating a given other.

    Errors: `sandwich.event_scores`, so games on one event may depend on each other as they like.

    Raises ValueError unless the ridge is above 0.

    References
    ----------
    Bradley, R. A. and Terry, M. E. (1952). Rank analysis of incomplete block designs. Biometrika 39, 324-345. Ford,
    L. R. (1957). Solution of a ranking problem from binary comparisons. American Mathematical Monthly 64, 28-33 (when a
    maximum exists without ridge). Davidson, R. R. and Solomon, D. L. (1973). A Bayesian approach to paired comparison
    experimentation. Biometrika 60, 477-487 (the penalty).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> better = np.array([0.9, 0.9, 0.9, 0.4])[:, None]
    >>> panel = from_arrays([better, 1.1 - better], [[1]] * 4, exclusive=False)
    >>> ability = pairwise_ability(panel, ridge=1e-9)
    >>> float((ability.value[0] - ability.value[1]).round(4)), ability.separable  # ln(3 / 1)
    (1.0986, False)
    """
    if not ridge > 0:
        raise ValueError(f"ridge: above 0, not {ridge}")
    people = len(panel.forecasters)
    several = np.bincount(panel.question, minlength=len(panel.questions))[panel.question] > 1
    component = parts(panel, several).forecaster
    blank, nobody = np.full(people, np.nan), np.full(people, -1)
    here = np.flatnonzero(component == 0)
    if len(here) == 0:
        return Ability(blank, blank, component, False, nobody, ridge)
    played = panel.take(several & (component[panel.forecaster] == 0))
    _, who = np.unique(played.forecaster, return_inverse=True)
    games = games_of(played, who)
    wins = wins_of(games, len(here))
    count, group = sparse.csgraph.connected_components(wins > 0, connection="strong")
    theta = strengths_of(wins, ridge)
    value, se, groups = blank.copy(), blank.copy(), nobody.copy()
    value[here], groups[here] = theta, group
    if count == 1:
        pull, information = shares_of(games, theta)
        event = played.questions.event[played.question]
        pulls, known = event_scores(pull, information, event, who, len(here))
        chance = expit(theta[:, None] - theta)
        spread = (wins + wins.T) * chance * (1 - chance)
        centred = np.linalg.inv(np.diag(spread.sum(axis=1) + ridge) - spread) - 1 / (ridge * len(here))
        variance = np.einsum("ij,jk,ik->i", centred, gram(pulls), centred, optimize=True)
        se[here] = np.where(known, np.sqrt(np.maximum(variance, 0)), np.nan)
    return Ability(value, se, component, bool(count > 1), groups, ridge)
