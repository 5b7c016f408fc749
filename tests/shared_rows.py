"""Module fixtures that create database rows once; each test of the module sees them unchanged."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from django.test import override_settings
from pytest_httpserver import HTTPServer

from tests.sandbox import Venue, addresses

LAYERS: dict[Any, int] = {}
"""By fixture, how many layers of shared rows there are with its own; tests need those of their own layer alone."""


def shared_rows(make: Callable[..., Any], *, after: Any = None, name: str = "") -> Any:
    """A module fixture with the result of `make`, whose rows are rolled back after the module's last test.

    With `after`, another such fixture that the module has under `name`, the rows come on top of that one's, and `make`
    is given its result.
    """

    @pytest.fixture(scope="module")
    def shared(request: pytest.FixtureRequest, django_db_setup: None, django_db_blocker: Any) -> Iterator[Any]:
        earlier = [request.getfixturevalue(name)] if after else []
        with django_db_blocker.unblock(), transaction.atomic():
            yield make(*earlier)
            transaction.set_rollback(True)

    LAYERS[shared] = LAYERS.get(after, 0) + 1
    return shared


def layers_of_rows(test: pytest.Item) -> int:
    """How many layers of shared rows a test needs; one that needs fewer must run before the others exist."""
    module = getattr(test, "module", None)
    fixtures = (getattr(module, name, None) for name in getattr(test, "fixturenames", ()))
    return max((LAYERS.get(fixture, 0) for fixture in fixtures), default=0)


def shared_rows_at_venue(make: Callable[[Venue], Any], *, after: Any = None, name: str = "") -> Any:
    """The same for rows that need a venue; the fixture is a pair of that venue (for `Venue.as_left`) and the result."""

    def played(*earlier: tuple[Venue, Any]) -> tuple[Venue, Any]:
        with scripted_venue() as venue:
            for venue_before, _ in earlier:
                venue.as_left(venue_before)
            return venue, make(venue)

    return shared_rows(played, after=after, name=name)


@contextmanager
def scripted_venue() -> Iterator[Venue]:
    """A scripted venue that the settings point at, outside the `venue` fixture."""
    with (
        HTTPServer(threaded=True) as server,
        override_settings(**addresses(server), ARENA_LLM_TRANSPORT_RETRIES=0),
    ):
        yield Venue(server)
