"""Which forecasters can be compared at all: those that a chain of common questions links."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from scoring.metrics.panel import Codes, Panel

NOWHERE = -1
"""The part of a forecaster without forecasts and of a question that nobody answered."""


class Parts(NamedTuple):
    """The parts of a panel that no common question links: 0 is the largest, `NOWHERE` stands for silence.

    forecaster : (N,), the part of each forecaster
    question : (Q,), the part of each question
    """

    forecaster: Codes
    question: Codes


def parts(panel: Panel, counted: NDArray[np.bool_] | None = None) -> Parts:
    """The linked parts of a panel, numbered from the largest: by forecasters, by forecasts, by first question.

    Two forecasters are in one part if they answered a question in common, or are both linked to a third. `counted`,
    (F,), leaves out the forecasts where it is false.

    Examples
    --------
    >>> from scoring.metrics.panel import from_arrays
    >>> apart = from_arrays([[[0.5], [np.nan]], [[np.nan], [0.5]], [[np.nan], [0.5]]], [[1], [1]])
    >>> parts(apart)
    Parts(forecaster=array([1, 0, 0]), question=array([1, 0]))
    """
    people, asked = len(panel.forecasters), len(panel.questions)
    who, what = panel.forecaster, panel.question
    if counted is not None:
        who, what = who[counted], what[counted]
    total = people + asked
    links = sparse.coo_array((np.ones(len(who), dtype=bool), (who, people + what)), (total, total))
    count, label = sparse.csgraph.connected_components(links, directed=False)
    spoke = np.bincount(who, minlength=people) > 0
    answers = np.bincount(what, minlength=asked)
    size = np.bincount(label[:people][spoke], minlength=count)
    forecasts = np.bincount(label[people:], answers, count)
    first = np.full(count, asked)
    np.minimum.at(first, label[people:], np.arange(asked))
    order = np.lexsort((first, -forecasts, -size))
    place = np.empty(count, dtype=np.int64)
    place[order] = np.arange(count)
    return Parts(np.where(spoke, place[label[:people]], NOWHERE), np.where(answers > 0, place[label[people:]], NOWHERE))
