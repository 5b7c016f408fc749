"""Running intervals are those of the panel of the questions that had closed by then."""

import numpy as np
import pytest

from forecast_rank.metrics.returns import average_return, return_stream
from forecast_rank.metrics.running_intervals import running_intervals
from forecast_rank.metrics.uncertainty import cluster_se, event_sums
from tests.forecast_rank.panels import EMPTY, synthetic
from tests.lazy_modules import stats


def test_each_column_is_the_interval_of_the_questions_so_far() -> None:
    panel = synthetic(4, 60, seed=5, event_size=3).panel
    values = average_return(panel, 1)
    ends, stream = running_intervals(panel, values, step=7, level=0.9), return_stream(panel, values, step=7)
    assert ends.shape == (*stream.means.shape, 2)
    order = np.argsort(panel.questions.closed_at, kind="stable")
    for column, count in enumerate(stream.questions):
        known = np.isin(panel.question, order[:count])
        sums = event_sums(panel.take(known), values[known])
        away = stats.t.ppf(0.95, np.maximum(sums.events - 1, 1)) * cluster_se(sums)
        assert ends[:, column, 0] == pytest.approx(stream.means[:, column] - away, nan_ok=True)
        assert ends[:, column, 1] == pytest.approx(stream.means[:, column] + away, nan_ok=True)


def test_nothing_has_no_intervals_and_bad_arguments_are_named() -> None:
    assert running_intervals(EMPTY, np.zeros(0)).shape == (0, 0, 2)
    with pytest.raises(ValueError, match="step: at least 1"):
        running_intervals(EMPTY, np.zeros(0), step=0)
    with pytest.raises(ValueError, match="least_events: at least 2"):
        running_intervals(EMPTY, np.zeros(0), least_events=1)
    with pytest.raises(ValueError, match="level: between 0 and 1"):
        running_intervals(EMPTY, np.zeros(0), level=1)
