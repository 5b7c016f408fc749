"""Pool weights, the exponential form and pairwise ability."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.bradley_terry import exponential_form, pairwise_ability, pool_weights
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.pairwise_comparisons import pairwise_comparisons, win_matrix
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import brier
from tests.forecast_rank.panels import answers, long_rows, panel, rows_of, synthetic
from tests.lazy_modules import linear_model, optimize, sm, special
from tests.selection import chosen


def given_to_what_happened(forecasts: Panel) -> Floats:
    """The probability of each forecast for the option that happened, as (questions, forecasters), NaN if silent."""
    table = forecasts.matrix(forecasts.sum_cells(forecasts.probability * forecasts.outcome)).T
    return table[~np.isnan(table).all(axis=1)]


def question_weights(forecasts: Panel) -> Floats:
    """The mean weight of the forecasts on each question that has any."""
    table = forecasts.matrix(forecasts.weight)
    return np.nanmean(table[:, ~np.isnan(table).all(axis=0)], axis=0)


def pool_likelihood(forecasts: Panel, weight: Floats, pseudo: float = 0.0) -> float:
    """Of a pool on exclusive questions, written down directly; pseudo-counts included, not divided by anything."""
    won = given_to_what_happened(forecasts)
    present = ~np.isnan(won)
    ratio = np.nansum(np.where(present, won, 0) * weight, axis=1) / (present * weight).sum(axis=1)
    return float(question_weights(forecasts) @ np.log(ratio) + pseudo * np.log(weight / weight.sum()).sum())


def sweeps(forecasts: Panel, rounds: int) -> Floats:
    """The known package's way: theta <- theta W / D, over and over."""
    won = given_to_what_happened(forecasts)
    present = (~np.isnan(won)).astype(float)
    won, weight = np.nan_to_num(won), np.ones(won.shape[1])
    for _ in range(rounds):
        weight *= (won.T @ (1 / (won @ weight))) / (present.T @ (1 / (present @ weight)))
        weight /= weight.sum()
    return weight


# Pool weights


def test_two_forecasters_share_by_the_root_of_the_likelihoods_slope() -> None:
    """x of ann, 1 - x of bob, who says 0.5: 3 wins at 0.8 and 1 at 0.2 mean that 0.5 + 0.3 x = 0.75."""
    rows = [row for k in range(4) for row in rows_of("ann", f"q{k}", [0.8, 0.2], int(k == 0))]
    rows += [row for k in range(4) for row in rows_of("bob", f"q{k}", [0.5, 0.5], int(k == 0))]
    pool = pool_weights(panel(rows), pseudo_count=0.0)
    assert pool.weight == pytest.approx([5 / 6, 1 / 6], abs=1e-7)
    assert pool.converged
    assert pool.log_likelihood == pytest.approx((3 * np.log(0.75) + np.log(0.25)) / 4)


@pytest.mark.parametrize("pseudo", [0.0, 0.01, 1.0])
def test_pool_weights_are_the_maximum_that_brute_force_finds(pseudo: float) -> None:
    forecasts = synthetic(5, 60, 1, missing=0.25, weighted=True).panel
    pool = pool_weights(forecasts, pseudo)
    optimum = optimize.minimize(
        lambda x: -pool_likelihood(forecasts, np.exp(x - x.max()), pseudo), np.zeros(5), options={"gtol": 1e-9}
    )
    best = pool_likelihood(forecasts, np.exp(optimum.x - optimum.x.max()), pseudo)
    assert pool_likelihood(forecasts, pool.weight, pseudo) >= best - 1e-7
    assert pool.converged
    if pseudo:
        assert pool.weight == pytest.approx(np.exp(optimum.x) / np.exp(optimum.x).sum(), abs=1e-4)


def test_many_sweeps_of_the_known_package_end_there_too() -> None:
    forecasts = synthetic(8, 300, 2, missing=0.0).panel
    pool = pool_weights(forecasts, pseudo_count=0.0)
    swept = sweeps(forecasts, 20_000)
    assert pool.weight == pytest.approx(swept, abs=2e-3)
    mean = pool_likelihood(forecasts, swept) / 300
    assert mean <= pool.log_likelihood + 1e-10
    assert pool.log_likelihood - mean < 1e-6


@given(seed=st.integers(0, 10_000))
def test_no_other_weights_beat_the_pool_by_more_than_the_gap(seed: int) -> None:
    forecasts = synthetic(6, 40, seed, missing=0.0).panel
    pool = pool_weights(forecasts, pseudo_count=0.0)
    assert pool.kkt_gap <= 1e-9
    vectors = np.random.default_rng(seed).dirichlet(np.full(6, 0.5), 50)
    assert max(pool_likelihood(forecasts, rival) for rival in vectors) / 40 <= pool.log_likelihood + pool.kkt_gap


