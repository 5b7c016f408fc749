"""Calibration: bins where a reader expects them, parts that add up, and what chance alone would show."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.calibration import (
    ece,
    ece_noise_floor,
    max_calibration_error,
    murphy_decomposition,
    reliability_curve,
    sharpness,
)
from forecast_rank.metrics.calibration_bins import GRID, Kind, bin_pairs
from forecast_rank.metrics.calibration_error import ece_debiased
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import brier
from tests.forecast_rank.panels import panel, rows_of, synthetic
from tests.lazy_modules import proportion, sklearn_calibration

KINDS: tuple[Kind, Kind] = ("width", "count")


def binary(probabilities: list[float], outcomes: list[float]) -> Panel:
    """One forecaster's plain binary forecasts."""
    return from_arrays([[[p] for p in probabilities]], [[happened] for happened in outcomes], exclusive=False)


@pytest.mark.parametrize("bins", [2, 3, 4, 5, 6, 7, 8, 10, 12, 20, 25, 40, 50, 100])
def test_a_decimal_falls_in_the_bin_that_begins_there(bins: int) -> None:
    """Integer arithmetic says where k / 1000 belongs; 0.29 x 100 is 28.999999999999996 in floating point."""
    probabilities = [k / 1000 for k in range(1001)]
    curve = reliability_curve(binary(probabilities, [0.0] * 1001), bins)
    expected = np.bincount([min(k * bins // 1000, bins - 1) for k in range(1001)], minlength=bins)
    assert curve.pairs[0].tolist() == expected.tolist()


def test_curve_by_hand() -> None:
    """Weight 3 on 0.3, 1 on 0.35; three options at 1/3 each of their question's weight of 1."""
    forecasts = panel(
        rows_of("ann", "q", [0.3], [1], exclusive=False, weight=3.0)
        + rows_of("ann", "r", [0.35], [0], exclusive=False)
        + rows_of("ann", "s", [0.34, 0.36, 0.3], 1)
    )
    curve = reliability_curve(forecasts)
    assert curve.pairs[0].tolist() == [0, 0, 0, 5, 0, 0, 0, 0, 0, 0]
    assert curve.forecast[0, 3] == pytest.approx((3 * 0.3 + 0.35 + 1 / 3) / 5)
    assert curve.outcome[0, 3] == pytest.approx((3 + 1 / 3) / 5)
    assert curve.weight[0, 3] == pytest.approx(1)
    assert np.isnan(curve.forecast[0, :3]).all()
    assert np.isnan(curve.low[0, 4:]).all()
    assert ece(forecasts) == pytest.approx([abs(3 * 0.3 + 0.35 + 1 / 3 - 3 - 1 / 3) / 5])


def test_equal_width_is_scikit_learns_curve() -> None:
    panel = synthetic(1, 3000, seed=21, exclusive=0, options=(1,)).panel
    outcome, forecast = sklearn_calibration.calibration_curve(panel.outcome, panel.probability, n_bins=10)
    curve = reliability_curve(panel)
    assert curve.forecast[0] == pytest.approx(forecast)
    assert curve.outcome[0] == pytest.approx(outcome)


def test_equal_count_is_scikit_learns_where_nothing_ties() -> None:
    generator = np.random.default_rng(22)
    probabilities = generator.permutation(np.linspace(0.001, 0.999, 1001))  # quantiles fall on values
    outcomes = (generator.random(1001) < probabilities).astype(float)
    outcome, forecast = sklearn_calibration.calibration_curve(outcomes, probabilities, n_bins=10, strategy="quantile")
    curve = reliability_curve(binary(probabilities.tolist(), outcomes.tolist()), kind="count")
    # scikit-learn closes bins above, so one value at each edge moves.
    assert curve.forecast[0] == pytest.approx(forecast, abs=2e-3)
    assert curve.outcome[0] == pytest.approx(outcome, abs=2e-2)
    assert curve.pairs[0].tolist() == [100] * 9 + [101]


def test_equal_probabilities_stay_in_one_bin_of_equal_counts() -> None:
    curve = reliability_curve(binary([0.1] * 6 + [0.5] * 2 + [0.9] * 2, [0.0] * 10), bins=5, kind="count")
    assert curve.pairs[0].tolist() == [6, 2, 2, 0, 0]
    assert curve.edges[0, :4].tolist() == [0.1, 0.5, 0.9, 0.9]
    assert np.isnan(curve.edges[0, 4:]).all()
    rounding = reliability_curve(binary([0.3, 0.1 + 0.2, 0.7, 0.7], [0.0] * 4), bins=4, kind="count")
    assert rounding.pairs[0].tolist() == [2, 2, 0, 0]


@pytest.mark.parametrize("bins", [1, 3, 10, 40])
@pytest.mark.parametrize("kind", ["many digits", "one digit", "grid", "beside the grid", "long shots", "certain"])
def test_equal_counts_are_those_of_sorted_pairs(bins: int, kind: str) -> None:
    panel = synthetic(6, 60, seed=bins, missing=0.5, exclusive=0.5).panel
    p, on_grid = panel.probability, np.round(panel.probability * GRID) / GRID
    probability = {
        "many digits": p,
        "one digit": np.round(p, 1),
        "grid": on_grid,
        "beside the grid": np.clip(on_grid + np.resize([-1e-10, 1e-12, 0, 1e-10, -1e-12], len(p)), 0, 1),
        "long shots": p**20,
        "certain": np.round(p),
    }[kind]
    panel = replace(panel, probability=probability)
    bin_table = bin_pairs(panel, bins, "count")
    for person in range(6):
        own_rows = probability[panel.forecaster[panel.cell_forecast] == person]
        ordered = np.sort(own_rows)
        cuts = [ordered[k * len(own_rows) // bins] for k in range(bins)]
        cuts = [cut for k, cut in enumerate(cuts) if k == 0 or cut - cuts[k - 1] > 1e-9 / bins]
        assert bin_table.edges[person, : len(cuts) + 1].tolist() == [*cuts, ordered[-1]]
        assert np.isnan(bin_table.edges[person, len(cuts) + 1 :]).all()
        bin_of = [sum(value >= cut - 1e-9 / bins for cut in cuts[1:]) for value in own_rows]
        assert bin_table.code[panel.forecaster[panel.cell_forecast] == person].tolist() == [
            person * bins + b for b in bin_of
        ]


def test_each_forecaster_has_bins_of_equal_counts_of_his_own() -> None:
    panel = synthetic(6, 200, seed=23, exclusive=0.5).panel
    together = reliability_curve(panel, kind="count")
    for person in range(6):
        alone = reliability_curve(panel.take(panel.forecaster == person), kind="count")
        for table, part in zip(together, alone, strict=True):
            assert table[person] == pytest.approx(part[person], nan_ok=True)


def test_intervals_are_wilsons() -> None:
    panel = synthetic(1, 500, seed=24, exclusive=0, options=(1,)).panel
    curve = reliability_curve(panel, level=0.9)
    happened = np.bincount(np.minimum((panel.probability * 10).astype(int), 9), panel.outcome)
    low, high = proportion.proportion_confint(happened, curve.pairs[0], alpha=0.1, method="wilson")
    assert curve.low[0] == pytest.approx(low)
    assert curve.high[0] == pytest.approx(high)


def test_equal_weights_of_any_size_leave_an_interval_as_it_is_and_unequal_ones_widen_it() -> None:
    def width(weights: list[float]) -> float:
        rows = [
            row
            for j, weight in enumerate(weights)
            for row in rows_of("ann", str(j), [0.5], [j % 2], exclusive=False, weight=weight)
        ]
        curve = reliability_curve(panel(rows))
        return float(curve.high[0, 5] - curve.low[0, 5])

    assert width([2.0] * 8) == pytest.approx(width([1.0] * 8))
    assert width([5.0, 5.0] + [0.1] * 6) > width([1.0] * 8)
    assert width([5.0, 5.0] + [1e-9] * 6) == pytest.approx(width([1.0] * 2), abs=1e-6)


def test_errors_by_hand() -> None:
    """Bins 0.3: 0.4 too low on two of five; 0.9: 0.1 too low on one; 0.6: 0.6 too high on two."""
    forecasts = binary([0.3, 0.3, 0.9, 0.6, 0.6], [1, 0.4, 1, 0, 0])
    assert ece(forecasts) == pytest.approx([(2 * 0.4 + 0.1 + 2 * 0.6) / 5])
    assert max_calibration_error(forecasts) == pytest.approx([0.6])
    assert max_calibration_error(binary([0.3, 0.3, 0.9], [0, 0, 0]), least=2) == pytest.approx([0.3])
    assert np.isnan(max_calibration_error(binary([0.3], [0]), least=2))[0]


def drawn(panel: Panel, generator: np.random.Generator) -> Panel:
    """The panel of one forecaster with outcomes that happen just as likely as was said."""
    outcome = np.zeros(len(panel.questions.outcome))
    for i in range(len(panel)):
        cells = slice(panel.offsets[i], panel.offsets[i + 1])
        options, chances = panel.cell_option[cells], panel.probability[cells]
        if panel.exclusive[i]:
            outcome[generator.choice(options, p=chances / chances.sum())] = 1
        else:
            outcome[options] = generator.random(len(options)) < chances
    return replace(panel, questions=replace(panel.questions, outcome=outcome))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exclusive", [0.0, 1.0])
def test_noise_floor_is_the_error_of_outcomes_drawn_from_the_forecasts(kind: Kind, exclusive: float) -> None:
    panel = synthetic(1, 300, seed=25, exclusive=exclusive, options=(0, 0, 0, 1), weighted=True).panel
    generator = np.random.default_rng(26)
    errors = [ece(drawn(panel, generator), kind=kind)[0] for _ in range(120)]
    floor = ece_noise_floor(panel, kind=kind)[0]
    assert floor == pytest.approx(np.mean(errors), rel=0.06)
    # What the probabilities alone decide: outcomes do not move it.
    assert ece_noise_floor(drawn(panel, generator), kind=kind)[0] == pytest.approx(floor)


def test_options_that_exclude_each_other_in_one_bin_take_noise_from_each_other() -> None:
    """Of (0.5, 0.5) one happens, always: no noise. Of two at 0.25 one happens in half the cases."""
    halves = from_arrays(np.full((1, 50, 2), 0.5), np.tile([1, 0], (50, 1)))
    assert ece_noise_floor(halves).tolist() == [0]
    quarters = from_arrays(np.tile([0.25, 0.25, 0.5], (1, 64, 1)), np.tile([1, 0, 0], (64, 1)))
    # A coin of 1/2 per question, in a bin of two pairs each: 2/3 x (0.5 / 2) / 8; the other option 1/3 x 0.5 / 8.
    assert ece_noise_floor(quarters) == pytest.approx([np.sqrt(2 / np.pi) * (2 / 3 * 0.25 / 8 + 1 / 3 * 0.5 / 8)])


def test_debiased_error_is_near_the_true_one_and_keeps_some_bias_where_there_is_none() -> None:
    """300 forecasts of 0.25 and of 0.75: the truth 0.1 away, or on the spot."""
    generator, probabilities = np.random.default_rng(27), np.repeat([0.25, 0.75], 300)

    def errors(shift: float) -> tuple[Floats, Floats, Floats]:
        rows = [
            binary(probabilities.tolist(), (generator.random(600) < probabilities + shift).tolist()) for _ in range(300)
        ]
        return tuple(np.array([function(row)[0] for row in rows]) for function in (ece, ece_debiased, ece_noise_floor))

    raw, debiased, _ = errors(0.1)
    assert debiased.mean() == pytest.approx(0.1, abs=0.003)
    raw, debiased, floor = errors(0.0)
    assert raw.mean() == pytest.approx(floor.mean(), rel=0.08)
    assert debiased.mean() == pytest.approx((2 - np.sqrt(2)) * floor.mean(), rel=0.15)


def test_forecasts_of_nothing_but_0_and_1_have_no_noise() -> None:
    forecasts = binary([0.0, 1.0, 1.0], [0, 1, 0])
    assert ece_noise_floor(forecasts).tolist() == [0]
    assert ece(forecasts) == pytest.approx([1 / 3])
    assert np.isfinite(ece_debiased(forecasts)).all()


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 1.0, 0.25])), min_size=1, max_size=40),
    st.integers(1, 12),
    st.sampled_from(KINDS),
)
def test_murphys_parts_add_up(pairs: list[tuple[int, float]], bins: int, kind: Kind) -> None:
    forecasts = binary([p / 1000 for p, _ in pairs], [happened for _, happened in pairs])
    parts = murphy_decomposition(forecasts, bins, kind)
    total = parts.reliability - parts.resolution + parts.uncertainty
    total = total + parts.within_bin_variance - parts.within_bin_covariance
    assert total == pytest.approx(parts.brier, abs=1e-14)
    assert parts.brier == pytest.approx([np.mean([(p / 1000 - happened) ** 2 for p, happened in pairs])])


