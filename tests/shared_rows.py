"""Module fixtures that create database rows once; each test of the module sees them unchanged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_httpserver import HTTPServer

from tests.venue import Venue

SHARED_FIXTURES: list[Any] = []


def shared_rows(make: Callable[[], Any]) -> Any:
    """A module fixture with the result of `make`, whose rows are rolled back after the module's last test."""

    @pytest.fixture(scope="module")
    def shared(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
        with django_db_blocker.unblock(), transaction.atomic():
            yield make()
            transaction.set_rollback(True)

    SHARED_FIXTURES.append(shared)
    return shared


def uses_shared_rows(test: pytest.Item) -> bool:
    """Whether a test needs such a fixture; tests without one must run before the rows exist."""
    module = getattr(test, "module", None)
    return any(getattr(module, name, None) in SHARED_FIXTURES for name in getattr(test, "fixturenames", ()))


def shared_rows_at_venue(make: Callable[[Venue], Any]) -> Any:
    """The same for rows that need a venue; the fixture is a pair of that venue (for `Venue.as_left`) and the result."""

    def played() -> tuple[Venue, Any]:
        with scripted_venue() as venue:
            return venue, make(venue)

    return shared_rows(played)


@contextmanager
def scripted_venue() -> Iterator[Venue]:
    """A scripted venue that the settings point at, outside the `venue` fixture."""
    with (
        HTTPServer(threaded=True) as server,
        override_settings(
            GAMMA_BASE_URL=server.url_for("/gamma"),
            CLOB_BASE_URL=server.url_for("/clob"),
            OPENROUTER_BASE_URL=server.url_for("/gateway"),
            ARENA_LLM_TRANSPORT_RETRIES=0,
        ),
    ):
        yield Venue(server)
