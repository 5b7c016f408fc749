"""Relative skill: geometric means of the ratios of mean scores on common questions."""

from typing import NamedTuple

import numpy as np

from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.uncertainty import EventSums, linearised_sums


class RelativeSkill(NamedTuple):
    """Relative skill of N forecasters by a score of which less is better.

    Attributes
    ----------
    value : array, shape (N,)
        theta, above 0; below 1 for a forecaster who is better than the others on the whole. NaN for one without a
        question in common with another. 0 for a forecaster whose mean is 0.
    ratio : array, shape (N, N)
        Mean score of the row / that of the column on their common questions; NaN without any, or where both are 0.
    common : array of int, shape (N, N)
        Common questions.
    log_sums : EventSums, shape (N, E)
        ln theta as means over events (`uncertainty.linearised_sums`), for intervals and tests; without weight where
        theta is 0, infinite or NaN, or two forecasters' common questions are of one event.
    """

    value: Floats
    ratio: Floats
    common: Codes
    log_sums: EventSums


def relative_skill(panel: Panel, values: Floats) -> RelativeSkill:
    """Each forecaster's relative skill, the geometric mean of the ratios of mean scores on common questions.

    theta_i = (prod_j S_ij / S_ji)^(1/M), where S_ij is the weighted mean score of i on the questions that i and j both
    answered, and j are the M forecasters with such questions, i (with the ratio 1) among them. A question weighs the
    mean of the two weights. Dividing by the theta of a baseline scales all to it. The errors of ln theta are jackknife
    errors, one event left out at a time.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        A score of each forecast, at least 0, of which less is better: CRPS, interval score, Brier score. NaN leaves a
        forecast out.

    Returns
    -------
    RelativeSkill

    Raises
    ------
    ValueError
        If `values` is not one per forecast, or one is negative or infinite.

    References
    ----------
    Cramer, E. Y. et al. (2022). Evaluation of individual and ensemble probabilistic forecasts of COVID-19 mortality in
    the United States. PNAS 119, e2113561119. Bosse, N. I. et al. (2022). Evaluating forecasts with scoringutils in R.
    arXiv 2205.07090.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5], [0.5]]] * 3, [[1], [1]])
    >>> skill = relative_skill(panel, np.array([1.0, 2.0, 4.0, 1.0, 2.0, 4.0]))  # of both questions 1, 2 and 4
    >>> skill.value.tolist(), skill.ratio[0].tolist()
    ([0.5, 1.0, 2.0], [1.0, 0.5, 0.25])
    """
    values = panel.one_per_forecast(values)
    if ((values < 0) | np.isinf(values)).any():
        raise ValueError("values: a score is negative or infinite")
    size, events = len(panel.forecasters), panel.events[0]
    ratio, common = np.full((size, size), np.nan), np.zeros((size, size), dtype=np.int64)
    logs, influence = np.full(size, np.nan), np.full((len(events), size), np.nan)
    comparisons = _Comparisons(panel, values)
    for person in np.unique(panel.forecaster[~np.isnan(values)]).tolist():
        scores, rival, common[person] = comparisons.event_sums(person)
        totals = scores.sum(axis=1), rival.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio[person] = totals[0] / totals[1]
            log_ratios = np.log(ratio[person])
            without = np.log(totals[0][:, None] - scores) - np.log(totals[1][:, None] - rival)
            log_ratios[person], without[person] = 0.0, 0.0
            compared = ~np.isnan(log_ratios)
            jackknife = without[compared].mean(axis=0)
            moves = (jackknife.mean() - jackknife) * np.sqrt((len(events) - 1) / len(events))
            if np.count_nonzero(compared) > 1:
                logs[person], influence[:, person] = log_ratios[compared].mean(), moves
    has_error = np.isfinite(logs) & np.isfinite(influence).all(axis=0)
    sums = linearised_sums(panel, np.where(has_error, logs, np.nan), influence, events)
    return RelativeSkill(np.exp(logs), ratio, common, sums)


class _Comparisons:
    """The scores of a panel by forecaster and question, with the questions in order of their events."""

    def __init__(self, panel: Panel, values: Floats) -> None:
        event_of_question = panel.questions.event
        answered = np.unique(panel.question)
        questions = answered[np.argsort(event_of_question[answered], kind="stable")]
        self.scores = panel.matrix(values)[:, questions]
        self.weights = panel.matrix(panel.weight)[:, questions]
        events = event_of_question[questions]
        self.starts = np.flatnonzero(np.append(True, events[1:] != events[:-1])[: len(events)])

    def event_sums(self, person: int) -> tuple[Floats, Floats, Codes]:
        """The person's and the others' summed scores on common questions, (N, E) each, and their numbers, (N,)."""
        shared = ~np.isnan(self.scores) & ~np.isnan(self.scores[person])
        weight = np.where(shared, (self.weights + self.weights[person]) / 2, 0.0)
        scores = weight * np.nan_to_num(self.scores[person])
        rival = weight * np.nan_to_num(self.scores)
        sums = [np.add.reduceat(part, self.starts, axis=1) for part in (scores, rival)]
        return sums[0], sums[1], shared.sum(axis=1)
