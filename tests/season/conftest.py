"""The season that tests of pages read."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sandbox import Kalshi, Venue, kalshi_address
from tests.season.running_site import Site
from tests.season.season_api import SeasonApi

# The season is an SQLite file whatever the suite runs on: comparing its figures once is enough.
OF_THE_SEASON = ["test_figures.py", "test_every_page.py", "test_published_season.py"]
collect_ignore_glob = OF_THE_SEASON if os.environ.get("ARENA_TESTS_ON") == "postgres" else []


@pytest.fixture
def kalshi(venue: Venue, settings: Any) -> Kalshi:
    """The second venue beside the first, both among the arena's sources."""
    settings.KALSHI_BASE_URL = kalshi_address(venue.server)
    settings.ARENA_SOURCES = ("polymarket", "kalshi")
    return Kalshi(venue.server)


@pytest.fixture(scope="session")
def season(site: Site) -> Iterator[SeasonApi]:
    """The full season's pages and API."""
    api = SeasonApi(site)
    yield api
    api.client.close()
