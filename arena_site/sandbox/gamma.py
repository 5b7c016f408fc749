"""Polymarket's Gamma as the exchange fills it: rows, keyset pages and refusals, five minutes old."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

from arena_site.sandbox.catalogue import Event, Market
from arena_site.sandbox.exchange import Exchange, Look
from arena_site.sandbox.wire import Refusal, Reply, Request, plain, zulu

LAG = timedelta(minutes=5)  # Gamma answers from a cache of that age
CACHED = {"cache-control": f"public, max-age={LAG.seconds}"}
MARKETS_CAP, EVENTS_CAP, DEFAULT_LIMIT = 100, 500, 20
OFFSET_CAP = 2000
EVENTS_KEPT = 1024  # rendered, each at an instant: a walk through the pages asks for the same ones again and again
NESTED = ("tags", "markets")  # what an event does not hold where it stands inside a market
DEPRECATED = {
    "deprecation": "true",
    "sunset": "Fri, 01 May 2026 00:00:00 GMT",
    "warning": '299 - "use /markets/keyset"',
}
NOBODY = "0x" + "0" * 40

Row = dict[str, Any]
SortKey = Callable[[Row], Any]

ORDERS: dict[str, SortKey] = {
    "id": lambda row: int(row["id"]),
    "slug": lambda row: row["slug"],
    "startDate": lambda row: row["startDate"],
    "endDate": lambda row: row.get("endDate", ""),
    "createdAt": lambda row: row["createdAt"],
    "volumeNum": lambda row: _sortable(row["volumeNum"]),
    "liquidityNum": lambda row: _sortable(row["liquidityNum"]),
    "volume": lambda row: _sortable(Decimal(row["volume"])),
    "liquidity": lambda row: _sortable(Decimal(row["liquidity"])),
    "volume24hr": lambda row: _sortable(row["volume24hr"]),
}


def _sortable(amount: Decimal) -> str:
    """The amount as text that sorts as the amount does, so that a cursor can carry it exactly."""
    return f"{amount:024.6f}"


class Gamma:
    """The catalogue's HTTP face; each method answers one endpoint."""

    def __init__(self, exchange: Exchange):
        self.exchange = exchange
        self._by_id = {event.id: event for event in exchange.season.events}
        self._by_slug = {market.slug: market for market in exchange.season.markets}
        self._event = lru_cache(maxsize=EVENTS_KEPT)(self._event_at)

    def markets_keyset(self, request: Request) -> Reply:
        return self._keyset(request, "markets", self._markets(request), MARKETS_CAP)

    def events_keyset(self, request: Request) -> Reply:
        closed = _flag(request, "closed", False)
        rows = [row for row in self._events(request.at - LAG, closed) if row["closed"] is closed]
        return self._keyset(request, "events", _filtered(request, rows, {"id": "id", "slug": "slug"}), EVENTS_CAP)

    def markets(self, request: Request) -> Reply:
        """The legacy list, paged by offset."""
        limit, offset = _count(request, "limit", DEFAULT_LIMIT), _count(request, "offset", 0)
        if offset > OFFSET_CAP:
            raise invalid("offset too large, use /markets/keyset for deeper pagination")
        rows = _ordered(request, self._markets(request))
        return Reply(200, rows[offset : offset + min(limit, MARKETS_CAP)], CACHED | DEPRECATED)

    def market(self, request: Request, id: str) -> Reply:
        if not id.isascii() or not id.isdigit():
            raise invalid("id is invalid")
        return self._single(request, self.exchange.by_id.get(id), "id")

    def market_by_slug(self, request: Request, slug: str) -> Reply:
        return self._single(request, self._by_slug.get(slug), "slug")

    def _single(self, request: Request, market: Market | None, column: str) -> Reply:
        event = self._event(market.event_id, request.at - LAG) if market else None
        if market and event:
            for row in self._rows(request, event):
                if row["id"] == market.id:
                    return Reply(200, row, CACHED)
        return Reply(404, {"type": "not found error", "error": f"{column} not found"})

    def _markets(self, request: Request) -> list[Row]:
        """All rows that the request's filters leave; closed ones only where they are asked for."""
        closed = _flag(request, "closed", False)
        events = self._events(request.at - LAG, closed)
        rows = (row for event in events for row in self._rows(request, event) if row["closed"] is closed)
        columns = {"id": "id", "slug": "slug", "condition_ids": "conditionId", "question_ids": "questionID"}
        kept = _filtered(request, rows, columns)
        if tokens := set(request.query.get("clob_token_ids", ())):
            kept = [row for row in kept if tokens.intersection(json.loads(row["clobTokenIds"]))]
        return kept

    def _rows(self, request: Request, event: Row) -> Iterator[Row]:
        """An event's markets, each with the event, and with that event's tags where they are asked for."""
        more: Row = {"events": [{name: value for name, value in event.items() if name not in NESTED}]}
        if _flag(request, "include_tag", False):
            more["tags"] = event["tags"]
        return (market | more for market in event["markets"])

    def _events(self, seen: datetime, closed: bool) -> Iterator[Row]:
        """Every event that has a market that is closed, or one that is open. Others are not even looked at."""
        for event in self.exchange.season.events:
            if any((seen >= m.closes) is closed and self.exchange.knows(m, seen) for m in event.markets):
                row = self._event(event.id, seen)
                assert row is not None
                yield row

    def _event_at(self, event_id: str, seen: datetime) -> Row | None:
        event = self._by_id[event_id]
        looks = [self.exchange.look(m, seen) for m in event.markets if self.exchange.knows(m, seen)]
        if not looks:
            return None
        return _event(event, looks) | {"tags": _tags(event), "markets": [_market(look) for look in looks]}

    def _keyset(self, request: Request, name: str, rows: list[Row], cap: int) -> Reply:
        if "offset" in request.query:
            raise invalid("offset is not allowed on keyset endpoints")
        limit = min(_count(request, "limit", DEFAULT_LIMIT), cap)
        key, descending = _order(request)
        rows = _ordered(request, rows)
        if after := request.one("after_cursor"):
            last = _read_cursor(after)
            try:
                rows = [row for row in rows if (key(row) < last if descending else key(row) > last)]
            except TypeError:
                raise invalid("after_cursor is invalid") from None
        body: Row = {name: rows[:limit]}
        if len(rows) > limit > 0:
            body["next_cursor"] = _write_cursor(key(rows[limit - 1]))
        return Reply(200, body, CACHED)


