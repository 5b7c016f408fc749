"""Worlds from seeds, in which every fault may meet every other; fifteen on each database, of 30 s of a processor each.

`ARENA_SEEDS=17 ARENA_TESTS=all uv run pytest tests/simulation` replays one, `ARENA_SEEDS=0-999` plays a thousand.
"""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from tests.databases import ON_POSTGRES, database_copies
from tests.faults.processes import NO_SANDBOX, CommandRunner
from tests.sandbox import Venue
from tests.simulation.world import World
from venue_sandbox.server import Addresses

pytestmark = pytest.mark.each_database

FIRST, _, LAST = os.environ.get("ARENA_SEEDS", "15-29" if ON_POSTGRES else "0-14").partition("-")


@pytest.mark.longest
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST or FIRST) + 1))
def test_record_stays_sound_in_a_world_of_faults(
    seed: int, migrated: str, django_db_blocker: Any, tmp_path: Path
) -> None:
    with HTTPServer(threaded=True) as server, database_copies(tmp_path) as database:
        running = asdict(Addresses.at(server.port))
        addresses = NO_SANDBOX | {name: running[name] for name in ("gamma", "clob", "openrouter")}
        runner = CommandRunner(addresses, database, django_db_blocker.unblock, migrated)
        world = World(seed, runner, Venue(server))
        try:
            world.play(tmp_path / "archive" if seed % 5 == 0 else None)
        finally:
            print(f"seed {seed}:", *world.steps, sep="\n")  # which pytest shows of a red one