@pytest.mark.parametrize("kind", KINDS)
def test_murphys_parts_add_up_to_the_brier_score_whatever_the_options_and_weights(kind: Kind) -> None:
    panel = synthetic(7, 150, seed=28, exclusive=0.5, weighted=True).panel
    parts = murphy_decomposition(panel, 7, kind)
    assert parts.brier == pytest.approx(panel.forecaster_means(brier(panel)), abs=1e-15)
    total = parts.reliability - parts.resolution + parts.uncertainty
    assert total + parts.within_bin_variance - parts.within_bin_covariance == pytest.approx(parts.brier, abs=1e-14)


def test_murphys_parts_by_hand() -> None:
    """Bins 0.2 (0 and 1 came) and 0.7-0.8 (one of one each): f 0.2, 0.75; o 0.5, 0.5; base rate 0.5."""
    parts = murphy_decomposition(binary([0.2, 0.2, 0.7, 0.79], [0, 1, 0, 1]))
    assert parts.uncertainty == pytest.approx([0.25])
    assert parts.resolution == pytest.approx([0])
    assert parts.reliability == pytest.approx([(0.3**2 + 0.245**2) / 2])
    assert parts.within_bin_variance == pytest.approx([0.045**2 / 2])
    assert parts.within_bin_covariance == pytest.approx([2 * (0.045 * 0.5) / 2])


