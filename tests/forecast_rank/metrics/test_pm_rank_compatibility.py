"""pm_rank's definitions against what pm_rank 0.3.1 itself gave on a set of forecasts."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from forecast_rank.metrics import pm_rank_compatibility as pm_rank
from forecast_rank.metrics import pm_rank_returns as returns
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel
from forecast_rank.metrics.returns import average_return
from tests.captured import CAPTURED
from tests.forecast_rank.panels import EMPTY, panel, rows_of, synthetic

ORACLE = CAPTURED / "pm_rank"
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
NUMBERS = ("probability", "outcome", "odds", "no_odds")


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """The figures that pm_rank 0.3.1 printed, by its names."""
    return json.loads((ORACLE / "S.pm_rank-0.3.1.json").read_text())["metrics"]


@pytest.fixture(scope="module")
def forecasts(expected: dict[str, Any]) -> Panel:
    with (ORACLE / "S.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return panel({**row, **{name: float(row[name]) for name in NUMBERS}, "closed_at": np.nan} for row in rows)


def assert_close(values: Floats, forecasts: Panel, scores: dict[str, float], within: float = 1e-9) -> None:
    assert dict(zip(forecasts.forecasters, values, strict=True)) == pytest.approx(scores, rel=within, abs=within)


@pytest.mark.captured
def test_the_set_is_whole(forecasts: Panel) -> None:
    assert (len(forecasts), len(forecasts.forecasters), len(forecasts.questions)) == (214, 6, 40)


@pytest.mark.captured
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("brier", pm_rank.brier),
        ("log", pm_rank.log),
        ("log_clip1e-6", partial(pm_rank.log, clip=1e-6)),
        ("spherical", pm_rank.spherical),
        ("aver_num_money_3", lambda forecasts: 3 * pm_rank.mean_return(forecasts)),
        ("calibration_quantile_10", partial(pm_rank.calibration, kind="quantile")),
        ("gbt_default", pm_rank.pool_weights),
        ("gbt_5000", partial(pm_rank.pool_weights, sweeps=5000, threshold=1e-12)),
    ],
)
def test_figures_of_each_forecaster(
    forecasts: Panel, expected: dict[str, Any], name: str, function: Callable[[Panel], Floats]
) -> None:
    assert_close(function(forecasts), forecasts, expected[name]["scores"])


@pytest.mark.captured
def test_brier_of_each_category(forecasts: Panel, expected: dict[str, Any]) -> None:
    for code, name in enumerate(forecasts.questions.category_names):
        part = forecasts.take(forecasts.questions.category[forecasts.question] == code)
        values = dict(zip(part.forecasters, pm_rank.brier(part), strict=True))
        assert values == pytest.approx(expected["brier_by_category"][name]["scores"], abs=1e-9)


@pytest.mark.captured
@pytest.mark.parametrize("gamma", GAMMAS)
def test_returns_in_every_mode(forecasts: Panel, expected: dict[str, Any], gamma: float) -> None:
    modes = {"default": "default", "approximate": "approx", "yes_only": "seed_yes_only", "market_level": None}
    for mode, name in modes.items():
        within = 1e-5 if mode == "approximate" else 1e-9
        entry = expected[f"aver_{name}_g{gamma}" if name else f"aver_market_level_fixed_g{gamma}"]
        if "error" in entry:
            assert (mode, gamma) == ("default", 1.0)
            assert np.isfinite(pm_rank.mean_return(forecasts, gamma, mode)).all()
        else:
            assert_close(pm_rank.mean_return(forecasts, gamma, mode), forecasts, entry["scores"], within)


@pytest.mark.captured
@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("increment", [10, 100])
def test_streams(forecasts: Panel, expected: dict[str, Any], gamma: float, increment: int) -> None:
    for mode, name in {"default": "default", "approximate": "approx", "yes_only": "seed_yes_only"}.items():
        entry = expected[f"stream_{name}_g{gamma}_batch{increment}"]
        if "error" in entry:
            continue
        steps = returns.stream(forecasts, returns.average_return(forecasts, gamma, mode), increment)
        assert steps.shape == (6, len(entry["curve"]))
        for step, scores in zip(steps.T, entry["curve"], strict=True):
            assert_close(step, forecasts, scores, 1e-5 if mode == "approximate" else 1e-9)


@pytest.mark.captured
def test_the_suites_own_return_is_its_yes_only_form_and_splits_what_ties_at_0(
    forecasts: Panel, expected: dict[str, Any]
) -> None:
    for gamma in GAMMAS[1:]:
        figures = forecasts.forecaster_means(average_return(forecasts, gamma))
        assert_close(figures, forecasts, expected[f"aver_seed_yes_only_g{gamma}"]["scores"])
    tied = panel(rows_of("ann", "q", [0.5, 0.5], 1, odds=[0.5, 0.5]))
    assert returns.average_return(tied, 0, "yes_only").tolist() == [0.0]
    assert average_return(tied, 0).tolist() == [1.0]


@pytest.mark.captured
def test_the_suites_own_return_where_options_are_not_exclusive_is_the_market_level_one_put_right(
    forecasts: Panel, expected: dict[str, Any]
) -> None:
    questions = replace(forecasts.questions, exclusive=np.zeros(len(forecasts.questions), dtype=bool))
    loose = replace(forecasts, questions=questions)
    for gamma in GAMMAS[1:]:
        figures = loose.forecaster_means(average_return(loose, gamma))
        assert_close(figures, loose, expected[f"aver_market_level_fixed_g{gamma}"]["scores"])


@pytest.mark.parametrize("mode", ["default", "approximate", "yes_only", "market_level"])
def test_without_both_prices_there_is_no_return(mode: pm_rank.Mode) -> None:
    forecasts = panel(rows_of("ann", "q", [0.9, 0.1], 0) + rows_of("ann", "r", [0.6, 0.4], 0, odds=[0.5, 0.55]))
    for gamma in (0.0, 0.001, 0.5, 1.0):
        values = returns.average_return(forecasts, gamma, mode)
        assert np.isnan(values).tolist() == [True, False]
        assert returns.average_return(EMPTY, gamma, mode).shape == (0,)


def test_prices_are_clipped() -> None:
    forecasts = panel(rows_of("ann", "q", [0.9, 0.1], 1, odds=[0.9995, 0.0005], no_odds=[0.002, 0.9999]))
    assert returns.average_return(forecasts, 0, "yes_only") == pytest.approx([200])


def test_pool_weights_survive_what_makes_all_of_pm_ranks_undefined() -> None:
    forecasts = panel(
        rows_of("ann", "q", [0.0, 1.0], 0) + rows_of("ann", "r", [0.9, 0.1], 0) + rows_of("bob", "r", [0.6, 0.4], 0)
    )
    weights = pm_rank.pool_weights(forecasts, sweeps=1)
    assert weights == pytest.approx([1.2, 0.8])
    assert pm_rank.pool_weights(EMPTY).shape == (0,)


def test_everything_by_name() -> None:
    panel = synthetic(5, 60, seed=6).panel
    values = pm_rank.scores(panel, (0, 0.25))
    assert list(values) == [
        "brier", "log", "spherical", "average_return:0", "average_return:0.25", "calibration", "pool_weight",
    ]  # fmt: skip
    assert all(value.shape == (5,) and np.isfinite(value).all() for value in values.values())
    assert all(value.shape == (0,) for value in pm_rank.scores(EMPTY).values())


def test_errors_of_the_package_are_put_right() -> None:
    """0.3 and 0.35, of which one came, make one bin, and weights are those of the answered questions."""
    forecasts = panel(rows_of("ann", "q", [0.3, 0.35], [1, 0], exclusive=False))
    assert pm_rank.calibration(forecasts) == pytest.approx([0.175])
    weighted = panel(rows_of("ann", "q", [0.9, 0.1], 0, weight=1.0) + rows_of("ann", "r", [0.5, 0.5], 0, weight=3.0))
    assert pm_rank.brier(weighted) == pytest.approx([(0.99 + 3 * 0.75) / 4])
    single = panel(
        rows_of("ann", "q", [0.9, 0.1], 0) + rows_of("ann", "r", [0.5, 0.5], 0) + rows_of("bob", "r", [0.5, 0.5], 0)
    )
    discrimination = np.array([1.0, 3.0])  # clipped to quartiles 1.5 and 2.5
    assert pm_rank.weighted_brier(single, discrimination) == pytest.approx([(1.5 * 0.99 + 2.5 * 0.75) / 4, 0.75])
