"""Scores adjusted for difficulty, and the linked parts and event-wise errors that they rest on."""

import numpy as np
import pytest

from forecast_rank.metrics.cluster_robust import event_scores
from forecast_rank.metrics.connectivity import connected_components
from forecast_rank.metrics.difficulty_adjustment import AdjustedScores, adjusted_brier
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.panel import Panel, from_arrays
from forecast_rank.metrics.proper_scores import brier, log_score
from forecast_rank.metrics.uncertainty import cluster_se, event_sums
from tests.forecast_rank.panels import EMPTY, panel, rows_of, synthetic
from tests.lazy_modules import sm


def adjusted(forecasts: Panel) -> AdjustedScores:
    return adjusted_brier(forecasts, brier(forecasts))


def least_squares(forecasts: Panel, values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Centred forecaster effects and question effects to go with them, by statsmodels on dummy variables."""
    rows, columns = len(forecasts.forecasters), len(forecasts.questions)
    dummies = np.column_stack([np.eye(rows)[forecasts.forecaster], np.eye(columns)[forecasts.question][:, 1:]])
    effects = sm.WLS(values, dummies, weights=weights).fit().params
    question = np.concatenate([[0.0], effects[rows:]]) + effects[:rows].mean()
    return effects[:rows] - effects[:rows].mean(), question


def test_who_missed_the_hard_question_gains_nothing_by_it() -> None:
    """bob is 0.1 worse than ann on both common questions; ann did not answer the one where he lost 0.5."""
    forecasts = from_arrays(np.full((2, 3, 1), 0.5), np.ones((3, 1)), exclusive=False)
    forecasts = forecasts.take(np.array([True, True, True, True, False, True]))
    fit = adjusted_brier(forecasts, np.array([0.1, 0.2, 0.2, 0.3, 0.6]))
    assert fit.effect == pytest.approx([-0.05, 0.05])
    assert fit.value == pytest.approx([(0.1 + 0.2 + 0.5) / 3, (0.2 + 0.3 + 0.6) / 3])
    assert fit.coverage == pytest.approx([2 / 3, 1])


def test_complete_panels_keep_their_means_and_standard_errors() -> None:
    forecasts = synthetic(6, 50, 1, missing=0.0, event_size=3).panel
    fit = adjusted(forecasts)
    assert fit.value == pytest.approx(forecasts.forecaster_means(brier(forecasts)), abs=1e-12)
    alone = synthetic(6, 50, 1, missing=0.0).panel
    assert adjusted(alone).se == pytest.approx(cluster_se(event_sums(alone, brier(alone))), rel=1e-9)
    assert (fit.coverage == 1).all()


@pytest.mark.parametrize(("rows", "columns"), [(7, 40), (40, 7)])
def test_effects_are_those_of_weighted_least_squares(rows: int, columns: int) -> None:
    forecasts = synthetic(rows, columns, 2, missing=0.4, weighted=True).panel
    values = log_score(forecasts)
    effect, question = least_squares(forecasts, values, forecasts.weight)
    fit = adjusted_brier(forecasts, values)
    assert fit.effect == pytest.approx(effect, abs=1e-10)
    omega = np.bincount(forecasts.question, forecasts.weight) / np.bincount(forecasts.question)
    assert fit.value == pytest.approx(effect + omega @ question / omega.sum(), abs=1e-10)


def test_standard_errors_are_those_of_the_leave_one_event_out_jackknife() -> None:
    """Refitted without each event in turn: value and effect vary as the two standard errors say, within 2 %.

    One forecaster answers little over half of what the others do: questions and forecasters weigh unequally.
    """
    forecasts = synthetic(3, 80, 4, missing=0.2, event_size=2, noise=(0.5, 1.0)).panel
    forecasts = forecasts.take((forecasts.forecaster > 0) | (forecasts.question < 50))
    fit, event = adjusted(forecasts), forecasts.questions.event[forecasts.question]
    jackknife = [adjusted(forecasts.take(event != e)) for e in range(40)]
    for name, se in (("value", fit.se), ("effect", fit.effect_se)):
        moves = np.stack([getattr(one, name) for one in jackknife]) - getattr(fit, name)
        assert se == pytest.approx(np.sqrt(39 / 40 * np.square(moves).sum(axis=0)), rel=0.02)


def test_intervals_hold_the_truth_at_the_nominal_rate() -> None:
    """True effects and events that share errors, a third of the answers missing, by chance and by forecaster."""
    generator, truth = np.random.default_rng(5), np.linspace(-0.1, 0.1, 8)
    hits, own_hits = [], []
    for _ in range(120):
        level = np.repeat(generator.normal(0.3, 0.1, 40), 2)
        shared = np.repeat(generator.normal(0, 0.1, (8, 40)), 2, axis=1)
        values = truth[:, None] + level + shared + generator.normal(0, 0.1, (8, 80))
        is_missing = generator.random((8, 80)) < np.linspace(0.1, 0.6, 8)[:, None]
        said_half = np.where(is_missing, np.nan, 0.5)
        forecasts = from_arrays(said_half[:, :, None], np.ones((80, 1)), exclusive=False, event=np.arange(80) // 2)
        fit = adjusted_brier(forecasts, values[forecasts.forecaster, forecasts.question])
        hits.append(np.abs(fit.value - truth - 0.3) < 1.96 * fit.se)
        own_hits.append(np.abs(fit.effect - truth) < 1.96 * fit.effect_se)
    assert 0.925 < np.mean(hits) < 0.97
    assert 0.925 < np.mean(own_hits) < 0.97


def test_the_adjusted_score_finds_skill_that_the_raw_mean_hides() -> None:
    """The better half answers only the hard half of the questions, save a few."""
    generator = np.random.default_rng(6)
    skill, hard = np.linspace(0, 0.2, 10), np.repeat([0.0, 0.5], 200)
    values = skill[:, None] + hard + generator.normal(0, 0.1, (10, 400))
    silent = np.zeros((10, 400), dtype=bool)
    silent[:5, :180] = True
    forecasts = from_arrays(np.where(silent, np.nan, 0.5)[:, :, None], np.ones((400, 1)), exclusive=False)
    scores = values[forecasts.forecaster, forecasts.question]
    assert np.corrcoef(forecasts.forecaster_means(scores), skill)[0, 1] < 0
    assert np.corrcoef(adjusted_brier(forecasts, scores).value, skill)[0, 1] > 0.98


def test_what_no_question_links_to_the_largest_part_is_not_compared() -> None:
    rows = [row for q in "pqr" for name in ("ann", "bob") for row in rows_of(name, q, [0.6, 0.4], 0)]
    rows += [row for q in "st" for name in ("cyd", "dan") for row in rows_of(name, q, [0.9, 0.1], 0)]
    fit = adjusted(panel(rows))
    assert fit.component.tolist() == [0, 0, 1, 1]
    assert fit.value == pytest.approx([0.16, 0.16, np.nan, np.nan], nan_ok=True)
    assert np.isnan(fit.se[2:]).all()
    assert fit.coverage == pytest.approx([0.6, 0.6, 0.4, 0.4])


def test_values_that_are_not_there_are_left_out_with_their_links() -> None:
    forecasts = from_arrays(np.full((3, 2, 1), 0.5), np.ones((2, 1)), exclusive=False)
    fit = adjusted_brier(forecasts, np.array([0.1, 0.3, np.nan, np.nan, np.nan, 0.5]))
    assert fit.component.tolist() == [0, 0, 1]
    assert fit.value == pytest.approx([0.1, 0.3, np.nan], nan_ok=True)
    assert fit.coverage.tolist() == [0.5, 0.5, 0.5]


def test_one_forecaster_and_one_question() -> None:
    alone = adjusted(panel(rows_of("ann", "q", [0.5, 0.5], 0) + rows_of("ann", "r", [1.0, 0.0], 0)))
    assert alone.value.tolist() == [0.125]
    assert alone.effect.tolist() == [0.0]
    single = adjusted(panel(rows_of("ann", "q", [0.5, 0.5], 0) + rows_of("bob", "q", [1.0, 0.0], 0)))
    assert single.value == pytest.approx([0.25, 0.0])
    assert np.isnan(single.se).all()
    assert np.isnan(single.effect_se).all()


def test_a_forecaster_of_one_event_has_no_standard_error() -> None:
    rows = [row for q in "pqrs" for name in ("ann", "bob") for row in rows_of(name, q, [0.6 + ord(q) % 3 / 10, 0.3], 0)]
    fit = adjusted(panel(rows + rows_of("cyd", "p", [0.8, 0.2], 0)))
    assert np.isnan(fit.se).tolist() == [False, False, True]
    # Another that nobody else answered tells nothing about how they compare.
    apart = adjusted(panel(rows + rows_of("cyd", "p", [0.8, 0.2], 0) + rows_of("cyd", "z", [0.4, 0.6], 0)))
    assert np.isnan(apart.se).tolist() == [False, False, True]


def test_parts_are_numbered_from_the_largest() -> None:
    rows = rows_of("ann", "p", [0.5, 0.5], 0) + rows_of("bob", "p", [0.5, 0.5], 0) + rows_of("cyd", "q", [0.5, 0.5], 0)
    rows += rows_of("dan", "q", [0.5, 0.5], 0) + rows_of("cyd", "r", [0.5, 0.5], 0)
    components = connected_components(panel(rows))
    assert components.forecaster.tolist() == [1, 1, 0, 0]
    assert components.question.tolist() == [1, 0, 0]
    assert connected_components(panel(rows), np.arange(5) != 0).forecaster.tolist() == [-1, 1, 0, 0]
    assert connected_components(EMPTY).forecaster.tolist() == []


@pytest.mark.parametrize("length", [2, 3, 5, 9])
def test_chain_of_common_questions_is_one_part_until_it_is_cut(length: int) -> None:
    links = [(f"f{i}", f"q{i + k}") for i in range(length) for k in (0, 1)]
    rows = [row for name, question in links for row in rows_of(name, question, [0.5, 0.5], 0)]
    chain = connected_components(panel(rows))
    assert (chain.forecaster.tolist(), chain.question.tolist()) == ([0] * length, [0] * (length + 1))
    cut = connected_components(panel(rows), np.arange(2 * length) != 2)  # without f1 on q1, or f1's only link to f0
    assert cut.forecaster.tolist() == ([0, 1] if length == 2 else [1, *[0] * (length - 1)])


def test_events_pull_as_in_the_jackknife_of_a_mean() -> None:
    """Unequal clusters: U'U / n^2 is the jackknife's variance of the mean, cluster by cluster."""
    values, event = np.array([1.0, 2.0, 4.0, 8.0, 3.0]), np.array([0, 0, 1, 2, 2])
    pulls, expected = event_scores(values - values.mean(), np.ones(5), event, np.zeros(5, dtype=np.int64), 1)
    jackknife = np.array([values[event != e].mean() for e in range(3)]) - values.mean()
    assert np.square(pulls).sum() / 25 == pytest.approx(2 / 3 * np.square(jackknife).sum())
    assert expected.tolist() == [True]
