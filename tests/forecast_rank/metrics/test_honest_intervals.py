"""Intervals and rank ranges that hold the truth with few events, in worlds where the truth is known."""

import numpy as np
import pytest

import forecast_rank as fr
from forecast_rank.metrics.bradley_terry import pairwise_ability
from forecast_rank.metrics.calibration import ece
from forecast_rank.metrics.calibration_error import unbiased_ece
from forecast_rank.metrics.difficulty_adjustment import adjusted_brier
from forecast_rank.metrics.flat_arrays import Floats
from forecast_rank.metrics.irt import fit_irt
from forecast_rank.metrics.paired_tests import paired_tests
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.simultaneous_ranks import rank_ranges_beside, simultaneous_rank_ranges
from forecast_rank.metrics.studentised import studentised_draws, studentised_interval
from forecast_rank.metrics.uncertainty import (
    EventSums,
    bootstrap_means,
    cluster_se,
    event_sums,
    percentile_interval,
    resample_counts,
    table_sums,
)
from tests.forecast_rank.simulated_worlds import simulate
from tests.lazy_modules import multitest, pl, stats

nan = np.nan


def share_held(intervals: Floats, truth: float) -> float:
    return float(np.mean((intervals[:, 0] <= truth) & (truth <= intervals[:, 1])))


class TestStudentised:
    def test_draws_are_errors_of_resamples_over_their_own_standard_errors(self) -> None:
        panel = simulate("missing at random", forecasters=3, events=12, seed=1).panel
        sums, counts = event_sums(panel, brier(panel)), resample_counts(12, 60, seed=2)
        draws = studentised_draws(sums, counts)
        for row, draw in zip(counts, draws, strict=True):
            picked = np.repeat(np.arange(12), row)
            again = EventSums(sums.sums[:, picked], sums.weights[:, picked])
            assert draw == pytest.approx((again.means - sums.means) / cluster_se(again), rel=1e-6)

    def test_interval_reaches_at_least_as_far_as_students(self) -> None:
        values = np.random.default_rng(3).normal(size=(40, 9))
        sums = table_sums(values)
        reach = stats.t.ppf(0.975, 8) * cluster_se(sums)
        low, high = studentised_interval(sums, resample_counts(9)).T
        assert (low <= sums.means - reach + 1e-12).all()
        assert (high >= sums.means + reach - 1e-12).all()

    def test_skewed_scores_reach_further_on_the_long_side(self) -> None:
        sums = table_sums([[0.0, 0.1, 0.0, 0.1, 0.2, 0.1, 0.0, 0.1, 0.9, 0.8]])
        low, high = studentised_interval(sums, resample_counts(10))[0]
        assert high - sums.means[0] > 1.3 * (sums.means[0] - low)

    def test_ten_skewed_events_hold_the_truth_where_percentiles_do_not(self) -> None:
        """Squares of normal values, as skewed as Brier scores of the confident."""
        values = np.square(np.random.default_rng(5).normal(size=(1500, 10)))
        sums, counts = table_sums(values), resample_counts(10)
        assert share_held(percentile_interval(bootstrap_means(sums, counts)), 1.0) < 0.86
        assert share_held(studentised_interval(sums, counts), 1.0) > 0.935

    @pytest.mark.parametrize("events", [0, 1, 2, 3])
    def test_fewer_than_four_events_have_no_interval(self, events: int) -> None:
        sums = table_sums(np.arange(float(events))[None, :])
        assert np.isnan(studentised_interval(sums, resample_counts(events))).all()

    def test_one_win_in_fifty_has_no_interval(self) -> None:
        """One resample in three holds no win at all: how large the others' mean is cannot be known."""
        sums = table_sums([[0.0] * 49 + [30.0], np.linspace(0, 1, 50).tolist()])
        assert np.isnan(studentised_interval(sums, resample_counts(50))).all(axis=1).tolist() == [True, False]

    def test_who_always_scores_the_same_has_no_interval_of_width_0(self) -> None:
        assert np.isnan(studentised_interval(table_sums([[0.3] * 7, [0.1] * 7]), resample_counts(7))).all()

    def test_ruin_has_no_interval_and_leaves_the_others_theirs(self) -> None:
        sums = EventSums(np.array([[nan, 1.0, 2.0, 0.5, 0.1], [0.1, 0.2, 0.3, 0.2, 0.1]]), np.ones((2, 5)))
        assert np.isnan(studentised_interval(sums, resample_counts(5))).all(axis=1).tolist() == [True, False]

    def test_counts_over_other_events_are_refused(self) -> None:
        with pytest.raises(ValueError, match="counts: one column per event, 2"):
            studentised_interval(table_sums([[0.2, 0.1]]), resample_counts(3, 4))


