"""The simulated exchange behind Gamma and the CLOB: the state of every market at an instant, for a seed."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from statistics import NormalDist

from venue_sandbox import races
from venue_sandbox.catalogue import Event, Market, ResolutionKind, Season
from venue_sandbox.seeded_random import seeded_random

HOUR = timedelta(hours=1)
DISPUTE = timedelta(days=4)
LOWEST, HIGHEST = Decimal("0.003"), Decimal("0.997")  # an open market is never quite decided
FINE, FINE_BELOW = Decimal("0.001"), Decimal("0.04")  # near 0 and 1 the venue quotes in finer ticks
DECIDED = Decimal("0.9995")  # what a market trades at while the oracle deliberates
RESIDUE = Decimal("0.0000004113951750183874")  # of the kind that old markets are left with
LONGSHOT_BIAS = 0.92  # how far prices keep their distance from 1/2, in probits: longshots are dear
ABSURD_ASK = Decimal("0.02")  # the only offer in a one-sided book
LEVELS = 10  # on each side of a book

NORMAL = NormalDist()


class Stage(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    PROPOSED = "proposed"
    DISPUTED = "disputed"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class MarketState:
    """A market at an instant."""

    market: Market
    at: datetime
    stage: Stage
    closes: datetime
    prices: tuple[Decimal, ...]
    spread: Decimal
    """Between best bid and best ask while open."""
    winner: int | None
    """The outcome that was paid in full, once that is final."""
    oracle: tuple[str, ...]
    """The oracle's statuses so far, oldest first."""
    volume: Decimal
    volume_24h: Decimal
    liquidity: Decimal

    @property
    def open(self) -> bool:
        return self.stage is Stage.OPEN


@dataclass(frozen=True, slots=True)
class Book:
    """An order book; of bids and asks alike the best one comes last, as the CLOB has it."""

    market: Market
    token: str
    at: datetime
    bids: tuple[tuple[Decimal, Decimal], ...]
    asks: tuple[tuple[Decimal, Decimal], ...]
    tick: Decimal

    @property
    def mid(self) -> Decimal:
        """Halfway between the sides; a missing bid counts as 0 and a missing ask as 1."""
        bid = self.bids[-1][0] if self.bids else Decimal(0)
        ask = self.asks[-1][0] if self.asks else Decimal(1)
        return (bid + ask) / 2


@dataclass(frozen=True, slots=True)
class MarketTraits:
    """Random characteristics of a market, fixed for its lifetime."""

    proposed: datetime
    resolved: datetime
    spread_ticks: int
    appetite: float
    """Dollars that it trades in all."""
    depth: float
    """Liquidity as a share of the volume so far."""


