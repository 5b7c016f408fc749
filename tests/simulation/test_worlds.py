"""Worlds from seeds, in which every fault may meet every other; fifteen on each database.

`ARENA_SEEDS=17 ARENA_TESTS=all uv run pytest tests/simulation` replays one, and so does the plain command of `worlds`.
"""

import os
import subprocess
import sys

import pytest

from tests.databases import ON_POSTGRES, PROJECT
from tests.simulation.worlds import seeds_of

pytestmark = pytest.mark.each_database

SEEDS = seeds_of(os.environ.get("ARENA_SEEDS", "15-29" if ON_POSTGRES else "0-14"))
AT_A_TIME = 5
"""Worlds of one test, which ends well before the time limit of a test on a busy machine."""


@pytest.mark.longest
@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("first", SEEDS[::AT_A_TIME])
def test_record_stays_sound_in_every_world_of_faults(first: int, migrated: str) -> None:
    last = min(first + AT_A_TIME - 1, SEEDS[-1])
    command = [sys.executable, "-m", "tests.simulation.worlds", f"{first}-{last}", "--template", migrated]
    played = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=800)
    assert played.returncode == 0, played.stdout + played.stderr
    assert played.stdout.count("sound") == last - first + 1
