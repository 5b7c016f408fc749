"""Connected components of forecasters: only those linked by a chain of common questions can be compared."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from forecast_rank.metrics.flat_arrays import Codes
from forecast_rank.metrics.panel import Panel

NO_COMPONENT = -1
"""The component of a forecaster or question without forecasts."""


class ConnectedComponents(NamedTuple):
    """Component of each forecaster and question: 0 is the largest, `NO_COMPONENT` means without forecasts.

    Attributes
    ----------
    forecaster : array of int, shape (N,)
    question : array of int, shape (Q,)
    """

    forecaster: Codes
    question: Codes


def connected_components(panel: Panel, is_counted: NDArray[np.bool_] | None = None) -> ConnectedComponents:
    """The connected components of a panel, ordered by forecasters, then forecasts, then first question.

    Two forecasters are connected if they answered a common question, or are both connected to a third.

    Parameters
    ----------
    panel : Panel
    is_counted : array of bool, shape (F,), optional
        Leaves out the forecasts where it is false.

    Returns
    -------
    ConnectedComponents

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> apart = from_arrays([[[0.5], [np.nan]], [[np.nan], [0.5]], [[np.nan], [0.5]]], [[1], [1]])
    >>> connected_components(apart)
    ConnectedComponents(forecaster=array([1, 0, 0]), question=array([1, 0]))
    """
    n_forecasters, n_questions = len(panel.forecasters), len(panel.questions)
    forecaster, question = panel.forecaster, panel.question
    if is_counted is not None:
        forecaster, question = forecaster[is_counted], question[is_counted]
    answered, has_answers = np.zeros(n_forecasters, dtype=bool), np.zeros(n_questions, dtype=bool)
    answered[forecaster], has_answers[question] = True, True
    if len(forecaster) and _links_all(forecaster, question, has_answers):
        return ConnectedComponents(np.where(answered, 0, NO_COMPONENT), np.where(has_answers, 0, NO_COMPONENT))
    total = n_forecasters + n_questions
    links = sparse.coo_array(
        (np.ones(len(forecaster), dtype=bool), (forecaster, n_forecasters + question)), (total, total)
    )
    count, label = sparse.csgraph.connected_components(links, directed=False)
    has_forecast = np.bincount(forecaster, minlength=n_forecasters) > 0
    answers = np.bincount(question, minlength=n_questions)
    size = np.bincount(label[:n_forecasters][has_forecast], minlength=count)
    forecasts = np.bincount(label[n_forecasters:], answers, count)
    first = np.full(count, n_questions)
    np.minimum.at(first, label[n_forecasters:], np.arange(n_questions))
    order = np.lexsort((first, -forecasts, -size))
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    return ConnectedComponents(
        np.where(has_forecast, place[label[:n_forecasters]], NO_COMPONENT),
        np.where(answers > 0, place[label[n_forecasters:]], NO_COMPONENT),
    )


def _links_all(forecaster: Codes, question: Codes, has_answers: NDArray[np.bool_]) -> bool:
    """Whether two steps from the first forecaster over common questions reach every question, as they mostly do."""
    is_linked = np.zeros(len(has_answers), dtype=bool)
    is_linked[question[forecaster == forecaster[0]]] = True
    for _ in range(2):
        linked = np.zeros(int(forecaster.max()) + 1, dtype=bool)
        linked[forecaster[is_linked[question]]] = True
        if linked[forecaster].all():
            return True
        is_linked[question[linked[forecaster]]] = True
    return bool(is_linked[has_answers].all())
