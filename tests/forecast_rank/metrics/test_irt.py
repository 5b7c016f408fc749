"""Item response theory: recovery of what is known, intervals at their rate, weights by discrimination."""

import csv
import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.irt import IrtFit, _responses, discrimination_weights, fit_irt, weighted_brier
from forecast_rank.metrics.irt_marginal_over_forecasters import MarginalOverForecasters
from forecast_rank.metrics.irt_marginal_over_questions import ABILITY_SD, MarginalOverQuestions
from forecast_rank.metrics.irt_responses import ANCHORS, IrtResponses, anchor_shares, response, response_distribution
from forecast_rank.metrics.panel import Panel, from_arrays
from tests.captured import CAPTURED
from tests.forecast_rank.panels import EMPTY, panel, relabelled, rows_of, synthetic
from tests.lazy_modules import integrate, special, stats

pytestmark = pytest.mark.slow

SHAPE = np.array([0, -1, -1.4, -1, -0.3, 0])


class Truth(NamedTuple):
    panel: Panel
    ability: Floats
    difficulty: Floats
    discrimination: Floats


def drawn(rows: int, columns: int, seed: int, missing: float = 0.2) -> Truth:
    """IrtResponses drawn from the model itself, as forecasts of what happened that have just these responses."""
    generator = np.random.default_rng(seed)
    ability = generator.normal(size=rows)
    ability = (ability - ability.mean()) / (ability.std() if rows > 1 else 1.0)
    a, b = np.exp(generator.normal(0.2, 0.4, columns)), generator.normal(-3, 3, columns)
    chance = response_distribution(a * (ability[:, None] - b), a[None, :], SHAPE).chance
    place = (generator.random((rows, columns, 1)) > chance.cumsum(axis=2)).sum(axis=2)
    probability = 1 - np.sqrt(1 - ANCHORS[np.minimum(place, 5)])
    probability[generator.random((rows, columns)) < missing] = np.nan
    return Truth(from_arrays(probability[:, :, None], np.ones((columns, 1)), exclusive=False), ability, b, a)


def responses_of(forecasts: Panel) -> IrtResponses:
    columns, question = np.unique(forecasts.question, return_inverse=True)
    rows, event = len(forecasts.forecasters), forecasts.questions.event[forecasts.question]
    weight = forecasts.weight / forecasts.weight.mean()
    return IrtResponses(rows, len(columns), forecasts.forecaster, question, response(forecasts), weight, event)


def covers(value: Floats, truth: Floats, error: Floats) -> Floats:
    """Where an interval of 95 % holds the truth, of those that are there."""
    has_error = ~np.isnan(error)
    return np.abs(value - truth)[has_error] < 1.96 * error[has_error]


# The model


def test_responses_mean_the_same_whatever_the_number_of_options() -> None:
    rows = (
        rows_of("ann", "q", [1.0, 0.0], 1) + rows_of("ann", "r", [1.0, 0, 0, 0], 1) + rows_of("ann", "s", [0.8, 0.2], 0)
    )
    rows += rows_of("ann", "t", [0.8], [1], exclusive=False) + rows_of("ann", "u", [0.8, 0.5], [1, 1], exclusive=False)
    assert response(panel(rows)) == pytest.approx([0, 0, 0.96, 0.96, 1 - (0.04 + 0.25) / 2])


def test_anchor_shares_keep_the_response() -> None:
    values = np.linspace(0, 1, 101)
    shares = anchor_shares(values)
    assert shares @ ANCHORS == pytest.approx(values)
    assert shares.sum(axis=1) == pytest.approx(1)
    assert (shares > 0).sum(axis=1).max() == 2


def test_with_the_end_anchors_alone_the_law_is_the_two_parameter_logistic_model() -> None:
    """Between 0 and 1 the odds are exp(a (theta - b)), whatever the shape."""
    chance = response_distribution(np.array(1.7), np.array(2.0), SHAPE).chance
    assert chance[5] / chance[0] == pytest.approx(np.exp(1.7))


