"""Worlds from seeds, in which every fault may meet every other; fifteen on each database.

`ARENA_SEEDS=17 ARENA_TESTS=all uv run pytest tests/simulation` replays one, and so does the plain command of `worlds`.
"""

import os
import subprocess
import sys

import pytest

from tests.databases import ON_POSTGRES, PROJECT

pytestmark = pytest.mark.each_database

SEEDS = os.environ.get("ARENA_SEEDS", "15-29" if ON_POSTGRES else "0-14")


@pytest.mark.longest
@pytest.mark.slow
@pytest.mark.thorough
def test_record_stays_sound_in_every_world_of_faults(migrated: str) -> None:
    command = [sys.executable, "-m", "tests.simulation.worlds", SEEDS, "--template", migrated]
    played = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=3600)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "sound" in played.stdout
