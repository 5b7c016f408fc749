"""Parser of Gamma's markets and events.

A market is skipped if its id, question or outcomes are unusable, or its prices while it is open. Any other unusable
value becomes None, so that a missing date does not lose a market.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from markets.sources.base import (
    TEMPLATE,
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
    LONGEST_STATUS,
    amount,
    coalesce,
    complement,
    fee_term_or_none,
    filled,
    first_field,
    flag,
    flag_or_none,
    identifier,
    label,
    line,
    moment,
    name,
    price_or_none,
    prose,
    sequence,
    sequence_or_none,
    shown,
)

GENERIC_TAGS = frozenset(
    {"all", "earn 4%", "featured", "games", "hide from new", "new", "parent for derivative"}
    | {"recurring", "rewards 20, 4.5, 50", "rewards 50, 4.5, 50", "trending"}
)
"""Tags about the placement of a market on the site, not its subject."""
TOKEN_FIELDS = {"v1": "clobTokenIds", "v2": "positionIds"}
"""The field with the ids that the CLOB knows, by version of the protocol, even of a row with both."""
VERSIONS = {"v1": "v1", "1": "v1", "v2": "v2", "2": "v2"}
"""The names of the protocol's versions, which may be numbers."""
ID_FIELDS = ("id",)

Raw = Mapping[str, Any]


def parse_market(raw: object, ref: str, event: Raw | None = None) -> VenueMarket | SkippedMarket:
    """A market of Gamma, or the reason why it is skipped. `ref` identifies a row without an id."""
    return parse_row(raw, ref, ID_FIELDS, lambda row: _market(row, event or _first_event(row)))


def parse_event(raw: object, ref: str = "event") -> list[VenueMarket | SkippedMarket]:
    """The markets embedded in an event; each inherits the event's id, title and tags."""
    event = raw if isinstance(raw, dict) else {}
    return parse_nested(raw, ref, ID_FIELDS, partial(parse_market, event=event))


def _market(raw: Raw, event: Raw) -> VenueMarket:
    # Checked first: a placeholder has no prices, which would be reported instead.
    if flag_or_none(raw.get("active")) is False and flag_or_none(raw.get("closed")) is not True:
        raise Excluded("placeholder: neither active nor closed")
    if (external_id := identifier(raw.get("id"))) is None:
        raise Unusable("no id")
    # Rows from before the second protocol have no version.
    version = "v1" if raw.get("version") is None else VERSIONS.get(name(raw["version"]).lower(), "")
    if not version:
        raise Unusable(f"version: {shown(raw['version'])} is unknown")
    try:
        closed = flag(raw.get("closed")) or False
    except ValueError as error:
        raise Unusable(f"closed: {error}") from None
    if not (stated := line(raw.get("question"))):
        raise Unusable("no question")
    if not (question := filled(stated)) and not closed:  # what is held must still be settled
        raise Excluded(TEMPLATE)
    names = _outcome_names(raw)
    oracle_history = sequence_or_none(raw.get("umaResolutionStatuses")) or [""]
    oracle_status = label(raw.get("umaResolutionStatus")) or label(oracle_history[-1])
    tags = _labels(raw.get("tags")) + _labels(event.get("tags"))
    fee_rate, fee_exponent, fee_unknown = _taker_fee(raw)
    return VenueMarket(
        external_id=external_id,
        question=question,
        outcomes=_outcomes(raw, names, TOKEN_FIELDS[version], closed=closed),
        closed=closed,
        version=version,
        accepts_orders=first_field(raw, flag_or_none, "acceptingOrders", "enableOrderBook") is not False,
        condition_id=identifier(raw.get("conditionId")),
        slug=line(raw.get("slug"))[:LONGEST_NAME],
        description=filled(prose(raw.get("description"))),
        category=label(raw.get("category")) or next(iter(tags), label(event.get("category"))),
        event_id=identifier(event.get("id")),
        event_title=filled(line(event.get("title"))),
        event_exclusive=coalesce(*(flag_or_none(row.get("negRisk")) for row in (raw, event))),
        option=filled(line(raw.get("groupItemTitle")))[:LONGEST_NAME].strip(),
        volume=first_field(raw, amount, "volumeNum", "volume") or Decimal(0),
        volume_24h=first_field(raw, amount, "volume24hr", "volume24hrClob"),
        liquidity=first_field(raw, amount, "liquidityNum", "liquidity"),
        fee_rate=fee_rate,
        fee_exponent=fee_exponent,
        fee_unknown=fee_unknown,
        closes_at=moment(raw.get("endDate")),
        created_at=moment(raw.get("createdAt")),
        oracle_status=oracle_status.lower()[:LONGEST_STATUS] or None,
        ended=_has_ended(raw, event),
        starts_at=first_field(raw, moment, "gameStartTime") or first_field(event, moment, "startTime"),
    )