@pytest.mark.parametrize(
    ("value", "prior"),
    [
        ([0.95, 0.6, 0.3], (-1.0, 2.0, 0.4)),
        ([0.95, 0.9, 0.8], (-4.7, 0.65, 0.05)),
        ([1.0, 1.0, 1.0], (-11.0, 1.2, 0.1)),
        ([1.0, 1.0, 1.0], (-2.0, 8.0, 0.3)),
    ],
)
def test_a_questions_likelihood_and_difficulty_are_integrals(
    value: list[float], prior: tuple[float, float, float]
) -> None:
    """Adaptive integration over the difficulty of three responses: also where all are right and the prior is narrow."""
    theta, (m, s, t), no_answers = np.array([0.8, 0.1, -0.9]), prior, np.zeros(3, dtype=np.int64)
    model = MarginalOverQuestions(IrtResponses(3, 1, np.arange(3), no_answers, np.array(value), np.ones(3), no_answers))
    z = np.concatenate([theta, SHAPE[1:-1], [m, np.log(s), np.log(t)]])
    shares = anchor_shares(np.array(value))
    nodes, masses = np.polynomial.hermite_e.hermegauss(20)

    def likelihood(b: float) -> float:
        power = np.exp(t * nodes)[:, None, None] * (ANCHORS * (theta[:, None] - b) - SHAPE)
        logs = (shares * power).sum(axis=(1, 2)) - special.logsumexp(power, axis=2).sum(axis=1)
        return float(masses @ np.exp(logs) / masses.sum() * stats.norm.pdf(b, m, s))

    ends = m - 9 * s, m + 9 * s
    exact = integrate.quad(likelihood, *ends)[0]
    difficulty = integrate.quad(lambda b: b * likelihood(b), *ends)[0] / exact
    assert model.penalty(z)[0] - model.loss(z)[0] == pytest.approx(np.log(exact), abs=1e-3)
    assert model.questions_at(z)[0] == pytest.approx([difficulty], abs=0.01)


@pytest.mark.parametrize("model", [MarginalOverQuestions, MarginalOverForecasters])
def test_slopes_are_those_of_the_likelihood(model: type) -> None:
    fitted = model(responses_of(synthetic(6, 15, 1, missing=0.3, weighted=True).panel))
    z = fitted.start + np.random.default_rng(0).normal(0, 0.2, len(fitted.start))
    steps = 1e-5 * np.eye(len(z))
    differences = [(fitted.loss(z + step)[0] - fitted.loss(z - step)[0]) / 2e-5 for step in steps]
    assert fitted.loss(z)[1] == pytest.approx(differences, abs=1e-6)


def test_curvature_of_the_abilities_is_exact() -> None:
    data = responses_of(synthetic(5, 30, 2, missing=0.3, weighted=True).panel)
    model = MarginalOverQuestions(data)
    z = model.start + np.random.default_rng(0).normal(0, 0.3, len(model.start))
    hessian, pull, information = model.curvature(z, data)
    steps = 1e-4 * np.eye(len(z))[:5]
    differences = [(model.loss(z + step)[1] - model.loss(z - step)[1])[:5] / 2e-4 for step in steps]
    assert hessian == pytest.approx(np.array(differences), abs=1e-3)
    prior = z[:5] / ABILITY_SD**2
    assert np.bincount(data.forecaster, pull) == pytest.approx(prior - model.loss(z)[1][:5])
    assert (information > 0).all()


def test_sparse_tables_and_small_blocks_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    data = responses_of(synthetic(6, 40, 3, missing=0.5).panel)
    z = MarginalOverQuestions(data).start + 0.1
    y = MarginalOverForecasters(data).start + 0.1
    full_fit = MarginalOverQuestions(data).loss(z), MarginalOverQuestions(data).curvature(z, data)
    swapped = MarginalOverForecasters(data).loss(y), MarginalOverForecasters(data).question_errors(y, data)
    monkeypatch.setattr("forecast_rank.metrics.cluster_robust.DENSE", 0)
    monkeypatch.setattr("forecast_rank.metrics.irt_marginal_over_questions.BLOCK", 3000)
    monkeypatch.setattr("forecast_rank.metrics.irt_marginal_over_forecasters.BLOCK", 300)
    sparse = MarginalOverQuestions(data).loss(z), MarginalOverQuestions(data).curvature(z, data)
    parted = MarginalOverForecasters(data).loss(y), MarginalOverForecasters(data).question_errors(y, data)
    for one, counterpart in ((full_fit, sparse), (swapped, parted)):
        for first, second in zip(one[0] + one[1], counterpart[0] + counterpart[1], strict=True):
            assert first == pytest.approx(second, rel=1e-9, abs=1e-12)


