"""Gamma's rows, read with distrust: `parse_market` gives a row that can be used, or says why not.

What a market can not do without (id, question, outcomes, prices) skips the row where it is unusable;
anything else that is odd becomes None, for a missing date is no reason to lose a market.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from markets.sources.base import MarketRow, OutcomeRow, SkippedRow

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
LONGEST_NUMBER = 100
"""Characters; the longest honest price on record has 40."""
LARGEST_AMOUNT = Decimal(10) ** 15
LONGEST_ID, LONGEST_LABEL, LONGEST_NAME = 120, 120, 300
"""Characters; anything longer is a fault upstream, and would be refused by the database with its whole batch."""

T = TypeVar("T")

GENERIC_TAGS = frozenset(
    {"all", "earn 4%", "featured", "games", "hide from new", "new", "parent for derivative"}
    | {"recurring", "rewards 20, 4.5, 50", "rewards 50, 4.5, 50", "trending"}
)
"""Labels that say where the site shows a market, not what it is about."""


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def number(raw: object) -> Decimal:
    """The exact decimal that a number or its text stands for; ValueError for anything else."""
    numeric = isinstance(raw, str | int | float | Decimal) and not isinstance(raw, bool)
    text = str(raw).strip() if numeric else ""
    if len(text) <= LONGEST_NUMBER and NUMBER.fullmatch(text):
        return Decimal(text)
    raise ValueError(f"{shown(raw)} is not a number")


def price(raw: object) -> Decimal:
    """A price exactly as written; ValueError if it is no number in [0, 1]."""
    value = number(raw)
    if not 0 <= value <= 1:
        raise ValueError(f"{shown(raw)} is outside [0, 1]")
    return value.copy_abs()  # "-0" is 0; abs() would round to the context's 28 digits


def line(raw: object) -> str:
    """Text for one line: stripped, NUL dropped, any other control character or break kept as a space."""
    return re.sub(r"[\x01-\x1f\x7f-\x9f\u2028\u2029]", " ", storable(raw)).strip()


def label(raw: object) -> str:
    """A line cut to the length of a label."""
    return line(raw)[:LONGEST_LABEL].strip()


def prose(raw: object) -> str:
    """Text of several lines, without control characters other than line breaks and tabs."""
    return re.sub(r"[\x01-\x08\x0b-\x1f\x7f-\x9f]", " ", storable(raw).replace("\r\n", "\n")).strip()


def storable(raw: object) -> str:
    # PostgreSQL refuses NUL, and UTF-8 has no form for half a surrogate pair.
    return re.sub(r"[\ud800-\udfff]", "\ufffd", raw.replace("\0", "")) if isinstance(raw, str) else ""


def identifier(raw: object) -> str | None:
    """An id given as text or integer, as text; None where there is none, or no honest one."""
    found = name(raw)
    return found if 0 < len(found) <= LONGEST_ID else None


def name(raw: object) -> str:
    """A name on one line; a number is a name too (`2024`), a missing one is empty."""
    return line(str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else raw)


def moment(raw: object) -> datetime | None:
    """An aware UTC time from any of Gamma's forms; None where it is missing or can not be read."""
    try:
        parsed = datetime.fromisoformat(raw.strip()) if isinstance(raw, str) else None
        aware = parsed and (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return aware if aware and aware.year > 1 else None  # year 1 is how Go writes "no time"


def flag(raw: object) -> bool | None:
    """A boolean, or its text; None where the value is missing, ValueError for anything else."""
    if raw is None or isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in {"true", "false"}:
        return raw.strip().lower() == "true"
    raise ValueError(f"{shown(raw)} is neither true nor false")


def sequence(raw: object) -> list[Any]:
    """A list given as such or as JSON text; ValueError for anything else."""
    try:
        found = json.loads(raw, parse_float=Decimal) if isinstance(raw, str) else raw
    except (ValueError, ArithmeticError, RecursionError):
        found = None
    if isinstance(found, list):
        return found
    raise ValueError(f"{shown(raw)} is not a list")


def shown(raw: object) -> str:
    text = line(repr(raw))
    return text if len(text) <= 60 else f"{text[:59]}…"


def or_none(read: Callable[[object], T]) -> Callable[[object], T | None]:
    """The same reader, with None for what it can not read."""

    def lenient(raw: object) -> T | None:
        try:
            return read(raw)
        except ValueError:
            return None

    return lenient


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


def _prices(raw: object) -> tuple[Decimal | None, ...]:
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


def _closed(raw: object) -> bool:
    try:
        return flag(raw) or False
    except ValueError as error:
        raise unusable(f"closed: {error}") from None


def _amount(raw: object) -> Decimal | None:
    value = or_none(number)(raw)
    return value if value is not None and 0 <= value < LARGEST_AMOUNT else None


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
Amount = Annotated[Decimal | None, BeforeValidator(_amount)]
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


class _Market(_Raw):
    id: Annotated[str, BeforeValidator(_external_id)] = cast(str, None)
    question: Annotated[str, BeforeValidator(_question)] = ""
    outcomes: Annotated[tuple[str, ...], BeforeValidator(_outcomes)] = cast(Any, None)
    outcome_prices: Annotated[tuple[Decimal | None, ...], BeforeValidator(_prices)] = cast(Any, None)
    closed: Annotated[bool, BeforeValidator(_closed)] = False

    tokens: Annotated[tuple[str | None, ...], BeforeValidator(_tokens)] = Field((), alias="clobTokenIds")
    accepting_orders: Flag = None
    enable_order_book: Flag = None
    condition_id: Identifier = None
    slug: Annotated[str, BeforeValidator(lambda raw: line(raw)[:LONGEST_NAME])] = ""
    description: Annotated[str, BeforeValidator(prose)] = ""
    category: Label = ""
    tags: Annotated[tuple[str, ...], BeforeValidator(_labels)] = ()
    events: Annotated[tuple[Any, ...], BeforeValidator(_objects)] = ()
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
        # Said before anything else: a placeholder lacks its prices because it is one.
        if or_none(flag)(raw.get("active")) is False and or_none(flag)(raw.get("closed")) is not True:
            raise unusable("placeholder: neither active nor closed")
        return raw

    @model_validator(mode="after")
    def _has_lists_of_one_length(self) -> "_Market":
        lengths = {"outcomes": len(self.outcomes), "outcomePrices": len(self.outcome_prices)}
        if self.tokens:
            lengths["clobTokenIds"] = len(self.tokens)
        if len(set(lengths.values())) > 1:
            raise unusable("lengths disagree: " + ", ".join(f"{n} {name}" for name, n in lengths.items()))
        known = [token for token in self.tokens if token]
        if len(set(known)) < len(known):
            raise unusable("clobTokenIds: two outcomes share a token")
        return self

    def row(self, embedding: _Event | None) -> MarketRow:
        event = embedding or _Event.model_validate(self.events[0] if self.events else {})
        statuses = self.uma_resolution_statuses
        return MarketRow(
            external_id=self.id,
            question=self.question,
            outcomes=tuple(self._outcome(index) for index in range(len(self.outcomes))),
            closed=self.closed,
            accepts_orders=first_known(self.accepting_orders, self.enable_order_book, True),
            condition_id=self.condition_id,
            slug=self.slug,
            description=self.description,
            category=self.category or next(iter(self.tags + event.tags), event.category),
            event_id=event.id,
            event_title=event.title,
            volume=first_known(self.volume_num, self.volume, Decimal(0)),
            liquidity=first_known(self.liquidity_num, self.liquidity, None),
            closes_at=self.end_date,
            closed_at=self.closed_time,
            oracle_status=(self.uma_resolution_status or next(reversed(statuses), "")).lower() or None,
        )

    def _outcome(self, index: int) -> OutcomeRow:
        bid, ask = None, None
        if index == 0:
            bid, ask = self.best_bid, self.best_ask
        elif len(self.outcomes) == 2:
            # Bidding on one side of two is offering the other.
            bid = None if self.best_ask is None else 1 - self.best_ask
            ask = None if self.best_bid is None else 1 - self.best_bid
        return OutcomeRow(
            index=index,
            name=self.outcomes[index],
            token_id=self.tokens[index] if self.tokens else None,
            price=self.outcome_prices[index],
            bid=bid,
            ask=ask,
        )


def first_known(*candidates: Any) -> Any:
    """The first that is not None (zero and False are known), else None."""
    return next((one for one in candidates if one is not None), None)


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def parse_market(raw: object, ref: str) -> MarketRow | SkippedRow:
    """One of Gamma's markets as a row, or the reason why it can not be used.

    `ref` names the row's place in its page, for a row without an id.
    """
    return _parse(raw, ref, embedding=None)


def parse_event(raw: object, ref: str = "event") -> list[MarketRow | SkippedRow]:
    """Every market that an event embeds; each inherits the event's id, title and tags."""
    if not isinstance(raw, dict):
        return [SkippedRow(ref, f"{shown(raw)} is not an event")]
    name = identifier(raw.get("id")) or ref
    markets = raw.get("markets")
    if not isinstance(markets, list):
        return [SkippedRow(name, f"markets: {shown(markets)} is not a list")]
    event = _Event.model_validate(raw)
    return [_parse(market, f"{name}, market {place}", event) for place, market in enumerate(markets, start=1)]


def _parse(raw: object, ref: str, embedding: _Event | None) -> MarketRow | SkippedRow:
    if not isinstance(raw, dict):
        return SkippedRow(ref, f"{shown(raw)} is not a market")
    try:
        return _Market.model_validate(raw).row(embedding)
    except ValidationError as error:
        return SkippedRow(identifier(raw.get("id")) or ref, error.errors(include_url=False)[0]["msg"])
