"""Parser of Gamma's markets and events.

A market is skipped if its id, question or outcomes are unusable, or its prices while it is open. Any other unusable
value becomes None, so that a missing date does not lose a market.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from markets.sources.base import SkippedMarket, VenueMarket, VenueOutcome
from markets.sources.field_parsers import (
    LONGEST_NAME,
    LONGEST_STATUS,
    amount,
    first_known,
    flag,
    identifier,
    label,
    line,
    moment,
    name,
    or_none,
    price,
    prose,
    sequence,
    shown,
)

GENERIC_TAGS = frozenset(
    {"all", "earn 4%", "featured", "games", "hide from new", "new", "parent for derivative"}
    | {"recurring", "rewards 20, 4.5, 50", "rewards 50, 4.5, 50", "trending"}
)
"""Tags about the placement of a market on the site, not its subject."""
V1, V2 = "v1", "v2"
"""Versions of Polymarket's protocol; rows from before the second have none."""


# ── a row's fields ────────────────────────────────────────────────────────────────────────────────


def unusable(why: str) -> PydanticCustomError:
    return PydanticCustomError("unusable", "{why}", {"why": why})


def _external_id(raw: object) -> str:
    if (found := identifier(raw)) is None:
        raise unusable("no id")
    return found


def _question(raw: object) -> str:
    if not (found := line(raw)):
        raise unusable("no question")
    return found


def _outcomes(raw: object) -> tuple[str, ...]:
    if raw is None:
        raise unusable("outcomes: missing")
    try:
        names = tuple(map(name, sequence(raw)))
    except ValueError as error:
        raise unusable(f"outcomes: {error}") from None
    if len(names) < 2:
        raise unusable(f"outcomes: fewer than two in {shown(raw)}")
    if not all(0 < len(one) <= LONGEST_NAME for one in names):
        raise unusable(f"outcomes: an empty or endless name in {shown(raw)}")
    if len(set(names)) < len(names):
        raise unusable(f"outcomes: a name twice in {shown(raw)}")
    return names


def _prices(raw: object, fields: ValidationInfo) -> tuple[Decimal | None, ...]:
    try:
        return _stated_prices(raw)
    except PydanticCustomError:
        # A market is closed even if its closing prices are unusable.
        if fields.data.get("closed"):
            return (None,) * len(fields.data.get("outcomes", ()))
        raise


def _stated_prices(raw: object) -> tuple[Decimal | None, ...]:
    if raw is None:
        raise unusable("outcomePrices: missing")
    try:
        prices = tuple(map(or_none(price), sequence(raw)))
    except ValueError as error:
        raise unusable(f"outcomePrices: {error}") from None
    if all(one is None for one in prices):
        raise unusable(f"outcomePrices: none usable in {shown(raw)}")
    return prices


def _tokens(raw: object) -> tuple[str | None, ...]:
    return tuple(map(identifier, or_none(sequence)(raw) or ()))


def _version(raw: object) -> str:
    if (version := V1 if raw is None else label(raw).lower()) not in (V1, V2):
        raise unusable(f"version: {shown(raw)} is unknown")
    return version


def _closed(raw: object) -> bool:
    try:
        return flag(raw) or False
    except ValueError as error:
        raise unusable(f"closed: {error}") from None


def _objects(raw: object) -> tuple[Mapping[str, Any], ...]:
    return tuple(one for one in raw if isinstance(one, dict)) if isinstance(raw, list) else ()


def _labels(raw: object) -> tuple[str, ...]:
    tags = raw if isinstance(raw, list) else ()
    labels = (
        label(tag.get("label")) or label(tag.get("slug")) if isinstance(tag, dict) else label(tag) for tag in tags
    )
    return tuple(one for one in labels if one and one.lower() not in GENERIC_TAGS)


def _statuses(raw: object) -> tuple[str, ...]:
    return tuple(map(label, or_none(sequence)(raw) or ()))


Line = Annotated[str, BeforeValidator(line)]
Label = Annotated[str, BeforeValidator(label)]
Flag = Annotated[bool | None, BeforeValidator(or_none(flag))]
Amount = Annotated[Decimal | None, BeforeValidator(amount)]
Price = Annotated[Decimal | None, BeforeValidator(or_none(price))]
Moment = Annotated[datetime | None, BeforeValidator(moment)]
Identifier = Annotated[str | None, BeforeValidator(identifier)]


class _Raw(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, strict=True, extra="ignore", validate_default=True, frozen=True)


class _Event(_Raw):
    id: Identifier = None
    title: Line = ""
    category: Label = ""
    tags: Annotated[tuple[str, ...], BeforeValidator(_labels)] = ()
    neg_risk: Flag = None


