"""Rank correlations against their definitions and SciPy, between rankings that hold different forecasters."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.agreement import agreement, kendall, spearman
from tests.lazy_modules import stats

nan = np.nan
POSITIONS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=2, max_size=25)


def tau_b(one: list[float], second: list[float]) -> float:
    """The definition, pair by pair."""
    signs = [(np.sign(one[i] - one[j]), np.sign(second[i] - second[j])) for i, j in combinations(range(len(one)), 2)]
    agree = sum(a * b for a, b in signs)
    return float(agree / np.sqrt(sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)))


def test_by_hand_without_ties() -> None:
    """Squared differences of the ranks sum to 4: rho = 1 - 6 x 4 / 120; two of ten pairs are turned."""
    assert spearman([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx(0.8)
    assert kendall([1, 2, 3, 4, 5], [2, 1, 4, 3, 5]) == pytest.approx(0.6)


def test_by_hand_with_ties() -> None:
    """Ranks 1.5 1.5 3 and 1 2 3: covariance 1.5, sizes sqrt(1.5 x 2); pairs: two agree, one tied in the first only."""
    assert spearman([7, 7, 9], [1, 2, 3]) == pytest.approx(1.5 / 3**0.5)
    assert kendall([7, 7, 9], [1, 2, 3]) == pytest.approx(2 / (2 * 3) ** 0.5)


@given(POSITIONS)
def test_is_scipys_with_any_ties(positions: list[tuple[int, int]]) -> None:
    one, second = (list(column) for column in zip(*positions, strict=True))
    if len(set(one)) == 1 or len(set(second)) == 1:
        assert np.isnan([spearman(one, second), kendall(one, second)]).all()
        return
    assert spearman(one, second) == pytest.approx(stats.spearmanr(one, second).statistic)
    assert kendall(one, second) == pytest.approx(stats.kendalltau(one, second).statistic)
    assert kendall(one, second) == pytest.approx(tau_b(one, second))


def test_many_forecasters_are_compared_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    one, second = np.random.default_rng(0).integers(0, 20, (2, 60))
    coefficients = kendall(one, second)
    monkeypatch.setattr("forecast_rank.metrics.agreement.COUNTED", 10)
    assert kendall(one, second) == pytest.approx(coefficients, abs=1e-15)


@given(POSITIONS, st.randoms())
def test_only_the_order_matters_and_not_who_stands_where(positions: list[tuple[int, int]], random) -> None:  # type: ignore[no-untyped-def]
    shuffled = random.sample(positions, len(positions))
    stretched = [(np.exp(one), 3 * second) for one, second in shuffled]
    turned = [(-one, second) for one, second in shuffled]
    for measure in (spearman, kendall):
        plain = measure(*zip(*positions, strict=True))
        for pairs, sign in ((shuffled, 1), (stretched, 1), (turned, -1)):
            assert measure(*zip(*pairs, strict=True)) == pytest.approx(sign * plain, nan_ok=True)


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_where_there_is_no_order_there_is_no_agreement(measure) -> None:  # type: ignore[no-untyped-def]
    assert np.isnan([measure([], []), measure([1], [1]), measure([2, 2], [1, 2]), measure([1, nan], [1, 2])]).all()


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_ruin_ranks_last(measure) -> None:  # type: ignore[no-untyped-def]
    assert measure([-np.inf, 0.1, 0.2], [-9, 0.3, 0.5]) == pytest.approx(1)


@pytest.mark.parametrize("measure", [spearman, kendall])
def test_rankings_of_different_length_are_refused(measure) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="first, second"):
        measure([1, 2], [1, 2, 3])


def test_rankings_are_compared_on_the_forecasters_both_hold_ranked_anew() -> None:
    """On b, c, e the second ranking goes c, e, b; in the first these stand second, third and fifth."""
    rankings = {
        "brier": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5},
        "alpha": {"e": 20, "c": 10, "b": 30, "x": 5, "a": nan},
    }
    matrices = agreement(rankings)
    assert matrices.names == ["brier", "alpha"]
    assert matrices.common.tolist() == [[5, 3], [3, 4]]
    assert matrices.spearman[0, 1] == pytest.approx(spearman([1, 2, 3], [3, 1, 2])) == pytest.approx(-0.5)
    assert matrices.kendall[0, 1] == pytest.approx(-1 / 3)


def test_matrices_are_symmetric_with_ones_along_the_diagonal() -> None:
    generator = np.random.default_rng(0)
    names = [f"f{i}" for i in range(12)]
    rankings = {metric: dict(zip(names, generator.integers(1, 9, 12), strict=True)) for metric in "abcd"}
    matrices = agreement(rankings)
    for matrix in (matrices.spearman, matrices.kendall):
        assert (matrix == matrix.T).all()
        assert np.diag(matrix) == pytest.approx(np.ones(4))
        assert (np.abs(matrix) <= 1 + 1e-12).all()


def test_nothing_in_common_is_not_defined() -> None:
    matrices = agreement({"one": {"a": 1, "b": 2}, "other": {"c": 1}, "none": {}})
    assert matrices.common.tolist() == [[2, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert np.isnan(matrices.spearman).tolist() == [[False, True, True], [True] * 3, [True] * 3]
    assert agreement({}).spearman.shape == (0, 0)
