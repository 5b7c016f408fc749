"""CORP: the curve is scikit-learn's isotonic regression, the parts add up, and bands hold a calibrated forecaster."""

import numpy as np
import pytest

from forecast_rank.metrics.corp import corp_curve, corp_decomposition
from forecast_rank.metrics.flat_arrays import Floats
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
