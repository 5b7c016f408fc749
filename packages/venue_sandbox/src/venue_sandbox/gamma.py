"""Polymarket's Gamma API: the exchange's markets and events as of five minutes ago, in keyset pages."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from venue_sandbox.catalogue import Event, Market, ResolutionKind
from venue_sandbox.exchange import Exchange, MarketState
from venue_sandbox.http_messages import Refusal, Reply, Request, plain, zulu

LAG = timedelta(minutes=5)  # Gamma answers from a cache of that age
CACHED = {"cache-control": f"public, max-age={LAG.seconds}"}
MARKETS_CAP, DEFAULT_LIMIT = 100, 20
MAX_CACHED_EVENTS = 1024  # rendered rows: each page of a list needs the same ones
NESTED = ("tags", "markets")  # fields that an event lacks inside a market
CRYPTO = ("Bitcoin", "Ethereum", "Solana", "Dogecoin")
ZERO_ADDRESS = "0x" + "0" * 40

Row = dict[str, Any]
SortKey = Callable[[Row], Any]

ORDERS: dict[str, SortKey] = {
    "id": lambda row: int(row["id"]),
    "volumeNum": lambda row: _sortable(row["volumeNum"]),
    "liquidityNum": lambda row: _sortable(row["liquidityNum"]),
}


def _sortable(amount: Decimal) -> str:
    """The amount as text that sorts as the amount does, so that a cursor can carry it exactly."""
    return f"{amount:024.6f}"


class Gamma:
    """The endpoints of the catalogue, one method each."""

    def __init__(self, exchange: Exchange):
        self.exchange = exchange
        self._by_id = {event.id: event for event in exchange.season.events}
        self._event = lru_cache(maxsize=MAX_CACHED_EVENTS)(self._event_at)

    def resolve(self, request: Request) -> Reply:
        """Resolves a market at once, `{"market": id, "winner": 0}`, though its time has not come."""
        try:
            body = request.json()
            market, winner = self.exchange.by_id[str(body["market"])], int(body["winner"])
        except (ValueError, TypeError, KeyError):
            raise invalid('expected {"market": the id of a market, "winner": 0}') from None
        plain_one = market.resolution is ResolutionKind.PLAIN and market.version == "v1"
        is_open = self.exchange.market_state(market, request.at).open
        if not (plain_one and is_open and 0 <= winner < len(market.outcomes)):
            raise invalid(f"market {market.id} is not open, has no such outcome, or resolves in a way of its own")
        self.exchange.early[market.id] = (request.at, winner)
        return self.market(request, market.id)

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
        market = self.exchange.by_id.get(id)
        event = self._event(market.event_id, request.at - LAG) if market else None
        for row in self._rows(request, event) if event else ():
            if row["id"] == id:
                return Reply(200, row, CACHED)
        return Reply(404, {"type": "not found error", "error": "id not found"})

    def _markets(self, request: Request) -> list[Row]:
        """The market rows that match the request's filters, open ones unless it asks for closed ones."""
        closed = _flag(request, "closed", False)
        events = self._events(request.at - LAG, closed)
        rows = (row for event in events for row in self._rows(request, event) if row["closed"] is closed)
        ids = request.query.get("id")
        return [row for row in rows if ids is None or row["id"] in ids]

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


def invalid(why: str) -> Refusal:
    """Gamma's refusal of an invalid request."""
    return Refusal(Reply(422, {"type": "validation error", "error": why}))


def _market(state: MarketState) -> Row:
    """A market row: lists are JSON strings, and prices in them are strings."""
    market = state.market
    ends = _nominal_end(market)
    row: Row = {
        "id": market.id,
        "version": market.version,
        "question": market.question,
        "conditionId": market.condition_id,
        "slug": market.slug,
        "resolutionSource": "",
        "endDate": zulu(ends),
        "liquidity": plain(state.liquidity),
        "startDate": zulu(market.lists),
        "description": _rules(market),
        "outcomes": json.dumps(market.outcomes, ensure_ascii=False),
        "outcomePrices": json.dumps([plain(price) for price in state.prices]),
        "volume": plain(state.volume),
        "active": True,
        "closed": not state.open,
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
        "volumeNum": state.volume,
        "liquidityNum": state.liquidity,
        "endDateIso": f"{ends:%Y-%m-%d}",
        "startDateIso": f"{market.lists:%Y-%m-%d}",
        "hasReviewedDates": True,
        "volume24hr": state.volume_24h,
        "clobTokenIds": json.dumps(market.tokens),
        "umaBond": "500",
        "umaReward": "5",
        "volumeClob": state.volume,
        "liquidityClob": state.liquidity,
        "acceptingOrders": state.open,
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
    return (lambda row: [field(row), int(row["id"])]), not _flag(request, "ascending", True)


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
