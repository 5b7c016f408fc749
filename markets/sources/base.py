"""The interface between a venue and the rest of the arena; docs/extend.md says how to add a venue.

Agents trade the markets of one source only (`TRADED_SOURCE` in the registry): its prices are checked against
Polymarket's order books.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from foundation.http import HttpService, UpstreamError
from markets.sources.field_parsers import first_field, identifier, shown

PROPOSED = ("proposed", "disputed", "challenged", "resolved")
"""Words of the oracle of an open market that has an answer already."""
PINNED = Decimal("0.005")
"""Prices nearer than this to 0 and 1 are final once the game has started."""


@dataclass(frozen=True, slots=True)
class VenueOutcome:
    """One side of a market, in the venue's order."""

    index: int
    name: str
    token_id: str | None
    price: Decimal | None
    """The venue's price, unrounded, or its last trade; of a closed market what a share pays; None if unusable."""
    bid: Decimal | None = None
    ask: Decimal | None = None


@dataclass(frozen=True, slots=True)
class VenueMarket:
    """A market as its venue describes it now. Only the first four fields are required."""

    external_id: str
    question: str
    outcomes: tuple[VenueOutcome, ...]
    closed: bool

    accepts_orders: bool = True
    """False only if the venue states that it refuses orders."""
    version: str = ""
    """The venue's protocol that the market follows; "" if there is only one."""
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
    volume_24h: Decimal | None = None
    liquidity: Decimal | None = None
    fee_rate: Decimal | None = None
    """Of the fee that takers pay: shares × rate × (p(1 − p))^exponent; None if the venue states none."""
    fee_exponent: Decimal | None = None
    fee_unknown: bool = False
    """True if the venue takes a fee whose terms can not be read."""
    closes_at: datetime | None = None
    """The nominal deadline, for display only."""
    created_at: datetime | None = None
    oracle_status: str | None = None
    """The oracle's or venue's status of the resolution, in lower case; None if there is none."""
    ended: bool = False
    """True if the venue says that what the market is about is over."""
    starts_at: datetime | None = None
    """The start of the game that it is about, where it is one."""
    result: str = ""
    """The venue's result (`yes`, `no`, `scalar`); "" if there is none yet."""

    @property
    def is_open(self) -> bool:
        return not self.closed and self.accepts_orders

    def public_answer(self, at: datetime) -> str:
        """Why the answer of an open market is public already, as far as its venue tells; "" where it is not."""
        if self.closed:
            return ""
        if self.oracle_status in PROPOSED:
            return f"the oracle says {self.oracle_status}"
        if self.ended:
            return "over by its venue's word"
        prices = [outcome.price for outcome in self.outcomes if outcome.price is not None]
        is_pinned = bool(prices) and all(price < PINNED or price > 1 - PINNED for price in prices)
        return "started, and its prices are final" if self.starts_at and self.starts_at <= at and is_pinned else ""


UNPRICED = "no price: no trade yet, and no book of two sides"
"""The reason to skip an open market that no rule could price."""
TEMPLATE = "question: a template with an unfilled blank"
"""The reason to skip an open market without any other question."""


@dataclass(frozen=True, slots=True)
class SkippedMarket:
    """A market that can not be used: its id, or its place in the page, and the reason."""

    ref: str
    reason: str
    excluded: bool = False
    """True of one that can be read, and is no market for the arena."""


class Unusable(ValueError):
    """Raised by parsers of a market that is skipped, with the reason as message."""


class Excluded(Unusable):
    """Raised by parsers of a market that can be read, and is none for the arena."""


def parse_row(
    raw: object, ref: str, id_fields: Sequence[str], parse: Callable[[dict[str, Any]], VenueMarket]
) -> VenueMarket | SkippedMarket:
    """The market that `parse` makes of a row, or the reason why it is skipped. `ref` identifies a row without an id."""
    if not isinstance(raw, dict):
        return SkippedMarket(ref, f"{shown(raw)} is not a market")
    try:
        return parse(raw)
    except Unusable as why:
        return SkippedMarket(first_field(raw, identifier, *id_fields) or ref, str(why), isinstance(why, Excluded))


def parse_nested(
    raw: object, ref: str, id_fields: Sequence[str], parse: Callable[[object, str], VenueMarket | SkippedMarket]
) -> list[VenueMarket | SkippedMarket]:
    """The markets nested in an event, each by `parse`."""
    if not isinstance(raw, dict):
        return [SkippedMarket(ref, f"{shown(raw)} is not an event")]
    name = first_field(raw, identifier, *id_fields) or ref
    markets = raw.get("markets")
    if not isinstance(markets, list):
        return [SkippedMarket(name, f"markets: {shown(markets)} is not a list")]
    return [parse(market, f"{name}, market {place}") for place, market in enumerate(markets, start=1)]


