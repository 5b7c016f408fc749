"""The shapes that every market source speaks: validated rows, and why a row was left out.

A source turns a venue's answer into `MarketRow`s or `SkippedRow`s and nothing else; what the arena
makes of them (matching, pricing, settling) is decided in `markets.services`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One side of a market, in the venue's own order."""

    index: int
    name: str
    token_id: str | None
    price: Decimal | None
    """The venue's price exactly as written, or None where it is missing or outside [0, 1]."""
    bid: Decimal | None = None
    ask: Decimal | None = None
    basis: str = ""
    """What the price is (`midpoint`, `trade`, `settlement`), "" where the venue states it and nothing more."""


@dataclass(frozen=True, slots=True)
class MarketRow:
    """One market as its venue describes it now. Everything but the first block may be missing."""

    external_id: str
    question: str
    outcomes: tuple[OutcomeRow, ...]
    closed: bool

    accepts_orders: bool = True
    """False only where the venue says that orders are refused."""
    condition_id: str | None = None
    slug: str = ""
    description: str = ""
    category: str = ""
    event_id: str | None = None
    event_title: str = ""
    event_exclusive: bool | None = None
    """The venue says that at most one market of its event ends in Yes; None where it says nothing."""
    option: str = ""
    """What the market is called within its event (`Argentina`), "" where it stands alone."""
    volume: Decimal = Decimal(0)
    liquidity: Decimal | None = None
    closes_at: datetime | None = None
    """The nominal deadline, which decides nothing."""
    closed_at: datetime | None = None
    oracle_status: str | None = None
    """The word of the oracle or venue on how far the end has come, in lower case, None where it is silent."""
    result: str = ""
    """The venue's own word for how the market ended (`yes`, `no`, `scalar`), "" where it has none or no end yet."""

    @property
    def is_open(self) -> bool:
        return not self.closed and self.accepts_orders


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """A row that could not be used: which one (its id, or its place in the page) and why."""

    ref: str
    reason: str


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a catalogue; `cursor` is None on the last one."""

    rows: tuple[MarketRow, ...]
    skipped: tuple[SkippedRow, ...]
    cursor: str | None


class Catalogue(Protocol):
    """What every source can be asked: all that is open, and one market however it stands."""

    source: str
    """Its name among the sources, and in `Market.source`."""
    service: str
    """Its name in failures."""
    by_volume: bool
    """Does the walk show the biggest volume first, so that it may stop early?"""

    def catalogue(self) -> Iterator[Page]:
        """Every page of what is open. UpstreamError where the walk fails or does not end."""

    def market(self, external_id: str) -> MarketRow | SkippedRow | None:
        """One market however it stands; None where the venue knows no such id."""


@dataclass(frozen=True, slots=True)
class Book:
    """The top of an order book; a missing side is None."""

    token_id: str
    bid: Decimal | None
    ask: Decimal | None

    @property
    def spread(self) -> Decimal | None:
        return None if self.bid is None or self.ask is None else self.ask - self.bid