def invalid(why: str) -> Refusal:
    """Gamma's refusal of a request that it can not read."""
    return Refusal(Reply(422, {"type": "validation error", "error": why}))


def _market(look: Look) -> Row:
    """A market as Gamma writes it: lists as JSON text in a string, prices as text within it."""
    market = look.market
    ends = _nominal_end(market)
    row: Row = {
        "id": market.id,
        "question": market.question,
        "conditionId": market.condition_id,
        "slug": market.slug,
        "resolutionSource": "",
        "endDate": zulu(ends),
        "liquidity": plain(look.liquidity),
        "startDate": zulu(market.lists),
        "description": _rules(market),
        "outcomes": json.dumps(market.outcomes, ensure_ascii=False),
        "outcomePrices": json.dumps([plain(price) for price in look.prices]),
        "volume": plain(look.volume),
        "active": True,
        "closed": not look.open,
        "marketMakerAddress": "",
        "createdAt": zulu(market.lists - timedelta(hours=2)),
        "updatedAt": zulu(look.at),
        "new": False,
        "featured": False,
        "submitted_by": NOBODY,
        "archived": False,
        "resolvedBy": NOBODY,
        "restricted": True,
        "groupItemTitle": market.label,
        "groupItemThreshold": str(market.runner or 0),
        "questionID": market.question_id,
        "enableOrderBook": True,
        "orderPriceMinTickSize": market.tick,
        "orderMinSize": 5,
        "volumeNum": look.volume,
        "liquidityNum": look.liquidity,
        "endDateIso": f"{ends:%Y-%m-%d}",
        "startDateIso": f"{market.lists:%Y-%m-%d}",
        "hasReviewedDates": True,
        "volume24hr": look.volume_24h,
        "clobTokenIds": json.dumps(market.tokens),
        "umaBond": "500",
        "umaReward": "5",
        "volumeClob": look.volume,
        "liquidityClob": look.liquidity,
        "acceptingOrders": look.open,
        "negRisk": market.runner is not None,
        "approved": True,
        "spread": look.spread,
        "lastTradePrice": look.prices[0],
        "umaResolutionStatuses": json.dumps(look.oracle),
    }
    if market.undated:
        del row["endDate"], row["endDateIso"]
    ended = f"{market.closes:%Y-%m-%d %H:%M:%S}+00"
    if look.open:
        row |= {"bestBid": look.prices[0] - look.spread / 2, "bestAsk": look.prices[0] + look.spread / 2}
    else:
        row["closedTime"] = ended
    if look.oracle:
        row["umaResolutionStatus"] = look.oracle[-1]
    if market.kind:
        row |= {"sportsMarketType": market.kind, "gameStartTime": ended}
    return row


