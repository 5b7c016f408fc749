"""The season that tests of pages read."""

import os
from collections.abc import Iterator

import pytest

from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

# The season is an SQLite file whatever the suite runs on: comparing its figures once is enough.
collect_ignore_glob = ["test_figures_*.py"] if os.environ.get("ARENA_TESTS_ON") == "postgres" else []


@pytest.fixture(scope="session")
def season(site: Site) -> Iterator[SeasonApi]:
    """The full season's pages and API."""
    api = SeasonApi(site)
    yield api
    api.client.close()