class TestSimultaneousRanks:
    def test_ranges_are_those_of_holms_paired_tests(self) -> None:
        """All answered everything, so that the differences of means are those of the pairs."""
        panel = simulate("clustered", forecasters=7, events=150, seed=3).panel
        scores = brier(panel)
        tests = paired_tests(panel, scores)
        clear = tests.p_holm < 0.05
        better = np.bincount(tests.first, clear & (tests.difference > 0), 7)
        better += np.bincount(tests.second, clear & (tests.difference < 0), 7)
        worse = np.bincount(tests.first, clear & (tests.difference < 0), 7)
        worse += np.bincount(tests.second, clear & (tests.difference > 0), 7)
        assert clear.any()
        assert not clear.all()
        ranges = simultaneous_rank_ranges(event_sums(panel, scores))
        assert ranges.tolist() == np.stack([1 + better, 7 - worse], axis=1).tolist()

    def test_ranges_equal_those_of_the_method_by_other_libraries(self) -> None:
        """Pairwise t tests by SciPy, Holm by statsmodels, then counting who is surely better and surely worse."""
        generator = np.random.default_rng(21)
        for spread in (0.0, 0.1, 0.4):
            values = generator.normal(np.linspace(0, spread, 6)[:, None], 0.3, (6, 60))
            pairs = [(i, j) for i in range(6) for j in range(i + 1, 6)]
            p = [stats.ttest_rel(values[i], values[j]).pvalue for i, j in pairs]
            clear = multitest.multipletests(p, 0.1, "holm")[0]
            expected = [[1, 6] for _ in range(6)]
            for (i, j), sure in zip(pairs, clear, strict=True):
                if sure:
                    winner, loser = (i, j) if values[i].mean() < values[j].mean() else (j, i)
                    expected[loser][0] += 1
                    expected[winner][1] -= 1
            assert simultaneous_rank_ranges(table_sums(values), level=0.9).tolist() == expected

    def test_higher_is_better_turns_the_ranks_round(self) -> None:
        values = np.array([[0.1, 0.2, 0.1, 0.2], [0.9, 0.8, 0.9, 0.8]])
        assert simultaneous_rank_ranges(table_sums(values)).tolist() == [[1, 1], [2, 2]]
        assert simultaneous_rank_ranges(table_sums(values), lower_is_better=False).tolist() == [[2, 2], [1, 1]]

    def test_ten_equals_may_all_be_first(self) -> None:
        hits, worlds = 0, 60
        for seed in range(worlds):
            panel = simulate("equal", events=50, seed=seed).panel
            sums = event_sums(panel, brier(panel))
            hits += bool((simultaneous_rank_ranges(sums)[:, 0] == 1).all())
        assert hits >= 55

    def test_equal_rows_tie_whatever_rounding_does(self) -> None:
        noise, worse = np.random.default_rng(4).random((2, 200)) * 1e6
        sums = table_sums([noise, noise[::1], noise * (1 + 1e-15), noise + worse])
        assert simultaneous_rank_ranges(sums).tolist() == [[1, 3], [1, 3], [1, 3], [4, 4]]

    def test_who_cannot_be_tested_may_have_any_rank(self) -> None:
        """Nothing; one event; ruin; two others far apart, by no constant distance."""
        table = np.array([[nan] * 6, [0.5] + [nan] * 5, [0.2] * 6, [0.1, 0.2] * 3, [0.8, 0.8] + [0.9] * 4])
        sums = table_sums(table)
        sums.sums[2, 0] = nan
        ranges = simultaneous_rank_ranges(sums)
        assert np.isnan(ranges[0]).all()
        assert ranges[1:].tolist() == [[1, 4], [1, 4], [1, 3], [2, 4]]

    def test_reference_is_placed_among_the_forecasters(self) -> None:
        sums = table_sums([[0.1, 0.2] * 8, [0.8, 0.9] * 8, [0.5, 0.4] * 8, [nan] * 16])
        ranges = rank_ranges_beside(sums, 2, lower_is_better=True)
        assert ranges[0].tolist() == [2, 2]
        assert np.isnan(ranges[1]).all()

    def test_level_in_percent_is_refused(self) -> None:
        with pytest.raises(ValueError, match="level: between 0 and 1"):
            simultaneous_rank_ranges(table_sums([[0.1, 0.2]]), level=95.0)


