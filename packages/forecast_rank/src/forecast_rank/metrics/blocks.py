"""Scores of forecasts computed block by block: arrays stay in the processor's cache, and memory small."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from itertools import chain
from typing import Concatenate, ParamSpec

import numpy as np

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel

CELLS = 1 << 17
"""Cells of a block: a megabyte for each array of them."""

Options = ParamSpec("Options")


def by_blocks(
    score: Callable[Concatenate[Panel, Options], Floats],
) -> Callable[Concatenate[Panel, Options], Floats]:
    """A function that gives a value of each forecast, applied to the blocks of its panel one after another.

    The last axis of the array that it returns is that of the forecasts. No value may depend on other forecasts.
    """

    @wraps(score)
    def of_blocks(panel: Panel, /, *args: Options.args, **kwargs: Options.kwargs) -> Floats:
        if len(panel.probability) <= CELLS:
            return score(panel, *args, **kwargs)
        (result,) = _joined(([score(block, *args, **kwargs)] for block in blocks(panel)), len(panel))
        return result

    return of_blocks


def arrays_by_blocks(
    scores: Callable[Concatenate[Panel, Options], list[Floats]],
) -> Callable[Concatenate[Panel, Options], list[Floats]]:
    """`by_blocks` for a function of several arrays, of which each can leave memory by itself."""

    @wraps(scores)
    def of_blocks(panel: Panel, /, *args: Options.args, **kwargs: Options.kwargs) -> list[Floats]:
        if len(panel.probability) <= CELLS:
            return scores(panel, *args, **kwargs)
        return _joined((scores(block, *args, **kwargs) for block in blocks(panel)), len(panel))

    return of_blocks


def blocks(panel: Panel) -> Iterator[Panel]:
    """Panels of consecutive forecasts with about `CELLS` cells each, on their questions alone.

    Questions keep their events, categories and names; their codes begin at 0 in each block.
    """
    yield from (_part(panel, rows, cells) for rows, cells in block_slices(panel))


def block_slices(panel: Panel, cells: int | None = None) -> Iterator[tuple[slice, slice]]:
    """The forecasts and the cells of each block, of about `CELLS` or so many cells."""
    first, most = 0, CELLS if cells is None else cells
    while first < len(panel):
        last = int(np.searchsorted(panel.offsets, panel.offsets[first] + most, side="right")) - 1
        last = min(max(last, first + 1), len(panel))
        yield slice(first, last), slice(int(panel.offsets[first]), int(panel.offsets[last]))
        first = last


def row_slices(first: int, end: int, width: int) -> Iterator[slice]:
    """Slices of the rows of a table from `first` to `end`, of about `CELLS` cells each where a row has `width`."""
    step = max(1, CELLS // max(1, width))
    return (slice(start, min(start + step, end)) for start in range(first, end, step))


def _joined(parts: Iterator[list[Floats]], length: int) -> list[Floats]:
    """Each array of the parts one after another along the last axis, without holding both them and the whole."""
    first = next(parts)
    wholes = [np.empty((*array.shape[:-1], length), array.dtype) for array in first]
    start = 0
    for part in chain([first], parts):
        end = start + part[0].shape[-1]
        for result, array in zip(wholes, part, strict=True):
            result[..., start:end] = array
        start = end
    return wholes


def _part(panel: Panel, rows: slice, cells: slice) -> Panel:
    first, last = rows.start, rows.stop
    start, end = int(panel.question[first]), int(panel.question[last - 1]) + 1
    panel_questions = panel.questions
    options = slice(int(panel_questions.offsets[start]), int(panel_questions.offsets[end]))
    questions = replace(
        panel_questions,
        offsets=panel_questions.offsets[start : end + 1] - options.start,
        outcome=panel_questions.outcome[options],
        exclusive=panel_questions.exclusive[start:end],
        event=panel_questions.event[start:end],
        category=panel_questions.category[start:end],
        closed_at=panel_questions.closed_at[start:end],
        names=panel_questions.names[start:end],
        option_names=panel_questions.option_names[options],
    )
    return replace(
        panel,
        questions=questions,
        forecaster=panel.forecaster[rows],
        question=panel.question[rows] - start,
        offsets=panel.offsets[first : last + 1] - cells.start,
        probability=panel.probability[cells],
        odds=panel.odds[cells],
        no_odds=panel.no_odds[cells],
        weight=panel.weight[rows],
        made_at=panel.made_at[rows],
        quote=None if panel.quote is None else panel.quote[cells],
    )