def test_a_clone_halves_the_weight_and_a_ranking_by_it_would_drop_the_best() -> None:
    forecasts = synthetic(4, 300, 3, missing=0.0).panel
    alone = pool_weights(forecasts)
    rows = long_rows(forecasts)
    joint_panel = panel(rows + [row | {"forecaster": "clone"} for row in rows if row["forecaster"] == "f00"])
    weight = dict(zip(joint_panel.forecasters, pool_weights(joint_panel).weight, strict=True))
    assert weight["f00"] == pytest.approx(weight["clone"], abs=1e-9)
    assert weight["f00"] == pytest.approx(alone.weight[0] / 2, abs=1e-3)


def test_options_that_do_not_exclude_each_other_are_contests_of_their_own() -> None:
    """A question of two such options counts as two questions of half the weight; a fraction as two outcomes."""
    joint = from_arrays([[[0.8, 0.3], [0.4, 0.9]], [[0.6, 0.5], [0.5, 0.5]]], [[1, 0], [0, 1]], exclusive=False)
    apart = from_arrays(
        [[[0.8], [0.3], [0.4], [0.9]], [[0.6], [0.5], [0.5], [0.5]]],
        [[1], [0], [0], [1]],
        exclusive=False,
        weight=np.full((2, 4), 0.5),
    )
    assert pool_weights(joint).weight == pytest.approx(pool_weights(apart).weight, abs=1e-8)
    assert exponential_form(joint).value == pytest.approx(exponential_form(apart).value)
    part = panel(rows_of("ann", "q", [0.7, 0.3], [0.25, 0.75]) + rows_of("bob", "q", [0.4, 0.6], [0.25, 0.75]))
    split = [("ann", [0.7, 0.3]), ("bob", [0.4, 0.6])]
    split_rows = [
        row for name, p in split for k in (0, 1) for row in rows_of(name, f"q{k}", p, k, weight=(0.25, 0.75)[k])
    ]
    assert pool_weights(part).weight == pytest.approx(pool_weights(panel(split_rows)).weight, abs=1e-8)


def test_what_all_called_impossible_is_left_out_and_counted() -> None:
    rows = rows_of("ann", "q", [0.0, 1.0], 0) + rows_of("bob", "q", [0.0, 1.0], 0)
    rows += rows_of("ann", "r", [0.9, 0.1], 0) + rows_of("bob", "r", [0.0, 1.0], 0)
    pool = pool_weights(panel(rows), pseudo_count=0.0)
    assert pool.impossible == 1
    assert pool.weight == pytest.approx([1.0, 0.0], abs=1e-7)
    assert pool.log_likelihood == pytest.approx(np.log(0.9), abs=1e-7)
    empty_fit = pool_weights(panel(rows[:4]))
    assert np.isnan(empty_fit.weight).all()
    assert not empty_fit.converged


def test_weights_sum_to_one_within_each_linked_part() -> None:
    rows = rows_of("ann", "p", [0.5, 0.5], 0) + rows_of("bob", "p", [0.6, 0.4], 0)
    rows += rows_of("cyd", "q", [0.5, 0.5], 0) + rows_of("dan", "q", [0.7, 0.3], 0) + rows_of("cyd", "r", [0.5, 0.5], 0)
    pool = pool_weights(panel(rows))
    assert pool.component.tolist() == [1, 1, 0, 0]
    assert pool.weight[:2].sum() == pytest.approx(1)
    assert pool.weight[2:].sum() == pytest.approx(1)
    assert pool.converged


@pytest.mark.parametrize("seed", chosen([0], range(4)))
def test_sparse_panels_converge_too(seed: int) -> None:
    forecasts = synthetic(20, 100, seed, missing=0.85).panel
    pool = pool_weights(forecasts)
    assert pool.converged
    optimum = optimize.minimize(lambda x: -pool_likelihood(forecasts, np.exp(x - x.max()), 0.01), np.zeros(20))
    assert pool_likelihood(forecasts, pool.weight, 0.01) >= -optimum.fun - 1e-6


# The exponential form


