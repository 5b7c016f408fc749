"""Rules of every metric: nothing gives nothing, names and order do not matter, bad arguments are named."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from forecast_rank.metrics import pm_rank_compatibility as pm_rank
from forecast_rank.metrics import pm_rank_returns
from forecast_rank.metrics.bradley_terry import exponential_form, pairwise_ability, pool_weights
from forecast_rank.metrics.calibration import (
    ece,
    ece_noise_floor,
    max_calibration_error,
    murphy_decomposition,
    reliability_curve,
    sharpness,
)
from forecast_rank.metrics.calibration_error import ece_debiased
from forecast_rank.metrics.difficulty_adjustment import adjusted_brier
from forecast_rank.metrics.discrimination import auc, auc_sums
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.irt import discrimination_weights, fit_irt, weighted_brier
from forecast_rank.metrics.paired_tests import paired_tests, questions_needed
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import (
    accuracy,
    brier,
    brier_sum,
    by_category,
    infinite_losses,
    log_score,
    spherical,
)
from forecast_rank.metrics.returns import (
    average_return,
    cash_stakes,
    certainty_equivalent,
    log_wealth,
    return_stream,
    ruins,
    stakes,
)
from forecast_rank.metrics.skill import (
    alpha,
    alpha_mean,
    brier_skill,
    brier_skill_against,
    market_brier,
    overround,
    uniform_brier,
)
from forecast_rank.metrics.uncertainty import (
    bca_interval,
    bootstrap_means,
    cluster_se,
    event_sums,
    percentile_interval,
    resample_counts,
)
from tests.forecast_rank.panels import EMPTY, long_rows, panel, relabelled, rows_of, synthetic

SCORES: dict[str, Callable[[Panel], Floats]] = {
    "brier": brier, "brier_sum": brier_sum, "log": log_score, "spherical": spherical, "accuracy": accuracy,
    "alpha": alpha, "overround": overround, "market_brier": market_brier, "uniform_brier": uniform_brier,
    "return": lambda p: average_return(p, 0.5), "risk neutral": lambda p: average_return(p, 0),
    "logarithmic": lambda p: average_return(p, 1), "log_wealth": lambda p: log_wealth(p, 0.5),
    "cash": lambda p: cash_stakes(p, 0.5).cash, "risk neutral cash": lambda p: cash_stakes(p, 0).cash,
}  # fmt: skip
"""Functions of a panel that give a value for each forecast."""
FIGURES: dict[str, Callable[[Panel], Any]] = {
    **{name: lambda p, score=score: p.forecaster_means(score(p)) for name, score in SCORES.items()},
    "infinite_losses": infinite_losses, "ruins": lambda p: ruins(p, 0),
    "certainty_equivalent": lambda p: certainty_equivalent(p, 0.5),
    "ece": ece, "ece by count": lambda p: ece(p, kind="count"), "ece_debiased": ece_debiased,
    "ece_noise_floor": ece_noise_floor, "noise floor by count": lambda p: ece_noise_floor(p, kind="count"),
    "max_calibration_error": max_calibration_error, "sharpness": sharpness,
    "debiased by count": lambda p: ece_debiased(p, kind="count"),
    "murphy": lambda p: np.stack(murphy_decomposition(p), axis=1),
    "murphy by count": lambda p: np.stack(murphy_decomposition(p, kind="count"), axis=1),
    "curve": lambda p: reliability_curve(p).forecast,
    "alpha_mean": lambda p: np.stack(alpha_mean(p), axis=1),
    "skill": lambda p: brier_skill_against(p, uniform_brier(p)), "cluster_se": lambda p: cluster_se(scored(p)),
    "adjusted": lambda p: adjusted_brier(p, brier(p)).value, "adjusted_se": lambda p: adjusted_brier(p, brier(p)).se,
    "auc": auc, "auc_se": lambda p: cluster_se(auc_sums(p)),
    "pool_weights": lambda p: pool_weights(p).weight, "exponential_form": lambda p: exponential_form(p).value,
    "pairwise_ability": lambda p: pairwise_ability(p).value, "pairwise_se": lambda p: pairwise_ability(p).se,
    "pm_rank pool": pm_rank.pool_weights, "pm_rank calibration": pm_rank.calibration,
}  # fmt: skip
"""Functions of a panel that give a value, or a row, for each forecaster."""
RESAMPLED: dict[str, Callable[[Panel], Any]] = {
    "percentile": lambda p: percentile_interval(drawn(p)), "bca": lambda p: bca_interval(drawn(p), scored(p)),
}  # fmt: skip
"""Functions of a panel that draw resamples of its events in their order."""
UNSPLIT = (*SCORES, "ece", "murphy", "sharpness", "alpha_mean", "skill", "cluster_se", "adjusted")
"""Figures that stay when a forecast is given twice with half its weight."""
COUNTS = ("infinite_losses", "ruins")
PENALISED = ("pool_weights", "exponential_form", "pairwise_ability", "pairwise_se")
"""Figures with a prior, beside which the scale of all weights matters."""


def odd_panel(seed: int) -> Panel:
    """Forecasts of weighted questions of both kinds in events of two, some missing, some without a price."""
    return synthetic(6, 25, seed, missing=0.4, exclusive=0.5, priced=0.8, weighted=True, event_size=2).panel


ODD = odd_panel(1)
ONE = panel(rows_of("ann", "q", [0.9, 0.1], 0, odds=[0.5, 0.5]))


def scored(forecasts: Panel) -> Any:
    return event_sums(forecasts, brier(forecasts))


def drawn(forecasts: Panel) -> Floats:
    sums = scored(forecasts)
    return bootstrap_means(sums, resample_counts(sums.sums.shape[1], 20))


def test_blocks_of_any_size_give_the_same_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {name: score(ODD) for name, score in SCORES.items()}
    for cells in (1, 40):
        monkeypatch.setattr("forecast_rank.metrics.blocks.CELLS", cells)
        for name, score in SCORES.items():
            assert score(ODD) == pytest.approx(expected[name], abs=1e-15, nan_ok=True), name


def test_who_has_no_forecasts_has_no_figures() -> None:
    everybody = synthetic(3, 20, 1, overround=0.1).panel
    others = everybody.take(everybody.forecaster != 1)
    for name, figure in (FIGURES | RESAMPLED).items():
        assert len(figure(EMPTY)) == 0, name
        if name not in COUNTS:
            values = figure(others)
            assert np.isnan(values[1]).all(), name
            assert not np.isnan(values[0]).all(), name


@pytest.mark.parametrize("seed", range(4))
def test_names_and_order_do_not_matter(seed: int) -> None:
    forecasts = odd_panel(seed)
    relabelled_panel, new_forecasters, _ = relabelled(forecasts, seed)
    for name, figure in FIGURES.items():
        expected = figure(forecasts)[new_forecasters]
        assert figure(relabelled_panel) == pytest.approx(expected, rel=1e-5, abs=1e-6, nan_ok=True), name


def test_scale_of_all_weights_does_not_matter() -> None:
    scaled = replace(ODD, weight=7 * ODD.weight)
    for name, figure in FIGURES.items():
        if name not in PENALISED:
            assert figure(scaled) == pytest.approx(figure(ODD), rel=1e-6, abs=1e-9, nan_ok=True), name


def test_forecast_split_in_two_of_half_the_weight_is_the_same_forecast() -> None:
    rows = long_rows(synthetic(4, 25, 2, missing=0.2, exclusive=0.5, event_size=2).panel)
    split = [row | {"question": row["question"] + part, "weight": 0.5} for part in ("", " again") for row in rows]
    once, twice = panel(rows), panel(split)
    for name in UNSPLIT:
        assert FIGURES[name](twice) == pytest.approx(FIGURES[name](once), nan_ok=True), name


@pytest.mark.parametrize("exclusive", [0.0, 0.5, 1.0])
def test_scores_of_a_panel_are_those_of_its_forecasts_one_by_one(exclusive: float) -> None:
    full_panel = synthetic(3, 15, seed=5, exclusive=exclusive, priced=0.7).panel
    parts = [full_panel.take(np.arange(len(full_panel)) == i) for i in range(len(full_panel))]
    for name, score in SCORES.items():
        alone = [value for part in parts for value in score(part)]
        assert score(full_panel) == pytest.approx(alone, abs=1e-12, nan_ok=True), name


@pytest.mark.parametrize("happened", [True, False])
@pytest.mark.parametrize("p", [0.0, 0.01, 0.29, 0.5, 0.6, 0.95, 1.0])
def test_binary_question_is_the_same_as_one_option_or_as_two(p: float, happened: bool) -> None:
    single, double = [], []
    for forecaster, chance in (("ann", p), ("bob", 0.6)):
        single += rows_of(forecaster, "q", [chance], [happened], [0.72], [0.31], exclusive=False)
        double += rows_of(forecaster, "q", [chance, 1 - chance], int(not happened), [0.72, 0.31], [0.31, 0.72])
    one_option, two_options = panel(single), panel(double)
    for name in (*SCORES, "certainty_equivalent", "pool_weights", "exponential_form"):
        expected = FIGURES[name](two_options)
        assert FIGURES[name](one_option) == pytest.approx(expected, abs=1e-9, nan_ok=True), name


@pytest.mark.parametrize("name", [*PENALISED, "adjusted", "adjusted_se"])
@pytest.mark.parametrize(("rows", "columns"), [(12, 80), (60, 8)])
def test_sparse_tables_and_small_blocks_say_the_same(
    name: str, rows: int, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = synthetic(rows, columns, 9, missing=0.6, exclusive=0.5, event_size=2).panel
    full_fit = FIGURES[name](forecasts)
    monkeypatch.setattr("forecast_rank.metrics.cluster_robust.DENSE", 0)
    monkeypatch.setattr("forecast_rank.metrics.pairwise_comparisons.BLOCK", 100)
    monkeypatch.setattr("forecast_rank.metrics.difficulty_adjustment.BLOCK", 20)
    assert FIGURES[name](forecasts) == pytest.approx(full_fit, rel=1e-6, abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_no_forecasts_have_no_stakes_and_no_stream(gamma: float) -> None:
    for staking in (stakes, cash_stakes):
        assert [part.shape for part in staking(EMPTY, gamma)] == [(0,)] * 3
    stream = return_stream(EMPTY, average_return(EMPTY, gamma), 10)
    assert (stream.questions.shape, stream.means.shape) == ((0,), (0, 0))


@pytest.mark.parametrize(
    ("call", "name"),
    [
        *((lambda f=function, aversion=gamma: f(ONE, aversion), "gamma")
          for function in (stakes, average_return, cash_stakes, log_wealth, certainty_equivalent)
          for gamma in (-0.1, 1.1, float("nan"))),
        (lambda: return_stream(ONE, np.zeros(1), 0), "step"),
        (lambda: return_stream(ONE, np.zeros(2), 1), "values"),
        (lambda: by_category(ONE, np.zeros(2)), "values"),
        (lambda: event_sums(ONE, np.zeros(3)), "values: one per forecast, 1"),
        (lambda: paired_tests(ONE, np.zeros(3)), "values: one per forecast, 1"),
        (lambda: adjusted_brier(EMPTY, np.zeros(1)), "values"),
        (lambda: ece(ONE, 0), "bins"),
        (lambda: murphy_decomposition(ONE, 10, "other"), "kind"),
        (lambda: reliability_curve(ONE, level=1.0), "level"),
        *((lambda bound=clip: log_score(ONE, bound), "clip") for clip in (-0.1, 1.0)),
        (lambda: brier_skill([-0.1], [0.25]), "own"),
        (lambda: brier_skill([0.1], [-0.25]), "reference"),
        (lambda: brier_skill_against(EMPTY, np.ones(2)), "reference"),
        (lambda: pool_weights(EMPTY, -1.0), "pseudo_count"),
        (lambda: exponential_form(EMPTY, 0.0), "ridge"),
        (lambda: pairwise_ability(EMPTY, float("nan")), "ridge"),
        (lambda: fit_irt(EMPTY, "everything"), "integrated"),
        (lambda: discrimination_weights(ONE, fit_irt(ONE), folds=1), "folds"),
        (lambda: weighted_brier(ONE, np.zeros(3)), "weights"),
        (lambda: weighted_brier(ONE, np.full(1, -1.0)), "weights"),
        (lambda: resample_counts(3, 0), "resamples"),
        (lambda: resample_counts(-1, 2), "events"),
        (lambda: questions_needed(10, 0.1, difference=0.0), "difference"),
        (lambda: questions_needed(10, 0.1, difference=float("nan")), "difference"),
        (lambda: questions_needed(10, 0.1, power=1.0), "power"),
        (lambda: questions_needed(10, 0.1, alpha=5.0), "alpha"),
        (lambda: from_arrays([[[0.5, 0.5]]], [[1, 0], [0, 1]]), "outcome"),
        (lambda: from_arrays([[[0.5, 0.5]]], [[1, 0]], odds=[[0.5]]), "odds"),
        (lambda: pm_rank_returns.average_return(ONE, 2), "gamma"),
        (lambda: pm_rank_returns.average_return(ONE, 0, "other"), "mode"),
        (lambda: pm_rank.calibration(ONE, 1), "bins"),
        (lambda: pm_rank.calibration(ONE, kind="other"), "kind"),
        (lambda: pm_rank.weighted_brier(ONE, np.ones(3)), "discrimination"),
    ],
)  # fmt: skip
def test_bad_argument_is_named(call: Callable[[], object], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        call()
