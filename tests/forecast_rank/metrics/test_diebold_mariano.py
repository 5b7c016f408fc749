"""The Diebold-Mariano test: its error is statsmodels' HAC error, corrected by hand; one published example."""

import random
from typing import Any

import numpy as np
import pytest

from forecast_rank.metrics.diebold_mariano import diebold_mariano, diebold_mariano_pairs
from forecast_rank.metrics.panel import from_arrays
from tests.lazy_modules import sm, stats

GENERATOR = np.random.default_rng(11)
LOSS, OTHER = GENERATOR.random(40), GENERATOR.random(40) + 0.1


@pytest.mark.parametrize("horizon", [1, 2, 5, 12])
def test_error_equals_the_oracle_and_the_statistic_is_corrected(horizon: int) -> None:
    test = diebold_mariano(LOSS, OTHER, horizon=horizon)
    fit = sm.OLS(LOSS - OTHER, np.ones(40)).fit(
        cov_type="HAC", cov_kwds={"maxlags": horizon - 1, "use_correction": False}
    )
    assert test.n == 40
    assert test[1:3] == pytest.approx((fit.params[0], fit.bse[0]))
    correction = np.sqrt((41 - 2 * horizon + horizon * (horizon - 1) / 40) / 40)
    assert test.statistic == pytest.approx(fit.tvalues[0] * correction)
    assert test.p == pytest.approx(2 * stats.t.sf(abs(test.statistic), 39))


def test_one_step_ahead_it_is_the_paired_t_test() -> None:
    expected = stats.ttest_rel(LOSS, OTHER)
    assert diebold_mariano(LOSS, OTHER)[3:] == pytest.approx((expected.statistic, expected.pvalue))


def test_published_example_comes_out_to_its_last_digits() -> None:
    """The example of John Tsang's `dm_test` (its README): shuffled numbers, and powers of the errors as losses.

    The numbers are those of Python 2's `random.sample` after `random.seed(123)`, written out here.
    """
    generator = random.Random(123)
    series = []
    for _ in range(3):
        pool, shuffled = list(range(100)), []
        for expected in range(100, 0, -1):
            place = int(generator.random() * expected)
            shuffled.append(pool[place])
            pool[place] = pool[expected - 1]
        series.append(np.array(shuffled, dtype=np.float64))
    actual, first, second = series
    published = {1: (1.3275742446369585, 0.18737195617455585), 2: (1.2112523589452902, 0.22868210381769466),
                 4: (0.9124498079287283, 0.36374861695187799)}  # fmt: skip
    for power, figures in published.items():
        test = diebold_mariano(np.abs(actual - first) ** power, np.abs(actual - second) ** power)
        assert test[3:] == pytest.approx(figures, rel=1e-12)


def test_two_steps_ahead_by_hand() -> None:
    # d = 1, 3, 2, 6: m = 3, c0 = 14 / 4, c1 = (0 + 0 - 3) / 4, variance (3.5 - 0.75) / 4; correction 1.5 / 4.
    test = diebold_mariano([1, 3, 2, 6], [0, 0, 0, 0], horizon=2)
    assert test.se == pytest.approx(np.sqrt(2.75 / 4))
    assert test.statistic == pytest.approx(3 / np.sqrt(2.75 / 4) * np.sqrt(1.5 / 4))


def test_sign_follows_the_order_of_the_two() -> None:
    one, two = diebold_mariano(LOSS, OTHER, horizon=3), diebold_mariano(OTHER, LOSS, horizon=3)
    assert (one.statistic, one.p) == pytest.approx((-two.statistic, two.p))


def test_lag_takes_out_most_of_the_dependence_on_earlier_times() -> None:
    """Sums of four shocks: a test that ignores the dependence rejects equal forecasters in a third of the series."""
    shocks = GENERATOR.normal(size=(1000, 123))
    series = np.sum([shocks[:, k : k + 120] for k in range(4)], axis=0)
    aware, naive = (
        np.mean([diebold_mariano(row, np.zeros(120), horizon=horizon).p < 0.05 for row in series]) for horizon in (4, 1)
    )
    assert aware < 0.13
    assert naive > 0.25


def test_losses_without_spread_have_no_error() -> None:
    result = diebold_mariano([0.1, 0.7, 0.3], [0.1, 0.7, 0.3])
    assert (result.difference, result.se, result.p) == (0, 0, 1)
    shifted = diebold_mariano([0.1, 0.7, 0.3], [0.2, 0.8, 0.4])
    assert shifted.difference == pytest.approx(-0.1)
    assert shifted.se == 0
    assert np.isnan([shifted.statistic, shifted.p]).all()


@pytest.mark.parametrize(
    ("loss", "rival_loss", "why"),
    [
        ([1.0, np.nan, 2.0], [1.0, 2.0, 3.0], "loss: nan at 1 is not finite"),
        ([1.0, 2.0], [1.0, 2.0, 3.0], "other_loss: 3 numbers, not 2 as in loss"),
        ([[1.0, 2.0]], [1.0, 2.0], r"loss: shape \(1, 2\), not"),
        ([1.0], [2.0], "horizon: from 1 to 0"),
    ],
)
def test_bad_series_is_named(loss: Any, rival_loss: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        diebold_mariano(loss, rival_loss)


@pytest.mark.parametrize("horizon", [0, 40])
def test_horizon_out_of_range_is_named(horizon: int) -> None:
    with pytest.raises(ValueError, match=f"horizon: from 1 to 39, one less than the times, not {horizon}"):
        diebold_mariano(LOSS, OTHER, horizon=horizon)


class TestPairs:
    def test_each_pair_is_tested_over_the_times_at_which_common_questions_closed(self) -> None:
        generator = np.random.default_rng(3)
        losses = generator.random((3, 16))
        losses[2, :4] = np.nan
        closed_at = np.repeat([40.0, 10.0, 20.0, 30.0, 60.0, 70.0, 80.0, 50.0], 2)
        closed_at[-1] = np.nan
        probability = np.where(np.isnan(losses), np.nan, 0.5)[:, :, None]
        panel = from_arrays(probability, np.ones((16, 1)), closed_at=closed_at)
        tests = diebold_mariano_pairs(panel, losses[panel.forecaster, panel.question], horizon=3)
        order = [1, 2, 3, 0, 7, 4, 5, 6]
        series = [[losses[i, 2 * k : 2 * k + 2].mean() for k in order] for i in range(3)]
        for row in (0, 1):
            series[row][4] = losses[row, 14]  # the last question closed at no known time
        assert tests[0, 1] == diebold_mariano(series[0], series[1], horizon=3)
        first, third = ([row[k] for k in (1, 2, 4, 5, 6, 7)] for row in (series[0], series[2]))
        third[2] = losses[2, 14]
        assert tests[0, 2] == pytest.approx(diebold_mariano(first, third, horizon=3))

    def test_pairs_with_too_few_times_have_no_test(self) -> None:
        panel = from_arrays([[[0.5]] * 3] * 2, [[1]] * 3, closed_at=[1, 2, 3])
        losses = np.arange(6.0)
        assert set(diebold_mariano_pairs(panel, losses, horizon=2)) == {(0, 1)}
        assert diebold_mariano_pairs(panel, losses, horizon=3) == {}
        with pytest.raises(ValueError, match="horizon: at least 1"):
            diebold_mariano_pairs(panel, losses, horizon=0)
