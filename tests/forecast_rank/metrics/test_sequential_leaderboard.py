"""The leaderboard through time: who leads, since when it is sure, and seldom a wrong claim among equals."""

import numpy as np
import pytest

from forecast_rank.metrics.anytime_valid import e_process
from forecast_rank.metrics.panel import from_arrays
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.sequential_leaderboard import sequential_leaderboard
from forecast_rank.simulated_worlds import World, simulate
from tests.forecast_rank.panels import EMPTY


def test_leader_and_evidence_follow_the_events_in_order_of_closing() -> None:
    # The events close in the order b, a, c; ann is perfect but for event b.
    ann, bob = [0.9, 0.2, 0.9], [0.5, 0.6, 0.5]
    panel = from_arrays(
        [[[p] for p in ann], [[p] for p in bob]], [[1]] * 3, exclusive=False, event=["a", "b", "c"],
        closed_at=[20, 10, 30],
    )  # fmt: skip
    board = sequential_leaderboard(panel, brier(panel))
    assert board.closed_at.tolist() == [10, 20, 30]
    assert board.leader.tolist() == [-1, 1, 1], "means: ann .64, .325, .22; bob .16, .205, .22"
    differences = np.array([0.16 - 0.64, 0.25 - 0.01, 0.25 - 0.01])
    assert board.e_value[1:] == pytest.approx(e_process(-differences)[1:])
    assert board.threshold == pytest.approx(2 / 0.05)
    assert board.since.tolist() == [-1, -1]


def test_a_clear_leader_is_sure_once_and_from_then_on() -> None:
    panel = simulate(World(errors=(0.1, 2.5), event_size=3, surprise=0.0), forecasters=3, events=1500, seed=3).panel
    board = sequential_leaderboard(panel, brier(panel))
    assert board.leader[-1] == 0
    assert 0 < board.since[0] < 1499
    assert (board.e_value[1 : board.since[0]] < board.threshold).all()


def test_equals_seldom_have_a_sure_leader() -> None:
    claims = 0
    for seed in range(40):
        panel = simulate("equal", forecasters=4, events=60, seed=seed).panel
        claims += (sequential_leaderboard(panel, brier(panel)).since >= 0).any()
    assert claims <= 2


def test_forecasters_without_common_questions_are_never_told_apart() -> None:
    stated = np.full((2, 40, 1), np.nan)
    stated[0, :20], stated[1, 20:] = 0.9, 0.1
    panel = from_arrays(stated, [[1]] * 40, exclusive=False, closed_at=range(40))
    board = sequential_leaderboard(panel, brier(panel))
    assert board.e_value[1:] == pytest.approx(np.ones(39))
    assert board.since.tolist() == [-1, -1]


def test_an_empty_panel_has_no_leader() -> None:
    assert len(sequential_leaderboard(EMPTY, brier(EMPTY)).leader) == 0
