"""Kalshi's API on a second exchange: events with their markets, in dollar strings and partly in cents too.

Some questions duplicate the season's in other words: they use the same races, so that both venues resolve alike.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from unicodedata import normalize

from venue_sandbox import rows
from venue_sandbox.catalogue import SEASON, YES_NO, Days, Event, FixtureEntry, Market, Race, ResolutionKind, Season
from venue_sandbox.exchange import Exchange, MarketState, Stage
from venue_sandbox.http_messages import Refusal, Reply, Request, zulu
from venue_sandbox.rows import Row
from venue_sandbox.script import KalshiScript
from venue_sandbox.seeded_random import seeded_random

LISTING = SEASON.with_name("kalshi.json")
EDITION = re.compile(r" \(edition (\d+)\)$")
PAGE_CAP, DEFAULT_LIMIT = 200, 100
LIVE_TIER = timedelta(days=90)
"""The time after its settlement for which a market is in the live tier."""
STATUSES = {
    Stage.OPEN: "active",
    Stage.CLOSED: "closed",
    Stage.PROPOSED: "determined",
    Stage.DISPUTED: "disputed",
    Stage.RESOLVED: "finalized",
}
FILTERS = {"open": ("active",), "closed": ("closed", "determined", "disputed"), "settled": ("finalized",)}
CENT, HALF = Decimal("0.01"), Decimal("0.5")
THIN = Decimal("0.17")
"""Half of the spread of a thin book."""


class _CrossListing(FixtureEntry):
    of: str
    """The title of an event of the season."""
    series: str
    title: str
    ask: str = ""


class _KalshiEvent(FixtureEntry):
    series: str
    title: str
    category: str
    notice: Days
    closes: tuple[Days, ...]
    names: tuple[str, ...] = ()
    exclusive: bool = True
    resolution: ResolutionKind = ResolutionKind.PLAIN
    thin: tuple[str, ...] = ()
    untraded: tuple[str, ...] = ()


class _Listing(FixtureEntry):
    about: str
    cross_listings: tuple[_CrossListing, ...]
    events: tuple[_KalshiEvent, ...]


class Kalshi:
    """The endpoints of the venue, one method each."""

    def __init__(self, exchange: Exchange, script: KalshiScript):
        self.script = script
        self.listing = _Listing.model_validate_json(LISTING.read_bytes())
        events = tuple(sorted(_events(self.listing, exchange.season), key=lambda event: event.id))
        self.exchange = Exchange(replace(exchange.season, events=events), exchange.seed)
        self._by_id = {event.id: event for event in events}
        event_by_series = {kalshi_event.series: kalshi_event for kalshi_event in self.listing.events}
        self._thin: set[str] = set()
        self._untraded: set[str] = set()
        for event in events:
            kalshi_event = event_by_series.get(_series(event))
            if kalshi_event is not None:
                self._thin.update(market.id for market in event.markets if market.label in kalshi_event.thin)
                self._untraded.update(market.id for market in event.markets if market.label in kalshi_event.untraded)

    def events(self, request: Request) -> Reply:
        limit, start = request.count("limit", DEFAULT_LIMIT, invalid), _start(request)
        status = request.parameter("status")
        if status is not None and status not in FILTERS:
            raise invalid(f"status {status} is invalid")
        nested = request.parameter("with_nested_markets") == "true"
        since = datetime.fromtimestamp(request.count("min_updated_ts", 1, invalid), UTC)
        events = [event for event in self._by_id.values() if self._updated(event, request.at) >= since]
        listed = list(filter(None, (self._event(event, request.at, status) for event in events)))
        listed += self.script.events_since(since.timestamp(), FILTERS[status] if status else None)
        page = listed[start : start + min(limit, self.script.page_cap or PAGE_CAP)]
        following = start + len(page) if start + len(page) < len(listed) else None
        if not nested:
            for row in page:
                del row["markets"]
        return Reply(200, {"events": page, "cursor": _cursor(following), "milestones": []})

    def markets(self, request: Request) -> Reply:
        """The markets with these tickers that the live tier has."""
        by_hand = self.script.markets
        tickers = (request.parameter("tickers") or "").split(",")[: request.count("limit", DEFAULT_LIMIT, invalid)]
        markets = [self.exchange.by_id[ticker] for ticker in tickers if ticker in self.exchange.by_id]
        live = [market for market in markets if self._is_live(market, request.at)]
        listed = [by_hand[ticker] for ticker in tickers if ticker in by_hand]
        return Reply(200, {"markets": [*listed, *(self._market(market, request.at) for market in live)], "cursor": ""})

    def market(self, request: Request, tier: str | None, ticker: str) -> Reply:
        """A market of the live or the historical tier."""
        by_hand = self.script.historical if tier else self.script.markets
        if ticker in by_hand:
            return Reply(200, {"market": by_hand[ticker]})
        market, at = self.exchange.by_id.get(ticker), request.at
        if market is None or not self.exchange.is_listed(market, at) or self._is_live(market, at) is bool(tier):
            raise refused(404, "not_found", "not found")
        return Reply(200, {"market": self._market(market, at)})

    def _is_live(self, market: Market, at: datetime) -> bool:
        """True until its settlement has passed into the historical tier."""
        return self.exchange.is_listed(market, at) and at < self.exchange.traits[market.id].resolved + LIVE_TIER

    def _updated(self, event: Event, at: datetime) -> datetime:
        """When one of its markets last changed, in other ways than by trading."""
        traits = self.exchange.traits
        changes = (
            (m.lists, self.exchange.closes(m), traits[m.id].proposed, traits[m.id].resolved) for m in event.markets
        )
        return max((change for times in changes for change in times if change <= at), default=event.markets[0].lists)

    def _event(self, event: Event, at: datetime, status: str | None) -> Row | None:
        """An event with all of its markets, if it has any in that status."""
        markets = [self._market(market, at) for market in event.markets if self.exchange.is_listed(market, at)]
        if not any(status is None or market["status"] in FILTERS[status] for market in markets):
            return None
        return rows.kalshi_event(event.id, event.title, event.category, exclusive=event.exclusive) | {
            "series_ticker": _series(event),
            "sub_title": "",
            "collateral_return_type": "MECNET" if event.exclusive else "",
            "available_on_brokers": False,
            "exchange_index": 0,
            "markets": markets,
        }

    def _market(self, market: Market, at: datetime) -> Row:
        state = self.exchange.market_state(market, at)
        opens, closes = market.lists, _close_time(state)
        row = rows.kalshi_market(
            ticker=market.id,
            event_ticker=market.event_id,
            title=market.question,
            label=market.label or "Yes",
            status=STATUSES[state.stage],
            closes=zulu(closes),
            volume=state.volume,
        ) | {
            "market_type": "binary",
            "no_sub_title": market.label or "No",
            "can_close_early": True,
            "created_time": zulu(opens - timedelta(hours=2)),
            "open_time": zulu(opens),
            "expected_expiration_time": zulu(closes + timedelta(hours=1)),
            "expiration_time": zulu(closes + timedelta(days=7)),
            "latest_expiration_time": zulu(closes + timedelta(days=7)),
            "settlement_timer_seconds": 1800,
            "expiration_value": "",
            "strike_type": "custom",
            "custom_strike": {"Name": market.label} if market.label else {},
            "rules_primary": f'If the answer to "{market.question}" is {market.label or "yes"}, then the market '
            "resolves to Yes.",
            "rules_secondary": "If the event is called off, the market resolves to a fair price.",
            "price_level_structure": "linear_cent",
            "notional_value_dollars": "1.0000",
            "liquidity_dollars": "0.0000",
            "volume_24h_fp": _fixed(state.volume_24h, 2),
            "open_interest_fp": _fixed(state.liquidity, 2),
            **self._quotes(state),
        }
        if state.stage in (Stage.PROPOSED, Stage.DISPUTED, Stage.RESOLVED):
            row |= _result(self.exchange, state)
        return row

    def _quotes(self, state: MarketState) -> Row:
        """Bids, asks and the last trade in dollars, and for some markets in whole cents beside them."""
        market = state.market
        bid = ask = trade = Decimal(0)
        if state.open and market.id not in self._untraded:
            # The two venues are never quite of one mind.
            lean = seeded_random(self.exchange.seed, "lean", market.id).choice((-CENT, Decimal(0), CENT))
            lean = Decimal(0) if market.id in self.exchange.moved else lean
            middle = min(max(state.prices[0].quantize(CENT) + lean, CENT), 1 - CENT)
            half = THIN if market.id in self._thin else max(state.spread.quantize(CENT) / 2, CENT)
            bid, ask, trade = max(middle - half, Decimal(0)), min(middle + half, Decimal(1)), middle
        quotes = {"yes_bid": bid, "yes_ask": ask, "last_price": trade}
        if ask:
            quotes |= {"no_bid": 1 - ask, "no_ask": 1 - bid}
        row: Row = {f"{name}_dollars": _fixed(value, 4) for name, value in quotes.items()}
        in_cents = seeded_random(self.exchange.seed, "cents", market.id).random() < HALF
        if in_cents and all(value == value.quantize(CENT) for value in quotes.values()):
            row |= {name: int(value / CENT) for name, value in quotes.items()}
            row["response_price_units"] = "usd_cent"
        return row


def refused(status: int, code: str, why: str) -> Refusal:
    """Kalshi's refusal of a request."""
    return Refusal(Reply(status, {"error": {"code": code, "message": why, "service": "exchange"}}))


