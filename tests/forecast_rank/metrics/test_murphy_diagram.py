"""Mean elementary scores: their definition, and the scores that are mixtures of them."""

import numpy as np
import pytest

from forecast_rank.metrics.murphy_diagram import murphy_diagram
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from tests.forecast_rank.panels import synthetic

PANEL = synthetic(4, 30, 8, missing=0.3, exclusive=0.5, weighted=True).panel
MIDDLES = (np.arange(20_000) + 0.5) / 20_000


def test_score_is_the_mean_of_the_definition() -> None:
    diagram = murphy_diagram(PANEL, [0.0, 0.25, 0.7, 1.0])
    weights = PANEL.spread(PANEL.weight / PANEL.sizes)
    who = PANEL.spread(PANEL.forecaster)
    for k, t in enumerate(diagram.threshold.tolist()):
        regret = [
            t if p > t and not o else 1 - t if p <= t and o else 0.0
            for p, o in zip(PANEL.probability.tolist(), PANEL.outcome.tolist(), strict=True)
        ]
        for person in range(4):
            expected = np.average(np.array(regret)[who == person], weights=weights[who == person])
            assert diagram.score[person, k] == pytest.approx(expected)


def test_probability_at_the_threshold_does_not_exceed_it() -> None:
    panel = from_arrays([[[0.3]], [[0.3]]], [[1]], exclusive=False)
    assert murphy_diagram(panel, [0.3]).score.tolist() == [[0.7], [0.7]]
    assert murphy_diagram(from_arrays([[[0.3]]], [[0]], exclusive=False), [0.3]).score.tolist() == [[0.0]]


def test_twice_the_area_is_the_brier_score() -> None:
    area = murphy_diagram(PANEL, MIDDLES).score.mean(axis=1)
    assert 2 * area == pytest.approx(PANEL.forecaster_means(brier(PANEL)), abs=1e-4)


def test_log_score_is_the_mixture_with_density_one_over_t_and_one_minus_t() -> None:
    panel = from_arrays([[[0.8], [0.4], [0.3]]], [[1], [0], [1]], exclusive=False)
    mixture = (murphy_diagram(panel, MIDDLES).score / (MIDDLES * (1 - MIDDLES))).mean()
    assert mixture == pytest.approx(-np.log([0.8, 0.6, 0.3]).mean(), abs=1e-3)


def test_thresholds_are_hundredths_unless_given_and_bad_ones_are_named() -> None:
    assert murphy_diagram(PANEL).threshold == pytest.approx(np.arange(101) / 100)
    with pytest.raises(ValueError, match=r"thresholds: 1\.5 at 1 is outside \[0, 1\]"):
        murphy_diagram(PANEL, [0.5, 1.5])
    with pytest.raises(ValueError, match="thresholds: nan at 0"):
        murphy_diagram(PANEL, [np.nan])
    with pytest.raises(ValueError, match=r"thresholds: shape \(\), not"):
        murphy_diagram(PANEL, 0.5)
