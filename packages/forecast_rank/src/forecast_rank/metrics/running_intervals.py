"""Intervals of running means, clustered by event."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from forecast_rank.metrics.closing_columns import closing_columns
from forecast_rank.metrics.flat_arrays import Floats, stable_order
from forecast_rank.metrics.panel import Panel
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
    is_counted = ~np.isnan(values)
    # The order and the sums of weights are the same for all scores of these forecasts.
    times = panel.shared(("event times", step, is_counted.tobytes()), lambda: _EventTimes(panel, is_counted, step))
    weight, mass, events = times.weight, times.mass, times.events
    gain = weight * values[times.order]
    before = times.within_event(gain)
    total, squares = times.running(gain), times.running(gain * (2 * before + gain))
    products = times.running(gain * times.mass_before + weight * before + gain * weight)
    weights = times.weight_squares
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / mass
        spread = np.maximum(squares - 2 * mean * products + mean**2 * weights, 0)
        se = np.where(events >= least_events, np.sqrt(events / (events - 1) * spread) / mass, np.nan)
        away = stdtrit(np.maximum(events - 1, 1), upper) * se
    return np.stack([mean - away, mean + away], axis=-1)


class _EventTimes:
    """The counted forecasts by forecaster, event and time, with the sums by time that follow from weights alone.

    Attributes
    ----------
    order : array of int, shape (F,)
    weight, mass_before : arrays, shape (F,)
        The weight of each forecast, and that of its forecaster's earlier ones on the event.
    mass, events, weight_squares : arrays, shape (N, T)
        Up to each column the weight, the number of events, and the sum of squares of the events' weights.
    """

    def __init__(self, panel: Panel, is_counted: NDArray[np.bool_], step: int) -> None:
        columns = closing_columns(panel, is_counted, step)
        self._shape = len(panel.forecasters), len(columns.questions)
        # Sorts the fewer questions, then their forecasts by radix.
        order = panel.by_question(np.lexsort((columns.place, panel.questions.event)))
        order = order[stable_order(panel.forecaster[order], len(panel.forecasters))]
        self.order = order if is_counted.all() else order[is_counted[order]]
        forecaster, question = panel.forecaster[self.order], panel.question[self.order]
        new_event = np.diff(forecaster, prepend=-1) != 0
        new_event |= np.diff(panel.questions.event[question], prepend=-1) != 0
        self._starts = np.flatnonzero(new_event)
        self._cell = forecaster * self._shape[1]
        self._cell += (columns.place // step)[question]
        self.weight = panel.weight[self.order]
        self.mass_before = self.within_event(self.weight)
        self.mass, self.events = self.running(self.weight), self.running(new_event.astype(np.float64))
        self.weight_squares = self.running(self.weight * (2 * self.mass_before + self.weight))

    def running(self, summand: Floats) -> Floats:
        """Sums up to each column, (F,) to (N, T)."""
        rows, columns = self._shape
        return np.bincount(self._cell, summand, rows * columns).reshape(self._shape).cumsum(axis=1)

    def within_event(self, summand: Floats) -> Floats:
        """The sum over the forecaster's earlier forecasts on the event, (F,) to (F,)."""
        before = np.cumsum(summand)
        before -= summand
        before -= np.repeat(before[self._starts], np.diff(np.append(self._starts, len(summand))))
        return before
