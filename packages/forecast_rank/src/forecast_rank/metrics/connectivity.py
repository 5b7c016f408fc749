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


def connected_components(panel: Panel, counted: NDArray[np.bool_] | None = None) -> ConnectedComponents:
    """The connected components of a panel, ordered by forecasters, then forecasts, then first question.

    Two forecasters are connected if they answered a common question, or are both connected to a third.

    Parameters
    ----------
    panel : Panel
    counted : array of bool, shape (F,), optional
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
    if counted is not None:
        forecaster, question = forecaster[counted], question[counted]
    answered, asked = np.zeros(n_forecasters, dtype=bool), np.zeros(n_questions, dtype=bool)
    answered[forecaster], asked[question] = True, True
    if len(forecaster) and _links_all(forecaster, question, asked):
        return ConnectedComponents(np.where(answered, 0, NO_COMPONENT), np.where(asked, 0, NO_COMPONENT))
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


def _links_all(forecaster: Codes, question: Codes, asked: NDArray[np.bool_]) -> bool:
    """Whether two steps from the first forecaster over common questions reach every question, as they mostly do."""
    reached = np.zeros(len(asked), dtype=bool)
    reached[question[forecaster == forecaster[0]]] = True
    for _ in range(2):
        linked = np.zeros(int(forecaster.max()) + 1, dtype=bool)
        linked[forecaster[reached[question]]] = True
        if linked[forecaster].all():
            return True
        reached[question[linked[forecaster]]] = True
    return bool(reached[asked].all())
