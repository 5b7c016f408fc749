"""Polymarket's Gamma API: the exchange's markets as of five minutes ago and the script's, in keyset pages."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from typing import Any

from venue_sandbox import rows
from venue_sandbox.catalogue import Event, Market
from venue_sandbox.exchange import Exchange, MarketState
from venue_sandbox.http_messages import Refusal, Reply, Request, plain, zulu
from venue_sandbox.rows import Row
from venue_sandbox.script import Script

LAG = timedelta(minutes=5)  # Gamma answers from a cache of that age
CACHED = {"cache-control": f"public, max-age={LAG.seconds}"}
MARKETS_CAP, DEFAULT_LIMIT = 100, 20
MAX_CACHED_EVENTS = 1024  # rendered rows: each page of a list needs the same ones
NESTED = ("tags", "markets")  # fields that an event lacks inside a market
CRYPTO = ("Bitcoin", "Ethereum", "Solana", "Dogecoin")
ZERO_ADDRESS = "0x" + "0" * 40

SortKey = Callable[[Any], Any]

ORDERS: dict[str, SortKey] = {
    "id": lambda row: _sortable(row, "id"),
    "volumeNum": lambda row: _sortable(row, "volumeNum"),
    "liquidityNum": lambda row: _sortable(row, "liquidityNum"),
}


def _sortable(row: Any, name: str) -> str:
    """A number as text that sorts as the number does, so that a cursor can carry it exactly; 0 for what is none."""
    try:
        number = Decimal(str(row[name]))
    except (ArithmeticError, TypeError, KeyError):
        number = Decimal(0)
    return f"{number if number.is_finite() else 0:024.6f}"


class Gamma:
    """The endpoints of the catalogue, one method each."""

    def __init__(self, exchange: Exchange, script: Script):
        self.exchange = exchange
        self.script = script
        self._by_id = {event.id: event for event in exchange.season.events}
        self._event = lru_cache(maxsize=MAX_CACHED_EVENTS)(self._event_at)

    def markets_keyset(self, request: Request) -> Reply:
        """A page of the markets that match. A larger limit than the cap is cut without a word."""
        if "offset" in request.query:
            raise invalid("offset is not allowed on keyset endpoints")
        limit = min(request.count("limit", DEFAULT_LIMIT, invalid), MARKETS_CAP)
        key, descending = _sort_key(request)
        rows = sorted(self._markets(request), key=key, reverse=descending)
        if after := request.parameter("after_cursor"):
            last = _read_cursor(after)
            try:
                rows = [row for row in rows if (key(row) < last if descending else key(row) > last)]
            except TypeError:
                raise invalid("after_cursor is invalid") from None
        body: Row = {"markets": rows[:limit]}
        if len(rows) > limit:
            body["next_cursor"] = _write_cursor(key(rows[limit - 1]))
        return Reply(200, body, CACHED)

    def market(self, request: Request, id: str) -> Reply:
        if not id.isascii() or not id.isdigit():
            raise invalid("id is invalid")
        by_hand = dict(self.script.listed())
        if id in by_hand:
            return Reply(200, by_hand[id], CACHED)
        market = self.exchange.by_id.get(id)
        event = self._event(market.event_id, request.at - LAG) if market else None
        for row in self._rows(request, event) if event else ():
            if row["id"] == id and id not in self.script.gone:
                return Reply(200, row, CACHED)
        return Reply(404, {"type": "not found error", "error": "id not found"})

    def _markets(self, request: Request) -> list[Any]:
        """The market rows that match the request's filters, open ones unless it asks for closed ones."""
        closed = _flag(request, "closed", False)
        events = self._events(request.at - LAG, closed)
        season = ((row["id"], row) for event in events for row in self._rows(request, event))
        listed = chain(((id, row) for id, row in season if id not in self.script.gone), self.script.listed())
        ids = request.query.get("id")
        return [row for id, row in listed if _is_closed(row) is closed and (ids is None or id in ids)]

    def _rows(self, request: Request, event: Row) -> Iterator[Row]:
        """An event's market rows, each with the event and, with include_tag, the event's tags."""
        more: Row = {"events": [{name: value for name, value in event.items() if name not in NESTED}]}
        if _flag(request, "include_tag", False):
            more["tags"] = event["tags"]
        return (market | more for market in event["markets"])

    def _events(self, as_of: datetime, closed: bool) -> Iterator[Row]:
        """The events with a listed market that is closed, or open; the others are not rendered."""
        for event in self.exchange.season.events:
            listed = (m for m in event.markets if self.exchange.is_listed(m, as_of))
            if any((as_of >= self.exchange.closes(m)) is closed for m in listed):
                row = self._event(event.id, as_of)
                assert row is not None
                yield row

    def _event_at(self, event_id: str, as_of: datetime) -> Row | None:
        event = self._by_id[event_id]
        states = [self.exchange.market_state(m, as_of) for m in event.markets if self.exchange.is_listed(m, as_of)]
        if not states:
            return None
        return _event(event, states) | {"tags": _tags(event), "markets": [_market(state) for state in states]}


def _is_closed(row: Any) -> bool:
    """True for a closed market; a row by hand may be anything."""
    return isinstance(row, dict) and bool(row.get("closed"))


def invalid(why: str) -> Refusal:
    """Gamma's refusal of an invalid request."""
    return Refusal(Reply(422, {"type": "validation error", "error": why}))