def invalid(why: str) -> Refusal:
    return refused(400, "bad_request", why)


def _result(exchange: Exchange, state: MarketState) -> Row:
    """The determined result. An even resolution is settled at a price in between, as a scalar."""
    if state.market.resolution is ResolutionKind.EVEN:
        return {"result": "scalar", "settlement_value_dollars": "0.5000"}
    won = exchange.winner(state.market) == 0
    row = {"result": "yes" if won else "no", "expiration_value": "Yes" if won else "No"}
    return row | ({"settlement_value_dollars": _fixed(Decimal(won), 4)} if state.stage is Stage.RESOLVED else {})


def _close_time(state: MarketState) -> datetime:
    """The nominal close, shortly before midnight in New York; of a closed market the actual one."""
    midnight = (state.market.closes + timedelta(days=1)).replace(hour=0, minute=0)
    return midnight + timedelta(hours=3, minutes=59) if state.open else state.closes


def _events(listing: _Listing, season: Season) -> Iterator[Event]:
    titles = {entry.of: entry for entry in listing.cross_listings}
    editions = {1} if season.events else set()
    for event in season.events:
        match = EDITION.search(event.title)
        edition = int(match[1]) if match else 1
        editions.add(edition)
        entry = titles.get(EDITION.sub("", event.title))
        if entry is not None:
            yield _cross_listed_event(entry, event, edition)
    for number in sorted(editions):
        later = (season.recurs or timedelta(0)) * (number - 1)
        for kalshi_event in listing.events:
            for day in kalshi_event.closes:
                yield _kalshi_event(kalshi_event, season.starts + timedelta(days=day) + later, number)


