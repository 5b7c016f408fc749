"""Means of units that share clusters: by hand, against statsmodels and a jackknife, and in simulated worlds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.cluster_means import cluster_means, observed_means, paired_by_cluster, rank_ranges_of_tests
from forecast_rank.metrics.paired_tests import corrected_margins, holm
from tests.lazy_modules import sm, stats

nan = np.nan


def overlapping(generator: np.random.Generator, families: int, cohorts: int, length: int = 10) -> np.ndarray:
    """Portfolios of equal families that start weekly, run `length` weeks and share heavy-tailed shocks of each week."""
    weeks = cohorts + length - 1
    shared = generator.standard_t(3, (families, 1, weeks))
    values = 0.6**0.5 * shared + 0.4**0.5 * generator.standard_t(3, (families, cohorts, weeks))
    age = np.arange(weeks) - np.arange(cohorts)[:, None]
    return np.where((age >= 0) & (age < length), values, nan)


class TestClusterMeans:
    def test_by_hand(self) -> None:
        """Y = 3, 5, 1 and n = 1, 2, 1 of two units: mean 4.5; r = .75, .5, -1.25; h = 1/4, 1/2, 1/4.

        r / (1 - h) = 1, 1, -5/3; sum of squares 43/9; SE = sqrt(2/3 43/9) / 2; sum n^2 = 6: 16/6 - 1 = 5/3 degrees,
        less than (9 + 25 + 1)^2 / (81 + 625 + 1) = 1.7327.
        """
        means = cluster_means([[3.0, 5.0, 1.0]], [[1, 2, 1]], [2])
        assert means.value.tolist() == [4.5]
        assert means.standard_error == pytest.approx([(2 / 3 * 43 / 9) ** 0.5 / 2])
        assert means.freedom == pytest.approx([5 / 3])
        reach = stats.t(5 / 3).ppf(0.975) * means.standard_error[0]
        assert means.intervals()[0] == pytest.approx([4.5 - reach, 4.5 + reach])

    def test_one_large_cluster_leaves_few_degrees_of_freedom(self) -> None:
        """Y = 10, 1, 1, 1: (100 + 3)^2 / (10,000 + 3) = 1.0606, although four clusters are equally large."""
        assert cluster_means([[10.0, 1.0, 1.0, 1.0]], np.ones((1, 4)), [4]).freedom == pytest.approx([10609 / 10003])

    def test_error_is_that_of_statsmodels_hc3_and_of_the_jackknife(self) -> None:
        """The mean per observed unit is a regression of Y / n on 1 with weights n, whose leverages are the shares h."""
        generator = np.random.default_rng(4)
        for clusters in (2, 3, 9, 40):
            total, observed = generator.normal(1, 3, clusters), generator.integers(1, 8, clusters)
            means = cluster_means([total], [observed], [observed.sum()])
            fit = sm.WLS(total / observed, np.ones(clusters), weights=observed).fit(cov_type="HC3")
            assert means.value == pytest.approx(fit.params)
            assert means.standard_error == pytest.approx(fit.bse * ((clusters - 1) / clusters) ** 0.5)
            without = (total.sum() - total) / (observed.sum() - observed)
            jackknife = (clusters - 1) / clusters * np.square(without - means.value).sum()
            assert means.standard_error == pytest.approx([jackknife**0.5])

    def test_one_unit_a_cluster_is_the_plain_mean(self) -> None:
        values = np.random.default_rng(5).normal(size=12)
        means = cluster_means([values], np.ones((1, 12)), [12])
        assert means.standard_error == pytest.approx([values.std(ddof=1) / 12**0.5])

    def test_clusters_without_units_take_no_part(self) -> None:
        bare, padded = ([3.0, 5.0, 1.0], [1, 2, 1]), ([0.0, 3.0, 5.0, 0.0, 1.0], [0, 1, 2, 0, 1])
        one, second = (cluster_means([total], [observed], [2]) for total, observed in (bare, padded))
        assert np.concatenate(one) == pytest.approx(np.concatenate(second))

    def test_one_cluster_and_none_have_no_error_and_constant_ones_no_interval(self) -> None:
        means = cluster_means([[3.0, 0.0], [0.0, 0.0], [0.3, 0.6]], [[2, 0], [0, 0], [1, 2]], [2, 0, 1])
        assert means.value.tolist()[0] == 1.5
        assert np.isnan(means.value[1])
        assert np.isnan(means.standard_error).tolist() == [True, True, False]
        assert means.standard_error[2] == 0
        assert np.isnan(means.intervals()).all()

    def test_units_of_a_table_by_hand(self) -> None:
        """Units of 3 and 6 in three weeks: Y = 3, 5, 1 and n = 1, 2, 1 as above."""
        table = [[[3.0, 0.0, nan], [nan, 5.0, 1.0]]]
        by_hand = cluster_means([[3.0, 5.0, 1.0]], [[1, 2, 1]], [2])
        assert np.concatenate(observed_means(table)) == pytest.approx(np.concatenate(by_hand))

    @pytest.mark.parametrize(
        ("sums", "observed", "units", "message"),
        [
            ([[1.0, 2.0]], [[1, 0]], [1], "sums: not 0 in a cluster"),
            ([[1.0]], [[1, 1]], [1], "shapes"),
            ([[1.0]], [[1]], [1, 1], "shapes"),
        ],
    )
    def test_bad_argument_is_named(self, sums: list, observed: list, units: list, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            cluster_means(sums, observed, units)

    def test_overlapping_units_hold_the_truth_where_a_t_interval_over_units_does_not(self) -> None:
        worlds = overlapping(np.random.default_rng(6), 600, 12)
        hits = np.abs(observed_means(worlds).value) <= np.ptp(observed_means(worlds).intervals(), axis=1) / 2
        sums = np.nansum(worlds, axis=2)
        reach = stats.t(11).ppf(0.975) * sums.std(axis=1, ddof=1) / 12**0.5
        assert hits.mean() > 0.95
        assert (np.abs(sums.mean(axis=1)) <= reach).mean() < 0.75


class TestPairedByCluster:
    def test_by_hand(self) -> None:
        """Differences by week 1, 4 and 0 of two common units, which are seen once, twice and once.

        5/2 on average; r = -1/4, 3/2, -5/4; over 1 - h: -1/3, 3, -5/3; SE = sqrt(2/3 (1 + 81 + 25) / 9) / 2; one
        degree of freedom, since (1 + 16)^2 / (1 + 256) = 1.1245 is above it: 1.1245.
        """
        first = [[2.0, 3.0, nan], [nan, 2.0, 1.0], [nan, nan, 9.0]]
        second = [[1.0, 1.0, nan], [nan, 0.0, 1.0], [nan, nan, nan]]
        tests = paired_by_cluster([first, second])
        error = (2 / 3 * 107 / 9) ** 0.5 / 2
        assert (tests.n.tolist(), tests.events.tolist(), tests.difference.tolist()) == ([2], [3], [2.5])
        assert tests.se == pytest.approx([error])
        assert tests.p == pytest.approx([2 * stats.t(289 / 257).sf(2.5 / error)])

    def test_pairs_without_a_common_unit_have_no_test_and_equal_ones_p_of_1(self) -> None:
        alone = [[nan, nan], [5.0, 6.0]]
        one = [[1.0, 2.0], [nan, nan]]
        tests = paired_by_cluster([one, alone, one])
        assert tests.n.tolist() == [0, 1, 0]
        assert np.isnan(tests.p).tolist() == [True, False, True]
        assert tests.p_holm[1] == 1

    def test_seven_equals_are_seldom_told_apart_where_paired_tests_by_unit_claim_it_mostly(self) -> None:
        generator, worlds = np.random.default_rng(7), 60
        false, naive = 0, 0
        for _ in range(worlds):
            values = overlapping(generator, 7, 12)
            false += bool((paired_by_cluster(values).p_holm < 0.05).any())
            sums = np.nansum(values, axis=2)
            p = [stats.ttest_rel(sums[i], sums[j]).pvalue for i in range(7) for j in range(i)]
            naive += bool((holm(p) < 0.05).any())
        assert false <= 4
        assert naive >= 25

    def test_ranges_agree_with_the_tests(self) -> None:
        values = overlapping(np.random.default_rng(8), 5, 26)
        values[4] += 1.5
        tests = paired_by_cluster(values)
        assert (tests.p_holm[tests.second == 4] < 0.05).all()
        assert rank_ranges_of_tests(tests, 5).tolist() == [[2, 5]] * 4 + [[1, 1]]


class TestMargins:
    @given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=12), st.integers(1, 40))
    def test_interval_leaves_out_0_exactly_where_holm_finds_a_difference(self, p: list[float], freedom: int) -> None:
        statistic = stats.t(freedom).isf(np.array(p) / 2)
        corrected = holm(p)
        margin = corrected_margins(np.ones(len(p)), np.full(len(p), freedom), p)
        clear = np.abs(corrected - 0.05) > 1e-9
        assert ((statistic > margin) == (corrected < 0.05))[clear].all()

    def test_by_hand_of_two_pairs(self) -> None:
        """The first is corrected by 2, the second by 1: t at 1.25 and 2.5 % in the tail, 10 degrees of freedom."""
        assert corrected_margins([2.0, 1.0], [10, 10], [0.01, 0.4]) == pytest.approx([2 * 2.633767, 2.228139], abs=1e-6)
        assert np.isnan(corrected_margins([0.0, nan], [10, nan], [1.0, nan])).all()