@dataclass(frozen=True)
class Exchange:
    """All markets of a season under one seed; every result is a pure function of the instant and of the requests."""

    season: Season
    seed: int = 0
    early: dict[str, tuple[datetime, int]] = field(default_factory=dict)
    """End and winner of each market that was resolved by request, by id."""
    moved: dict[str, tuple[Decimal, ...]] = field(default_factory=dict)
    """The midpoint of every outcome of each market whose price was set by request, by id."""

    @cached_property
    def by_id(self) -> dict[str, Market]:
        return {market.id: market for market in self.season.markets}

    @cached_property
    def by_condition(self) -> dict[str, Market]:
        return {market.condition_id: market for market in self.season.markets}

    @cached_property
    def by_question(self) -> dict[str, Market]:
        return {market.question: market for market in self.season.markets}

    @cached_property
    def by_title(self) -> dict[str, Event]:
        return {event.title: event for event in self.season.events}

    @cached_property
    def by_token(self) -> dict[str, tuple[Market, int]]:
        return {token: (m, i) for m in self.season.markets for i, token in enumerate(m.tokens)}

    @cached_property
    def traits(self) -> dict[str, MarketTraits]:
        return {market.id: self._market_traits(market) for market in self.season.markets}

    def is_listed(self, market: Market, at: datetime) -> bool:
        """True if the market is listed then and not absent."""
        return at >= market.lists and not _within(market.absent, at)

    def truth(self, market: Market, at: datetime) -> tuple[float, ...]:
        """The true chance of every outcome, which no price shows exactly."""
        chances = races.chances(market.race, at, self.seed)
        if market.runner is None:
            return chances
        yes = chances[market.runner]
        return (yes, 1 - yes)

    def chances(self, question: str, at: datetime) -> dict[str, float]:
        """The true chance of each outcome of a question, by its name in lower case; none of an unknown question."""
        market = self.by_question.get(question)
        if market is None:
            return {}
        return dict(zip(map(str.casefold, market.outcomes), self.truth(market, at), strict=True))

    def closes(self, market: Market) -> datetime:
        """The end of its trading."""
        return self.early[market.id][0] if market.id in self.early else market.closes

    def winner(self, market: Market) -> int:
        """The outcome that happens in the end."""
        if market.id in self.early:
            return self.early[market.id][1]
        return self.truth(market, market.closes).index(1.0)

    def market_state(self, market: Market, at: datetime) -> MarketState:
        """The market at an instant at which it is listed."""
        stage = self._stage(market, at)
        final = stage is Stage.RESOLVED and market.resolution is not ResolutionKind.EVEN
        volume = self._volume(market, at)
        return MarketState(
            market=market,
            at=at,
            stage=stage,
            closes=self.closes(market),
            prices=self._prices(market, at, stage),
            spread=self._spread(market, at),
            winner=self.winner(market) if final else None,
            oracle=_oracle(market, stage),
            volume=volume,
            volume_24h=volume - self._volume(market, at - 24 * HOUR),
            liquidity=_money(float(volume) * self.traits[market.id].depth),
        )

    def book(self, token: str, at: datetime) -> Book | None:
        """The order book of a token, None where there is none."""
        market, outcome = self.by_token.get(token, (None, 0))
        if market is None or not self.is_listed(market, at) or self._stage(market, at) is not Stage.OPEN:
            return None
        price = self.quotes(market, at)[outcome]
        tick, half = _tick(price, market), self._spread(market, at) / 2
        bid, ask = price - half, price + half
        bids = self._ladder(market, token, at, bid, -tick)
        asks = self._ladder(market, token, at, ask, tick)
        if _within(market.one_sided, at):
            nothing_bid = outcome == 0
            bids = () if nothing_bid else self._ladder(market, token, at, 1 - ABSURD_ASK, -tick)
            asks = self._ladder(market, token, at, ABSURD_ASK, tick) if nothing_bid else ()
        return Book(market, token, at, bids, asks, tick)

    def quotes(self, market: Market, at: datetime) -> tuple[Decimal, ...]:
        """The midpoint of every outcome while the market is open, rounded to its tick."""
        if market.id in self.moved:
            return self.moved[market.id]
        shaded = [_shade(chance) for chance in self.truth(market, at)]
        if len(shaded) == 2:
            first = _to_tick(shaded[0], market)
            return first, 1 - first
        return tuple(_to_tick(chance / sum(shaded), market) for chance in shaded)

    def _prices(self, market: Market, at: datetime, stage: Stage) -> tuple[Decimal, ...]:
        n = len(market.outcomes)
        if stage is Stage.OPEN:
            return self.quotes(market, at)
        if market.resolution is ResolutionKind.RESIDUE and at >= market.closes + HOUR:
            return (RESIDUE, *[Decimal(0)] * (n - 2), 1 - RESIDUE)
        if stage is Stage.CLOSED:
            return self.quotes(market, market.closes - races.STEP)
        if market.resolution is ResolutionKind.EVEN:
            return (Decimal(1) / n,) * n
        full = Decimal(1) if stage is Stage.RESOLVED else DECIDED
        share = ((1 - full) / (n - 1)).quantize(Decimal("0.000001"))
        return tuple(full if i == self.winner(market) else share for i in range(n))

    def _market_traits(self, market: Market) -> MarketTraits:
        rng = seeded_random(self.seed, "temper", market.id)
        proposed = market.closes + HOUR * rng.uniform(1, 4)
        return MarketTraits(
            proposed=proposed,
            resolved=proposed + HOUR * rng.uniform(2, 10) + DISPUTE * (market.resolution is ResolutionKind.DISPUTED),
            spread_ticks=rng.choice((2, 2, 4)),
            appetite=10 ** rng.uniform(3.8, 6.9),
            depth=rng.uniform(0.02, 0.15),
        )

    def _stage(self, market: Market, at: datetime) -> Stage:
        traits = self.traits[market.id]
        if at < self.closes(market):
            return Stage.OPEN
        if market.id in self.early:
            return Stage.RESOLVED
        if at < traits.proposed or market.resolution is ResolutionKind.RESIDUE:
            return Stage.CLOSED
        if at >= traits.resolved:
            return Stage.RESOLVED
        if market.resolution is ResolutionKind.SILENT:
            return Stage.CLOSED
        disputed = market.resolution is ResolutionKind.DISPUTED and at >= traits.proposed + HOUR
        return Stage.DISPUTED if disputed else Stage.PROPOSED

    def _spread(self, market: Market, at: datetime) -> Decimal:
        price = self.quotes(market, min(at, market.closes - races.STEP))[0]
        return _tick(price, market) * self.traits[market.id].spread_ticks

    def _volume(self, market: Market, at: datetime) -> Decimal:
        """Dollars traded so far, which only ever grow and stop at the close."""
        elapsed = (min(max(at, market.lists), market.closes) - market.lists) / (market.closes - market.lists)
        return _money(self.traits[market.id].appetite * (0.1 + 0.9 * elapsed**1.3))

    def _ladder(
        self, market: Market, token: str, at: datetime, best: Decimal, step: Decimal
    ) -> tuple[tuple[Decimal, Decimal], ...]:
        """The levels of one side of a book, which together hold about half of the market's liquidity in dollars."""
        rng = seeded_random(self.seed, "bid" if step < 0 else "ask", token, at)
        dollars = float(self._volume(market, at)) * self.traits[market.id].depth / 2 / LEVELS
        rungs = (best + step * i for i in reversed(range(LEVELS)))
        levels = []
        for price in rungs:
            if 0 < price < 1:
                levels.append((price, Decimal(f"{5 + dollars * rng.uniform(0.2, 1.8) / float(price):.2f}")))
        return tuple(levels)