def _cross_listed_event(entry: _CrossListing, event: Event, edition: int) -> Event:
    """An event of the season in this venue's wording."""
    ticker = _ticker(entry.series, event.markets[0].closes)
    if event.exclusive:
        names = [market.label.removeprefix("the ") for market in event.markets]
        races = [(market.race, market.runner or 0) for market in event.markets]
    else:
        (market,) = event.markets
        names, races = [""], [(market.race, market.outcomes.index(YES_NO[0]))]
    return _listed(ticker, _in_edition(entry.title, edition), event.category, names, races, event.exclusive, entry.ask)


def _kalshi_event(event: _KalshiEvent, closes: datetime, edition: int) -> Event:
    ticker = _ticker(event.series, closes)
    closes = closes.replace(second=0, microsecond=0)
    title = _in_edition(event.title.format(f"{closes:%B} {closes.day}"), edition)
    opens = closes - timedelta(days=event.notice)
    if event.exclusive and event.names:
        race = Race(ticker, len(event.names), opens, closes)
        races = [(race, runner) for runner in range(len(event.names))]
    else:
        races = [(Race(f"{ticker}/{name}", 2, opens, closes), 0) for name in event.names or ("",)]
    exclusive = event.exclusive and bool(event.names)
    return _listed(ticker, title, event.category, event.names or ("",), races, exclusive, resolution=event.resolution)


def _listed(
    ticker: str,
    title: str,
    category: str,
    names: Sequence[str],
    races: Sequence[tuple[Race, int]],
    exclusive: bool,
    ask: str = "",
    resolution: ResolutionKind = ResolutionKind.PLAIN,
) -> Event:
    suffix = EDITION.search(title)
    markets = tuple(
        Market(
            f"{ticker}-{_short(name, place)}" if name else ticker,
            ticker,
            (ask.format(name) + (suffix[0] if suffix else "")) if ask else title,
            YES_NO,
            race,
            runner=runner,
            label=name,
            resolution=resolution,
        )
        for place, (name, (race, runner)) in enumerate(zip(names, races, strict=True))
    )
    return Event(ticker, title, category, (category,), markets, exclusive=exclusive)


def _series(event: Event) -> str:
    return event.id.partition("-")[0]


def _ticker(series: str, closes: datetime) -> str:
    return f"{series}-{closes:%y%b%d}".upper()


def _short(name: str, place: int) -> str:
    """The suffix of a ticker: letters of a name, made unique by its place."""
    letters = re.sub(r"[^A-Z0-9]", "", normalize("NFKD", name).upper())
    return f"{letters[:3]}{place}"


def _in_edition(text: str, edition: int) -> str:
    return text if edition == 1 else f"{text} (edition {edition})"


def _fixed(value: Decimal, places: int) -> str:
    return f"{value:.{places}f}"


def _cursor(start: int | None) -> str:
    return "" if start is None else urlsafe_b64encode(str(start).encode()).decode()


def _start(request: Request) -> int:
    text = request.parameter("cursor")
    try:
        return int(urlsafe_b64decode(text)) if text else 0
    except ValueError:
        raise invalid("cursor is invalid") from None
