"""Candidate questions at an instant: open markets, with those of one event joined."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import chain

from markets.models import Market
from markets.models.question import NONE_OF_THESE
from markets.question_selection import CandidateOption, QuestionCandidate
from markets.sources.registry import SOURCES

MAX_RULES = 4000
"""Characters of its venue's rules that a question contains at most."""
MAX_NAME = 300
EVENT_COLUMNS = ("source", "event_id")


def open_candidates(at: datetime, *, replay: bool) -> list[QuestionCandidate]:
    """All candidate questions: a market alone, or the markets of an event as one list of options.

    None is of an exclusive event that one of its markets settles, or may settle: that gives the others away.
    """
    settled = {market.event_key for market in Market.objects.deciding_exclusive_events(at).only(*EVENT_COLUMNS)}
    events: dict[str, list[Market]] = defaultdict(list)
    for source in SOURCES:
        offered = Market.objects.offered(source, at, replay=replay)
        for market in offered.prefetch_related("outcomes").order_by("pk"):
            if not (market.event_exclusive and market.event_key in settled):
                events[market.event_key].append(market)
    candidates = chain.from_iterable(map(_event_candidates, events.values()))
    return [candidate for candidate in candidates if is_before_close(candidate, at)]


def is_before_close(candidate: QuestionCandidate, at: datetime) -> bool:
    """Whether its stated close, if there is one, lies after an instant."""
    return candidate.closes_at is None or candidate.closes_at > at


def single_candidate(market: Market) -> QuestionCandidate:
    """The question of one market (outcomes prefetched), with its sides as exclusive options."""
    return QuestionCandidate(
        source=market.source, key=f"{market.source}:market:{market.external_id}", event_key=market.event_key,
        text=market.question, rules=_truncated(market.description), category=market.category, exclusive=True,
        options=tuple(CandidateOption(outcome.side, market.pk, outcome.side) for outcome in market.outcomes.all()),
        volume=market.volume, closes_at=market.closes_at, event=market.event_title, volume_24h=market.volume_24h,
    )  # fmt: skip


def _event_candidates(markets: Sequence[Market]) -> Iterable[QuestionCandidate]:
    binary: list[Market] = []
    multiple: list[Market] = []
    for market in markets:
        (binary if market.kind == Market.Kind.BINARY else multiple).append(market)
    exclusive = binary[0].event_exclusive if binary else None
    by_option = {(market.option or market.question)[:MAX_NAME]: market for market in binary}
    if exclusive is not None and len(binary) > 1 and len(by_option) == len(binary):
        yield _joined_candidate(by_option, exclusive=exclusive)
        markets = multiple
    yield from map(single_candidate, markets)


def _joined_candidate(by_option: Mapping[str, Market], *, exclusive: bool) -> QuestionCandidate:
    """The markets of one event as one question, the largest first."""
    ranked = sorted(by_option.items(), key=lambda item: (-item[1].volume, item[1].external_id))
    options = []
    volume, closes_at = Decimal(0), None
    daily_volumes: list[Decimal] = []
    for name, market in ranked:
        options.append(CandidateOption(name, market.pk, "YES"))
        volume += market.volume
        if market.volume_24h is not None:
            daily_volumes.append(market.volume_24h)
        if market.closes_at and (closes_at is None or market.closes_at > closes_at):
            closes_at = market.closes_at
    if exclusive and NONE_OF_THESE not in by_option:
        options.append(CandidateOption(NONE_OF_THESE))
    first = ranked[0][1]
    return QuestionCandidate(
        source=first.source, key=f"{first.source}:event:{first.event_id}", event_key=first.event_key,
        text=first.event_title or first.question, category=first.category, exclusive=exclusive,
        rules=_truncated(_rules(ranked)), options=tuple(options), volume=volume, closes_at=closes_at,
        event=first.event_title, volume_24h=sum(daily_volumes, Decimal(0)) if daily_volumes else None,
    )  # fmt: skip


def _rules(markets: Sequence[tuple[str, Market]]) -> str:
    """The rules of each option; once if they are the same for all."""
    texts = {market.description for _, market in markets}
    if len(texts) == 1:
        return texts.pop()
    return "\n".join(f"{name}: {market.description}" for name, market in markets)


def _truncated(text: str) -> str:
    return text if len(text) <= MAX_RULES else f"{text[: MAX_RULES - 1]}…"
