"""A database to begin with."""

import pytest

from tests.faults.processes import LINE_UP, SUNDAY, CommandRunner


@pytest.fixture(scope="module")
def prepared(arena: CommandRunner) -> str:
    """The name of a database at the end of a first week, with the second one's cohort."""
    name = arena.prepare(LINE_UP)
    for command in ("sync_markets", "start_cohort"):
        arena.run(name, (SUNDAY, command))
    return name