def _within(window: tuple[datetime, datetime] | None, at: datetime) -> bool:
    return window is not None and window[0] <= at < window[1]


def _shade(chance: float) -> float:
    """The market price of a probability, with the favourite-longshot bias."""
    return NORMAL.cdf(LONGSHOT_BIAS * NORMAL.inv_cdf(min(max(chance, 1e-6), 1 - 1e-6)))


def _tick(price: Decimal, market: Market) -> Decimal:
    return market.tick if FINE_BELOW <= price <= 1 - FINE_BELOW else min(FINE, market.tick)


def _to_tick(price: float, market: Market) -> Decimal:
    exact = min(max(Decimal(repr(price)), LOWEST), HIGHEST)
    return exact.quantize(_tick(exact, market))


def _money(amount: float) -> Decimal:
    return Decimal(repr(amount)).quantize(Decimal("0.000001"))


def _oracle(market: Market, stage: Stage) -> tuple[str, ...]:
    if market.resolution is ResolutionKind.SILENT or market.version == "v2" or stage in (Stage.OPEN, Stage.CLOSED):
        return ()
    statuses: tuple[str, ...] = ("proposed", "resolved")
    if market.resolution is ResolutionKind.DISPUTED:
        statuses = ("proposed", "disputed", "proposed", "resolved")
    return statuses[: statuses.index(stage) + 1]