# Recovery


@pytest.mark.parametrize(
    ("forecasters", "columns", "seeds", "integrated", "shares"),
    [
        # 200 other fits: 0.944, 0.936 and 0.940, with standard errors for 25 of 0.014, 0.006 and 0.011.
        pytest.param(
            *(12, 250, 25, "questions", ((0.91, 0.98), (0.92, 0.96), (0.91, 0.97))), marks=pytest.mark.thorough
        ),
        (300, 30, 4, "forecasters", ((0.93, 0.97), (0.88, 1), (0.88, 1))),
    ],
)
def test_parameters_are_recovered_at_the_nominal_rate_by_either_integration(
    forecasters: int, columns: int, seeds: int, integrated: str, shares: tuple[tuple[float, float], ...]
) -> None:
    hits: dict[str, list[Floats]] = {"ability": [], "difficulty": [], "discrimination": []}
    for seed in range(seeds):
        world = drawn(forecasters, columns, seed)
        fit = fit_irt(world.panel)
        assert fit.converged
        assert fit.integrated == integrated
        for name, rows in hits.items():
            rows.append(covers(getattr(fit, name), getattr(world, name), getattr(fit, f"{name}_se")))
    for (name, rows), (least, most) in zip(hits.items(), shares, strict=True):
        assert least < np.concatenate(rows).mean() <= most, name


@pytest.mark.thorough
def test_estimates_approach_the_truth() -> None:
    world = drawn(12, 2500, 1)
    fit = fit_irt(world.panel)
    assert np.corrcoef(fit.ability, world.ability)[0, 1] > 0.99
    assert np.corrcoef(fit.difficulty, world.difficulty)[0, 1] > 0.9
    assert np.abs(fit.ability - world.ability).max() < 0.25


def test_both_ways_agree_where_both_can_be_used() -> None:
    world = drawn(40, 60, 3, missing=0.0)
    questions, forecasters = fit_irt(world.panel, "questions"), fit_irt(world.panel, "forecasters")
    assert np.corrcoef(questions.ability, forecasters.ability)[0, 1] > 0.995
    assert np.corrcoef(questions.difficulty, forecasters.difficulty)[0, 1] > 0.9


