"""The figures of the package arena-evaluation 2.2.0 by its own definitions, for comparison with its output.

A question of a panel is a window of its event. Weights of forecasts count in none of its figures.

References
----------
Prophet Arena team (2026). arena-evaluation: the scoring engine of Prophet Arena, version 2.2.0.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from forecast_rank.metrics.flat_arrays import Codes, Floats
from forecast_rank.metrics.panel import Panel

BINS = 10
NOISE_PLACES = 9
"""Places to which p times the number of bins is rounded, so that 0.3 begins a bin."""


class Reliability(NamedTuple):
    """Bins of equal width, each array of shape (N, bins); NaN where a bin is empty."""

    pairs: Codes
    confidence: Floats
    accuracy: Floats


def scores(panel: Panel, *, bins: int = BINS, selected: NDArray[np.bool_] | None = None) -> dict[str, Floats]:
    """All figures by the package's names.

    Parameters
    ----------
    panel : Panel
        `odds` are the crowd's quotes, which are taken raw.
    bins : int
        Bins of the calibration error.
    selected : array of bool, shape (F,), optional
        The forecasts of a slice; all by default.

    Returns
    -------
    dict of array, shape (N,)
        `brier`, lower is better: the mean over events of the means over windows. `skill`, higher is better: so too the
        quotes' Brier score less the forecaster's, on the options with a quote; `skill_se` is its standard error over
        events. `ece`, lower is better, of all options pooled. The numbers `n_events`, `n_cells`, `n_pairs` and
        `n_skill_events`. NaN where there is no figure.

    References
    ----------
    Prophet Arena team (2026). arena-evaluation 2.2.0, modules `engine` and `metrics`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> figures = scores(from_arrays([[[0.8, 0.2]]], [[1, 0]], odds=[[0.6, 0.5]]))
    >>> {name: values.round(6).tolist() for name, values in figures.items() if name in ("brier", "skill", "ece")}
    {'brier': [0.04], 'skill': [0.165], 'ece': [0.2]}
    """
    if selected is None:
        selected = np.ones(len(panel), dtype=bool)
    forecaster_count = len(panel.forecasters)
    square = (panel.probability - panel.outcome) ** 2
    quoted = ~np.isnan(panel.odds)
    gain = np.where(quoted, (panel.odds - panel.outcome) ** 2 - square, 0.0)
    pairs = np.bincount(panel.cell_forecast, quoted, len(panel))
    windows = np.bincount(panel.cell_forecast, square, len(panel)) / panel.sizes
    paired = selected & (pairs > 0)
    skills = np.bincount(panel.cell_forecast, gain, len(panel))[paired] / pairs[paired]
    brier, _, events = _mean_over_events(panel, windows[selected], selected)
    skill, skill_se, skill_events = _mean_over_events(panel, skills, paired)
    counts = reliability(panel, bins=bins, selected=selected)
    share = counts.pairs / np.maximum(counts.pairs.sum(axis=1, keepdims=True), 1)
    ece = np.nansum(share * np.abs(counts.confidence - counts.accuracy), axis=1)
    return {
        "brier": brier,
        "skill": skill,
        "skill_se": skill_se,
        "ece": np.where(counts.pairs.any(axis=1), ece, np.nan),
        "n_events": events,
        "n_cells": np.bincount(panel.forecaster[selected], minlength=forecaster_count),
        "n_pairs": np.bincount(panel.forecaster, np.where(selected, pairs, 0), forecaster_count).astype(np.int64),
        "n_skill_events": skill_events,
    }


def reliability(panel: Panel, *, bins: int = BINS, selected: NDArray[np.bool_] | None = None) -> Reliability:
    """The mean probability and the share that happened of all options pooled, in bins of equal width.

    Parameters
    ----------
    panel : Panel
    bins : int
    selected : array of bool, shape (F,), optional
        The forecasts of a slice; all by default.

    Returns
    -------
    Reliability

    References
    ----------
    Prophet Arena team (2026). arena-evaluation 2.2.0, function `metrics.calibration`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> reliability(from_arrays([[[0.3, 0.7]]], [[1, 0]])).pairs.tolist()
    [[0, 0, 0, 1, 0, 0, 0, 1, 0, 0]]
    """
    cells = slice(None) if selected is None else selected[panel.cell_forecast]
    probability, outcome = panel.probability[cells], panel.outcome[cells]
    place = np.minimum(np.round(probability * bins, NOISE_PLACES).astype(np.int64), bins - 1)
    code = panel.forecaster[panel.cell_forecast][cells] * bins + place
    size = len(panel.forecasters) * bins
    count = np.bincount(code, minlength=size)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(code, values, size) / count for values in (probability, outcome)]
    shape = (len(panel.forecasters), bins)
    return Reliability(count.reshape(shape), *(mean.reshape(shape) for mean in means))


def slices(panel: Panel) -> dict[str, NDArray[np.bool_]]:
    """The forecasts of each slice by the package's name of it: a category, or up to two options and more.

    Parameters
    ----------
    panel : Panel

    Returns
    -------
    dict of array of bool, shape (F,)

    References
    ----------
    Prophet Arena team (2026). arena-evaluation 2.2.0, function `engine.evaluate_cells`.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> list(slices(from_arrays([[[0.3, 0.7]]], [[1, 0]])))
    ['type:binary']
    """
    category, names = panel.questions.category[panel.question], panel.questions.category_names
    parts = {f"cat:{name}": category == code for code, name in sorted(enumerate(names), key=lambda row: row[1]) if name}
    parts |= {"type:binary": panel.sizes <= 2, "type:multi": panel.sizes > 2}
    return {name: mask for name, mask in parts.items() if mask.any()}


def _mean_over_events(panel: Panel, values: Floats, selected: NDArray[np.bool_]) -> tuple[Floats, Floats, Codes]:
    """Each forecaster's mean over events of the means of its windows' values, its standard error, and their number."""
    forecaster_count, events = len(panel.forecasters), len(panel.questions.event_names)
    code = panel.forecaster[selected] * events + panel.questions.event[panel.question[selected]]
    distinct, place = np.unique(code, return_inverse=True)
    means = np.bincount(place, values, len(distinct)) / np.maximum(np.bincount(place, minlength=len(distinct)), 1)
    forecaster = distinct // max(events, 1)
    number = np.bincount(forecaster, minlength=forecaster_count)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.bincount(forecaster, means, forecaster_count) / number
        spread = np.bincount(forecaster, (means - mean[forecaster]) ** 2, forecaster_count)
        se = np.where(number > 1, np.sqrt(spread / (number - 1) / number), np.nan)
    return mean, se, number
