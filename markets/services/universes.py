"""Freezing a week's universe: its markets, their prices and its fingerprint."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from operator import itemgetter

from django.db import IntegrityError, transaction

from foundation.bulk import rows_by
from foundation.failpoints import failpoint
from foundation.json_lines import json_number
from markets.models import Market, Outcome, PriceObservation, Universe, UniverseEntry
from markets.pricing import PriceRule
from markets.prompt_blocks import MARKET_COLUMNS, market_block
from markets.services.prices import PricingResult, is_replay, leading_outcomes, recorded_prices, spread, update_prices
from markets.sources.polymarket import Clob
from markets.sources.registry import TRADED_SOURCE

CANDIDATE_RATIO, MIN_SPARE_CANDIDATES = 1.5, 50
"""Markets priced for each place in the universe, and how many more than places at least: some will lack a price."""

NO_MARKETS = "no open market has usable prices: run sync_markets first"


class NoMarkets(Exception):
    """No market qualifies for a universe."""


@dataclass(frozen=True, slots=True)
class MarketColumns:
    """The columns of the MARKETS block, and the most characters of a market's rules in it."""

    names: Sequence[str] = MARKET_COLUMNS
    rules_characters: int | None = None


@dataclass(frozen=True, slots=True)
class UniverseDraft:
    """A universe before it is stored."""

    entries: tuple[UniverseEntry, ...]
    market_block: str
    sha256: str
    pricing: PricingResult


def freeze_universe(
    *,
    week_start: datetime,
    methodology: str,
    size: int,
    rule: PriceRule,
    held_ids: Iterable[int],
    at: datetime,
    clob: Clob | None,
    columns: MarketColumns = MarketColumns(),
    on_priced: Callable[[PricingResult], None] = lambda pricing: None,
    seal_end: Callable[[datetime], datetime | None] = lambda frozen_at: None,
) -> Universe:
    """The universe of a week and methodology: the stored one, else a new one frozen at `at`.

    `held_ids` are the ids of the markets that agents of the run hold; `on_priced` receives the price decisions of a new
    universe; `seal_end` gives the end of its seal by its freeze. Raises NoMarkets if no market qualifies.
    """
    stored = Universe.objects.filter(week_start=week_start, methodology=methodology).first()
    if stored is not None:
        return stored
    replay = is_replay(at)

    def price(markets: Sequence[Market]) -> PricingResult:
        return recorded_prices(markets, at) if replay else update_prices(markets, rule=rule, at=at, clob=clob)

    draft = draft_universe(size=size, held_ids=held_ids, at=at, replay=replay, price=price, columns=columns)
    on_priced(draft.pricing)
    failpoint("universe.priced")
    try:
        with transaction.atomic():
            universe = Universe.objects.create(
                week_start=week_start,
                methodology=methodology,
                frozen_at=at,
                sealed_until=seal_end(at),
                sha256=draft.sha256,
                market_block=draft.market_block,
            )
            for entry in draft.entries:
                entry.universe = universe
            UniverseEntry.objects.bulk_create(draft.entries, batch_size=500)
    except IntegrityError:  # another run stored it first
        return Universe.objects.get(week_start=week_start, methodology=methodology)
    failpoint("universe.frozen")
    return universe


def require_markets(week_start: datetime, *, at: datetime) -> None:
    """Raises NoMarkets unless a universe of the week is frozen, or a market is offered at `at`."""
    is_frozen = Universe.objects.filter(week_start=week_start).exists()
    if not is_frozen and not Market.objects.offered(TRADED_SOURCE, at, replay=is_replay(at)).exists():
        raise NoMarkets(NO_MARKETS)