@pytest.mark.thorough
def test_errors_hold_for_forecasters_who_do_not_follow_the_model() -> None:
    """ConnectedComponents of 400 questions, two to an event, against what all 12,000 say.

    ConnectedComponents of 100 hold it less often, 91 to 93 times in 100, as the docstring says.
    """
    forecasts = synthetic(8, 12_000, 3, missing=0.3, event_size=2).panel
    full_fit, hits = fit_irt(forecasts), []
    for part in range(30):
        fit = fit_irt(forecasts.take(forecasts.question // 400 == part), "questions")
        hits.append(covers(fit.ability, full_fit.ability, fit.ability_se))
    # Other panels: 0.935 to 0.957, with a standard error for 30 parts of 0.015.
    assert 0.90 < np.concatenate(hits).mean() < 0.99


def test_skill_is_found_and_large_fits_go_by_way_of_a_sample() -> None:
    world = synthetic(12, 3000, 4)
    fit = fit_irt(world.panel)
    assert fit.converged
    assert np.corrcoef(fit.ability, -world.noise)[0, 1] > 0.97
    assert fit.ability.mean() == pytest.approx(0, abs=1e-9)
    assert fit.ability.std() == pytest.approx(1)
    model = MarginalOverQuestions(responses_of(world.panel))
    loss, slope = model.loss(fit.parameters)
    assert np.abs(slope).max() / len(world.panel) < 1e-6
    assert model.penalty(fit.parameters)[0] - loss == pytest.approx(fit.log_likelihood)


@pytest.mark.thorough
def test_overconfidence_is_not_what_makes_ability() -> None:
    """Twelve equally informed forecasters, half of whom double their log odds: the honest half comes out ahead."""
    generator = np.random.default_rng(5)
    truth = generator.normal(0, 1.2, 2000)
    heard = 0.7 * (truth + generator.normal(0, 0.8, (12, 2000)))
    heard[6:] *= 2
    happened = generator.random(2000) < 1 / (1 + np.exp(-truth))
    forecasts = from_arrays((1 / (1 + np.exp(-heard)))[:, :, None], happened[:, None].astype(float), exclusive=False)
    fit = fit_irt(forecasts)
    assert fit.ability[:6].min() > fit.ability[6:].max()


@pytest.mark.captured
def test_ability_correlates_more_with_pm_ranks_posterior_than_its_variational_fit_does() -> None:
    """The posterior is from long NUTS runs of pm_rank's model on its sample."""
    folder = CAPTURED / "pm_rank"
    with (folder / "S.csv").open(newline="") as file:
        columns = ("forecaster", "question", "option")
        rows = [
            {name: row[name] for name in columns} | {name: float(row[name]) for name in ("probability", "outcome")}
            for row in csv.DictReader(file)
        ]
    forecasts = panel(rows)
    metrics = json.loads((folder / "S.pm_rank-0.3.1.json").read_text())["metrics"]

    def scores(name: str) -> Floats:
        return np.array([metrics[name]["scores"][person] for person in forecasts.forecasters])

    long = scores("irt_nuts_seed0") + scores("irt_nuts_seed1")
    variational = [np.corrcoef(scores(f"irt_svi_seed{k}"), long)[0, 1] for k in range(3)]
    assert np.corrcoef(fit_irt(forecasts).ability, long)[0, 1] > 0.85 > max(variational)


# Invariance and edges


@pytest.mark.parametrize(("rows", "columns"), [(6, 40), (40, 6)])
def test_names_order_and_scale_of_weights_do_not_matter(rows: int, columns: int) -> None:
    forecasts = synthetic(rows, columns, 6, missing=0.3, weighted=True, event_size=2).panel
    fit = fit_irt(forecasts)
    relabelled_panel, new_forecasters, new_questions = relabelled(forecasts, 1)
    moved = fit_irt(relabelled_panel)
    scaled = fit_irt(replace(forecasts, weight=5 * forecasts.weight))
    for name, order in (("ability", new_forecasters), ("difficulty", new_questions), ("discrimination", new_questions)):
        for column in (name, f"{name}_se"):
            ours = getattr(fit, column)
            assert getattr(moved, column) == pytest.approx(ours[order], rel=5e-3, abs=5e-3, nan_ok=True)
            assert getattr(scaled, column) == pytest.approx(ours, rel=5e-3, abs=5e-3, nan_ok=True)
    assert fit_irt(forecasts).ability.tolist() == fit.ability.tolist()


def test_nobody_one_and_two_forecasters_and_one_question() -> None:
    empty_fit = fit_irt(EMPTY)
    assert empty_fit.ability.tolist() == []
    assert not empty_fit.converged
    panel = drawn(1, 30, 7, missing=0.0).panel
    alone = fit_irt(panel)
    assert np.isnan(alone.ability).all()
    assert np.isnan(alone.difficulty).all()
    assert (discrimination_weights(panel, alone) == 1).all()
    two = fit_irt(drawn(2, 30, 7, missing=0.0).panel)
    assert np.abs(two.ability) == pytest.approx([1, 1])
    assert np.isnan(two.ability_se).all()
    single = fit_irt(drawn(20, 1, 7, missing=0.0).panel)
    assert single.integrated == "forecasters"
    assert np.isfinite(single.ability).all()
    assert np.isfinite(single.difficulty_se).all()


def test_equal_answers_leave_no_scale() -> None:
    panel = from_arrays(np.full((4, 10, 1), 0.7), np.ones((10, 1)), exclusive=False)
    fit = fit_irt(panel)
    assert np.isnan(fit.ability).all()
    assert (discrimination_weights(panel, fit) == 1).all()


def test_the_silent_and_the_unasked_have_no_figures() -> None:
    panel = drawn(6, 40, 8, missing=0.0).panel
    fit = fit_irt(panel.take((panel.forecaster != 2) & (panel.question != 5)))
    assert np.flatnonzero(np.isnan(fit.ability)).tolist() == [2]
    assert np.flatnonzero(np.isnan(fit.difficulty)).tolist() == [5]
    assert np.flatnonzero(np.isnan(fit.discrimination_se)).tolist() == [5]


def test_a_forecaster_who_was_always_perfect_or_always_wrong_is_bounded() -> None:
    world = drawn(6, 60, 9, missing=0.0)
    table = world.panel.matrix(world.panel.probability)
    table[0], table[1] = 1.0, 0.0
    fit = fit_irt(from_arrays(table[:, :, None], np.ones((60, 1)), exclusive=False))
    assert fit.converged
    assert fit.ability.argmax() == 0
    assert fit.ability.argmin() == 1
    assert np.isfinite(fit.ability_se).all()


# Brier weighted by discrimination


def test_weights_renormalise_per_forecaster() -> None:
    forecasts = from_arrays([[[0.5], [0.0]], [[0.5], [np.nan]]], [[1], [1]], exclusive=False)
    assert weighted_brier(forecasts, np.array([3.0, 9.0, 1.0])) == pytest.approx([(3 * 0.25 + 1) / 4, 0.25])
    weighed = replace(forecasts, weight=np.array([1.0, 1.0, 3.0]))
    assert weighted_brier(weighed, np.array([3.0, 9.0, 1.0])) == pytest.approx([(3 * 0.25 + 3) / 6, 0.25])
    assert weighted_brier(forecasts, np.array([3.0, np.nan, np.nan])) == pytest.approx([0.25, np.nan], nan_ok=True)


def test_own_answers_do_not_decide_what_counts() -> None:
    """ann answers one question quite differently: her weight for it stays as it was, to the little that fits move."""
    panel = drawn(20, 60, 10, missing=0.0).panel
    fit = fit_irt(panel)
    mine = np.flatnonzero((panel.forecaster == 3) & (panel.question == 7))[0]
    changed = replace(
        panel, probability=np.where(np.arange(len(panel)) == mine, 1 - panel.probability, panel.probability)
    )
    before, after = (discrimination_weights(p, fit, folds=20)[mine] for p in (panel, changed))
    assert before == pytest.approx(after, rel=1e-12)
    remaining = (panel.question == 7) & (panel.forecaster != 3)
    moved = discrimination_weights(changed, fit, folds=20) - discrimination_weights(panel, fit, folds=20)
    assert np.abs(moved[remaining]).min() > 1e-3


def test_left_out_forecasters_take_their_abilities_with_them() -> None:
    panel = drawn(5, 30, 14, missing=0.0).panel
    fit = fit_irt(panel)
    weights = discrimination_weights(panel, fit, folds=5)
    for person in range(5):
        remaining = panel.take(panel.forecaster != person)
        codes = remaining.forecaster - (remaining.forecaster > person)
        data = responses_of(remaining)._replace(forecasters=4, forecaster=codes)
        telling = MarginalOverQuestions(data).questions_at(np.delete(fit.parameters, person))[2]
        assert weights[panel.forecaster == person] == pytest.approx(telling)


@pytest.mark.parametrize(("rows", "columns"), [(12, 60), (80, 12)])
def test_weights_are_higher_where_questions_tell_more(rows: int, columns: int) -> None:
    world = drawn(rows, columns, 11, missing=0.0)
    weights = world.panel.matrix(discrimination_weights(world.panel, fit_irt(world.panel)))
    assert (weights > 0).all()
    assert stats.spearmanr(weights.mean(axis=0), world.discrimination)[0] > 0.4


def test_a_question_that_nobody_else_answered_has_the_mean_weight() -> None:
    panel = drawn(6, 40, 12, missing=0.0).panel
    lonely = panel.take((panel.question != 5) | (panel.forecaster == 2))
    fit: IrtFit = fit_irt(lonely)
    weights = discrimination_weights(lonely, fit, folds=6)
    own_rows = lonely.forecaster == 2
    only = own_rows & (lonely.question == 5)
    assert weights[only] == pytest.approx([weights[own_rows & ~only].mean()])


@pytest.mark.parametrize("s", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("m", [-1.0, 0.3, 2.0])
def test_prior_mass_of_the_grid_is_normalised_with_few_answers(m: float, s: float) -> None:
    data, _, _ = _responses(from_arrays(np.full((3, 5, 1), 0.6), np.ones((5, 1)), exclusive=False))
    model = MarginalOverQuestions(data)
    z = np.concatenate([np.zeros(3 + len(ANCHORS) - 2), [m, np.log(s), np.log(0.05)]])
    nodes = model.nodes(z)
    mass = np.exp(nodes.log_mass)
    assert mass.sum() == pytest.approx(1)
    assert mass @ nodes.b == pytest.approx(m, abs=0.02)
    assert np.sqrt(mass @ (nodes.b - m) ** 2) == pytest.approx(s, rel=0.1)
