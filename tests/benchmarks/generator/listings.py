"""Markets that never were, with prices week by week, and the universes frozen of them."""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from cohorts.models import Methodology
from foundation.json_lines import json_number
from markets.models import Market, Outcome, PriceObservation, Universe, UniverseEntry
from markets.prompt_blocks import market_block
from markets.services.universes import fingerprint
from tests.benchmarks.generator.plan import DAY, Plan

CATEGORIES = ("Politics", "Sports", "Crypto", "Economy", "Science", "Culture")
MULTI_EVERY = 10
"""Every so manieth market has three named outcomes."""
OBSERVATIONS = 4
"""How often each outcome's price was looked at and had changed."""
RESOLVED, CANCELLED, AWAITING = 0.35, 0.03, 0.02
"""Shares of the markets that come to such an end; the others stay open."""
LATE = 0.4
"""The share of ends that fall into the last weeks, when questions are asked and snapshots taken."""
LAST_WEEKS = timedelta(weeks=4)
BATCH = 500
MINUTE = timedelta(minutes=1)


@dataclass(slots=True)
class Listing:
    """A market with its sides and, for each week, the price of each side.

    ends_at : when it was settled or cancelled, None if it was not
    winner : the place of the side that won
    """

    market: Market
    outcomes: list[Outcome]
    prices: list[list[Decimal]]
    ends_at: datetime | None
    winner: int | None

    @property
    def lasts(self) -> bool:
        """Is it open to the end?"""
        return self.market.status == Market.Status.ACTIVE

    def is_open(self, at: datetime) -> bool:
        return self.market.closed_at is None or self.market.closed_at > at


def listings_store(plan: Plan) -> list[Listing]:
    """The markets of the plan, stored with their outcomes and prices, the largest volume first."""
    listings = [_listing(plan, number) for number in range(plan.size.markets)]
    Market.objects.bulk_create([one.market for one in listings], batch_size=BATCH)
    for one in listings:
        for outcome in one.outcomes:
            outcome.market = one.market
    Outcome.objects.bulk_create([side_outcome for one in listings for side_outcome in one.outcomes], batch_size=BATCH)
    won = [one for one in listings if one.winner is not None]
    for one in won:  # only now, since a winner needs a row
        one.market.status, one.market.resolved_at = Market.Status.RESOLVED, one.ends_at
        one.market.winning_outcome = one.outcomes[one.winner or 0]
    resolved_markets = [one.market for one in won]
    Market.objects.bulk_update(resolved_markets, ["status", "resolved_at", "winning_outcome"], batch_size=BATCH)
    PriceObservation.objects.bulk_create(_observations(plan, listings), batch_size=BATCH)
    return listings


def _listing(plan: Plan, number: int) -> Listing:
    dice = plan.dice("market", number)
    multi = number % MULTI_EVERY == MULTI_EVERY - 1
    market = Market(
        source="polymarket",
        external_id=str(900_000 + number),
        condition_id=f"0x{number:064x}",
        slug=f"made-question-{number}",
        question=f"Will what question {number} of this made season describes at some length, as its venue would, "
        f"happen before the day that is named in its rules?",
        description=f"Resolves to Yes if number {number} happens. " * 6,
        category=CATEGORIES[number % len(CATEGORIES)],
        event_id=f"made-event-{number // 3}",
        kind=Market.Kind.MULTI if multi else Market.Kind.BINARY,
        volume=Decimal(50_000_000 - number * 1_000),
        liquidity=Decimal(100_000),
        closes_at=plan.end + (number % 200) * DAY,
        first_seen_at=plan.begin - DAY,
        listed_at=plan.end,
        refreshed_at=plan.end,
    )
    ends_at, winner = _end(plan, market, dice, sides=3 if multi else 2)
    prices = _prices(dice, plan.weeks + 1, multi=multi)
    sides = (("Alpha", "Alpha"), ("Beta", "Beta"), ("Gamma", "Gamma")) if multi else (("Yes", "YES"), ("No", "NO"))
    last_seen_at = market.closed_at or plan.end
    outcomes = [
        Outcome(
            index=index, name=name, side=side, token_id=f"{number}000{index}", quote=price, quote_at=last_seen_at,
            bid=max(price - Decimal("0.01"), Decimal("0.001")), ask=min(price + Decimal("0.01"), Decimal("0.999")),
            price=price, price_at=last_seen_at, price_source=Outcome.PriceSource.MIDPOINT,
        )
        for index, ((name, side), price) in enumerate(zip(sides, prices[-1], strict=True))
    ]  # fmt: skip
    return Listing(market, outcomes, prices, ends_at, winner)