def draft_universe(
    *,
    size: int,
    held_ids: Iterable[int],
    at: datetime,
    replay: bool,
    price: Callable[[Sequence[Market]], PricingResult],
    columns: MarketColumns = MarketColumns(),
) -> UniverseDraft:
    """The universe that a freeze at `at` would store, with prices by `price`. Stores nothing itself."""
    candidates = _candidates(size, at, replay=replay)
    held_ids = set(held_ids)
    unlisted_ids = held_ids - rows_by("pk", candidates).keys()
    further = Market.objects.filter(pk__in=unlisted_ids).prefetch_related("outcomes").order_by("pk")
    pricing = price([*candidates, *further])
    bettable: list[Market] = []
    held_markets: list[Market] = []
    for market in candidates:
        if len(bettable) < size and _qualifies(market, pricing):
            bettable.append(market)
        elif market.pk in held_ids:
            held_markets.append(market)
    if not bettable:
        raise NoMarkets(NO_MARKETS)
    entries = []
    for position, market in enumerate([*bettable, *held_markets, *further], start=1):
        entry = _entry(market, pricing, at, bettable=position <= len(bettable))
        entry.position = position
        entries.append(entry)
    spreads = _spreads(bettable, at, replay=replay) if "spread" in columns.names else {}
    block = market_block(entries, spreads, columns=columns.names, rules_characters=columns.rules_characters)
    return UniverseDraft(tuple(entries), block, fingerprint(entries, block), pricing)


def add_held_markets(universe: Universe, held_ids: Iterable[int], *, at: datetime) -> None:
    """Adds the markets of `held_ids` that a rehearsal's universe lacks: priced as recorded by `at`, never bettable."""
    missing = set(held_ids) - set(universe.entries.values_list("market", flat=True))
    markets = list(Market.objects.filter(pk__in=missing).prefetch_related("outcomes").order_by("pk"))
    pricing = recorded_prices(markets, at)
    last = universe.entries.count()
    for position, market in enumerate(markets, start=last + 1):
        entry = _entry(market, pricing, at, bettable=False)
        entry.universe, entry.position = universe, position
        entry.save()


def fingerprint(entries: Sequence[UniverseEntry], block: str) -> str:
    """SHA-256 of the entries in order, and of the texts shown.

    A line for each entry (position, venue and its id, `bettable`, `open`, price of each side, source of each price),
    then the SHA-256 of the MARKETS block.
    """
    lines = []
    for entry in entries:
        identity = [entry.position, entry.market.source, entry.market.external_id]
        values = [*identity, entry.bettable, entry.open, entry.prices, entry.sources]
        lines.append(json.dumps(values, sort_keys=True))
    lines.append(hashlib.sha256(block.encode()).hexdigest())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _candidates(size: int, at: datetime, *, replay: bool) -> list[Market]:
    """Listed markets of the traded source by volume, ties by the venue's id."""
    listed = Market.objects.offered(TRADED_SOURCE, at, replay=replay)
    ranked = sorted(listed.values_list("volume", "external_id", "pk"), key=lambda row: (-row[0], len(row[1]), row[1]))
    number = max(int(size * CANDIDATE_RATIO), size + MIN_SPARE_CANDIDATES)
    ids = list(map(itemgetter(2), ranked[:number]))
    markets = Market.objects.prefetch_related("outcomes").in_bulk(ids)
    return list(map(markets.__getitem__, ids))


def _qualifies(market: Market, pricing: PricingResult) -> bool:
    """True if every outcome has a price in [0, 1] and at least two prices lie strictly inside."""
    inside = 0
    for outcome in market.outcomes.all():
        price = pricing.price(outcome)
        if price is None or not 0 <= price <= 1:
            return False
        inside += 0 < price < 1
    return inside >= 2


def _entry(market: Market, pricing: PricingResult, at: datetime, *, bettable: bool) -> UniverseEntry:
    prices, sources = {}, {}
    for outcome in market.outcomes.all():
        if decision := pricing.decisions.get(outcome.pk):
            sources[outcome.side] = {"source": decision.source, "stale": decision.stale}
            if decision.price is not None:
                prices[outcome.side] = json_number(decision.price)
    was_open = market.is_open if market.closed_at is None else market.closed_at > at
    return UniverseEntry(
        market=market,
        bettable=bettable,
        open=was_open and not market.is_final,
        prices=prices,
        sources=sources,
    )


def _spreads(markets: Sequence[Market], at: datetime, *, replay: bool) -> dict[int, Decimal | None]:
    """The spread of each market's first side, by market id: as quoted now, in replays as last recorded by `at`."""
    outcomes = [leading_outcomes(market)[0] for market in markets]
    quotes: Mapping[int, Outcome | PriceObservation] = rows_by("pk", outcomes)
    if replay:
        quotes = PriceObservation.objects.latest(quotes, at)
    spreads = {}
    for outcome in outcomes:
        if outcome.pk in quotes:
            spreads[outcome.market_id] = spread(quotes[outcome.pk])
    return spreads
