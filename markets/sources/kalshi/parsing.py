"""Parser of Kalshi's markets and events.

Every market is Yes or No. Prices are dollar strings, integer cents in older responses, or both; dollars take
precedence. A quote of 0 or of a whole dollar means that there is none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from markets.sources.base import UNPRICED, SkippedMarket, VenueMarket, VenueOutcome
from markets.sources.field_parsers import (
    LONGEST_NAME,
    amount,
    first_known,
    flag,
    identifier,
    label,
    line,
    moment,
    number,
    or_none,
    prose,
    shown,
)

OPEN, PAUSED, FINAL = "active", ("initialized", "inactive"), "finalized"
ENDED = ("closed", "determined", "disputed", "amended", FINAL)
ALIASES = {"open": OPEN, "unopened": "initialized", "paused": "inactive", "settled": FINAL}
"""Other names of statuses, in the API's filters and its older versions."""
NOBODY_WON = ("scalar", "void")
"""Results without a winning side: a settlement at a fair price, or none."""
PARLAY = "KXMVE"
CENT = Decimal("0.01")

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Event:
    """The fields that a market inherits from its event."""

    id: str | None = None
    title: str = ""
    category: str = ""
    exclusive: bool | None = None


class _Unusable(ValueError):
    """A market that is skipped, with the reason as message."""


def parse_market(raw: object, ref: str) -> VenueMarket | SkippedMarket:
    """A market of Kalshi, or the reason why it is skipped. `ref` identifies a row without a ticker."""
    return _parse(raw, ref, _Event())


def parse_event(raw: object, ref: str = "event") -> list[VenueMarket | SkippedMarket]:
    """The markets nested in an event; each inherits the event's ticker, title, category and exclusivity."""
    if not isinstance(raw, dict):
        return [SkippedMarket(ref, f"{shown(raw)} is not an event")]
    event = _Event(
        id=identifier(raw.get("event_ticker")),
        title=line(raw.get("title")),
        category=label(raw.get("category")),
        exclusive=or_none(flag)(raw.get("mutually_exclusive")),
    )
    name = event.id or identifier(raw.get("ticker")) or ref
    markets = raw.get("markets")
    if not isinstance(markets, list):
        return [SkippedMarket(name, f"markets: {shown(markets)} is not a list")]
    return [_parse(market, f"{name}, market {place}", event) for place, market in enumerate(markets, start=1)]


def _parse(raw: object, ref: str, event: _Event) -> VenueMarket | SkippedMarket:
    if not isinstance(raw, dict):
        return SkippedMarket(ref, f"{shown(raw)} is not a market")
    try:
        return _row(raw, event)
    except _Unusable as why:
        return SkippedMarket(identifier(raw.get("ticker")) or identifier(raw.get("ticker_name")) or ref, str(why))


def _row(raw: Raw, event: _Event) -> VenueMarket:
    ticker = _ticker(raw)
    status = _status(raw)
    closed = status in ENDED
    option = line(raw.get("yes_sub_title"))[:LONGEST_NAME].strip()
    closes_at = first_known(*map(moment, map(raw.get, ("close_time", "expected_expiration_time", "expiration_time"))))
    result = label(raw.get("result")).lower() if closed else ""
    return VenueMarket(
        external_id=ticker,
        question=_question(raw, event, option),
        outcomes=_settled(raw, result) if closed else _quoted(raw),
        closed=closed,
        accepts_orders=status == OPEN,
        description="\n\n".join(filter(None, (prose(raw.get("rules_primary")), prose(raw.get("rules_secondary"))))),
        category=event.category or label(raw.get("category")),
        event_id=event.id or identifier(raw.get("event_ticker")),
        event_title=event.title,
        event_exclusive=event.exclusive,
        option="" if option.casefold() in ("yes", "no") else option,
        volume=first_known(*map(amount, map(raw.get, ("volume_fp", "volume", "volume_dollars"))), Decimal(0)),
        liquidity=_liquidity(raw),
        closes_at=closes_at,
        closed_at=_closed_at(raw) if closed else None,
        oracle_status=status,
        result=result,
    )