class TestUnbiasedEce:
    def test_error_of_the_calibrated_is_near_nothing_and_of_others_near_the_truth(self) -> None:
        """The plug-in error is too high by 0.03 to 0.06 with 150 forecasts."""
        long = simulate("clustered", forecasters=4, events=4000, seed=77).panel
        truth, counts = ece(long), resample_counts(50, 200)
        raw, estimates, hits = [], [], []
        for seed in range(60):
            panel = simulate("clustered", forecasters=4, events=50, seed=seed).panel
            value, interval = unbiased_ece(panel, counts)
            raw.append(ece(panel))
            estimates.append(value)
            hits.append((interval[:, 0] <= truth) & (truth <= interval[:, 1]))
        assert (np.mean(raw, axis=0) - truth > 0.02).all()
        assert np.mean(estimates, axis=0) == pytest.approx(truth, abs=0.02)
        assert (np.mean(hits, axis=0) >= 0.9).all()
        assert np.mean(hits) >= 0.93

    def test_interval_holds_the_estimate_and_begins_at_0_where_chance_explains_all(self) -> None:
        from_nothing = []
        for seed in range(10):
            panel = simulate("knowledge", forecasters=5, events=30, seed=seed).panel
            value, interval = unbiased_ece(panel, resample_counts(30))
            assert ((interval[:, 0] <= value) & (value <= interval[:, 1])).all()
            from_nothing.append(interval[:, 0] == 0)
        assert np.mean(from_nothing) > 0.9

    def test_clear_error_is_kept(self) -> None:
        """Forecasts of 0.9 of which a half happen, in 400 events of their own: 0.4 more or less 1.96 x 0.025."""
        panel = table_panel(np.full((1, 400), 0.9), np.arange(400) % 2)
        value, interval = unbiased_ece(panel, resample_counts(400, 2000))
        assert value == pytest.approx([0.4], abs=0.004)
        assert interval[0] == pytest.approx([0.351, 0.449], abs=0.008)

    def test_few_events_have_an_estimate_and_no_interval(self) -> None:
        panel = simulate("clustered", forecasters=2, events=3, seed=1).panel
        value, interval = unbiased_ece(panel, resample_counts(3))
        assert (value >= 0).all()
        assert np.isnan(interval).all()

    def test_tails_beyond_the_draws_are_wider_still(self) -> None:
        panel = simulate("clustered", forecasters=2, events=40, seed=2).panel
        counts = resample_counts(40, 200)
        usual, narrow = unbiased_ece(panel, counts).interval, unbiased_ece(panel, counts, level=0.9999).interval
        assert (narrow[:, 1] > usual[:, 1]).all()

    def test_counts_over_other_events_are_refused(self) -> None:
        panel = simulate("clustered", forecasters=2, events=4, seed=2).panel
        with pytest.raises(ValueError, match="counts: one column per event, 4"):
            unbiased_ece(panel, resample_counts(5, 4))


def table_panel(forecasts: Floats, outcomes: Floats):  # type: ignore[no-untyped-def]
    from forecast_rank.metrics.panel import from_arrays

    return from_arrays(forecasts[:, :, None], np.asarray(outcomes, dtype=np.float64)[:, None], exclusive=False)


