"""Intervals of running means, clustered by event."""

import numpy as np
from scipy.special import stdtrit

from forecast_rank.metrics.closing_columns import closing_columns
from forecast_rank.metrics.panel import Floats, Panel, stable_order
from forecast_rank.metrics.uncertainty import LEVEL, tail_levels


def running_intervals(
    panel: Panel, values: Floats, step: int = 1, level: float = LEVEL, *, least_events: int = 2
) -> Floats:
    """Intervals of the means of `return_stream`, m ± t SE by the events so far, column by column.

    SE is `cluster_se` of the questions so far, t Student's with G - 1 degrees of freedom. Each interval is for its own
    time: a curve that is watched needs `confidence_sequence`.

    Parameters
    ----------
    panel : Panel
    values : array, shape (F,)
        NaN leaves a forecast out.
    step : int
        Questions per column.
    level : float
        In (0, 1).
    least_events : int
        At least 2.

    Returns
    -------
    array, shape (N, T, 2)
        Low and high; NaN until a forecaster has so many events.

    Raises
    ------
    ValueError
        If `step` is below 1, `least_events` below 2, `values` is not one per forecast, or `level` is outside (0, 1).

    References
    ----------
    Liang, K.-Y. and Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika 73,
    13-22.

    Examples
    --------
    >>> from forecast_rank.metrics.panel import from_arrays
    >>> panel = from_arrays([[[0.5, 0.5]] * 2], [[1, 0]] * 2)
    >>> running_intervals(panel, np.array([1.0, 3.0]), step=2).round(2).tolist()  # 2 ± 12.706 x 1
    [[[-10.71, 14.71]]]
    """
    values = panel.one_per_forecast(values)
    _, upper = tail_levels(level)
    if step < 1:
        raise ValueError(f"step: at least 1, not {step}")
    if least_events < 2:
        raise ValueError(f"least_events: at least 2, not {least_events}")
    counted = ~np.isnan(values)
    columns = closing_columns(panel, counted, step)
    shape = len(panel.forecasters), len(columns.questions)
    # By forecaster, event and time: questions are sorted, then their forecasts by forecaster.
    order = panel.by_question(np.lexsort((columns.place, panel.questions.event)))
    order = order[stable_order(panel.forecaster[order], len(panel.forecasters))]
    if not counted.all():
        order = order[counted[order]]
    forecaster, question = panel.forecaster[order], panel.question[order]
    begins = np.concatenate([[True], (np.diff(forecaster) != 0) | (np.diff(panel.questions.event[question]) != 0)])
    begins = begins[: len(order)]
    cell = forecaster * shape[1]
    cell += (columns.place // step)[question]
    del forecaster, question
    weight = panel.weight[order]
    gain = weight * values[order]

    def running(summand: Floats) -> Floats:
        return np.bincount(cell, summand, shape[0] * shape[1]).reshape(shape).cumsum(axis=1)

    # What each forecast adds to the sums of squares and products of its event's running sums.
    before, mass_before = _within(gain, begins), _within(weight, begins)
    total, mass, events = running(gain), running(weight), running(begins.astype(np.float64))
    squares = running(gain * (2 * before + gain))
    products = running(gain * mass_before + weight * before + gain * weight)
    weights = running(weight * (2 * mass_before + weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / mass
        spread = np.maximum(squares - 2 * mean * products + mean**2 * weights, 0)
        se = np.where(events >= least_events, np.sqrt(events / (events - 1) * spread) / mass, np.nan)
        away = stdtrit(np.maximum(events - 1, 1), upper) * se
    return np.stack([mean - away, mean + away], axis=-1)


def _within(summand: Floats, begins: np.ndarray) -> Floats:
    """The sum of what stands before each value in its group."""
    before = np.cumsum(summand)
    before -= summand
    starts = np.flatnonzero(begins)
    before -= np.repeat(before[starts], np.diff(np.append(starts, len(summand))))
    return before
