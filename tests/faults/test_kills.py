"""A command killed at every step boundary and run again leaves the same ledger as one that was not killed.

Kills at random, among all other faults, are those of `tests/simulation`.
"""

import pytest

from foundation.failpoints import POINTS
from tests.faults.ledger_state import differences
from tests.faults.processes import LINE_UP, CommandRunner

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]


def test_killed_at_each_step_boundary_and_run_again_nothing_differs(arena: CommandRunner) -> None:
    """Each command of a Sunday is killed at the first of its points, run again and killed at the second, and so on."""
    prepared = arena.prepare(LINE_UP)
    undisturbed = arena.run_undisturbed(prepared)
    assert undisturbed.ledger["trades"]
    assert undisturbed.ledger["settlements"]
    assert undisturbed.ledger["violations"] == []
    assert {point for passed in undisturbed.passed for point in passed} == set(POINTS), "no command reaches the others"
    ledger, killed = arena.run_sunday(prepared, undisturbed.passed)
    assert killed == undisturbed.passed
    assert differences(undisturbed.ledger, ledger) == []
