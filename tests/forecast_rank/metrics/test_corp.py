"""CORP: the curve is scikit-learn's isotonic regression, the parts add up, and bands hold a calibrated forecaster."""

import numpy as np
import pytest

from forecast_rank.metrics.corp import corp_curve, corp_decomposition
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.murphy_diagram import murphy_diagram
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from tests.forecast_rank.panels import EMPTY, synthetic
from tests.lazy_modules import sklearn_isotonic


def isotonic(probability: Floats, outcome: Floats, weight: Floats) -> Floats:
    return np.asarray(sklearn_isotonic.IsotonicRegression().fit(probability, outcome, weight).predict(probability))


def test_curve_equals_the_oracle() -> None:
    generator = np.random.default_rng(4)
    probability, weight = generator.integers(0, 21, 300) / 20, generator.uniform(0.5, 2, 300)
    outcome = (generator.random(300) < probability**2).astype(float)
    curve = corp_curve(outcome, probability, sample_weight=weight, resamples=0)
    expected = dict(zip(probability, isotonic(probability, outcome, weight), strict=True))
    assert dict(zip(curve.forecast, curve.recalibrated, strict=True)) == pytest.approx(expected)
    assert curve.weight.sum() == pytest.approx(weight.sum())


def test_parts_equal_the_oracle_and_add_up_to_the_brier_score() -> None:
    forecasts = synthetic(5, 80, seed=6).panel
    parts = corp_decomposition(forecasts)
    assert parts.brier == pytest.approx(forecasts.forecaster_means(brier(forecasts)))
    assert parts.miscalibration - parts.discrimination + parts.uncertainty == pytest.approx(parts.brier)
    for i in range(5):
        cells = forecasts.forecaster[forecasts.cell_forecast] == i
        outcome, weight = forecasts.outcome[cells], (forecasts.weight / forecasts.sizes)[forecasts.cell_forecast][cells]
        calibrated = isotonic(forecasts.probability[cells], outcome, weight)
        after = np.average((calibrated - outcome) ** 2, weights=weight)
        assert parts.miscalibration[i] == pytest.approx(parts.brier[i] - after)
        assert min(parts.miscalibration[i], parts.discrimination[i]) >= 0


def test_bands_hold_a_calibrated_forecaster_and_not_an_overconfident_one() -> None:
    generator = np.random.default_rng(8)
    truth = generator.integers(1, 20, 2000) / 20
    outcome = generator.random(2000) < truth
    calibrated = corp_curve(outcome, truth, level=0.9, resamples=400)
    inside = (calibrated.low <= calibrated.recalibrated) & (calibrated.recalibrated <= calibrated.high)
    assert inside.mean() > 0.8
    bold = corp_curve(outcome, np.clip(2 * truth - 0.5, 0, 1), level=0.9, resamples=400)
    outside = (bold.recalibrated < bold.low) | (bold.recalibrated > bold.high)
    assert outside[[0, -1]].all()


def test_nobody_has_no_parts_and_bad_arguments_are_named() -> None:
    assert all(len(part) == 0 for part in corp_decomposition(EMPTY))
    with pytest.raises(ValueError, match=r"y_prob: a number is outside \[0, 1\]"):
        corp_curve([1], [1.5])
    with pytest.raises(ValueError, match=r"y_true: shape \(2,\) does not go with"):
        corp_curve([1, 0], [0.5])


# --- Mean elementary scores: their definition, and the scores that are mixtures of them

PANEL = synthetic(4, 30, 8, missing=0.3, exclusive=0.5, weighted=True).panel
MIDDLES = (np.arange(20_000) + 0.5) / 20_000


def test_score_is_the_mean_of_the_definition() -> None:
    diagram = murphy_diagram(PANEL, [0.0, 0.25, 0.7, 1.0])
    weights = PANEL.spread(PANEL.weight / PANEL.sizes)
    row_owner = PANEL.spread(PANEL.forecaster)
    for k, t in enumerate(diagram.threshold.tolist()):
        regret = [
            t if p > t and not happened else 1 - t if p <= t and happened else 0.0
            for p, happened in zip(PANEL.probability.tolist(), PANEL.outcome.tolist(), strict=True)
        ]
        for person in range(4):
            expected = np.average(np.array(regret)[row_owner == person], weights=weights[row_owner == person])
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