def _market(state: MarketState) -> Row:
    market = state.market
    ends = _nominal_end(market)
    prices = map(plain, state.prices)
    row = rows.gamma_market(
        id=market.id,
        question=market.question,
        condition_id=market.condition_id,
        slug=market.slug,
        prices=dict(zip(market.outcomes, prices, strict=True)),
        tokens=market.tokens,
        volume=state.volume,
        is_open=state.open,
    ) | {
        "version": market.version,
        "resolutionSource": "",
        "endDate": zulu(ends),
        "liquidity": plain(state.liquidity),
        "startDate": zulu(market.lists),
        "description": _rules(market),
        "marketMakerAddress": "",
        "createdAt": zulu(market.lists - timedelta(hours=2)),
        "updatedAt": zulu(state.at),
        "new": False,
        "featured": False,
        "submitted_by": ZERO_ADDRESS,
        "archived": False,
        "resolvedBy": ZERO_ADDRESS,
        "restricted": True,
        "groupItemTitle": market.label,
        "groupItemThreshold": str(market.runner or 0),
        "questionID": market.question_id,
        "enableOrderBook": True,
        "orderPriceMinTickSize": market.tick,
        "orderMinSize": 5,
        "liquidityNum": state.liquidity,
        "endDateIso": f"{ends:%Y-%m-%d}",
        "startDateIso": f"{market.lists:%Y-%m-%d}",
        "hasReviewedDates": True,
        "volume24hr": state.volume_24h,
        "umaBond": "500",
        "umaReward": "5",
        "volumeClob": state.volume,
        "liquidityClob": state.liquidity,
        "negRisk": market.runner is not None,
        "feesEnabled": False,
        "approved": True,
        "spread": state.spread,
        "lastTradePrice": state.prices[0],
        "umaResolutionStatuses": json.dumps(state.oracle),
    }
    if market.version == "v2":
        # The ids of the first protocol stay in the row, and are no longer those of any book.
        row |= {"positionIds": list(market.tokens), "clobTokenIds": json.dumps([f"1{t}" for t in market.tokens])}
    if market.undated:
        del row["endDate"], row["endDateIso"]
    end = f"{state.closes:%Y-%m-%d %H:%M:%S}+00"
    if state.open:
        row |= {"bestBid": state.prices[0] - state.spread / 2, "bestAsk": state.prices[0] + state.spread / 2}
    else:
        row["closedTime"] = end
    if state.oracle:
        row["umaResolutionStatus"] = state.oracle[-1]
    if fee := _fee(state):
        row |= {"feesEnabled": True, "feeSchedule": fee}
    if market.kind:
        row |= {"sportsMarketType": market.kind, "gameStartTime": end}
    return row


def _fee(state: MarketState) -> Row:
    """The fee schedule of takers, which sports and crypto have on the real exchange; empty for other markets."""
    if state.market.kind:
        return {"exponent": 1, "rate": 0.05, "takerOnly": True, "rebateRate": 0.15}
    if any(name in state.market.question for name in CRYPTO):
        return {"exponent": 2, "rate": 0.25, "takerOnly": True, "rebateRate": 0.2}
    return {}


def _event(event: Event, states: list[MarketState]) -> Row:
    """An event row without its markets; volume and liquidity are numbers."""
    first = event.markets[0]
    return {
        "id": event.id,
        "ticker": event.slug,
        "slug": event.slug,
        "title": event.title,
        "description": _rules(first),
        "resolutionSource": "",
        "startDate": zulu(first.lists),
        "creationDate": zulu(first.lists),
        "endDate": zulu(_nominal_end(first)),
        "active": True,
        "closed": all(not state.open for state in states),
        "archived": False,
        "new": False,
        "featured": False,
        "restricted": True,
        "liquidity": sum(state.liquidity for state in states),
        "volume": sum(state.volume for state in states),
        "openInterest": 0,
        "createdAt": zulu(first.lists - timedelta(hours=2)),
        "updatedAt": zulu(states[0].at),
        "volume24hr": sum(state.volume_24h for state in states),
        "enableOrderBook": True,
        "negRisk": event.exclusive,
        "commentCount": 0,
    }


def _tags(event: Event) -> list[Row]:
    slugs = [(label, label.lower().replace(" ", "-")) for label in event.tags]
    return [{"id": str(1 + sum(map(ord, slug))), "label": label, "slug": slug} for label, slug in slugs]


def _nominal_end(market: Market) -> datetime:
    """The stated deadline: the midnight after the real end."""
    return (market.closes + timedelta(days=1)).replace(hour=0, minute=0)


def _rules(market: Market) -> str:
    if market.outcomes[0] in ("Yes", "No"):
        return (
            f'This market asks: {market.question} It will resolve to "Yes" if credible reporting confirms it '
            f'by {_nominal_end(market):%B %d, %Y}, 00:00 UTC. Otherwise, it will resolve to "No".'
        )
    names = ", ".join(f'"{outcome}"' for outcome in market.outcomes)
    return f"This market asks: {market.question} It will resolve to whichever of {names} is confirmed."


def _sort_key(request: Request) -> tuple[SortKey, bool]:
    """The key by which rows are sorted and paged, unique by the id, and whether it descends."""
    name = request.parameter("order") or "id"
    if name not in ORDERS:
        raise invalid("order fields are not valid")
    field = ORDERS[name]
    return (lambda row: [field(row), _sortable(row, "id")]), not _flag(request, "ascending", True)


def _read_cursor(text: str) -> list[Any]:
    try:
        last = json.loads(urlsafe_b64decode(text))
    except ValueError:
        raise invalid("after_cursor is invalid") from None
    if not isinstance(last, list) or len(last) != 2:
        raise invalid("after_cursor is invalid")
    return last


def _write_cursor(key: list[Any]) -> str:
    return urlsafe_b64encode(json.dumps(key).encode()).decode()


def _flag(request: Request, name: str, default: bool) -> bool:
    match request.parameter(name):
        case None:
            return default
        case "true":
            return True
        case "false":
            return False
    raise invalid(f"{name} is invalid")
