"""The sources that exist, and their clients with the addresses in the settings. Clients are context managers."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal

from django.conf import settings

from markets.sources.base import Catalogue, Source, page_under
from markets.sources.evidence.base import EvidenceSource
from markets.sources.evidence.files import EvidenceFiles
from markets.sources.evidence.services import SERVICES
from markets.sources.kalshi import Kalshi
from markets.sources.polymarket import Clob, Gamma


def gamma() -> Gamma:
    return Gamma(settings.GAMMA_BASE_URL, clob=clob(), timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


def clob() -> Clob:
    return Clob(settings.CLOB_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


def kalshi() -> Kalshi:
    return Kalshi(settings.KALSHI_BASE_URL, timeout_s=settings.ARENA_VENUE_TIMEOUT_S)


SOURCES: dict[str, Source] = {
    "polymarket": Source(
        label="Polymarket",
        client=gamma,
        page_url=lambda external_id, slug: page_under("https://polymarket.com/market", slug),
        rule="by its prices of exactly 1 and 0 with the oracle resolution or the CLOB’s winner flag",
        services=("gamma", "clob"),
    ),
    "kalshi": Source(
        label="Kalshi",
        client=kalshi,
        page_url=lambda ticker, slug: page_under("https://kalshi.com/markets", ticker.partition("-")[0].lower()),
        rule="by its terminal status and settlement value",
        services=("kalshi",),
    ),
}
"""The sources by the name in `Market.source`; the traded one first, so that it never waits for another."""
FREEZE_S = 300
"""How long the prices of a freeze, with which a run begins, may take in all."""
TRADED_SOURCE = "polymarket"
"""The source whose markets agents trade; other sources only supply questions."""


def source_choices() -> list[tuple[str, str]]:
    """Name and label of each source, as the choices of a field."""
    return [(name, source.label) for name, source in SOURCES.items()]


def sources_by_service() -> dict[str, str]:
    """The name of the source to which each service belongs."""
    sources: dict[str, str] = {}
    for name, source in SOURCES.items():
        sources |= dict.fromkeys(source.services, name)
    return sources


@contextmanager
def open_catalogues(total_s: float) -> Iterator[list[Catalogue]]:
    """The catalogues of the sources that `ARENA_SOURCES` names, to be read one after the other within `total_s`.

    What a source leaves of its share is the next one's, so that one that hangs takes no other's time.
    """
    with ExitStack() as stack:
        clients = [source.client() for name, source in SOURCES.items() if name in settings.ARENA_SOURCES]
        for place, client in enumerate(clients, start=1):
            client.limit_total(total_s * place / len(clients))
        yield list(map(stack.enter_context, clients))


def evidence_query_usd() -> Decimal:
    """US dollars for a query to the source that `ARENA_EVIDENCE` names; 0 of files, and without a source."""
    service = SERVICES.get(settings.ARENA_EVIDENCE or "")
    if service is None:
        return Decimal(0)
    price: Decimal | None = settings.ARENA_EVIDENCE_QUERY_USD
    return service.query_usd if price is None else price


@contextmanager
def evidence_source(excluded_hosts: Sequence[str] = ()) -> Iterator[EvidenceSource]:
    """The source that `ARENA_EVIDENCE` names, which must not be empty; a service leaves these hosts out if it can."""
    name = settings.ARENA_EVIDENCE or ""
    if name.startswith("file:"):
        yield EvidenceFiles(name.removeprefix("file:"))
    else:
        with SERVICES[name](
            settings.ARENA_EVIDENCE_KEY,
            settings.ARENA_EVIDENCE_BASE_URL or "",
            excluded_hosts,
            timeout_s=settings.ARENA_VENUE_TIMEOUT_S,
        ) as service:
            yield service
