"""Questions in order of closing, in columns of equally many: the time axis of running means."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel


class ClosingColumns(NamedTuple):
    """T columns of `step` questions each, the last one with what is left.

    Attributes
    ----------
    questions : array of int, shape (T,)
        Questions up to each column.
    closed_at : array, shape (T,)
        When the last of them closed; NaN if unknown.
    place : array of int, shape (Q,)
        Position of each question in order of closing.
    """

    questions: Codes
    closed_at: Floats
    place: Codes


def closing_columns(panel: Panel, is_counted: NDArray[np.bool_], step: int) -> ClosingColumns:
    """The columns of the questions with a counted forecast.

    Questions that close together, or at an unknown time (last), stay in the order of the panel.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 3], [[1, 0]] * 3, closed_at=[30, 10, 20])
    >>> columns = closing_columns(panel, np.ones(3, dtype=bool), step=2)
    >>> columns.questions.tolist(), columns.place.tolist()
    ([2, 3], [2, 0, 1])
    """
    answered = np.zeros(len(panel.questions), dtype=bool)
    answered[panel.question[is_counted]] = True
    order = np.argsort(panel.questions.closed_at, kind="stable")
    order = order[answered[order]]
    last = np.append(np.arange(step, len(order), step), len(order))[: len(order)] - 1
    place = np.zeros(len(panel.questions), dtype=np.int64)
    place[order] = np.arange(len(order))
    return ClosingColumns(last + 1, panel.questions.closed_at[order[last]], place)