def _has_ended(raw: Raw, event: Raw) -> bool:
    """Whether the market or an event of it is over by the venue's own word."""
    events = raw.get("events")
    rows = [raw, event, *(events if isinstance(events, list) else ())]
    return any(flag_or_none(row.get("ended")) is True for row in rows if isinstance(row, dict))


def _first_event(raw: Raw) -> Raw:
    events = raw.get("events")
    return next((event for event in events if isinstance(event, dict)), {}) if isinstance(events, list) else {}


def _labels(raw: object) -> list[str]:
    """The labels of tags that name a subject."""
    tags = raw if isinstance(raw, list) else []
    labels = []
    for tag in tags:
        text = label(tag.get("label")) or label(tag.get("slug")) if isinstance(tag, dict) else label(tag)
        if text and text.lower() not in GENERIC_TAGS:
            labels.append(text)
    return labels


def _taker_fee(raw: Raw) -> tuple[Decimal | None, Decimal | None, bool]:
    """The rate and the exponent of the fee schedule, None where there is no fee; and whether the fee is unknown.

    It is unknown where fees are on, or a schedule is stated, and its terms can not be read.
    """
    enabled, schedule = raw.get("feesEnabled"), raw.get("feeSchedule")
    if flag_or_none(enabled) is False or (enabled is None and schedule is None):
        return None, None, False
    terms = schedule if isinstance(schedule, dict) else {}
    rate, exponent = fee_term_or_none(terms.get("rate")), fee_term_or_none(terms.get("exponent"))
    if rate is None or exponent is None:
        return None, None, True
    return rate, exponent, False


# ── outcomes ──────────────────────────────────────────────────────────────────────────────────────


def _outcomes(raw: Raw, names: Sequence[str], token_field: str, *, closed: bool) -> tuple[VenueOutcome, ...]:
    prices = _prices(raw, len(names), closed=closed)
    tokens = list(map(identifier, sequence_or_none(raw.get(token_field)) or ()))
    lengths = {"outcomes": len(names), "outcomePrices": len(prices)} | ({token_field: len(tokens)} if tokens else {})
    if len(set(lengths.values())) > 1:
        raise Unusable("lengths disagree: " + ", ".join(f"{number} {field}" for field, number in lengths.items()))
    ids = [token for token in tokens if token]
    if len(set(ids)) < len(ids):
        raise Unusable(f"{token_field}: two outcomes share a token")
    bid, ask = price_or_none(raw.get("bestBid")), price_or_none(raw.get("bestAsk"))
    # A bid on one of two sides is an ask on the other.
    quotes = [(bid, ask), (complement(ask), complement(bid))] if len(names) == 2 else [(bid, ask)]
    outcomes = []
    for index, outcome_name in enumerate(names):
        token = tokens[index] if tokens else None
        quote = quotes[index] if index < len(quotes) else (None, None)
        outcomes.append(VenueOutcome(index, outcome_name, token, prices[index], *quote))
    return tuple(outcomes)


def _outcome_names(raw: Raw) -> list[str]:
    names = list(map(name, _required_list(raw, "outcomes")))
    if len(names) < 2:
        raise Unusable(f"outcomes: fewer than two in {shown(raw['outcomes'])}")
    if not all(0 < len(text) <= LONGEST_NAME for text in names):
        raise Unusable(f"outcomes: an empty or endless name in {shown(raw['outcomes'])}")
    if len(set(names)) < len(names):
        raise Unusable(f"outcomes: a name twice in {shown(raw['outcomes'])}")
    return names


def _prices(raw: Raw, number: int, *, closed: bool) -> list[Decimal | None]:
    try:
        prices = list(map(price_or_none, _required_list(raw, "outcomePrices")))
        if all(value is None for value in prices):
            raise Unusable(f"outcomePrices: none usable in {shown(raw['outcomePrices'])}")
    except Unusable:
        if not closed:
            raise
        return [None] * number  # a market is closed even if its closing prices are unusable
    return prices


def _required_list(raw: Raw, field: str) -> list[Any]:
    if raw.get(field) is None:
        raise Unusable(f"{field}: missing")
    try:
        return sequence(raw[field])
    except ValueError as error:
        raise Unusable(f"{field}: {error}") from None
