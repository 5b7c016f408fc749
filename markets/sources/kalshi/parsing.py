"""Parser of Kalshi's markets and events.

Every market is Yes or No. Prices are dollar strings, integer cents in older responses, or both; dollars take
precedence. A quote of 0 or of a whole dollar means that there is none.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, NamedTuple

from markets.sources.base import (
    TEMPLATE,
    UNPRICED,
    Excluded,
    SkippedMarket,
    Unusable,
    VenueMarket,
    VenueOutcome,
    parse_nested,
    parse_row,
)
from markets.sources.field_parsers import (
    LONGEST_NAME,
    amount,
    coalesce,
    complement,
    filled,
    first_field,
    flag_or_none,
    identifier,
    label,
    line,
    moment,
    number_or_none,
    price_or_none,
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


class Event(NamedTuple):
    """The fields that a market inherits from its event, parsed once for all of its markets."""

    id: str | None = None
    title: str = ""
    category: str = ""
    exclusive: bool | None = None


NO_EVENT = Event()


def parse_market(raw: object, ref: str, event: Event = NO_EVENT) -> VenueMarket | SkippedMarket:
    """A market of Kalshi, or the reason why it is skipped. `ref` identifies a row without a ticker."""
    return parse_row(raw, ref, ("ticker", "ticker_name"), lambda row: _market(row, event))


def parse_event(raw: object, ref: str = "event") -> list[VenueMarket | SkippedMarket]:
    """The markets nested in an event; each inherits the event's ticker, title, category and exclusivity."""
    fields = raw if isinstance(raw, dict) else {}
    event = Event(
        id=identifier(fields.get("event_ticker")),
        title=filled(line(fields.get("title"))),
        category=label(fields.get("category")),
        exclusive=flag_or_none(fields.get("mutually_exclusive")),
    )
    return parse_nested(raw, ref, ("event_ticker", "ticker"), partial(parse_market, event=event))


def _market(raw: Raw, event: Event) -> VenueMarket:
    ticker = _ticker(raw)
    status = _status(raw)
    closed = status in ENDED
    option = line(raw.get("yes_sub_title"))[:LONGEST_NAME].strip()
    result = label(raw.get("result")).lower() if closed else ""
    return VenueMarket(
        external_id=ticker,
        question=_question(raw, event.title, option, closed=closed),
        outcomes=_settled(raw, result) if closed else _quoted(raw),
        closed=closed,
        accepts_orders=status == OPEN,
        description=_rules(raw),
        category=event.category or label(raw.get("category")),
        event_id=event.id or identifier(raw.get("event_ticker")),
        event_title=event.title,
        event_exclusive=event.exclusive,
        option="" if option.casefold() in ("yes", "no") else option,
        volume=first_field(raw, amount, "volume_fp", "volume", "volume_dollars") or Decimal(0),
        volume_24h=first_field(raw, amount, "volume_24h_fp", "volume_24h", "volume_24h_dollars"),
        liquidity=_liquidity(raw),
        closes_at=_closing(raw),
        created_at=moment(raw.get("created_time")),
        oracle_status=status,
        result=result,
    )


def _rules(raw: Raw) -> str:
    """Both parts of the rules; none where either is a template."""
    parts = map(prose, (raw.get("rules_primary"), raw.get("rules_secondary")))
    return filled("\n\n".join(filter(None, parts)))


def _closing(raw: Raw) -> datetime | None:
    """The expected end of the event where it precedes the close of trading, which may lie days or years later."""
    closes = first_field(raw, moment, "close_time", "expected_expiration_time", "expiration_time")
    expected = moment(raw.get("expected_expiration_time"))
    return min(closes, expected) if closes and expected else closes


# ── required fields ──────────────────────────────────────────────────────────────


def _ticker(raw: Raw) -> str:
    if "ticker_name" in raw and "ticker" not in raw:
        raise Unusable("the website's own (v1) format, another API")
    ticker = identifier(raw.get("ticker"))
    if ticker is None:
        raise Unusable("no ticker")
    if ticker.upper().startswith(PARLAY) or raw.get("mve_collection_ticker") or raw.get("mve_selected_legs"):
        raise Excluded("multivariate: a parlay on other markets")
    if (kind := label(raw.get("market_type")).lower()) not in ("", "binary"):
        raise Unusable(f"market_type: {shown(kind)} is not binary")
    return ticker


def _status(raw: Raw) -> str:
    text = label(raw.get("status")).lower()
    status = ALIASES.get(text, text)
    if status not in (OPEN, *PAUSED, *ENDED):
        raise Unusable(f"status: {shown(raw.get('status'))} is unknown")
    return status


def _question(raw: Raw, event_title: str, option: str, *, closed: bool) -> str:
    """The market's title, else its event's, else its rule; with its option where the title leaves that out.

    Templates are none of these. A closed market needs no question: what is held must still be settled.
    """
    stated = [line(raw.get("title")), line(raw.get("yes_sub_title")), line(raw.get("rules_primary"))]
    title = filled(stated[0]) or event_title
    if not filled(stated[1]) and stated[1] and not closed:
        raise Excluded(TEMPLATE)
    if not title:
        if rule := filled(stated[2]):
            return rule
        if closed:
            return ""
        # What is stated as its title or its rules, and is no question, has a blank.
        raise Excluded(TEMPLATE) if stated[0] or stated[2] else Unusable("no question")
    has_option = not option or option.casefold() in ("yes", "no") or option.casefold() in title.casefold()
    return title if has_option else f"{title} – {option}"


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def _quoted(raw: Raw) -> tuple[VenueOutcome, ...]:
    """Both sides with best bid, ask and the last trade."""
    # A bid on one side is an ask on the other; the venue may state either.
    bid = coalesce(_quote(raw, "yes_bid"), complement(_quote(raw, "no_ask")))
    ask = coalesce(_quote(raw, "yes_ask"), complement(_quote(raw, "no_bid")))
    if bid is not None and ask is not None and bid >= ask:
        bid = ask = None  # a crossed book is not usable
    trade = _quote(raw, "last_price")
    if trade is None and (bid is None or ask is None):
        raise Excluded(UNPRICED)
    return _sides(trade, bid, ask)


def _settled(raw: Raw, result: str) -> tuple[VenueOutcome, ...]:
    """Both sides with the payout of a share as price; None while there is no result."""
    if not result:
        return _sides(None)
    value = coalesce(price_or_none(raw.get("settlement_value_dollars")), _cents(raw, "settlement_value"))
    return _sides(coalesce(value, {"yes": Decimal(1), "no": Decimal(0)}.get(result)))


def _sides(price: Decimal | None, bid: Decimal | None = None, ask: Decimal | None = None) -> tuple[VenueOutcome, ...]:
    no = VenueOutcome(1, "No", None, complement(price), complement(ask), complement(bid))
    return VenueOutcome(0, "Yes", None, price, bid, ask), no


def _quote(raw: Raw, name: str) -> Decimal | None:
    value = coalesce(price_or_none(raw.get(f"{name}_dollars")), _cents(raw, name))
    return value if value is not None and 0 < value < 1 else None


def _cents(raw: Raw, name: str) -> Decimal | None:
    if raw.get("response_price_units", "usd_cent") != "usd_cent":
        return None
    value = number_or_none(raw.get(name))
    return value * CENT if value is not None and 0 <= value <= 100 else None


def _liquidity(raw: Raw) -> Decimal | None:
    if "liquidity_dollars" in raw:
        return amount(raw["liquidity_dollars"])
    cents = amount(raw.get("liquidity"))
    return None if cents is None else cents * CENT
