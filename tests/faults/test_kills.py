"""A command killed at any step boundary and run again leaves the same ledger as one that was not killed."""

import os
import random
from collections.abc import Callable

import pytest

from markets.foundation.failpoints import POINTS
from tests.faults.ledger_state import differences
from tests.faults.processes import LINE_UP, CommandRunner, Kill, UndisturbedRun

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
    return run


@pytest.mark.parametrize("point", POINTS)
def test_failure_05_killed_at_each_step_boundary_and_run_again_nothing_differs(
    arena: CommandRunner, undisturbed: UndisturbedRun, point: str
) -> None:
    before, first = arena.kills, undisturbed.first_command_reaching(point)
    name = arena.database.fresh(undisturbed.databases[first])
    # The second attempt that reaches the point is killed too, one passing later.
    ledger = arena.run_sunday(
        name, lambda _, attempt: Kill(point, count=attempt + 1) if attempt < 2 else None, first=first
    )
    arena.database.drop(name)
    assert arena.kills > before, f"nothing reaches {point}"
    assert differences(undisturbed.ledger, ledger) == []


def test_killed_at_random_and_run_again_nothing_differs(
    arena: CommandRunner, prepared: str, undisturbed: UndisturbedRun
) -> None:
    dice = random.Random(20260308)
    for _ in range(RANDOM_ROUNDS):
        name = arena.database.fresh(prepared)
        ledger = arena.run_sunday(name, random_kills(dice, longest_s=0.6))
        arena.database.drop(name)
        assert differences(undisturbed.ledger, ledger) == []


def random_kills(dice: random.Random, longest_s: float) -> Callable[[int, int], Kill | None]:
    """Kills about half of all first and second attempts at a random moment."""

    def kill(index: int, attempt: int) -> Kill | None:
        if attempt > 2 or dice.random() < 0.4:
            return None
        return Kill(after_s=dice.uniform(0.005, longest_s))

    return kill
