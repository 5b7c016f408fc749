"""Resampled means against brute force, SciPy and statsmodels, and against the truth in simulations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.panel import references
from forecast_rank.metrics.sample_mean import (
    bounded_cluster_interval,
    clopper_pearson,
    cluster_interval,
    clustered_share_intervals,
    t_interval,
)
from forecast_rank.metrics.uncertainty import (
    EventSums,
    bca_interval,
    bootstrap_means,
    cluster_se,
    event_sums,
    percentile_interval,
    resample_counts,
    table_sums,
)
from tests.forecast_rank.panels import panel, rows_of, scored, synthetic
from tests.lazy_modules import proportion, resampling, sm, stats

nan = np.nan


def draws_of(sums: EventSums, resamples: int = 1000, seed: int = 0) -> np.ndarray:
    return bootstrap_means(sums, resample_counts(sums.sums.shape[1], resamples, seed))


def clustered(generator: np.random.Generator, experiments: int, events: int) -> tuple[EventSums, EventSums]:
    """Many experiments of mean 0: events of 1 to 8 forecasts that share half of their variance.

    The same numbers twice: summed by event, and as if every forecast were an event of its own.
    """
    event = np.repeat(np.arange(events), generator.integers(1, 9, events))
    shared = generator.exponential(1, (experiments, events)) - 1
    values = shared[:, event] + generator.normal(0, 1, (experiments, len(event)))
    data, flat = scored(values, event)
    return event_sums(data, flat), table_sums(values)


class TestEventSums:
    def test_by_hand(self) -> None:
        """0.3 weighs 2; the second question of event 0 went unanswered by the second forecaster."""
        data, values = scored([[0.1, 0.3, 0.5], [0.2, nan, 0.4]], [0, 0, 1], [[1, 2, 1], [1, 1, 4]])
        sums = event_sums(data, values)
        assert sums.sums == pytest.approx(np.array([[0.7, 0.5], [0.2, 1.6]]))
        assert sums.weights.tolist() == [[3, 1], [1, 4]]
        assert sums.means == pytest.approx([0.3, 0.36])
        assert sums.events.tolist() == [2, 2]

    def test_means_are_those_of_the_panel(self) -> None:
        data = synthetic(6, 90, 3, event_size=4, weighted=True).panel
        values = np.random.default_rng(0).random(len(data))
        values[::7] = nan
        assert event_sums(data, values).means == pytest.approx(data.forecaster_means(values))

    def test_value_that_is_not_defined_leaves_its_forecast_out(self) -> None:
        data, _ = scored([[1.0, 1.0]])
        sums = event_sums(data, np.array([0.4, nan]))
        assert (sums.means.tolist(), sums.events.tolist(), sums.weights.tolist()) == ([0.4], [1], [[1, 0]])

    def test_event_that_nobody_forecast_is_not_drawn(self) -> None:
        data, values = scored([[0.1, nan, 0.3]])
        assert event_sums(data, values).weights.tolist() == [[1, 1]]

    def test_references_have_the_same_events_so_that_they_share_resamples(self) -> None:
        """Nobody answered on event 1 and nobody saw a price."""
        data, values = scored([[0.1, nan, 0.3], [nan, nan, 0.5]])
        reference_panel = references(data)
        assert event_sums(data, values).weights.tolist() == [[1, 1], [0, 1]]
        theirs = dict(
            zip(
                reference_panel.forecasters,
                event_sums(reference_panel, np.ones(len(reference_panel))).weights.tolist(),
                strict=True,
            )
        )
        assert theirs == {"market": [0, 0], "uniform": [1, 1], "ensemble": [1, 1]}

    def test_ruin_leaves_its_forecaster_without_a_mean_and_the_others_alone(self) -> None:
        data, values = scored([[0.1, -np.inf, 0.3], [0.5, 0.6, 0.7]])
        sums = event_sums(data, values)
        assert np.isnan(sums.means).tolist() == [True, False]
        assert np.isnan(percentile_interval(draws_of(sums))).tolist() == [[True, True], [False, False]]
        assert np.isnan(bca_interval(draws_of(sums), sums)).tolist() == [[True, True], [False, False]]
        assert np.isnan(cluster_se(sums)).tolist() == [True, False]


class TestResamples:
    def test_each_draws_as_many_events_as_there_are(self) -> None:
        counts = resample_counts(37, 50)
        assert counts.shape == (50, 37)
        assert (counts.sum(axis=1) == 37).all()

    def test_same_seed_same_draws_whatever_numpy_drew_before(self) -> None:
        first = resample_counts(20, 5, seed=4)
        np.random.default_rng().random()
        assert (resample_counts(20, 5, seed=4) == first).all()
        assert (resample_counts(20, 5, seed=5) != first).any()

    def test_counts_are_multinomial(self) -> None:
        """Of E events each has mean 1, variance 1 - 1/E, and covariance -1/E with any other."""
        counts = resample_counts(5, 40_000, seed=1).astype(float)
        assert counts.mean(axis=0) == pytest.approx(np.ones(5), abs=0.02)
        assert np.cov(counts.T) == pytest.approx(np.eye(5) - 0.2, abs=0.03)

    def test_means_are_those_of_the_forecasts_drawn_one_by_one(self) -> None:
        data = synthetic(3, 40, 5, event_size=3, weighted=True, missing=0.4).panel
        values = np.random.default_rng(1).random(len(data))
        sums, counts = event_sums(data, values), resample_counts(14, 450, seed=2)
        event = data.questions.event[data.question]
        for draw, row in zip(counts, bootstrap_means(sums, counts), strict=True):
            for person in range(3):
                picked = np.repeat(np.arange(len(data)), np.where(data.forecaster == person, draw[event], 0))
                assert row[person] == pytest.approx(np.average(values[picked], weights=data.weight[picked]))

    def test_what_all_share_cancels_between_forecasters(self) -> None:
        """One resample for all: who is 0.1 worse on every event is 0.1 worse in every draw."""
        values = np.random.default_rng(2).random(30)
        draws = draws_of(table_sums([values, values + 0.1]))
        assert draws[:, 1] - draws[:, 0] == pytest.approx(np.full(1000, 0.1))

    def test_one_event_says_nothing_about_spread(self) -> None:
        sums = table_sums([[0.2, nan], [0.1, 0.3]])
        assert np.isnan(draws_of(sums)).all(axis=0).tolist() == [True, False]
        assert np.isnan(cluster_se(sums)).tolist() == [True, False]
        assert np.isnan(bca_interval(draws_of(sums), sums)).all(axis=1).tolist() == [True, False]

    def test_counts_over_other_events_are_refused(self) -> None:
        with pytest.raises(ValueError, match="counts: one column per event, 2"):
            bootstrap_means(table_sums([[0.2, 0.1]]), resample_counts(3, 4))


class TestIntervals:
    def test_percentile_is_numpys_quantile(self) -> None:
        draws = np.random.default_rng(3).random((777, 4))
        expected = np.quantile(draws, [0.05, 0.95], axis=0).T
        assert percentile_interval(draws, 0.9) == pytest.approx(expected, abs=1e-15)

    def test_percentile_leaves_undefined_draws_out(self) -> None:
        draws = np.array([[nan, nan], [1.0, nan], [3.0, nan], [nan, nan], [2.0, nan]])
        low, high = percentile_interval(draws, 0.5)
        assert (low.tolist(), np.isnan(high).tolist()) == ([1.5, 2.5], [True, True])

    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("level", [0.8, 0.95])
    def test_bca_is_scipys_on_the_same_draws(self, seed: int, level: float) -> None:
        generator = np.random.default_rng(seed)
        data, values = scored(generator.exponential(1, (3, 40)), np.arange(40) // 3, generator.uniform(1, 3, (3, 40)))
        sums = event_sums(data, values)
        draws = draws_of(sums, 999, seed)
        for person, interval in enumerate(bca_interval(draws, sums, level)):
            before = resampling.BootstrapResult(None, bootstrap_distribution=draws[:, person], standard_error=None)
            theirs = stats.bootstrap(
                (sums.sums[person], sums.weights[person]),
                lambda s, weights, axis: s.sum(axis=axis) / weights.sum(axis=axis),
                paired=True, n_resamples=0, bootstrap_result=before, method="BCa", confidence_level=level,
            ).confidence_interval  # fmt: skip
            assert interval == pytest.approx([theirs.low, theirs.high], abs=1e-12)

    def test_bca_comes_near_scipys_own_draws(self) -> None:
        sample = np.random.default_rng(8).exponential(1, 50)
        theirs = stats.bootstrap((sample,), np.mean, n_resamples=20_000, rng=1).confidence_interval
        sums = table_sums([sample])
        assert bca_interval(draws_of(sums, 20_000), sums)[0] == pytest.approx([theirs.low, theirs.high], abs=0.01)

    def test_bca_of_a_symmetric_sample_is_the_percentile_interval(self) -> None:
        half = np.random.default_rng(0).random(100)
        sums = table_sums([np.concatenate([half, -half])])
        draws = draws_of(sums, 20_000)
        assert bca_interval(draws, sums) == pytest.approx(percentile_interval(draws), abs=0.003)

    def test_who_always_scores_the_same_has_an_interval_of_that_point(self) -> None:
        sums = table_sums([[0.1] * 7])
        assert bca_interval(draws_of(sums), sums) == pytest.approx(np.array([[0.1, 0.1]]))
        assert cluster_se(sums) == pytest.approx([0.0], abs=1e-15)

    def test_bca_stays_within_the_draws_when_all_lie_on_one_side_of_the_mean(self) -> None:
        sums = table_sums([[0.0, 0.0, 1.0]])
        low, high = bca_interval(np.array([[0.4], [0.5], [0.6]]), sums)[0]
        assert 0.4 <= low <= high <= 0.6

    @pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
    def test_level_in_percent_is_refused(self, level: float) -> None:
        sums = table_sums([[0.1, 0.2]])
        draws = draws_of(sums, 10)
        for interval in (
            lambda: percentile_interval(draws, level),
            lambda: bca_interval(draws, sums, level),
        ):
            with pytest.raises(ValueError, match="level: between 0 and 1"):
                interval()

    def test_intervals_hold_the_truth_as_often_as_they_say_where_events_cluster(self) -> None:
        """1,500 experiments, 60 events: three standard errors of a share of 0.95 are 0.017; small samples cost 0.01."""
        by_event, by_forecast = clustered(np.random.default_rng(11), experiments=1500, events=60)

        def holds(intervals: np.ndarray) -> float:
            return float(np.mean((intervals[:, 0] <= 0) & (intervals[:, 1] >= 0)))

        draws = draws_of(by_event, 2000)
        reach = stats.t.ppf(0.975, 59) * cluster_se(by_event)
        analytic = by_event.means[:, None] + np.stack([-reach, reach], axis=1)
        for intervals in (percentile_interval(draws), bca_interval(draws, by_event), analytic):
            assert 0.923 < holds(intervals) < 0.967
        assert 0.76 < holds(percentile_interval(draws, 0.8)) < 0.83
        assert holds(percentile_interval(draws_of(by_forecast, 2000))) < 0.80


class TestClusterSE:
    def test_by_hand(self) -> None:
        """Sums 1, 2, 6 over weights 1, 2, 3: mean 1.5, residuals -.5, -1, 1.5; sqrt(3/2 x 3.5) / 6."""
        sums = EventSums(np.array([[1.0, 2, 6]]), np.array([[1.0, 2, 3]]))
        assert cluster_se(sums) == pytest.approx([np.sqrt(1.5 * 3.5) / 6])

    def test_size_of_the_block_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sums = table_sums(np.random.default_rng(3).random((7, 20)))
        full_error = cluster_se(sums)
        monkeypatch.setattr("forecast_rank.metrics.blocks.CELLS", 50)
        assert cluster_se(sums).tolist() == full_error.tolist()

    def test_is_statsmodels_for_weighted_clustered_values(self) -> None:
        generator = np.random.default_rng(5)
        event, weight, values = np.arange(60) // 4, generator.uniform(0.5, 2, 60), generator.random(60)
        fit = sm.WLS(values, np.ones(60), weights=weight).fit(cov_type="cluster", cov_kwds={"groups": event})
        sums = event_sums(*scored([values], event, [weight]))
        assert sums.means == pytest.approx(fit.params)
        assert cluster_se(sums) == pytest.approx(fit.bse)

    def test_bootstrap_gives_the_same(self) -> None:
        data = synthetic(8, 900, 2, event_size=3, weighted=True).panel
        sums = event_sums(data, np.square(data.probability - data.outcome)[data.offsets[:-1]])
        assert draws_of(sums, 4000).std(axis=0) == pytest.approx(cluster_se(sums), rel=0.05)

    def test_is_the_spread_of_the_mean_over_experiments(self) -> None:
        by_event, by_forecast = clustered(np.random.default_rng(12), experiments=2000, events=60)
        spread = by_event.means.std()
        assert np.sqrt(np.mean(cluster_se(by_event) ** 2)) == pytest.approx(spread, rel=0.06)
        assert np.sqrt(np.mean(cluster_se(by_forecast) ** 2)) < 0.7 * spread


NOISE = np.random.default_rng(4).random(200) * 1e6


class TestRanks:
    def test_one_forecaster_on_one_question(self) -> None:
        sums = event_sums(panel(rows_of("ann", "q", [0.7, 0.3], 0)), np.array([0.09]))
        draws = draws_of(sums, 10)
        assert sums.means.tolist() == [0.09]
        assert np.isnan(percentile_interval(draws)).all()


class TestOneSample:
    """`t_interval`, `cluster_interval` and `bounded_cluster_interval`."""

    def test_t_interval_by_hand(self) -> None:
        """Mean 2 and s = 2 of (0, 2, 4); SE = 2/sqrt(3); t(0.975, 2) = 4.302653."""
        mean, error, interval = t_interval([0.0, 2.0, 4.0])
        assert (mean, error) == (2.0, pytest.approx(2 / 3**0.5))
        assert interval == pytest.approx((2 - 4.302653 * 2 / 3**0.5, 2 + 4.302653 * 2 / 3**0.5), abs=1e-5)

    def test_one_value_has_a_mean_and_no_interval_and_none_has_nothing(self) -> None:
        assert t_interval([7.0]) == (7.0, None, None)
        with pytest.raises(ValueError, match="mean of nothing"):
            t_interval([])

    def test_cluster_interval_changes_with_the_seed_and_not_with_names_of_clusters(self) -> None:
        values, clusters = np.random.default_rng(2).random(60), np.arange(60) // 3
        assert cluster_interval(values, clusters) == cluster_interval(values, clusters)
        assert cluster_interval(values, clusters) != cluster_interval(values, clusters, seed=1)
        assert cluster_interval(values, [f"c{cluster}" for cluster in 1000 + clusters]) == cluster_interval(
            values, clusters
        )

    def test_values_of_one_event_are_drawn_together_so_that_copies_add_no_certainty(self) -> None:
        values, events = np.random.default_rng(3).random(20), np.arange(20)
        once = cluster_interval(values, events)
        assert cluster_interval(np.repeat(values, 10), np.repeat(events, 10)) == pytest.approx(once)
        low, high = cluster_interval(np.repeat(values, 10), np.arange(200)) or (0, 0)
        assert high - low < 0.6 * (once[1] - once[0])  # type: ignore[index]

    def test_cluster_interval_comes_near_the_normal_one_for_many_events(self) -> None:
        values = np.random.default_rng(4).normal(0, 1, 400)
        low, high = cluster_interval(values, np.arange(400), resamples=4000) or (0, 0)
        assert (low, high) == pytest.approx((values.mean() - 1.96 / 20, values.mean() + 1.96 / 20), abs=0.015)

    def test_one_event_gives_no_interval(self) -> None:
        assert cluster_interval([0.1, 0.9], ["same", "same"]) is None
        assert cluster_interval([], []) is None

    def test_bounded_interval_by_hand(self) -> None:
        """Four events of 0: w = 1, T = 5, mu = .1, v = (.04 + .41) / 25 = .018, k = 4: Beta(.4, 3.6)."""
        expected = (0.0, stats.beta(0.4, 3.6).ppf(0.975))
        assert bounded_cluster_interval([0.0] * 4, list("abcd")) == pytest.approx(expected)

    def test_bounded_interval_by_hand_of_unequal_events(self) -> None:
        """W = 2, 1, 1, 1 and S = 1, 1, 0, 1: w = 1.4, T = 6.4, mu = 3.7 / 6.4."""
        mu = 3.7 / 6.4
        variance = ((1 - 2 * mu) ** 2 + 2 * (1 - mu) ** 2 + mu**2 + 0.98 * (mu**2 + (1 - mu) ** 2)) / 6.4**2
        k = mu * (1 - mu) / variance - 1
        expected = stats.beta(mu * k, (1 - mu) * k).ppf([0.025, 0.975])
        assert bounded_cluster_interval([1, 0, 1, 0, 1], list("aabcd")) == pytest.approx(tuple(expected))

    def test_bounded_interval_takes_four_events_and_values_from_0_to_1(self) -> None:
        assert bounded_cluster_interval([0.2, 0.3, 0.4, 0.5], list("aabc")) is None
        assert bounded_cluster_interval([], []) is None
        for value in (1.5, nan):
            with pytest.raises(ValueError, match="at 1 is outside 0 to 1"):
                bounded_cluster_interval([0.5, value], list("ab"))

    @given(st.lists(st.tuples(st.integers(0, 7), st.floats(0, 1)), min_size=4, max_size=60))
    def test_bounded_interval_stays_in_range_holds_the_mean_and_has_a_width(
        self, rows: list[tuple[int, float]]
    ) -> None:
        events, values = zip(*rows, strict=True)
        interval = bounded_cluster_interval(values, events)
        assert (interval is None) == (len(set(events)) < 4)
        if interval is not None:
            assert 0 <= interval[0] <= np.mean(values) + 1e-12
            assert np.mean(values) - 1e-12 <= interval[1] <= 1
            assert interval[1] - interval[0] > 0.01


class TestShares:
    """`clopper_pearson` and `clustered_share_intervals`."""

    def test_exact_interval_is_statsmodels(self) -> None:
        for successes, trials in ((0, 4), (3, 10), (10, 10), (57, 80)):
            expected = proportion.proportion_confint(successes, trials, method="beta")
            assert clopper_pearson(successes / trials, trials) == pytest.approx(np.array(expected))

    def test_ten_right_of_ten_by_hand(self) -> None:
        """The probability p of ten successes is p^10 = .025 at the lower end."""
        assert clustered_share_intervals(table_sums([[1.0] * 10])) == pytest.approx(np.array([[0.025**0.1, 1.0]]))

    def test_independent_answers_are_clopper_pearsons_up_to_the_divisor(self) -> None:
        """SE^2 = p (1 - p) / (n - 1), so that the effective number is n - 1."""
        answers = [1.0] * 14 + [0.0] * 6
        assert clustered_share_intervals(table_sums([answers]))[0] == pytest.approx(clopper_pearson(0.7, 19))

    def test_copies_within_an_event_add_no_certainty(self) -> None:
        sums = table_sums([[1.0] * 14 + [0.0] * 6, [1.0] * 20])
        once, copied = (clustered_share_intervals(EventSums(k * sums.sums, k * sums.weights)) for k in (1, 5))
        assert copied[1] == pytest.approx(once[1])
        assert copied[0] == pytest.approx(once[0], abs=0.02)

    def test_few_events_have_none_and_halves_alone_stay_in_range(self) -> None:
        assert np.isnan(clustered_share_intervals(table_sums([[1.0, 0.0, 1.0]]))).all()
        low, high = clustered_share_intervals(table_sums([[0.5] * 6]))[0]
        assert 0 < low < 0.5 < high < 1
