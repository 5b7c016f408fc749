"""Brier scores as if everybody had answered every question: forecaster and question effects, fitted together."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.metrics.linked import parts
from scoring.metrics.panel import Codes, Floats, Panel
from scoring.metrics.sandwich import event_scores, gram, table

BLOCK = 4_000_000
"""Numbers handled at a time where a table of events by forecasters is worked through."""


class Adjusted(NamedTuple):
    """Scores adjusted for the difficulty of the questions that each forecaster happened to answer, N forecasters.

    value : (N,), forecaster effect + mean question effect, in the units of the scores
    se : (N,), standard error of `value`, events being a sample of those that might have been asked
    effect : (N,), value less the mean of all forecasters: what sets them apart
    effect_se : (N,), standard error of `effect`: smaller, since what makes all questions hard moves nobody's place
    coverage : (N,), share of the answered questions that the forecaster answered, in [0, 1]
    component : (N,), the part of the panel that the forecaster is in, 0 the largest, -1 for one without forecasts

    Values are NaN outside part 0, for no common question links them to it; errors also for a forecaster of fewer than
    two events.
    """

    value: Floats
    se: Floats
    effect: Floats
    effect_se: Floats
    coverage: Floats
    component: Codes


def adjusted_brier(panel: Panel, values: Floats) -> Adjusted:
    """Each forecaster's score freed from the luck of easy or hard questions, with standard errors.

    Weighted least squares of v_fq = alpha_f + beta_q + error over all forecasts; reported is
    alpha_f + sum_q omega_q beta_q / sum_q omega_q, omega_q the mean weight of the forecasts on question q. Equal to the
    plain weighted mean where everybody answered everything with the same weights.

    Computed by eliminating the question effects: S alpha = sum_q w (v - mean of q), with
    S = diag(W_f) - A diag(1 / W_q) A', A the weights as forecasters x questions, W its sums (the forecasters are
    eliminated instead where they are more). Errors are clustered by event: the leave-one-event-out jackknife, see
    `sandwich.event_scores`; `se` adds the spread of the events' own effects.

    Assumes that a forecaster gains as much on hard questions as on easy ones, and that what they choose to answer
    does not depend on how well they know it beyond what the two effects say. Selective answering is not undone: show
    `coverage` beside it.

    Parameters
    ----------
    values : array of shape (F,), a score of each forecast (Brier or any other); NaN leaves a forecast out

    Raises ValueError if `values` is not one per forecast.

    References
    ----------
    Abowd, J. M., Kramarz, F. and Margolis, D. N. (1999). High wage workers and high wage firms. Econometrica 67,
    251-333 (two-way effects, linked groups). Merkle, E. C., Steyvers, M., Mellers, B. and Tetlock, P. E. (2016). Item
    response models of probability judgments. Decision 3, 1-19 (why difficulty must be adjusted for).

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> from scoring.metrics.proper import brier
    >>> half = from_arrays([[[0.9], [0.5], [np.nan]], [[0.8], [0.4], [0.3]]], [[1], [1], [1]], exclusive=False)
    >>> adjusted = adjusted_brier(half, brier(half))  # f0 missed the hardest question; raw: 0.13 against 0.297
    >>> adjusted.value.round(3).tolist(), adjusted.coverage.round(3).tolist()
    ([0.227, 0.297], [0.667, 1.0])
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (len(panel),):
        raise ValueError(f"values: one per forecast, {len(panel)}, not shape {values.shape}")
    people = len(panel.forecasters)
    counted = ~np.isnan(values)
    part = parts(panel, counted)
    answered = np.bincount(panel.forecaster[counted], minlength=people)
    asked = int((part.question >= 0).sum())
    coverage = answered / asked if asked else np.full(people, np.nan)
    here = np.flatnonzero(part.forecaster == 0)
    blank = np.full(people, np.nan)
    if len(here) == 0:
        return Adjusted(blank, blank, blank, blank, coverage, part.forecaster)

    # Codes within the part; forecasts in their order: by question, then forecaster.
    used = counted & (part.forecaster[panel.forecaster] == 0)
    _, who = np.unique(panel.forecaster[used], return_inverse=True)
    asked_codes, what = np.unique(panel.question[used], return_inverse=True)
    weight, score = panel.weight[used], values[used]
    event = panel.questions.event[panel.question[used]]
    alpha, solve = _effects(who, what, weight, score)
    mass = np.bincount(what, weight)
    beta = np.bincount(what, weight * (score - alpha[who])) / mass
    omega = mass / np.bincount(what)
    omega = omega / omega.sum()
    level = omega @ beta

    residual = score - alpha[who] - beta[what]
    pulls, known = event_scores(weight * residual, weight * (1 - weight / mass[what]), event, who, len(here))
    # Each event's own mean effect, stretched as in `event_scores`: a ratio of sums over events.
    _, owner = np.unique(panel.questions.event[asked_codes], return_inverse=True)
    share = np.bincount(owner, omega)
    events = len(share)
    drift = np.bincount(owner, omega * (beta - level))
    drift *= np.sqrt((events - 1) / events) / np.maximum(1 - share, 1e-12)
    burden = np.bincount(who, (omega / mass)[what] * weight)
    effect_error, error = _errors(pulls, solve, burden, drift)
    known &= events > 1

    def whole(part_values: Floats) -> Floats:
        result = blank.copy()
        result[here] = part_values
        return result

    return Adjusted(
        value=whole(alpha + level),
        se=whole(np.where(known, error, np.nan)),
        effect=whole(alpha - alpha.mean()),
        effect_se=whole(np.where(known, effect_error, np.nan)),
        coverage=coverage,
        component=part.forecaster,
    )