def _end(plan: Plan, market: Market, dice: random.Random, *, sides: int) -> tuple[datetime | None, int | None]:
    """Closes the market if its lot says so; when it was settled or cancelled, and the place of the side that won."""
    lot, late, when, winner = dice.random(), dice.random() < LATE, dice.random(), dice.randrange(sides)
    if lot >= RESOLVED + CANCELLED + AWAITING:
        return None, None
    first = max(plan.begin + DAY, plan.end - LAST_WEEKS) if late else plan.begin + DAY
    span = plan.end - timedelta(hours=3) - first
    market.closed_at = first + int(when * (span // MINUTE)) * MINUTE
    market.accepts_orders, market.status = False, Market.Status.CLOSED
    ends_at = market.closed_at + timedelta(hours=2)
    if lot < RESOLVED:
        return ends_at, winner
    if lot < RESOLVED + CANCELLED:
        market.status, market.resolved_at = Market.Status.CANCELLED, ends_at
        return ends_at, None
    return None, None


def _prices(dice: random.Random, weeks: int, *, multi: bool) -> list[list[Decimal]]:
    price, rows = dice.randint(40, 960), []
    for _ in range(weeks):
        price = min(max(price + dice.randint(-40, 40), 20), 980)
        first = Decimal(price).scaleb(-3)
        remainder = 1 - first
        rows.append([first, remainder * Decimal("0.6"), remainder * Decimal("0.4")] if multi else [first, remainder])
    return rows


def _observations(plan: Plan, listings: Iterable[Listing]) -> Iterable[PriceObservation]:
    for one in listings:
        for step in range(OBSERVATIONS):
            at = plan.end - (OBSERVATIONS - 1 - step) * DAY
            for outcome, price in zip(one.outcomes, one.prices[min(plan.week(at), plan.weeks)], strict=True):
                yield PriceObservation(
                    outcome=outcome, observed_at=at, price=price, source=Outcome.PriceSource.MIDPOINT,
                    reason="midpoint agrees with Gamma", midpoint=price, gamma=price,
                )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Week:
    """A week's universe with the listings in it, and its entries by market id."""

    universe: Universe
    listed: Sequence[Listing]
    entries: Mapping[int, UniverseEntry]


def universes_store(plan: Plan, methodology: Methodology, listings: Sequence[Listing]) -> list[Week]:
    """The universe of each week: the largest markets that were open at its freeze, at that week's prices."""
    weeks = []
    for week in range(plan.weeks):
        at = plan.frozen_at(week)
        top = [one for one in listings if one.is_open(at)][: methodology.universe_size]
        entries = [
            UniverseEntry(
                market=one.market,
                position=position,
                bettable=True,
                open=True,
                prices={
                    outcome.side: json_number(p) for outcome, p in zip(one.outcomes, one.prices[week], strict=True)
                },
                sources={outcome.side: {"source": "midpoint", "stale": False} for outcome in one.outcomes},
            )
            for position, one in enumerate(top, start=1)
        ]
        block = market_block(entries, {})
        universe = Universe.objects.create(
            week_start=plan.begin + week * timedelta(weeks=1),
            methodology=methodology.version,
            frozen_at=at,
            sha256=fingerprint(entries, block),
            market_block=block,
        )
        for entry in entries:
            entry.universe = universe
        UniverseEntry.objects.bulk_create(entries, batch_size=BATCH)
        weeks.append(Week(universe, top, {entry.market_id: entry for entry in entries}))
    return weeks
