"""Fixtures that many floors share, and Hypothesis made repeatable."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pytest_httpserver import HTTPServer

from tests.venue import Venue

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.fixture(scope="session")
def venue_server() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def venue(venue_server: HTTPServer, settings: Any, db: None) -> Iterator[Venue]:
    """A scripted venue that the settings point at; the gateway is asked once, without retries."""
    venue_server.clear()
    settings.GAMMA_BASE_URL = venue_server.url_for("/gamma")
    settings.CLOB_BASE_URL = venue_server.url_for("/clob")
    settings.OPENROUTER_BASE_URL = venue_server.url_for("/gateway")
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    yield Venue(venue_server)
    venue_server.check_assertions()
