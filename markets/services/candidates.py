"""What could be asked at an instant: the open markets as questions, those of one event together."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from markets.choice import Candidate, Option
from markets.models import Market
from markets.models.question import NONE_OF_THESE
from markets.services.universes import LISTING_SLACK
from markets.twins import Asked, twins

LONGEST_RULES = 4000
"""Characters of rules that a question takes from its venue."""
LONGEST_NAME = 300


def candidates_at(at: datetime, *, replay: bool) -> list[Candidate]:
    """Every question that the open markets give, one market alone or the markets of an event together."""
    events: dict[str, list[Market]] = defaultdict(list)
    for market in _open(at, replay=replay):
        events[market.event_key].append(market)
    return [candidate for markets in events.values() for candidate in _of_event(markets)]


def single_candidate(market: Market) -> Candidate:
    """The question of one market (outcomes prefetched): exactly one of its sides wins."""
    return Candidate(
        source=market.source,
        key=f"{market.source}:market:{market.external_id}",
        event_key=market.event_key,
        text=market.question,
        rules=_cut(market.description),
        category=market.category,
        exclusive=True,
        options=tuple(Option(o.side, market.pk, o.side) for o in market.outcomes.all()),
        volume=market.volume,
        closes_at=market.closes_at,
    )


def twins_of(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """By the key of a candidate that is asked, Polymarket's, its twin at Kalshi, which then is not."""
    named = {candidate.key: candidate for candidate in candidates}
    sides = [
        [_as_asked(c) for c in candidates if c.source == source]
        for source in (Market.Source.POLYMARKET, Market.Source.KALSHI)
    ]
    return {one: named[other] for one, other in twins(*sides)}


def _open(at: datetime, *, replay: bool) -> list[Market]:
    if replay:
        return list(Market.objects.open(at).prefetch_related("outcomes").order_by("pk"))
    found: list[Market] = []
    for source in Market.Source.values:
        listed = Market.objects.filter(source=source)
        newest = listed.exclude(listed_at=None).order_by("-listed_at").values_list("listed_at", flat=True).first()
        if newest is not None:
            fresh = listed.open().filter(listed_at__gte=newest - LISTING_SLACK)
            found += fresh.prefetch_related("outcomes").order_by("pk")
    return found


def _of_event(markets: Sequence[Market]) -> Iterable[Candidate]:
    binary = [market for market in markets if market.kind == Market.Kind.BINARY]
    exclusive = binary[0].event_exclusive if binary else None
    names = [(market.option or market.question)[:LONGEST_NAME] for market in binary]
    if exclusive is not None and len(binary) > 1 and len(set(names)) == len(names):
        yield _group(binary, names, exclusive=exclusive)
        markets = [market for market in markets if market.kind != Market.Kind.BINARY]
    yield from map(single_candidate, markets)


def _group(markets: Sequence[Market], names: Sequence[str], *, exclusive: bool) -> Candidate:
    """The markets of one event as one question, the largest first."""
    ranked = sorted(zip(markets, names, strict=True), key=lambda pair: (-pair[0].volume, pair[0].external_id))
    options = [Option(name, market.pk, "YES") for market, name in ranked]
    if exclusive and NONE_OF_THESE not in names:
        options.append(Option(NONE_OF_THESE))
    first = ranked[0][0]
    dates = [market.closes_at for market in markets if market.closes_at]
    return Candidate(
        source=first.source,
        key=f"{first.source}:event:{first.event_id}",
        event_key=first.event_key,
        text=first.event_title or first.question,
        rules=_cut(_rules([(name, market) for market, name in ranked])),
        category=first.category,
        exclusive=exclusive,
        options=tuple(options),
        volume=sum((market.volume for market in markets), Decimal(0)),
        closes_at=max(dates) if dates else None,
    )


def _rules(markets: Sequence[tuple[str, Market]]) -> str:
    """The rules of every option, once where they are the same for all."""
    texts = {market.description for _, market in markets}
    if len(texts) == 1:
        return texts.pop()
    return "\n".join(f"{name}: {market.description}" for name, market in markets)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_RULES else f"{text[: LONGEST_RULES - 1]}…"


def _as_asked(candidate: Candidate) -> Asked:
    names = tuple(option.name for option in candidate.options if option.market is not None)
    return Asked(candidate.key, candidate.text, names, candidate.closes_at)
