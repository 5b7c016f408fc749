"""Errors and tests of mean returns by calendar week: by hand, and in worlds of equal families that share weeks."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from arena_verifier.intervals import rank_ranges, return_error, return_pairs, week_mean
from arena_verifier.weeks import split_return
from scoring.selectors.return_pairs import pair_values
from tests.lazy_modules import stats

SUNDAY = datetime(2026, 3, 8, tzinfo=UTC)
DAY = timedelta(days=1)


def overlapping(generator: np.random.Generator, families: int, cohorts: int) -> dict[str, dict[int, dict[int, float]]]:
    """Cohorts that start weekly, live ten weeks, and share six tenths of each week's shock within a family."""
    worlds: dict[str, dict[int, dict[int, float]]] = {}
    for number in range(families):
        common = generator.standard_t(3, cohorts + 10)
        worlds[f"f{number}"] = {}
        for cohort in range(cohorts):
            own = generator.standard_t(3, 10)
            weeks = range(cohort, cohort + 10)
            worlds[f"f{number}"][cohort] = dict(zip(weeks, 0.6 * common[cohort : cohort + 10] + 0.4 * own, strict=True))
    return worlds


def test_error_by_hand_where_weeks_are_shared() -> None:
    """Two cohorts of 3, 0 and -1: Y = 6, 0, -2 and h = 1/3, so that r / (1 - h) = 7, -2, -5; 2/3 · 78 = 52.

    Independent cohort-weeks have 2 (49 + 4 + 25) / 9 = 17.3, which is less.
    """
    weeks = {1: 3.0, 2: 0.0, 3: -1.0}
    means = week_mean([weeks, weeks])
    assert (means.mean, means.weeks, means.cohorts) == (2.0, 3, 2)
    assert means.error == pytest.approx(52**0.5 / 2)
    assert means.freedom == pytest.approx((36 + 4) ** 2 / (6**4 + 2**4))
    error, half = return_error({"1": weeks, "2": weeks})
    assert (error, half) == (means.error, pytest.approx(stats.t(means.freedom).ppf(0.975) * 52**0.5 / 2))
    assert means.p == pytest.approx(2 * stats.t(means.freedom).sf(2 / (52**0.5 / 2)))


def test_weeks_that_cancel_by_chance_have_the_error_of_independent_cohort_weeks() -> None:
    """Gains of 4 in one cohort where the other loses 4: each week sums to 1, and CR3 alone would find no error."""
    means = week_mean([{1: 4.5, 2: -3.5, 3: 4.5}, {1: -3.5, 2: 4.5, 3: -3.5}])
    assert means.mean == 1.5
    assert means.error == pytest.approx((6 * 16) ** 0.5 / 2)


def test_without_two_weeks_and_two_cohorts_there_is_no_error_and_equal_returns_have_none() -> None:
    assert week_mean([]).p is week_mean([{1: 2.0, 2: 1.0}]).error is None
    assert week_mean([{1: 2.0}, {1: 3.0}]).error is None
    assert week_mean([{1: 2.0, 2: 1.0}, {}]).cohorts == 1, "a cohort without a week"
    constant = week_mean([{1: 0.3, 2: 0.3}, {1: 0.3, 2: 0.3}])
    assert (constant.error, constant.p, return_error({1: {1: 0.3, 2: 0.3}, 2: {1: 0.3, 2: 0.3}})[1]) == (
        0.0,
        None,
        None,
    )
    assert week_mean([{1: 0.0, 2: 0.0}, {1: 0.0, 2: 0.0}]).p == 1.0


def test_part_of_a_week_under_a_day_is_no_week() -> None:
    def weeks(end: datetime) -> dict[str, float]:
        marks = {SUNDAY + 7 * DAY: Decimal(10_100), SUNDAY + 14 * DAY: Decimal(10_300)}
        returns = split_return(SUNDAY, end, marks.get, Decimal(10_350), Decimal(10_000))
        return {f"{sunday:%m-%d}": value for sunday, value in returns.items()}

    assert weeks(SUNDAY) == weeks(SUNDAY + DAY / 2) == {}
    assert weeks(SUNDAY + DAY) == {"03-08": 3.5}
    assert weeks(SUNDAY + 7 * DAY) == weeks(SUNDAY + 7.9 * DAY) == {"03-08": 3.5}
    assert weeks(SUNDAY + 8 * DAY) == {"03-08": 1.0, "03-15": 2.5}
    assert weeks(SUNDAY + 14.5 * DAY) == {"03-08": 1.0, "03-15": 2.5}, "its change belongs to the week before"
    assert weeks(SUNDAY + 15 * DAY) == {"03-08": 1.0, "03-15": 2.0, "03-22": 0.5}


def test_pairs_are_tested_on_common_cohorts_and_corrected_by_holm() -> None:
    generator = np.random.default_rng(8)
    families = overlapping(generator, 5, 26)
    for weeks in families["f4"].values():
        for week in weeks:
            weeks[week] += 1.5
    del families["f3"][0]
    values = pair_values(return_pairs(families))
    pairs: dict[Any, dict[str, Any]] = {(pair["first"], pair["second"]): pair for pair in values}
    assert [pairs[f"f{k}", "f4"]["p_holm"] < 0.05 for k in range(4)] == [True] * 4
    assert (pairs["f0", "f1"]["cohorts"], pairs["f0", "f3"]["cohorts"], pairs["f0", "f1"]["weeks"]) == (26, 25, 35)
    assert [*rank_ranges(families).values()] == [(2, 5)] * 4 + [(1, 1)]
    for pair in values:
        assert (abs(pair["difference"]) > pair["margin"]) == (pair["p_holm"] < 0.05)


@pytest.mark.parametrize("cohorts", [6, 26])
def test_seven_equals_are_seldom_told_apart_and_their_means_are_held(cohorts: int) -> None:
    generator, worlds, false, held = np.random.default_rng(cohorts), 40, 0, []
    for _ in range(worlds):
        families = overlapping(generator, 7, cohorts)
        false += any((pair.p_holm or 1.0) < 0.05 for pair in return_pairs(families))
        for weeks in families.values():
            error, half = return_error(weeks)
            assert error is not None
            assert half is not None
            held.append(abs(week_mean(weeks.values()).mean) <= half)
    assert false / worlds <= 0.075
    assert np.mean(held) >= 0.95