class _Solver(NamedTuple):
    """Solves S alpha = u for the centred alpha, S as in `adjusted_brier`; `inverse` is of the smaller side."""

    links: NDArray | sparse.csr_array
    mass: NDArray
    inverse: Floats
    by_question: bool

    def __call__(self, pulls: NDArray) -> Floats:
        """Row by row: (K, N) to (K, N)."""
        pulls = pulls - pulls.mean(axis=1, keepdims=True)
        if self.by_question:
            return np.asarray(pulls @ self.inverse)
        scaled = pulls / self.mass
        solved = scaled + ((scaled @ self.links) @ self.inverse @ self.links.T) / self.mass
        return np.asarray(solved - solved.mean(axis=1, keepdims=True))


def _effects(who: Codes, what: Codes, weight: Floats, score: Floats) -> tuple[Floats, _Solver]:
    """The centred forecaster effects, (N,), and what solves for them."""
    people, asked = int(who.max()) + 1, int(what.max()) + 1
    of_forecaster, of_question = np.bincount(who, weight), np.bincount(what, weight)
    if people <= asked:
        links = table(what, who, weight, (asked, people))
        solver = _Solver(links, of_forecaster, _pseudo_inverse(of_forecaster, gram(links, 1 / of_question)), True)
    else:
        links = table(who, what, weight, (people, asked))
        solver = _Solver(links, of_forecaster, _pseudo_inverse(of_question, gram(links, 1 / of_forecaster)), False)
    mean = np.bincount(what, weight * score) / of_question
    pull = np.bincount(who, weight * (score - mean[what]))
    return solver(pull[None, :])[0], solver


def _pseudo_inverse(diagonal: NDArray, shared: Floats) -> Floats:
    """The pseudo-inverse of diag(diagonal) - shared, whose only null vector is the constant one."""
    size, scale = len(diagonal), diagonal.mean()
    system = np.diag(diagonal) - shared
    return np.linalg.inv(system + scale / size) - 1 / (scale * size)


def _errors(
    pulls: NDArray | sparse.csr_array, solve: _Solver, burden: NDArray, drift: NDArray
) -> tuple[Floats, Floats]:
    """Standard errors of effects and of values, (N,) each, summed over events a block at a time."""
    events, people = pulls.shape
    effect, value = np.zeros(people), np.zeros(people)
    step = max(BLOCK // people, 1)
    for start in range(0, events, step):
        block = pulls[start : start + step]
        moved = solve(block if isinstance(block, np.ndarray) else block.toarray())  # the centred effects
        effect += np.square(moved).sum(axis=0)
        value += np.square(moved + (drift[start : start + step] - moved @ burden)[:, None]).sum(axis=0)
    return np.sqrt(effect), np.sqrt(value)
