"""Ratings: Elo by hand, and Bradley–Terry through time as pairwise abilities of what was known then."""

import numpy as np
import pytest

from forecast_rank.metrics.bradley_terry import pairwise_ability
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.ratings import elo, rating_history
from forecast_rank.simulated_worlds import simulate


def test_elo_by_hand_in_order_of_closing() -> None:
    # bob wins the question that closes first, ann the second.
    panel = from_arrays([[[0.9], [0.4]], [[0.5], [0.6]]], [[1], [1]], exclusive=False, closed_at=[2, 1])
    after_first = (1000 - 8, 1000 + 8)
    expected = 1 / (1 + 10 ** ((after_first[1] - after_first[0]) / 400))
    assert elo(panel, k=16).tolist() == pytest.approx(
        [after_first[0] + 16 * (1 - expected), after_first[1] - 16 * (1 - expected)]
    )


def test_elo_of_three_shares_the_gain_and_ties_are_half_a_win() -> None:
    panel = from_arrays([[[0.9]], [[0.5]], [[0.5]]], [[1]], exclusive=False)
    assert elo(panel, k=16).tolist() == pytest.approx([1008, 996, 996])
    with pytest.raises(ValueError, match="k: above 0"):
        elo(panel, k=0)


def test_history_is_the_ability_by_the_questions_so_far() -> None:
    panel = simulate("knowledge", forecasters=4, events=30, seed=4).panel
    history = rating_history(panel, step=40)
    assert history.questions.tolist() == [40, 80, 90]
    assert history.closed_at.tolist() == [39, 79, 89]
    for row, count in enumerate(history.questions):
        ability = pairwise_ability(panel.take(panel.questions.closed_at[panel.question] < count))
        assert history.rating[row] == pytest.approx(1000 + 400 / np.log(10) * ability.value)
        assert history.se[row] == pytest.approx(400 / np.log(10) * ability.se)
    with pytest.raises(ValueError, match="step: at least 1"):
        rating_history(panel, step=0)
