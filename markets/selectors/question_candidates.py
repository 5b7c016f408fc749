"""Candidate questions at an instant: open markets, with those of one event joined."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from markets.duplicate_questions import VenueQuestion, duplicate_questions
from markets.models import Market
from markets.models.question import NONE_OF_THESE
from markets.question_selection import CandidateOption, QuestionCandidate
from markets.sources.registry import SOURCES

MAX_RULES = 4000
"""Characters of its venue's rules that a question contains at most."""
MAX_NAME = 300


def open_candidates(at: datetime, *, replay: bool) -> list[QuestionCandidate]:
    """All candidate questions: a market alone, or the markets of an event as one list of options."""
    events: dict[str, list[Market]] = defaultdict(list)
    for source in SOURCES:
        listed = Market.objects.listed(source, at if replay else None)
        for market in listed.prefetch_related("outcomes").order_by("pk"):
            events[market.event_key].append(market)
    return [candidate for markets in events.values() for candidate in _event_candidates(markets)]


def single_candidate(market: Market) -> QuestionCandidate:
    """The question of one market (outcomes prefetched), with its sides as exclusive options."""
    return QuestionCandidate(
        source=market.source, key=f"{market.source}:market:{market.external_id}", event_key=market.event_key,
        text=market.question, rules=_truncated(market.description), category=market.category, exclusive=True,
        options=tuple(CandidateOption(o.side, market.pk, o.side) for o in market.outcomes.all()),
        volume=market.volume, closes_at=market.closes_at,
    )  # fmt: skip


def duplicate_pairs(candidates: Sequence[QuestionCandidate]) -> list[tuple[str, QuestionCandidate]]:
    """Pairs of an original's key and its duplicate, from a source that stands later in the registry."""
    by_key = {candidate.key: candidate for candidate in candidates}
    originals: list[VenueQuestion] = []
    pairs: list[tuple[str, QuestionCandidate]] = []
    for source in SOURCES:
        listed = [_venue_question(candidate) for candidate in candidates if candidate.source == source]
        originals_by_duplicate = {duplicate: original for original, duplicate in duplicate_questions(originals, listed)}
        originals += [question for question in listed if question.id not in originals_by_duplicate]
        pairs += [(original, by_key[duplicate]) for duplicate, original in originals_by_duplicate.items()]
    return pairs


def _event_candidates(markets: Sequence[Market]) -> Iterable[QuestionCandidate]:
    binary = [market for market in markets if market.kind == Market.Kind.BINARY]
    exclusive = binary[0].event_exclusive if binary else None
    names = [(market.option or market.question)[:MAX_NAME] for market in binary]
    if exclusive is not None and len(binary) > 1 and len(set(names)) == len(names):
        yield _joined_candidate(binary, names, exclusive=exclusive)
        markets = [market for market in markets if market.kind != Market.Kind.BINARY]
    yield from map(single_candidate, markets)


def _joined_candidate(markets: Sequence[Market], names: Sequence[str], *, exclusive: bool) -> QuestionCandidate:
    """The markets of one event as one question, the largest first."""
    ranked = sorted(zip(markets, names, strict=True), key=lambda pair: (-pair[0].volume, pair[0].external_id))
    options = [CandidateOption(name, market.pk, "YES") for market, name in ranked]
    if exclusive and NONE_OF_THESE not in names:
        options.append(CandidateOption(NONE_OF_THESE))
    first = ranked[0][0]
    dates = [market.closes_at for market in markets if market.closes_at]
    return QuestionCandidate(
        source=first.source, key=f"{first.source}:event:{first.event_id}", event_key=first.event_key,
        text=first.event_title or first.question, category=first.category, exclusive=exclusive,
        rules=_truncated(_rules([(name, market) for market, name in ranked])), options=tuple(options),
        volume=sum((market.volume for market in markets), Decimal(0)), closes_at=max(dates, default=None),
    )  # fmt: skip


def _rules(markets: Sequence[tuple[str, Market]]) -> str:
    """The rules of each option; once if they are the same for all."""
    texts = {market.description for _, market in markets}
    if len(texts) == 1:
        return texts.pop()
    return "\n".join(f"{name}: {market.description}" for name, market in markets)


def _truncated(text: str) -> str:
    return text if len(text) <= MAX_RULES else f"{text[: MAX_RULES - 1]}…"


def _venue_question(candidate: QuestionCandidate) -> VenueQuestion:
    names = tuple(option.name for option in candidate.options if option.market is not None)
    return VenueQuestion(candidate.key, candidate.text, names, candidate.closes_at)
