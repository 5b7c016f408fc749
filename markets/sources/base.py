"""The interface between a venue and the rest of the arena. To add a venue:

1. Write a package beside `kalshi` with a parser (raw row to `VenueMarket`, or `SkippedMarket` with a reason) and a
   client that implements `Catalogue`; subclass `CatalogueClient` for an HTTP service. `markets.sources.field_parsers`
   reads single values. A parser raises nothing, whatever the venue sends.
2. Name the source in `Market.Source`, in `SOURCES` and the base addresses of `arena_site.conf` and
   `arena_site.settings`, and in `CATALOGUES` of `markets.sources.registry`.
3. State in `read_resolution` of `agents.services.resolutions` when a market of the venue is final.

Sync, prices, questions, duplicates and resolution then work without further code. Agents trade the markets of one
source only (`TRADED_SOURCE` in the registry): its prices are checked against Polymarket's order books.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

from markets.foundation.http import HttpService, UpstreamError


@dataclass(frozen=True, slots=True)
class VenueOutcome:
    """One side of a market, in the venue's order."""

    index: int
    name: str
    token_id: str | None
    price: Decimal | None
    """The venue's price, unrounded; None if it is missing or outside [0, 1]."""
    bid: Decimal | None = None
    ask: Decimal | None = None
    basis: str = ""
    """The kind of price (`midpoint`, `trade`, `settlement`); "" if the venue does not state it."""


@dataclass(frozen=True, slots=True)
class VenueMarket:
    """A market as its venue describes it now. Only the first four fields are required."""

    external_id: str
    question: str
    outcomes: tuple[VenueOutcome, ...]
    closed: bool

    accepts_orders: bool = True
    """False only if the venue states that it refuses orders."""
    condition_id: str | None = None
    slug: str = ""
    description: str = ""
    category: str = ""
    event_id: str | None = None
    event_title: str = ""
    event_exclusive: bool | None = None
    """At most one market of the event resolves to Yes; None if the venue does not state it."""
    option: str = ""
    """The market's name within its event (`Argentina`); "" if it stands alone."""
    volume: Decimal = Decimal(0)
    liquidity: Decimal | None = None
    closes_at: datetime | None = None
    """The nominal deadline, for display only."""
    closed_at: datetime | None = None
    oracle_status: str | None = None
    """The oracle's or venue's status of the resolution, in lower case; None if there is none."""
    result: str = ""
    """The venue's result (`yes`, `no`, `scalar`); "" if there is none yet."""

    @property
    def is_open(self) -> bool:
        return not self.closed and self.accepts_orders


@dataclass(frozen=True, slots=True)
class SkippedMarket:
    """A market that can not be used: its id, or its place in the page, and the reason."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """One page of a catalogue; `cursor` is None on the last one."""

    rows: tuple[VenueMarket, ...]
    skipped: tuple[SkippedMarket, ...]
    cursor: str | None

    @classmethod
    def of(cls, parsed: Sequence[VenueMarket | SkippedMarket], cursor: str | None) -> "CataloguePage":
        rows = tuple(row for row in parsed if isinstance(row, VenueMarket))
        return cls(rows, tuple(row for row in parsed if isinstance(row, SkippedMarket)), cursor)


class Catalogue(Protocol):
    """A venue's client: lists the open markets and looks up single ones."""

    source: str
    """The source's name, as in `Market.source`."""
    service: str
    """The service's name in error messages."""
    by_volume: bool
    """True if the catalogue is ordered by descending volume, so that reading can stop early."""

    def catalogue(self) -> Iterator[CataloguePage]:
        """The pages of all open markets. Raises UpstreamError if a request fails or the pages do not end."""

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        """A market of any status; None if the venue has none with this id."""


class CatalogueClient(HttpService):
    """Base of a venue's HTTP client: pages that name the cursor of the next, and lookups that check the id."""

    def follow_cursors(
        self, page_after: Callable[[str | None], CataloguePage], max_pages: int, first: CataloguePage | None = None
    ) -> Iterator[CataloguePage]:
        """The pages up to the one without a cursor. Raises UpstreamError if a cursor repeats or they do not end."""
        page, seen = first or page_after(None), set[str]()
        for _ in range(max_pages):
            yield page
            if page.cursor is None:
                return
            if page.cursor in seen:
                raise UpstreamError(self.service, f"the catalogue repeats its cursor {page.cursor!r}")
            seen.add(page.cursor)
            page = page_after(page.cursor)
        raise UpstreamError(self.service, f"the catalogue did not end within {max_pages} pages")

    @staticmethod
    def with_id(external_id: str, row: VenueMarket | SkippedMarket) -> VenueMarket | SkippedMarket:
        """The row if it has this id or is skipped anyway, else a skipped market."""
        if isinstance(row, VenueMarket) and row.external_id != external_id:
            return SkippedMarket(external_id, f"answered with another market, {row.external_id}")
        return row


@dataclass(frozen=True, slots=True)
class TopOfBook:
    """The best bid and ask of an order book; None for an empty side."""

    token_id: str
    bid: Decimal | None
    ask: Decimal | None

    @property
    def spread(self) -> Decimal | None:
        return None if self.bid is None or self.ask is None else self.ask - self.bid