def test_exponential_form_is_ridge_regression_of_who_won() -> None:
    """scikit-learn needs both classes: every contest is given twice, once turned round, at half the weight."""
    forecasts = synthetic(5, 80, 4, missing=0.2, weighted=True).panel
    won = given_to_what_happened(forecasts)
    sides = np.nan_to_num(2 * won - 1)
    weight = question_weights(forecasts)
    model = linear_model.LogisticRegression(C=1 / 2.0, fit_intercept=False, tol=1e-10, max_iter=1000)
    model.fit(np.concatenate([sides, -sides]), np.repeat([1, 0], len(sides)), np.tile(weight / 2, 2))
    fit = exponential_form(forecasts, ridge=2.0)
    assert fit.value == pytest.approx(model.coef_[0], abs=1e-5)
    assert fit.converged
    assert fit.slope <= 1e-9


def test_a_forecaster_who_is_always_right_is_held_by_the_ridge_alone() -> None:
    forecasts = from_arrays(np.full((1, 10, 1), 0.9), np.ones((10, 1)), exclusive=False)
    loose, tight = exponential_form(forecasts, ridge=1e-4).value, exponential_form(forecasts, ridge=10.0).value
    assert 10 * 0.8 * special.expit(-0.8 * loose) == pytest.approx(1e-4 * loose, rel=1e-4)
    assert tight < 1 < loose


# Pairwise ability


def brute_wins(forecasts: Panel) -> Floats:
    """Game by game."""
    table, weight = forecasts.matrix(brier(forecasts)), forecasts.matrix(forecasts.weight)
    rows, columns = table.shape
    wins = np.zeros((rows, rows))
    for q in range(columns):
        answered = np.flatnonzero(~np.isnan(table[:, q]))
        for i in answered:
            for j in answered:
                if i != j:
                    won = 0.5 if abs(table[i, q] - table[j, q]) < 1e-9 else float(table[i, q] < table[j, q])
                    wins[i, j] += won * np.nanmean(weight[:, q]) / (len(answered) - 1)
    return wins


def test_pairwise_ability_is_bradley_and_terrys_maximum() -> None:
    """Against statsmodels' logistic regression on the games of four forecasters, the last at 0; next to no ridge."""
    forecasts = synthetic(4, 60, 5, missing=0.3, weighted=True).panel
    wins = brute_wins(forecasts)
    design, share, games = [], [], []
    for i in range(4):
        for j in range(i + 1, 4):
            design.append(np.eye(4)[i, :3] - np.eye(4)[j, :3])
            games.append(wins[i, j] + wins[j, i])
            share.append(wins[i, j] / games[-1])
    model = sm.GLM(share, np.array(design), family=sm.families.Binomial(), freq_weights=np.array(games)).fit()
    theta = np.append(model.params, 0.0)
    fit = pairwise_ability(forecasts, ridge=1e-9)
    assert fit.value == pytest.approx(theta - theta.mean(), abs=1e-6)