@dataclass(frozen=True, slots=True)
class CataloguePage:
    """One page of a catalogue; `cursor` is None on the last one."""

    rows: tuple[VenueMarket, ...]
    skipped: tuple[SkippedMarket, ...]
    cursor: str | None

    @classmethod
    def of(cls, parsed: Sequence[VenueMarket | SkippedMarket], cursor: str | None) -> "CataloguePage":
        rows: list[VenueMarket] = []
        skipped: list[SkippedMarket] = []
        for row in parsed:
            if isinstance(row, VenueMarket):
                rows.append(row)
            else:
                skipped.append(row)
        return cls(tuple(rows), tuple(skipped), cursor)


@dataclass(frozen=True, slots=True)
class VenueResolution:
    """The final result that a venue documents: the outcome that pays, or None if the market was cancelled."""

    winner: VenueOutcome | None


@dataclass(frozen=True, slots=True)
class Unresolved:
    """A closed market without a documented result, and why."""

    reason: str


class Catalogue(HttpService):
    """Base of a venue's client: lists the open markets, looks up single ones, and reads their results."""

    source: str
    """The source's name, as in `Market.source`."""
    by_volume: bool
    """True if the catalogue is ordered by descending volume, so that reading can stop early."""

    def catalogue(self) -> Iterator[CataloguePage]:
        """The pages of all open markets. Raises UpstreamError if a request fails or the pages do not end."""
        raise NotImplementedError

    def changes(self, since: datetime, external_ids: Sequence[str]) -> Sequence[CataloguePage] | None:
        """Pages of the markets listed or changed since an instant, and of those with these ids as they are now.

        None if the venue has no such list, so that its whole catalogue is read each time. The rows by id may lack a
        question and whatever else belongs to their event.
        """
        return None

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        """A market of any status; None if the venue has none with this id."""
        raise NotImplementedError

    def markets(self, external_ids: Sequence[str]) -> dict[str, VenueMarket]:
        """Markets of any status, looked up together, by id; empty if the venue has no list by id.

        The result lacks markets that are missing or can not be used. Raises UpstreamError.
        """
        return {}

    def resolution(self, row: VenueMarket) -> VenueResolution | Unresolved:
        """The result that a closed market's row documents, by the venue's own rule. Raises UpstreamError."""
        raise NotImplementedError

    def follow_cursors(
        self, page_after: Callable[[str | None], CataloguePage], max_pages: int, first: CataloguePage | None = None
    ) -> Iterator[CataloguePage]:
        """The pages up to the one without a cursor. Raises UpstreamError if a cursor repeats or they do not end."""
        page, cursors = first or page_after(None), set[str]()
        for _ in range(max_pages):
            yield page
            if page.cursor is None:
                return
            if page.cursor in cursors:
                raise UpstreamError(self.service, f"the catalogue repeats its cursor {page.cursor!r}")
            cursors.add(page.cursor)
            page = page_after(page.cursor)
        raise UpstreamError(self.service, f"the catalogue did not end within {max_pages} pages")

    @staticmethod
    def with_id(external_id: str, row: VenueMarket | SkippedMarket) -> VenueMarket | SkippedMarket:
        """The row if it has this id or is skipped anyway, else a skipped market."""
        if isinstance(row, VenueMarket) and row.external_id != external_id:
            return SkippedMarket(external_id, f"answered with another market, {row.external_id}")
        return row


@dataclass(frozen=True, slots=True)
class Source:
    """A venue in the registry."""

    label: str
    """Its name on pages."""
    client: Callable[[], Catalogue]
    """The maker of its client, at the address in the settings."""
    page_url: Callable[[str, str], str | None]
    """The venue's page of a market, by external id and slug; None if they are no part of an address."""
    rule: str
    """The rule of `Catalogue.resolution`, as a phrase on pages."""
    services: tuple[str, ...]
    """The names of its `HttpService`s, the catalogue's first; `base_url_setting` names the setting of each address."""


def base_url_setting(service: str) -> str:
    """The name of the setting with a service's address."""
    return f"{service.upper()}_BASE_URL"


URL_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,299}")


def page_under(address: str, segment: str) -> str | None:
    """A page's address; None if the segment, which is text from outside, is no single part of a path."""
    return f"{address}/{segment}" if URL_SEGMENT.fullmatch(segment) else None


@dataclass(frozen=True, slots=True)
class TopOfBook:
    """The best bid and ask of an order book; None for an empty side."""

    token_id: str
    bid: Decimal | None
    ask: Decimal | None