class _Market(_Raw):
    id: Annotated[str, BeforeValidator(_external_id)] = cast(str, None)
    version: Annotated[str, BeforeValidator(_version)] = V1
    question: Annotated[str, BeforeValidator(_question)] = ""
    outcomes: Annotated[tuple[str, ...], BeforeValidator(_outcomes)] = cast(Any, None)
    closed: Annotated[bool, BeforeValidator(_closed)] = False
    outcome_prices: Annotated[tuple[Decimal | None, ...], BeforeValidator(_prices)] = cast(Any, None)

    clob_token_ids: Annotated[tuple[str | None, ...], BeforeValidator(_tokens)] = ()
    position_ids: Annotated[tuple[str | None, ...], BeforeValidator(_tokens)] = ()
    accepting_orders: Flag = None
    enable_order_book: Flag = None
    condition_id: Identifier = None
    slug: Annotated[str, BeforeValidator(lambda raw: line(raw)[:LONGEST_NAME])] = ""
    description: Annotated[str, BeforeValidator(prose)] = ""
    category: Label = ""
    tags: Annotated[tuple[str, ...], BeforeValidator(_labels)] = ()
    events: Annotated[tuple[Any, ...], BeforeValidator(_objects)] = ()
    option: Annotated[str, BeforeValidator(lambda raw: line(raw)[:LONGEST_NAME].strip())] = Field(
        "", alias="groupItemTitle"
    )
    neg_risk: Flag = None
    volume_num: Amount = None
    volume: Amount = None
    liquidity_num: Amount = None
    liquidity: Amount = None
    end_date: Moment = None
    closed_time: Moment = None
    best_bid: Price = None
    best_ask: Price = None
    uma_resolution_status: Label = ""
    uma_resolution_statuses: Annotated[tuple[str, ...], BeforeValidator(_statuses)] = ()

    @model_validator(mode="before")
    @classmethod
    def _is_no_placeholder(cls, raw: dict[str, Any]) -> dict[str, Any]:
        # Checked first: a placeholder has no prices, which would be reported instead.
        if or_none(flag)(raw.get("active")) is False and or_none(flag)(raw.get("closed")) is not True:
            raise unusable("placeholder: neither active nor closed")
        return raw

    @model_validator(mode="after")
    def _has_lists_of_one_length(self) -> "_Market":
        lengths = {"outcomes": len(self.outcomes), "outcomePrices": len(self.outcome_prices)}
        if self.tokens:
            lengths[self._tokens_field] = len(self.tokens)
        if len(set(lengths.values())) > 1:
            raise unusable("lengths disagree: " + ", ".join(f"{n} {name}" for name, n in lengths.items()))
        known = [token for token in self.tokens if token]
        if len(set(known)) < len(known):
            raise unusable(f"{self._tokens_field}: two outcomes share a token")
        return self

    @property
    def tokens(self) -> tuple[str | None, ...]:
        """The ids that the CLOB knows: by version, even of a row with both lists."""
        return self.position_ids if self.version == V2 else self.clob_token_ids

    @property
    def _tokens_field(self) -> str:
        return "positionIds" if self.version == V2 else "clobTokenIds"

    def row(self) -> VenueMarket:
        event = _Event.model_validate(self.events[0] if self.events else {})
        statuses = self.uma_resolution_statuses
        return VenueMarket(
            external_id=self.id,
            question=self.question,
            outcomes=tuple(self._outcome(index) for index in range(len(self.outcomes))),
            closed=self.closed,
            version=self.version,
            accepts_orders=first_known(self.accepting_orders, self.enable_order_book, True),
            condition_id=self.condition_id,
            slug=self.slug,
            description=self.description,
            category=self.category or next(iter(self.tags + event.tags), event.category),
            event_id=event.id,
            event_title=event.title,
            event_exclusive=first_known(self.neg_risk, event.neg_risk),
            option=self.option,
            volume=first_known(self.volume_num, self.volume, Decimal(0)),
            liquidity=first_known(self.liquidity_num, self.liquidity, None),
            closes_at=self.end_date,
            closed_at=self.closed_time,
            oracle_status=(self.uma_resolution_status or next(reversed(statuses), "")).lower()[:LONGEST_STATUS] or None,
        )

    def _outcome(self, index: int) -> VenueOutcome:
        bid, ask = None, None
        if index == 0:
            bid, ask = self.best_bid, self.best_ask
        elif len(self.outcomes) == 2:
            # A bid on one of two sides is an ask on the other.
            bid = None if self.best_ask is None else 1 - self.best_ask
            ask = None if self.best_bid is None else 1 - self.best_bid
        return VenueOutcome(
            index=index,
            name=self.outcomes[index],
            token_id=self.tokens[index] if self.tokens else None,
            price=self.outcome_prices[index],
            bid=bid,
            ask=ask,
        )


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def parse_market(raw: object, ref: str) -> VenueMarket | SkippedMarket:
    """A market of Gamma, or the reason why it is skipped. `ref` identifies a row without an id."""
    if not isinstance(raw, dict):
        return SkippedMarket(ref, f"{shown(raw)} is not a market")
    try:
        return _Market.model_validate(raw).row()
    except ValidationError as error:
        return SkippedMarket(identifier(raw.get("id")) or ref, error.errors(include_url=False)[0]["msg"])


def parse_event(raw: object, ref: str = "event") -> list[VenueMarket | SkippedMarket]:
    """The markets embedded in an event; each inherits the event's id, title and tags."""
    if not isinstance(raw, dict):
        return [SkippedMarket(ref, f"{shown(raw)} is not an event")]
    name = identifier(raw.get("id")) or ref
    markets = raw.get("markets")
    if not isinstance(markets, list):
        return [SkippedMarket(name, f"markets: {shown(markets)} is not a list")]
    rows = [market | {"events": [raw]} if isinstance(market, dict) else market for market in markets]
    return [parse_market(row, f"{name}, market {place}") for place, row in enumerate(rows, start=1)]
