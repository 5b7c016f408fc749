"""Paired tests against SciPy and statsmodels, corrections against statsmodels, power against simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.paired_tests import (
    PairedComparisons,
    benjamini_hochberg,
    holm,
    paired_tests,
    questions_needed,
)
from forecast_rank.metrics.uncertainty import bootstrap_means, event_sums, resample_counts
from tests.benchmarks.forecast_tests import MIXES, equal_world, false_adjusted, false_pairs, false_ranges
from tests.forecast_rank.panels import EMPTY, scored, synthetic
from tests.lazy_modules import multitest, sm, stats, statsmodels_power

nan = np.nan


def compared(values, event=None, weight=1.0, **options) -> PairedComparisons:  # type: ignore[no-untyped-def]
    return paired_tests(*scored(values, event, weight), **options)


def against_nobody(generator: np.random.Generator, gap: float, experiments: int, events: int) -> tuple:
    """Experiments as forecasters beside a first one who scores 0: their values differ from it by `gap` on average,
    with an sd of 0.1 of which half the variance is shared by the four questions of an event."""
    event = np.arange(4 * events) // 4
    shared = generator.normal(0, 0.1 * 0.5**0.5, (experiments, events))[:, event]
    idiosyncratic = generator.normal(0, 0.1 * 0.5**0.5, (experiments, 4 * events))
    return np.concatenate([np.zeros((1, 4 * events)), gap + shared + idiosyncratic]), event


class TestPairs:
    def test_by_hand(self) -> None:
        """Differences -.1, -.2, -.3 by one event each: mean -.2, s = .1, se = .1/sqrt(3), t = -3.4641 with 2."""
        pairs = compared([[0.1, 0.1, 0.1], [0.2, 0.3, 0.4]])
        assert (pairs.first.tolist(), pairs.second.tolist()) == ([0], [1])
        assert (pairs.n.tolist(), pairs.events.tolist()) == ([3], [3])
        assert pairs.difference == pytest.approx([-0.2])
        assert pairs.se == pytest.approx([0.1 / 3**0.5])
        assert pairs.p == pytest.approx([0.0741799], abs=1e-7)
        assert pairs.questions_needed.tolist() == [np.ceil(3 * (0.1 / 3**0.5 * 2.8015852 / 0.01) ** 2)]
        assert pairs.questions_more.tolist() == [pairs.questions_needed[0] - 3]

    def test_every_pair_once_in_order(self) -> None:
        tests = compared(np.random.default_rng(0).random((4, 9)))
        pairs = list(zip(tests.first.tolist(), tests.second.tolist(), strict=True))
        assert pairs == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]

    def test_is_scipys_paired_t_test_where_events_hold_one_question(self) -> None:
        values = np.random.default_rng(1).random((3, 25))
        values[1] += 0.2
        pairs = compared(values)
        for one, second, gap, p in zip(pairs.first, pairs.second, pairs.difference, pairs.p, strict=True):
            theirs = stats.ttest_rel(values[one], values[second])
            assert (gap, p) == (pytest.approx(values[one].mean() - values[second].mean()), pytest.approx(theirs.pvalue))

    def test_is_statsmodels_for_clustered_differences_of_equal_events(self) -> None:
        generator = np.random.default_rng(2)
        values, event = generator.random((2, 80)), np.arange(80) % 20
        fit = sm.OLS(values[0] - values[1], np.ones(80)).fit(cov_type="cluster", cov_kwds={"groups": event}, use_t=True)
        pairs = compared(values, event)
        assert (pairs.difference, pairs.freedom.tolist()) == (pytest.approx(fit.params), [19])
        assert (pairs.se, pairs.p) == (pytest.approx(fit.bse), pytest.approx(fit.pvalues))

    def test_is_the_jackknife_over_events_of_any_size(self) -> None:
        """Events in no order, weights of the two averaged, only what both answered."""
        generator = np.random.default_rng(2)
        values, event = generator.random((2, 80)), generator.integers(0, 17, 80)
        event[:30] = 3
        weight = generator.uniform(0.5, 2, (2, 80))
        values[0, :9], values[1, 40:55] = nan, nan
        common = ~np.isnan(values).any(axis=0)
        away, mass, group = (values[0] - values[1])[common], weight.mean(axis=0)[common], event[common]
        mean = np.average(away, weights=mass)
        left_out, totals = [], []
        for code in np.unique(group):
            left_out.append(np.average(away[group != code], weights=mass[group != code]))
            totals.append(mass[group == code].sum())
        share = (len(totals) - 1) / len(totals)
        pairs = compared(values, event, weight)
        assert (pairs.n[0], pairs.events[0]) == (common.sum(), len(totals))
        assert pairs.difference == pytest.approx([mean])
        assert pairs.se == pytest.approx([np.sqrt(share * np.square(np.array(left_out) - mean).sum())])
        assert pairs.freedom == pytest.approx([sum(totals) ** 2 / np.square(totals).sum() - 1])
        assert pairs.p == pytest.approx([2 * stats.t.sf(abs(mean) / pairs.se[0], pairs.freedom[0])])

    def test_large_event_does_not_tell_equals_apart(self) -> None:
        """Of seven equal forecasters with one event of 20 questions among 20, in 60 worlds: 48 % said so before."""
        worlds = [equal_world(MIXES["20, one of 20"], seed) for seed in range(60)]
        for check in (false_pairs, false_ranges):
            assert np.mean(list(map(check, worlds))) <= 0.05
        assert np.mean(list(map(false_adjusted, worlds[:20]))) <= 0.05

    def test_only_common_questions_count(self) -> None:
        """The first looks worse on the whole, since only it took the hard question."""
        pairs = compared([[0.1, 0.2, 0.3, 0.9], [0.2, 0.3, 0.5, nan]])
        assert (pairs.n.tolist(), pairs.difference.tolist()) == ([3], pytest.approx([-0.4 / 3]))

    def test_difference_is_that_of_shared_resamples(self) -> None:
        panel = synthetic(5, 400, 3, event_size=4, missing=0).panel
        brier = panel.sum_cells(np.square(panel.probability - panel.outcome)) / panel.sizes
        sums = event_sums(panel, brier)
        draws = bootstrap_means(sums, resample_counts(100, 4000))
        pairs = paired_tests(panel, brier)
        away = draws[:, pairs.first] - draws[:, pairs.second]
        assert away.mean(axis=0) == pytest.approx(pairs.difference, abs=0.002)
        assert away.std(axis=0) == pytest.approx(pairs.se, rel=0.06)

    def test_sees_what_two_separate_intervals_do_not(self) -> None:
        """What both find hard cancels: 0.02 apart under noise of 0.3 that they share."""
        generator = np.random.default_rng(4)
        hardness = generator.normal(0, 0.3, 100)
        values = np.stack([hardness, hardness + 0.02]) + generator.normal(0, 0.02, (2, 100))
        assert compared(values).p[0] < 1e-6
        assert stats.ttest_ind(*values).pvalue > 0.3

    def test_size_of_the_block_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        panel = synthetic(7, 60, 5, event_size=3).panel
        values = np.random.default_rng(5).random(len(panel))
        tests = paired_tests(panel, values)
        monkeypatch.setattr("forecast_rank.metrics.blocks.CELLS", 130)
        for one, second in zip(tests, paired_tests(panel, values), strict=True):
            assert one == pytest.approx(second, rel=1e-12)

    def test_who_is_called_first_only_turns_the_sign(self) -> None:
        values = np.random.default_rng(6).random((2, 30))
        event = np.arange(30) // 3
        one, second = compared(values, event), compared(values[::-1], event)
        assert one.difference == pytest.approx(-second.difference)
        assert (one.se, one.p) == (pytest.approx(second.se), pytest.approx(second.p))

    def test_false_alarms_come_as_often_as_stated_where_questions_cluster(self) -> None:
        """1,000 experiments without a difference: three standard errors of a share of 0.05 are 0.021."""
        alarms, blind = [], []
        for seed in range(10):
            values, event = against_nobody(np.random.default_rng(seed), 0.0, experiments=100, events=40)
            pairs, apart = compared(values, event), compared(values)
            alarms.append((pairs.p < 0.05)[pairs.first == 0])
            blind.append((apart.p < 0.05)[apart.first == 0])
        assert np.mean(alarms) == pytest.approx(0.05, abs=0.021)
        assert np.mean(blind) > 0.12


class TestDegenerate:
    def test_twins_do_not_differ(self) -> None:
        pairs = compared([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]])
        assert (pairs.difference.tolist(), pairs.se.tolist(), pairs.p.tolist()) == ([0], [0], [1])
        assert np.isnan(pairs.questions_needed).all()

    def test_same_difference_everywhere_leaves_nothing_to_test_by(self) -> None:
        values = np.random.default_rng(0).random(9)
        pairs = compared([values, values + 0.1])
        assert (pairs.difference, pairs.se.tolist()) == (pytest.approx([-0.1]), [0])
        assert np.isnan([pairs.p, pairs.p_holm, pairs.questions_needed, pairs.questions_more]).all()

    def test_those_with_nothing_in_common_are_not_compared(self) -> None:
        pairs = compared([[0.1, nan, 0.2], [nan, 0.3, nan], [0.2, nan, 0.4]])
        assert (pairs.n.tolist(), pairs.events.tolist()) == ([0, 2, 0], [0, 2, 0])
        assert np.isnan(pairs.p).tolist() == np.isnan(pairs.difference).tolist() == [True, False, True]
        assert pairs.p_holm[1] == pairs.p[1]

    def test_one_common_event_has_a_difference_and_no_test(self) -> None:
        pairs = compared([[0.1, 0.2], [0.3, 0.2]], [0, 0])
        assert (pairs.n.tolist(), pairs.events.tolist(), pairs.difference.tolist()) == ([2], [1], pytest.approx([-0.1]))
        assert np.isnan([pairs.se, pairs.p, pairs.questions_needed]).all()

    def test_ruin_is_compared_with_nobody(self) -> None:
        pairs = compared([[0.1, 0.5, 0.3], [0.2, -np.inf, 0.1], [0.3, 0.4, 0.1]])
        assert np.isnan(pairs.difference).tolist() == np.isnan(pairs.p).tolist() == [True, False, True]

    def test_no_forecasts_or_one_forecaster_make_no_pairs(self) -> None:
        assert all(len(column) == 0 for column in paired_tests(EMPTY, np.zeros(0)))
        assert all(len(column) == 0 for column in compared([[0.1, 0.2]]))


@st.composite
def p_values(draw: st.DrawFn) -> list[float]:
    return draw(st.lists(st.floats(0, 1) | st.sampled_from([0.01, 0.04, 0.5, 1.0]), min_size=1, max_size=40))


class TestCorrections:
    @pytest.mark.parametrize("p", [[0.3], [0.01, 0.04, 0.03], [0.0, 0.02, 0.02, 1.0], np.linspace(0.09, 0.001, 30)])
    def test_holm_is_statsmodels(self, p: list[float]) -> None:
        assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1], abs=1e-12)

    @given(p_values())
    def test_holm_is_its_definition(self, p: list[float]) -> None:
        """The largest, over those as small or smaller, of p times the number that is not smaller than it."""
        steps = {value: min(1.0, value * sum(other_p >= value for other_p in p)) for value in p}
        expected = [max(step for value, step in steps.items() if value <= p_value) for p_value in p]
        assert holm(p) == pytest.approx(expected, abs=1e-12)

    @given(p_values())
    def test_benjamini_hochberg_is_statsmodels(self, p: list[float]) -> None:
        assert benjamini_hochberg(p) == pytest.approx(multitest.multipletests(p, method="fdr_bh")[1], abs=1e-12)

    @pytest.mark.parametrize("correct", [holm, benjamini_hochberg])
    def test_what_was_not_tested_counts_for_nothing(self, correct) -> None:  # type: ignore[no-untyped-def]
        pairs = correct([0.02, nan, 0.01, nan, 0.5])
        assert np.isnan(pairs).tolist() == [False, True, False, True, False]
        assert pairs[[0, 2, 4]].tolist() == correct([0.02, 0.01, 0.5]).tolist()
        assert np.isnan(correct([nan])).all()
        assert correct([]).shape == (0,)

    def test_pairs_are_corrected_for_all_pairs(self) -> None:
        pairs = compared(np.random.default_rng(3).random((6, 40)))
        assert pairs.p_holm == pytest.approx(multitest.multipletests(pairs.p, method="holm")[1])
        assert pairs.p_bh == pytest.approx(multitest.multipletests(pairs.p, method="fdr_bh")[1])


class TestPower:
    def test_by_hand(self) -> None:
        """(1.959964 + 0.841621)^2 = 7.8489; 400 questions gave 0.01: 3139.6 in all."""
        assert questions_needed(400, 0.01).tolist() == 3140

    def test_is_statsmodels_for_independent_questions(self) -> None:
        question_count = questions_needed(50, 0.3 / 50**0.5, difference=0.02)
        assert question_count == pytest.approx(
            statsmodels_power.tt_solve_power(0.02 / 0.3, power=0.8, alpha=0.05), rel=0.002
        )

    def test_so_many_questions_find_the_difference_four_times_in_five(self) -> None:
        """The figure of a pilot with many events, tried on 600 new seasons: three standard errors are 0.05."""
        values, event = against_nobody(np.random.default_rng(20), 0.0, experiments=1, events=5000)
        question_count = int(compared(values, event).questions_needed[0])
        assert question_count == pytest.approx(7.8489 * (0.01 * (0.5 + 0.5 * 4)) / 0.01**2, rel=0.05)
        pairs = []
        for seed in range(6):
            values, event = against_nobody(
                np.random.default_rng(seed), 0.01, experiments=100, events=question_count // 4
            )
            result = compared(values, event)
            pairs.append((result.p < 0.05)[result.first == 0])
        assert np.mean(pairs) == pytest.approx(0.8, abs=0.05)

    def test_none_are_missing_when_there_are_enough(self) -> None:
        values = np.random.default_rng(1).normal(0, 0.01, (2, 500))
        pairs = compared(values)
        assert 0 < pairs.questions_needed[0] < 500
        assert pairs.questions_more.tolist() == [0]

    def test_asks_what_it_is_told_to(self) -> None:
        values = np.random.default_rng(1).random((2, 50))
        default, wide = compared(values), compared(values, difference=0.02)
        assert wide.questions_needed[0] == pytest.approx(default.questions_needed[0] / 4, rel=0.01)
        assert compared(values, power=0.5).questions_needed[0] < default.questions_needed[0]
        assert compared(values, alpha=0.01).questions_needed[0] > default.questions_needed[0]
