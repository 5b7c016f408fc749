"""Margins of intervals of differences, which agree with Holm's correction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecast_rank.metrics.paired_tests import corrected_margins, holm
from tests.lazy_modules import stats

nan = np.nan


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