@pytest.mark.parametrize("cells", [1, 40, 10**6])
def test_wins_are_those_of_every_game_whatever_the_size_of_the_block(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    forecasts = synthetic(5, 40, 6, missing=0.4, weighted=True).panel
    monkeypatch.setattr("forecast_rank.metrics.blocks.CELLS", cells)
    answers = np.bincount(forecasts.question, minlength=40)
    shared = forecasts.take(answers[forecasts.question] > 1)
    wins = win_matrix(pairwise_comparisons(shared, shared.forecaster), 5)
    assert wins == pytest.approx(brute_wins(forecasts), abs=1e-12)


def test_equal_scores_are_half_a_win_each_however_they_were_rounded() -> None:
    """0.1 + 0.2 is not 0.3 in binary: the scores differ in the last bit and still tie."""
    ability = pairwise_ability(panel(answers(ann=[0.3] * 3, bob=[0.1 + 0.2, 0.4, 0.2], cyd=[0.3, 0.2, 0.4])))
    assert ability.value == pytest.approx([0, 0, 0], abs=1e-9)
    assert not ability.separable


def test_standard_errors_are_those_of_the_leave_one_event_out_jackknife() -> None:
    forecasts = synthetic(5, 120, 6, missing=0.3, event_size=2).panel
    event = forecasts.questions.event[forecasts.question]
    fit = pairwise_ability(forecasts)
    jackknife = np.stack([pairwise_ability(forecasts.take(event != e)).value for e in range(60)]) - fit.value
    assert fit.se == pytest.approx(np.sqrt(59 / 60 * np.square(jackknife).sum(axis=0)), rel=0.05)


@pytest.mark.thorough
def test_intervals_hold_the_truth_at_the_nominal_rate() -> None:
    """Scores are ranked by true ability plus Gumbel noise: who beats whom follows the model exactly."""
    generator, truth = np.random.default_rng(7), np.linspace(-1, 1, 6)
    hits = []
    for _ in range(150):
        luck = generator.gumbel(size=(6, 100)) + truth[:, None]
        said_of_it = np.where(generator.random((6, 100)) < 0.3, np.nan, special.expit(luck))
        ability = pairwise_ability(from_arrays(said_of_it[:, :, None], np.ones((100, 1)), exclusive=False))
        hits.append(np.abs(ability.value - truth) < 1.96 * ability.se)
    assert 0.925 < np.mean(hits) < 0.97


def test_pairwise_ability_finds_the_order_of_skill() -> None:
    world = synthetic(10, 3000, 8)
    assert np.corrcoef(pairwise_ability(world.panel).value, -world.noise)[0, 1] > 0.95


def test_who_never_loses_is_said_to_be_separable() -> None:
    rows = answers(ann=[0.9] * 6, bob=[0.5, 0.6] * 3, cyd=[0.55] * 6)
    ability = pairwise_ability(panel(rows))
    assert ability.separable
    assert len(set(ability.groups[1:])) == 1
    assert ability.groups[0] not in ability.groups[1:]
    assert np.isnan(ability.se).all()
    assert ability.value[0] > 1 > ability.value[1:].max()
    # One tie with each is enough to bound the distance.
    tied = pairwise_ability(
        panel(rows + [row for n in ("ann", "bob", "cyd") for row in rows_of(n, "tie", [0.5, 0.5], 0)])
    )
    assert not tied.separable
    assert (tied.se > 0).all()


def test_only_the_largest_linked_part_is_compared() -> None:
    rows = [row for q in "pqr" for n, x in (("ann", ord(q) % 3), ("bob", 1)) for row in rows_of(n, q, [x / 4, 0.5], 0)]
    rows += rows_of("cyd", "s", [0.5, 0.5], 0) + rows_of("dan", "s", [0.4, 0.6], 0) + rows_of("eve", "t", [0.4, 0.6], 0)
    ability = pairwise_ability(panel(rows))
    assert ability.components.tolist() == [0, 0, 1, 1, -1]
    assert np.isnan(ability.value).tolist() == [False, False, True, True, True]


def test_a_question_of_many_counts_by_its_forecasts_not_by_its_pairs() -> None:
    """Two against each other on five questions, and both among twenty equals on one: the latter is one game each."""
    rows = answers(ann=[0.6, 0.8, 0.8, 0.8, 0.8], bob=[0.7] * 5)
    crowd = [row for i in range(18) for row in rows_of(f"f{i}", "crowd", [0.5, 0.5], 0)]
    crowd += rows_of("ann", "crowd", [0.5, 0.5], 0) + rows_of("bob", "crowd", [0.5, 0.5], 0)
    ability = pairwise_ability(panel(rows + crowd), ridge=1e-7)
    # 4 of 5 won, 1/19 of a game drawn between them, 18/19 drawn with equals whose ability lies between.
    theta = optimize.minimize(
        lambda x: (
            np.logaddexp(0, -2 * x) * (4 + 0.5 / 19)
            + np.logaddexp(0, 2 * x) * (1 + 0.5 / 19)
            + 18 / 19 * (np.logaddexp(0, -x) + np.logaddexp(0, x))
        ),
        0.1,
    ).x[0]
    assert ability.value[:2] == pytest.approx([-theta, theta] if ability.value[0] < 0 else [theta, -theta], abs=1e-4)


@given(seed=st.integers(0, 10_000))
def test_penalties_grow_with_the_scale_of_all_weights(seed: int) -> None:
    forecasts = synthetic(6, 30, seed, missing=0.4, exclusive=0.5, weighted=True, event_size=2).panel
    scaled = replace(forecasts, weight=3 * forecasts.weight)
    assert pool_weights(scaled, 0.03).weight == pytest.approx(pool_weights(forecasts).weight, abs=1e-6)
    assert exponential_form(scaled, 3.0).value == pytest.approx(exponential_form(forecasts).value, abs=1e-6)
    assert pairwise_ability(scaled, 0.3).se == pytest.approx(pairwise_ability(forecasts).se, rel=1e-5, nan_ok=True)


def test_one_forecaster_and_one_question() -> None:
    alone = panel(rows_of("ann", "q", [0.3, 0.7], 0) + rows_of("ann", "r", [0.6, 0.4], 0))
    assert pool_weights(alone).weight.tolist() == [1.0]
    assert np.isnan(pairwise_ability(alone).value).all()
    single = panel(rows_of("ann", "q", [0.3, 0.7], 0) + rows_of("bob", "q", [0.6, 0.4], 0))
    assert pool_weights(single, 0.0).weight == pytest.approx([0, 1], abs=1e-7)
    fit = pairwise_ability(single)
    assert fit.separable
    assert fit.value[0] == pytest.approx(-fit.value[1])
