"""The shapes that every market source speaks: validated rows, and why a row was left out.

A source turns a venue's answer into `MarketRow`s or `SkippedRow`s and nothing else; what the arena
makes of them (matching, pricing, settling) is decided in `markets.services`.
"""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


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
    volume: Decimal = Decimal(0)
    liquidity: Decimal | None = None
    closes_at: datetime | None = None
    """The nominal deadline, which decides nothing."""
    closed_at: datetime | None = None
    oracle_status: str | None = None
    """The oracle's word in lower case (`resolved`, `proposed`, `disputed`), None where it is silent."""

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


@dataclass(frozen=True, slots=True)
class Book:
    """The top of an order book; a missing side is None."""

    token_id: str
    bid: Decimal | None
    ask: Decimal | None

    @property
    def spread(self) -> Decimal | None:
        return None if self.bid is None or self.ask is None else self.ask - self.bid
