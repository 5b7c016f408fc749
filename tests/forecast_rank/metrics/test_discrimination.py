"""The area under the ROC curve equals scikit-learn's."""

import numpy as np
import pytest

from forecast_rank.metrics.discrimination import auc, auc_sums
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.uncertainty import cluster_se
from tests.forecast_rank.panels import synthetic
from tests.lazy_modules import sklearn_metrics


def binary(probability: list[float], outcome: list[float]) -> Panel:
    return from_arrays([[[p] for p in probability]], [[happened] for happened in outcome], exclusive=False)


@pytest.mark.parametrize("exclusive", [0.0, 0.5, 1.0])
def test_area_equals_the_oracle(exclusive: float) -> None:
    panel = synthetic(4, 30, 3, missing=0.3, exclusive=exclusive, weighted=True).panel
    outcome, weight = panel.outcome, panel.spread(panel.weight / panel.sizes)
    coarse = np.round(panel.probability, 1)  # with ties
    panel.probability[:] = coarse
    for person, area in enumerate(auc(panel)):
        own_rows = panel.spread(panel.forecaster) == person
        assert area == pytest.approx(
            sklearn_metrics.roc_auc_score(outcome[own_rows], coarse[own_rows], sample_weight=weight[own_rows])
        )


def test_order_alone_matters() -> None:
    assert auc(binary([0.9, 0.8, 0.7], [1, 1, 0])).tolist() == [1.0]
    assert auc(binary([0.03, 0.02, 0.01], [1, 1, 0])).tolist() == [1.0]
    assert auc(binary([0.1, 0.8], [1, 0])).tolist() == [0.0]
    assert auc(binary([0.5, 0.5, 0.5], [1, 1, 0])).tolist() == [0.5]


def test_fractional_outcome_counts_on_both_sides() -> None:
    # Of mass 1.5 that happened: 1 at 0.8 above mass 0.5 at 0.4 and mass 1 at 0.2; 0.5 at 0.4, tied and above.
    expected = (1 * 1.5 + 0.5 * (1 + 0.25)) / (1.5 * 1.5)
    assert auc(binary([0.8, 0.4, 0.2], [1, 0.5, 0])) == pytest.approx([expected])


def test_area_is_undefined_where_everything_or_nothing_happened() -> None:
    assert np.isnan(auc(binary([0.9, 0.8], [1, 1]))).all()
    assert np.isnan(auc(binary([0.9, 0.8], [0, 0]))).all()


def test_error_equals_that_of_delong() -> None:
    generator = np.random.default_rng(1)
    outcome = generator.integers(0, 2, 200)
    probability = np.round(0.3 * outcome + 0.7 * generator.random(200), 2)
    happened, failed = probability[outcome == 1], probability[outcome == 0]
    order = (happened[:, None] > failed) + 0.5 * (happened[:, None] == failed)
    variance = order.mean(axis=1).var(ddof=1) / len(happened) + order.mean(axis=0).var(ddof=1) / len(failed)
    sums = auc_sums(binary(probability.tolist(), outcome.tolist()))
    assert sums.means == pytest.approx(order.mean())
    assert cluster_se(sums) == pytest.approx(np.sqrt(variance), rel=0.005)


def test_questions_of_one_event_move_together() -> None:
    generator = np.random.default_rng(2)
    outcome = generator.integers(0, 2, 50)
    probability = 0.3 * outcome + 0.7 * generator.random(50)
    twice, event = np.repeat(probability, 2)[None, :, None], np.repeat(np.arange(50), 2)
    alone = auc_sums(from_arrays(probability[None, :, None], outcome[:, None], exclusive=False))
    doubled = auc_sums(from_arrays(twice, np.repeat(outcome, 2)[:, None], exclusive=False, event=event))
    assert cluster_se(doubled) == pytest.approx(cluster_se(alone))


def test_who_has_no_area_has_no_weight() -> None:
    assert auc_sums(binary([0.1, 0.8], [1, 1])).weights.sum() == 0
