"""Runners of commands in processes of their own, one for each file, and a database to begin with."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.processes import SUNDAY, CommandRunner, command_runner


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory, django_db_blocker: Any, migrated: str) -> Iterator[CommandRunner]:
    """A runner with a sandbox of its own."""
    with command_runner(tmp_path_factory.mktemp("arena"), django_db_blocker.unblock, migrated) as arena:
        yield arena


@pytest.fixture(scope="module")
def prepared(arena: CommandRunner) -> str:
    """The name of a database at the end of a first week, with the second one's cohort."""
    name = arena.prepare()
    for command in ("sync_markets", "start_cohort"):
        arena.run(name, (SUNDAY, command))
    return name
