"""What the season's tests share."""

import os
from collections.abc import Iterator

import pytest

from tests.live import Site
from tests.told import Arena

# The played season lies in an SQLite file whatever the suite runs on: to compare it once is enough.
collect_ignore_glob = ["test_figures_*.py"] if os.environ.get("ARENA_TESTS_ON") == "postgres" else []


@pytest.fixture(scope="session")
def shown(site: Site) -> Iterator[Arena]:
    """A played season behind its doors: the pages, and what the API says."""
    told = Arena(site)
    yield told
    told.client.close()
