"""Rows made once for a module's tests, each of which sees them as they were made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_httpserver import HTTPServer

from tests.venue import Venue

SHARED: list[Any] = []
"""The fixtures whose rows a module's tests share."""


def once(make: Callable[[], Any]) -> Any:
    """A fixture of a module: what `make` returns, made in a transaction around all tests' own, and taken back."""

    @pytest.fixture(scope="module")
    def made(django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
        with django_db_blocker.unblock(), transaction.atomic():
            yield make()
            transaction.set_rollback(True)

    SHARED.append(made)
    return made


def shares(test: pytest.Item) -> bool:
    """Whether a test asks for such rows: those of its module that do not have to run before they are made."""
    module = getattr(test, "module", None)
    return any(getattr(module, name, None) in SHARED for name in getattr(test, "fixturenames", ()))


def once_at_a_venue(make: Callable[[Venue], Any]) -> Any:
    """The same of rows made against a venue: that venue, for `Venue.as_left` to follow, and what `make` returns."""

    def played() -> tuple[Venue, Any]:
        with a_venue() as venue:
            return venue, make(venue)

    return once(played)


@contextmanager
def a_venue() -> Iterator[Venue]:
    """A scripted venue that the settings point at, as the fixture of the name, for as long as rows are made."""
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