class TestModels:
    @pytest.mark.parametrize("world", ["clustered", "missing at random"])
    def test_sums_of_a_model_have_its_values_and_errors(self, world: str) -> None:
        panel = simulate(world, forecasters=6, events=60, seed=5).panel
        adjusted, pairwise, irt = adjusted_brier(panel, brier(panel)), pairwise_ability(panel), fit_irt(panel)
        for sums, value, error in (
            (adjusted.sums, adjusted.value, adjusted.se),
            (pairwise.sums, pairwise.value, pairwise.se),
            (irt.sums, irt.ability, irt.ability_se),
        ):
            assert sums.means == pytest.approx(value)
            assert cluster_se(sums) == pytest.approx(error, rel=0.02)

    def test_adjusted_scores_are_plain_ones_where_all_answered_everything(self) -> None:
        panel = simulate("clustered", forecasters=5, events=20, seed=6).panel
        plain, adjusted = event_sums(panel, brier(panel)), adjusted_brier(panel, brier(panel)).sums
        counts = resample_counts(20)
        assert adjusted.means == pytest.approx(plain.means)
        assert studentised_interval(adjusted, counts) == pytest.approx(studentised_interval(plain, counts), rel=1e-6)

    def test_resampled_ability_has_the_spread_of_its_standard_error(self) -> None:
        panel = simulate("clustered", forecasters=6, events=200, seed=7).panel
        ability = pairwise_ability(panel)
        draws = bootstrap_means(ability.sums, resample_counts(200, 2000))
        assert draws.std(axis=0) == pytest.approx(ability.se, rel=0.08)


class TestRanges:
    """Interval ends stay within the range of the score, whatever the skew of few events."""

    @pytest.mark.parametrize("interval", ["studentised", "percentile", "bca"])
    @pytest.mark.parametrize("questions", [5, 60])
    def test_no_interval_of_probabilities_leaves_its_scores_range(self, interval: str, questions: int) -> None:
        generator = np.random.default_rng(3)
        entries = {
            "mostly": [0.999] * 59 + [0.0],
            "often": [0.95] * 58 + [0.0] * 2,
            "any": generator.random(60).tolist(),
        }
        columns = {"question": [f"q{j}" for j in range(60)], "outcome": [1] * 60} | entries
        frame = pl.DataFrame(columns)[60 - questions :]
        ranges = {"log": (np.log(1e-6), 0), "brier": (0, 1), "adjusted_brier": (0, 1), "spherical": (0, 1)}
        content = fr.rank(frame, metrics=list(ranges), bootstrap=400, interval=interval).to_dict()
        for entry in (content["forecasters"] | content["references"]).values():
            for name, (low, high) in ranges.items():
                if entry[f"{name}_ci"] is not None:
                    assert low <= entry[f"{name}_ci"][0] <= entry[name] <= entry[f"{name}_ci"][1] <= high, name


class TestConstantScores:
    def test_ten_of_ten_right_have_an_exact_interval(self) -> None:
        frame = pl.DataFrame({
            "forecaster": ["a"] * 10 + ["b"] * 10, "question": [f"q{j}" for j in range(10)] * 2,
            "probability": [0.8] * 10 + [0.4] * 10, "outcome": [1] * 20,
        })  # fmt: skip
        entries = fr.rank(frame, bootstrap=200).to_dict()["forecasters"]
        assert entries["a"]["accuracy_ci"] == pytest.approx([0.025**0.1, 1.0])
        assert entries["b"]["accuracy_ci"] == pytest.approx([0.0, 1 - 0.025**0.1])

    def test_equal_forecasters_share_their_ranks_whatever_rounding_does(self) -> None:
        chance, outcomes = np.random.default_rng(0), [j % 2 for j in range(8)]
        columns = {"question": [f"q{j}" for j in range(8)], "outcome": outcomes}
        columns |= {name: list(map(float, outcomes)) for name in ("first", "second")}
        columns |= {name: chance.random(8).tolist() for name in ("noise", "hiss")}
        entries = fr.rank(pl.DataFrame(columns), bootstrap=200).to_dict()["forecasters"]
        for name in ("first", "second"):
            assert (entries[name]["adjusted_brier"], entries[name]["adjusted_brier_ci"]) == (0, None)
            assert entries[name]["rank_ranges"]["adjusted_brier"][0] == 1

    @pytest.mark.parametrize("interval", ["studentised", "percentile", "bca"])
    def test_constant_score_has_no_interval_and_a_reason(self, interval: str) -> None:
        columns = {"question": [f"q{j}" for j in range(10)], "outcome": [1] * 10, "a": [0.8] * 10, "b": [0.6] * 10}
        content = fr.rank(pl.DataFrame(columns), bootstrap=200, interval=interval).to_dict()
        for entry in content["forecasters"].values():
            intervals = [ends for key, ends in entry.items() if key.endswith("_ci") and isinstance(ends, list)]
            assert all(ends[0] < ends[1] for ends in intervals)
            assert entry["brier_ci"] is None
        assert content["no_interval"]["brier"] == "the score is the same on all events: a, b"