def test_uncertainty_is_the_variance_of_a_coin_of_the_base_rate() -> None:
    panel = synthetic(1, 300, seed=29, exclusive=0, options=(1,)).panel
    rate = panel.outcome.mean()
    assert murphy_decomposition(panel).uncertainty == pytest.approx([rate * (1 - rate)])


def test_sharpness_by_hand() -> None:
    forecasts = panel(
        rows_of("ann", "q", [1.0, 0.0], 0)
        + rows_of("ann", "r", [0.6, 0.2, 0.2], 0, weight=3.0)
        + rows_of("bob", "q", [0.5, 0.5], 0)
        + rows_of("cy", "s", [0.9, 0.5, 0.4], [1, 1, 0], exclusive=False)
    )
    first = (3 * ((0.6 - 1 / 3) ** 2 + 2 * (0.2 - 1 / 3) ** 2) / 3 + 0.25) / 4
    assert sharpness(forecasts) == pytest.approx([first, 0, (0.16 + 0.01) / 3])


def test_bins_belong_to_one_panel_their_number_and_kind() -> None:
    original = binary([0.1, 0.2, 0.3, 0.9], [0, 1, 1, 1])
    before = bin_pairs(original, 2, "width")
    assert bin_pairs(original, 2, "width") is before
    assert before.code.tolist() == [0, 0, 0, 1]
    assert bin_pairs(original, 4, "width").code.tolist() == [0, 0, 1, 3]
    assert bin_pairs(original, 2, "count").code.tolist() == [0, 0, 1, 1]
    changed = replace(original, probability=np.array([0.9, 0.6, 0.2, 0.1]))
    assert bin_pairs(changed, 2, "width").code.tolist() == [1, 1, 0, 0]
