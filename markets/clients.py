"""The venue clients as the settings name them. Use as context managers."""

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
"""By source; the one that money depends on first, so that it never waits for another."""


@contextmanager
def catalogues() -> Iterator[list[Catalogue]]:
    """The catalogues of the sources that `ARENA_SOURCES` names."""
    with ExitStack() as stack:
        named = [client() for source, client in CATALOGUES.items() if source in settings.ARENA_SOURCES]
        for client in named:
            stack.enter_context(client)
        yield list(named)
