"""The sources that exist, and their clients with the addresses in the settings. Clients are context managers."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from django.conf import settings

from markets.sources.base import Catalogue
from markets.sources.kalshi import Kalshi
from markets.sources.polymarket import Clob, Gamma


def gamma() -> Gamma:
    return Gamma(settings.GAMMA_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


def clob() -> Clob:
    return Clob(settings.CLOB_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


def kalshi() -> Kalshi:
    return Kalshi(settings.KALSHI_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


CATALOGUES: dict[str, Callable[[], Gamma | Kalshi]] = {"polymarket": gamma, "kalshi": kalshi}
"""Makers of catalogue clients by source; the traded source first, so that it never waits for another."""
TRADED_SOURCE = "polymarket"
"""The source whose markets agents trade; other sources only supply questions."""


@contextmanager
def open_catalogues() -> Iterator[list[Catalogue]]:
    """The catalogues of the sources that `ARENA_SOURCES` names."""
    with ExitStack() as stack:
        clients = [make_client() for source, make_client in CATALOGUES.items() if source in settings.ARENA_SOURCES]
        for client in clients:
            stack.enter_context(client)
        yield list(clients)
