"""Freezing a week's universe: which markets, at which prices, with which fingerprint."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import IntegrityError, transaction

from markets.blocks import MARKET_COLUMNS, json_line, json_number
from markets.failpoints import reached
from markets.models import Market, Outcome, Universe, UniverseEntry
from markets.pricing import PriceRule, Verdict
from markets.services.marks import Marks, is_replay, mark_markets, stored_marks
from markets.sources.polymarket import Clob

LISTING_SLACK = timedelta(hours=1)
"""A market counts as listed when the newest catalogue walks, cut short or not, showed it within this time."""
CANDIDATES, SPARE_CANDIDATES = 1.5, 50
"""How many markets, as a multiple of the universe's size and at least so many more, are priced to find enough."""


class NoMarkets(Exception):
    """Nothing qualifies for a universe."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A universe before it is stored."""

    entries: tuple[UniverseEntry, ...]
    market_block: str
    sha256: str
    marks: Marks

    @property
    def bettable(self) -> int:
        return sum(entry.bettable for entry in self.entries)


def universe_freeze(
    *,
    week_start: datetime,
    methodology: str,
    size: int,
    rule: PriceRule,
    held: Iterable[int],
    at: datetime,
    clob: Clob | None,
    priced_with: Callable[[Marks], None] = lambda marks: None,
) -> Universe:
    """The universe of a week and methodology: the one on record, else frozen now at `at`.

    `held` are the ids of the markets that agents of the run hold; `priced_with` is told how a new universe came by
    its prices. Raises NoMarkets where nothing qualifies.
    """
    known = Universe.objects.filter(week_start=week_start, methodology=methodology).first()
    if known is not None:
        return known
    replay = is_replay(at)

    def priced(markets: Sequence[Market]) -> Marks:
        return stored_marks(markets, at) if replay else mark_markets(markets, rule=rule, at=at, clob=clob)

    draft = universe_draft(size=size, held=held, at=at, replay=replay, priced=priced)
    priced_with(draft.marks)
    reached("universe.priced")
    try:
        with transaction.atomic():
            universe = Universe.objects.create(
                week_start=week_start,
                methodology=methodology,
                frozen_at=at,
                sha256=draft.sha256,
                market_block=draft.market_block,
            )
            for entry in draft.entries:
                entry.universe = universe
            UniverseEntry.objects.bulk_create(draft.entries, batch_size=500)
    except IntegrityError:  # another run froze it in the meantime: that one counts
        return Universe.objects.get(week_start=week_start, methodology=methodology)
    reached("universe.frozen")
    return universe


def universe_draft(
    *, size: int, held: Iterable[int], at: datetime, replay: bool, priced: Callable[[Sequence[Market]], Marks]
) -> Draft:
    """What a freeze at `at` would hold, at the prices that `priced` gives. Stores nothing itself."""
    candidates = _candidates(size, at, replay=replay)
    named = {market.pk for market in candidates}
    also_held = list(Market.objects.filter(pk__in=set(held) - named).prefetch_related("outcomes").order_by("pk"))
    markets = [*candidates, *also_held]
    marks = priced(markets)
    chosen = [market for market in candidates if _qualifies(market, marks)][:size]
    if not chosen:
        raise NoMarkets("no open market has usable prices: run sync_markets first")
    held_besides = [market for market in markets if market.pk in set(held) - {m.pk for m in chosen}]
    entries = [
        *(_entry(market, marks, at, bettable=True) for market in chosen),
        *(_entry(market, marks, at, bettable=False) for market in held_besides),
    ]
    for position, entry in enumerate(entries, start=1):
        entry.position = position
    return Draft(tuple(entries), _market_block(entries), fingerprint(entries), marks)


def fingerprint(entries: Sequence[UniverseEntry]) -> str:
    """SHA-256 over the entries in order: venue's id, list, openness and the price of each side."""
    lines = (
        json.dumps(
            [e.position, e.market.source, e.market.external_id, e.bettable, e.open, sorted(e.prices.items())],
            ensure_ascii=True,
        )
        for e in entries
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _candidates(size: int, at: datetime, *, replay: bool) -> list[Market]:
    """Open markets by volume, ties by the venue's id; more than needed, since some will lack prices."""
    listed = Market.objects.filter(source=Market.Source.POLYMARKET)
    if replay:
        listed = listed.open(at)
    else:
        newest = listed.exclude(listed_at=None).order_by("-listed_at").values_list("listed_at", flat=True).first()
        if newest is None:
            return []
        listed = listed.open().filter(listed_at__gte=newest - LISTING_SLACK)
    ranked = sorted(
        listed.values_list("volume", "external_id", "pk"),
        key=lambda row: (-row[0], len(row[1]), row[1]),
    )
    order = {pk: rank for rank, (_, _, pk) in enumerate(ranked[: max(int(size * CANDIDATES), size + SPARE_CANDIDATES)])}
    markets = Market.objects.filter(pk__in=order).prefetch_related("outcomes")
    return sorted(markets, key=lambda market: order[market.pk])


def _qualifies(market: Market, marks: Marks) -> bool:
    """Every outcome priced in [0, 1], at least two strictly inside."""
    prices = [_price(marks, outcome) for outcome in market.outcomes.all()]
    return all(p is not None and 0 <= p <= 1 for p in prices) and sum(0 < p < 1 for p in prices if p is not None) >= 2


def _price(marks: Marks, outcome: Outcome) -> Decimal | None:
    verdict = marks.verdicts.get(outcome.pk)
    return verdict.price if verdict else None


def _entry(market: Market, marks: Marks, at: datetime, *, bettable: bool) -> UniverseEntry:
    verdicts: dict[str, Verdict] = {
        outcome.side: marks.verdicts[outcome.pk] for outcome in market.outcomes.all() if outcome.pk in marks.verdicts
    }
    was_open = market.is_open if market.closed_at is None else market.closed_at > at
    return UniverseEntry(
        market=market,
        bettable=bettable,
        open=was_open and not market.is_final,
        prices={side: json_number(v.price) for side, v in verdicts.items() if v.price is not None},
        sources={side: {"source": v.source, "stale": v.stale} for side, v in verdicts.items()},
    )


def _market_block(entries: Sequence[UniverseEntry]) -> str:
    """The MARKETS block: a header and one JSON line for each market that may be bet on."""
    lines = [json_line(MARKET_COLUMNS)]
    for entry in entries:
        if entry.bettable:
            market = entry.market
            closes = market.closes_at.date().isoformat() if market.closes_at else None
            prices = {side: Decimal(price) for side, price in entry.prices.items()}
            lines.append(
                json_line([str(market.pk), market.question, market.category, prices, int(market.volume), closes])
            )
    return "\n".join(lines)