def _event(event: Event, looks: list[Look]) -> Row:
    """An event without its markets; its volume and liquidity are numbers only."""
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
        "closed": all(not look.open for look in looks),
        "archived": False,
        "new": False,
        "featured": False,
        "restricted": True,
        "liquidity": sum(look.liquidity for look in looks),
        "volume": sum(look.volume for look in looks),
        "openInterest": 0,
        "createdAt": zulu(first.lists - timedelta(hours=2)),
        "updatedAt": zulu(looks[0].at),
        "volume24hr": sum(look.volume_24h for look in looks),
        "enableOrderBook": True,
        "negRisk": event.exclusive,
        "commentCount": 0,
    }


def _tags(event: Event) -> list[Row]:
    slugs = [(label, label.lower().replace(" ", "-")) for label in event.tags]
    return [{"id": str(1 + sum(map(ord, slug))), "label": label, "slug": slug} for label, slug in slugs]


def _nominal_end(market: Market) -> datetime:
    """The deadline that the venue states: the midnight after the real end."""
    return (market.closes + timedelta(days=1)).replace(hour=0, minute=0)


def _rules(market: Market) -> str:
    if market.outcomes[0] in ("Yes", "No"):
        return (
            f'This market asks: {market.question} It will resolve to "Yes" if credible reporting confirms it '
            f'by {_nominal_end(market):%B %d, %Y}, 00:00 UTC. Otherwise, it will resolve to "No".'
        )
    named = ", ".join(f'"{outcome}"' for outcome in market.outcomes)
    return f"This market asks: {market.question} It will resolve to whichever of {named} is confirmed."


def _filtered(request: Request, rows: Iterable[Row], columns: dict[str, str]) -> list[Row]:
    wanted = {column: set(request.query[name]) for name, column in columns.items() if name in request.query}
    return [row for row in rows if all(row[column] in values for column, values in wanted.items())]


def _order(request: Request) -> tuple[SortKey, bool]:
    """The key to sort and page by, made unique by the id, and whether it descends."""
    name = request.one("order") or "id"
    if name not in ORDERS:
        raise invalid("order fields are not valid")
    field = ORDERS[name]
    return (lambda row: [field(row), int(row["id"])]), not _flag(request, "ascending", True)


def _ordered(request: Request, rows: list[Row]) -> list[Row]:
    key, descending = _order(request)
    try:
        return sorted(rows, key=key, reverse=descending)
    except KeyError:  # a field of markets asked of events
        raise invalid("order fields are not valid") from None


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
    match request.one(name):
        case None:
            return default
        case "true":
            return True
        case "false":
            return False
    raise invalid(f"{name} is invalid")


def _count(request: Request, name: str, default: int) -> int:
    text = request.one(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit():
        raise invalid(f"{name} is invalid")
    return int(text)
