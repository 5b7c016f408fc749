"""A command killed at any step boundary and run again leaves the same ledger as one that was not killed."""

import os
import random
from collections.abc import Callable

import pytest

from foundation.failpoints import POINTS
from tests.faults.ledger_state import differences
from tests.faults.processes import LINE_UP, CommandRunner, Kill, UndisturbedRun

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

TURNS = 8
"""The most points that one command passes."""
RANDOM_ROUNDS = int(os.environ.get("ARENA_KILL_ROUNDS", "3"))


@pytest.fixture(scope="module")
def prepared(arena: CommandRunner) -> str:
    return arena.prepare(LINE_UP)


@pytest.fixture(scope="module")
def undisturbed(arena: CommandRunner, prepared: str) -> UndisturbedRun:
    run = arena.run_undisturbed(prepared)
    assert run.ledger["trades"]
    assert run.ledger["settlements"]
    assert run.ledger["violations"] == []
    assert set().union(*run.passed) == set(POINTS), "no command reaches the others"
    assert max(map(len, run.passed)) == TURNS
    return run


@pytest.mark.parametrize("turn", range(TURNS))
def test_killed_at_each_step_boundary_and_run_again_nothing_differs(
    arena: CommandRunner, prepared: str, undisturbed: UndisturbedRun, turn: int
) -> None:
    """Each command is killed at the first of its points on one Sunday, at the second on the next, and so on."""
    points = [sorted(passed)[turn] if turn < len(passed) else "" for passed in undisturbed.passed]
    before = arena.kills
    # The second attempt that reaches the point is killed too, one passing later.
    ledger = arena.run_sunday(
        prepared, lambda index, attempt: Kill(points[index], count=attempt + 1) if attempt < 2 else None
    )
    assert arena.kills - before >= len(list(filter(None, points))), "a command was not killed"
    assert differences(undisturbed.ledger, ledger) == [], f"killed at {points}"


def test_killed_at_random_and_run_again_nothing_differs(
    arena: CommandRunner, prepared: str, undisturbed: UndisturbedRun
) -> None:
    dice = random.Random(20260308)
    for _ in range(RANDOM_ROUNDS):
        ledger = arena.run_sunday(prepared, random_kills(dice, longest_s=0.6))
        assert differences(undisturbed.ledger, ledger) == []


def random_kills(dice: random.Random, longest_s: float) -> Callable[[int, int], Kill | None]:
    """Kills about half of all first and second attempts at a random moment."""

    def kill(index: int, attempt: int) -> Kill | None:
        if attempt > 2 or dice.random() < 0.4:
            return None
        return Kill(after_s=dice.uniform(0.005, longest_s))

    return kill