# ── required fields ──────────────────────────────────────────────────────────────


def _ticker(raw: Raw) -> str:
    if "ticker_name" in raw and "ticker" not in raw:
        raise _Unusable("the website's own (v1) format, another API")
    ticker = identifier(raw.get("ticker"))
    if ticker is None:
        raise _Unusable("no ticker")
    if ticker.upper().startswith(PARLAY) or raw.get("mve_collection_ticker") or raw.get("mve_selected_legs"):
        raise _Unusable("multivariate: a parlay on other markets")
    if (kind := label(raw.get("market_type")).lower()) not in ("", "binary"):
        raise _Unusable(f"market_type: {shown(kind)} is not binary")
    return ticker


def _status(raw: Raw) -> str:
    text = label(raw.get("status")).lower()
    status = ALIASES.get(text, text)
    if status not in (OPEN, *PAUSED, *ENDED):
        raise _Unusable(f"status: {shown(raw.get('status'))} is unknown")
    return status


def _question(raw: Raw, event: _Event, option: str) -> str:
    """The market's title, else its event's, else its rule; with its option where the title leaves that out."""
    title = line(raw.get("title")) or event.title
    if not title:
        if rule := line(raw.get("rules_primary")):
            return rule
        raise _Unusable("no question")
    named = not option or option.casefold() in ("yes", "no") or option.casefold() in title.casefold()
    return title if named else f"{title} – {option}"


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def _quoted(raw: Raw) -> tuple[VenueOutcome, ...]:
    """Both sides with best bid, ask and the last trade."""
    bid, ask = _quote(raw, "yes_bid"), _quote(raw, "yes_ask")
    # A bid on one side is an ask on the other; the venue may state either.
    bid = first_known(bid, _other(_quote(raw, "no_ask")))
    ask = first_known(ask, _other(_quote(raw, "no_bid")))
    if bid is not None and ask is not None and bid >= ask:
        bid = ask = None  # a crossed book is not usable
    trade = _quote(raw, "last_price")
    if trade is None and (bid is None or ask is None):
        raise _Unusable(UNPRICED)
    return (
        VenueOutcome(0, "Yes", None, trade, bid, ask),
        VenueOutcome(1, "No", None, _other(trade), _other(ask), _other(bid)),
    )


def _settled(raw: Raw, result: str) -> tuple[VenueOutcome, ...]:
    """Both sides with the payout of a share as price; None while there is no result."""
    if not result:
        return VenueOutcome(0, "Yes", None, None), VenueOutcome(1, "No", None, None)
    stated = first_known(_dollars(raw.get("settlement_value_dollars")), _cents(raw, "settlement_value"))
    paid = first_known(stated, {"yes": Decimal(1), "no": Decimal(0)}.get(result))
    return VenueOutcome(0, "Yes", None, paid), VenueOutcome(1, "No", None, _other(paid))


def _quote(raw: Raw, name: str) -> Decimal | None:
    value = first_known(_dollars(raw.get(f"{name}_dollars")), _cents(raw, name))
    return value if value is not None and 0 < value < 1 else None


def _dollars(raw: object) -> Decimal | None:
    value = or_none(number)(raw)
    return value if value is not None and 0 <= value <= 1 else None


def _cents(raw: Raw, name: str) -> Decimal | None:
    if raw.get("response_price_units", "usd_cent") != "usd_cent":
        return None
    value = or_none(number)(raw.get(name))
    return value * CENT if value is not None and 0 <= value <= 100 else None


def _other(price: Decimal | None) -> Decimal | None:
    return None if price is None else 1 - price


def _liquidity(raw: Raw) -> Decimal | None:
    if "liquidity_dollars" in raw:
        return amount(raw["liquidity_dollars"])
    cents = amount(raw.get("liquidity"))
    return None if cents is None else cents * CENT


def _closed_at(raw: Raw) -> datetime | None:
    # Kalshi moves the close time of a market that ends early.
    return moment(raw.get("close_time"))
