"""The ranked probability score equals that of scoringrules, and the Brier score where there are two options."""

import numpy as np
import pytest
import scoringrules
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.ranked_probability import ranked_probability

from tests.forecast_rank.panels import panel, rows_of


def test_score_equals_the_oracle() -> None:
    generator = np.random.default_rng(2)
    for options in (3, 5, 8):
        stated, happened = generator.dirichlet(np.ones(options), (2, 30)), generator.integers(options, size=30)
        forecasts = from_arrays(stated, np.eye(options)[happened])
        expected = scoringrules.rps_score(
            happened[forecasts.question] + 1, stated[forecasts.forecaster, forecasts.question]
        )
        assert ranked_probability(forecasts) == pytest.approx(expected / (options - 1))


def test_two_options_score_as_the_brier_score() -> None:
    forecasts = from_arrays([[[0.7, 0.3], [0.1, 0.9]]], [[1, 0], [1, 0]])
    assert ranked_probability(forecasts) == pytest.approx(brier(forecasts))


def test_questions_of_different_size_do_not_mix() -> None:
    rows = [*rows_of("ann", "q", [0.2, 0.8, 0.0], 0), *rows_of("ann", "r", [0.5, 0.5], 1)]
    assert ranked_probability(panel(rows)).tolist() == pytest.approx([(0.8**2 + 0) / 2, 0.25])


def test_nested_thresholds_state_cumulated_probabilities_themselves() -> None:
    rows = rows_of("ann", "q", [0.9, 0.6, 0.1], [1, 0, 0], exclusive=False)
    assert ranked_probability(panel(rows)).tolist() == pytest.approx([(0.1**2 + 0.6**2 + 0.1**2) / 3])
