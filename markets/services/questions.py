"""Freezing the questions of a day with their options, prices and prompt blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Max, prefetch_related_objects

from foundation.failpoints import failpoint
from foundation.json_lines import json_line, json_number
from markets.models import (
    Market,
    Outcome,
    PriceObservation,
    Question,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
)
from markets.pricing import PriceRule
from markets.prompt_conditions import BLIND
from markets.question_selection import QuestionCandidate, rank_candidates, select_candidates
from markets.selectors.question_candidates import duplicate_pairs, open_candidates, single_candidate
from markets.services.prices import PricingResult, is_replay, recorded_prices, update_prices
from markets.sources.polymarket import Clob

if TYPE_CHECKING:
    from markets.selection_rule import SelectionRule

QUESTION_COLUMNS = ["question_id", "question", "rules", "exclusive", "options", "prices", "closes"]
STATED_FIELDS = ("source", "event_key", "text", "rules", "category", "exclusive", "closes_at")
"""Fields that a question takes over from its candidate."""
CANDIDATE_RATIO = 2
"""Candidates priced for each question of the day: some will lack a price."""


class NoQuestions(Exception):
    """No question qualifies."""


@dataclass(frozen=True, slots=True)
class FreezeParameters:
    """A freeze: its day and instant, the methodology's version and rules, and the universe frozen on that day."""

    day: datetime
    methodology: str
    rule: SelectionRule
    price_rule: PriceRule
    universe: Universe | None
    at: datetime
    clob: Clob | None
    on_priced: Callable[[PricingResult], None]


def freeze_question_set(freeze: FreezeParameters, *, traded: Iterable[int] = ()) -> QuestionSet:
    """The day's questions: the stored set, else a new one that includes every market of `traded` (ids).

    Raises NoQuestions if no question qualifies.
    """
    stored = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology, part=0).first()
    if stored is not None:
        return stored
    eligible, pairs = _eligible_candidates(freeze)
    quotes = _quotes(freeze, [*eligible, *_market_candidates(traded)], replay=is_replay(freeze.at))
    selected = select_candidates(
        eligible, freeze.rule, freeze.rule.questions_per_day, usable=lambda c: _is_priced(c, quotes)
    )
    selected_markets = {market for candidate in selected for market in candidate.market_ids}
    added = [c for c in _market_candidates(set(traded) - selected_markets) if _is_priced(c, quotes, certain=True)]
    if not selected and not added:
        raise NoQuestions("no open question has usable prices: run sync_markets first")
    failpoint("questions.priced")
    reasons = [(c, QuestionEntry.Reason.SELECTED) for c in selected] + [(c, QuestionEntry.Reason.TRADED) for c in added]
    try:
        return _store(freeze, 0, reasons, quotes, dict(reversed(pairs)))
    except IntegrityError:  # another run stored it first
        return QuestionSet.objects.get(day=freeze.day, methodology=freeze.methodology, part=0)


def extend_question_set(freeze: FreezeParameters, *, traded: Iterable[int]) -> QuestionSet | None:
    """A further part of the day's questions for markets of `traded` that no part contains; None if there are none."""
    while True:
        parts = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology)
        # Read first: a part that another run adds from here on takes this number, and storing ours fails.
        part = (parts.aggregate(last=Max("part"))["last"] or 0) + 1
        options = QuestionOption.objects.filter(question__entries__question_set__in=parts)
        missing = set(traded) - set(options.values_list("outcome__market", flat=True))
        candidates = _market_candidates(missing)
        quotes = _quotes(freeze, candidates, replay=is_replay(freeze.at))
        added = [c for c in candidates if _is_priced(c, quotes, certain=True)]
        if not added:
            return None
        try:
            return _store(freeze, part, [(c, QuestionEntry.Reason.TRADED) for c in added], quotes, {})
        except IntegrityError:
            continue  # another run added a part: leave out its questions


def draft_question_blocks(freeze: FreezeParameters) -> list[str]:
    """The prompt blocks of the day's batches as a freeze would store them, at recorded prices. Stores nothing.

    Without the markets that agents trade. Empty if no question qualifies.
    """
    eligible, _ = _eligible_candidates(freeze)
    quotes = _quotes(freeze, eligible, replay=True)
    number, size = freeze.rule.questions_per_day, freeze.rule.questions_per_call
    selected = select_candidates(eligible, freeze.rule, number, usable=lambda c: _is_priced(c, quotes))
    blocks = []
    for start in range(0, len(selected), size):
        for arm in freeze.rule.arms:
            lines = [json_line(QUESTION_COLUMNS)]
            for place, candidate in enumerate(selected[start : start + size], start=start + 1):
                names = [option.name for option in candidate.options]
                prices = [quote.price for quote in _option_quotes(candidate, quotes)]
                quoted = dict(zip(names, prices, strict=True)) if arm != BLIND else None
                lines.append(_question_line(place, candidate, names, quoted, candidate.closes_at))
            blocks.append("\n".join(lines))
    return blocks


def _eligible_candidates(
    freeze: FreezeParameters,
) -> tuple[list[QuestionCandidate], list[tuple[str, QuestionCandidate]]]:
    """The candidates to price, and the pairs of an original's key and its duplicate at another venue."""
    candidates = open_candidates(freeze.at, replay=is_replay(freeze.at))
    ranked = rank_candidates(candidates, freeze.rule, freeze.at)
    pairs = duplicate_pairs(ranked)
    duplicate_keys = {duplicate.key for _, duplicate in pairs}
    unique = [candidate for candidate in ranked if candidate.key not in duplicate_keys]
    return select_candidates(unique, freeze.rule, freeze.rule.questions_per_day * CANDIDATE_RATIO), pairs


def _market_candidates(markets: Iterable[int]) -> list[QuestionCandidate]:
    rows = Market.objects.filter(pk__in=set(markets)).prefetch_related("outcomes").order_by("pk")
    return [single_candidate(market) for market in rows]


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Quote:
    """The mid price of one side of a market at the freeze, its ask and the ask of the other side."""

    price: Decimal | None
    ask: Decimal | None
    no_ask: Decimal | None
    stale: bool

    def as_json(self) -> dict[str, Any]:
        return {
            name: json_number(value) if isinstance(value, Decimal) else value for name, value in asdict(self).items()
        }


NO_QUOTE = Quote(None, None, None, True)
Quotes = Mapping[tuple[int, str], Quote]


def _quotes(freeze: FreezeParameters, candidates: Sequence[QuestionCandidate], *, replay: bool) -> Quotes:
    """Quotes by market and side: at the universe's price if it has the market, else at a price decided now."""
    ids = {market for candidate in candidates for market in candidate.market_ids}
    markets = list(Market.objects.filter(pk__in=ids).prefetch_related("outcomes").order_by("pk"))
    universe = UniverseEntry.objects.filter(universe=freeze.universe, market__in=ids) if freeze.universe else []
    frozen = {entry.market_id: entry for entry in universe}
    to_price = [market for market in markets if market.pk not in frozen]
    if replay:
        pricing = recorded_prices(to_price, freeze.at)
    else:
        pricing = update_prices(to_price, rule=freeze.price_rule, at=freeze.at, clob=freeze.clob)
    freeze.on_priced(pricing)
    quoted_at = freeze.universe.frozen_at if freeze.universe is not None else freeze.at
    observed = PriceObservation.objects.latest(
        [o.pk for m in markets if replay or m.pk in frozen for o in m.outcomes.all()], quoted_at
    )
    quotes: dict[tuple[int, str], Quote] = {}
    for market in markets:
        outcomes = list(market.outcomes.all())
        asks = {o.side: observed[o.pk].ask if o.pk in observed else (None if replay else o.ask) for o in outcomes}
        entry = frozen.get(market.pk)
        for outcome in outcomes:
            decision = pricing.decisions.get(outcome.pk)
            price, stale = (decision.price, decision.stale) if decision else (None, True)
            if entry is not None:
                price, stale = entry.price(outcome.side), entry.is_stale(outcome.side)
            others = [asks[other.side] for other in outcomes if other.side != outcome.side]
            no_ask = others[0] if len(others) == 1 else None
            no_price = None if price is None else 1 - price
            quotes[market.pk, outcome.side] = Quote(
                price, _current_ask(asks[outcome.side], price), _current_ask(no_ask, no_price), stale
            )
    return quotes


def _current_ask(ask: Decimal | None, price: Decimal | None) -> Decimal | None:
    """The ask, or None if it is below the mid price and so older than the price."""
    return None if ask is None or price is None or ask < price else ask


def _is_priced(candidate: QuestionCandidate, quotes: Quotes, *, certain: bool = False) -> bool:
    """True if every option has a price and, unless `certain` ones are allowed, at least two lie inside (0, 1)."""
    prices = [quote.price for quote in _option_quotes(candidate, quotes)]
    inside = sum(price is not None and 0 < price < 1 for price in prices)
    return None not in prices and (inside >= 2 or certain)


def _option_quotes(candidate: QuestionCandidate, quotes: Quotes) -> list[Quote]:
    """The quote of each option; an option without a market has what the others leave of 1."""
    listed = {o: quotes.get((o.market, o.side), NO_QUOTE) for o in candidate.options if o.market is not None}
    rest = 1 - sum((quote.price or Decimal(0) for quote in listed.values()), Decimal(0))
    remainder = Quote(max(Decimal(0), rest), None, None, any(quote.stale for quote in listed.values()))
    return [listed.get(option, remainder) for option in candidate.options]


# ── storing ───────────────────────────────────────────────────────────────────────────────────────


def _store(
    freeze: FreezeParameters,
    part: int,
    reasons: Sequence[tuple[QuestionCandidate, QuestionEntry.Reason]],
    quotes: Quotes,
    duplicates: Mapping[str, QuestionCandidate],
) -> QuestionSet:
    """Stores the set with its questions, entries and batches. Raises IntegrityError if the part exists."""
    with transaction.atomic():
        pairs = [(candidate, duplicates.get(candidate.key)) for candidate, _ in reasons]
        questions = _questions([candidate for pair in pairs for candidate in pair if candidate is not None], freeze.at)
        entries = [
            QuestionEntry(
                question=questions[candidate.key],
                position=position + 1,
                batch=position // freeze.rule.questions_per_call + 1,
                reason=reason,
                prices={
                    option.name: quote.as_json()
                    for option, quote in zip(candidate.options, _option_quotes(candidate, quotes), strict=True)
                },
                closes_on=candidate.closes_at.date() if candidate.closes_at else None,
                duplicate=questions[duplicate.key] if duplicate else None,
            )
            for position, ((candidate, duplicate), (_, reason)) in enumerate(zip(pairs, reasons, strict=True))
        ]
        question_set = QuestionSet.objects.create(
            day=freeze.day, methodology=freeze.methodology, part=part, universe=freeze.universe, frozen_at=freeze.at,
            sha256=fingerprint(entries),
        )  # fmt: skip
        for entry in entries:
            entry.question_set = question_set
        QuestionEntry.objects.bulk_create(entries)
        prefetch_related_objects([entry.question for entry in entries], "options")
        QuestionBatch.objects.bulk_create(
            QuestionBatch(
                question_set=question_set,
                arm=arm,
                number=number,
                block=question_block([e for e in entries if e.batch == number], priced=arm != BLIND),
            )
            for number in sorted({entry.batch for entry in entries})
            for arm in freeze.rule.arms
        )
    failpoint("questions.frozen")
    return question_set


def _questions(candidates: Sequence[QuestionCandidate], at: datetime) -> dict[str, Question]:
    """The stored or newly created question of each candidate, by the candidate's key."""
    markets = {market for candidate in candidates for market in candidate.market_ids}
    external_ids = dict(Market.objects.filter(pk__in=markets).order_by().values_list("pk", "external_id"))
    hashes = {candidate.key: _options_sha256(candidate, external_ids) for candidate in candidates}
    stored = {q.options_sha256: q for q in Question.objects.filter(options_sha256__in=hashes.values())}
    new: list[tuple[Question, QuestionCandidate]] = []
    for candidate in candidates:
        sha256 = hashes[candidate.key]
        if sha256 not in stored:
            values = {name: getattr(candidate, name) for name in STATED_FIELDS}
            values |= {"market_id": candidate.only_market_id, "first_asked_at": at}
            stored[sha256], created = Question.objects.get_or_create(options_sha256=sha256, defaults=values)
            new += [(stored[sha256], candidate)] if created else []
    _create_options(new)
    return {key: stored[sha256] for key, sha256 in hashes.items()}


def _options_sha256(candidate: QuestionCandidate, external_ids: Mapping[int, str]) -> str:
    """The hash that identifies a candidate's question; `external_ids` are the venue's ids of its markets."""
    identity = [candidate.source, candidate.key, candidate.exclusive, [[o.name, o.side] for o in candidate.options]]
    identity.append([external_ids.get(option.market or 0, "") for option in candidate.options])
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def _create_options(new: Sequence[tuple[Question, QuestionCandidate]]) -> None:
    """Creates the options of new questions, and marks their markets as having questions."""
    if not new:
        return
    markets = {market for _, candidate in new for market in candidate.market_ids}
    sides = {(o.market_id, o.side): o for o in Outcome.objects.filter(market__in=markets)}
    QuestionOption.objects.bulk_create(
        QuestionOption(question=question, index=i, name=o.name, outcome=sides.get((o.market or 0, o.side)))
        for question, candidate in new
        for i, o in enumerate(candidate.options)
    )
    Market.objects.filter(pk__in=markets, has_questions=False).update(has_questions=True)


def fingerprint(entries: Sequence[QuestionEntry]) -> str:
    """SHA-256 of the entries in order: position, batch, the question's hash, text and rules, reason and prices."""
    questions = ((entry, entry.question) for entry in entries)
    lines = (
        json.dumps([e.position, e.batch, q.options_sha256, q.text, q.rules, str(e.reason), e.prices], sort_keys=True)
        for e, q in questions
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def question_block(entries: Sequence[QuestionEntry], *, priced: bool) -> str:
    """The QUESTIONS block: column names, then one JSON line for each question (options prefetched)."""
    lines = [json_line(QUESTION_COLUMNS)]
    for entry in entries:
        question = entry.question
        options = [option.name for option in question.options.all()]
        quoted = {name: entry.prices[name]["price"] for name in options}
        prices = (
            {name: price if price is None else Decimal(price) for name, price in quoted.items()} if priced else None
        )
        lines.append(_question_line(question.pk, question, options, prices, entry.closes_on))
    return "\n".join(lines)


def _question_line(
    id: int,
    question: Question | QuestionCandidate,
    options: Sequence[str],
    prices: Mapping[str, Decimal | None] | None,
    closes: date | None,
) -> str:
    day = f"{closes:%Y-%m-%d}" if closes else None
    return json_line([str(id), question.text, question.rules, question.exclusive, options, prices, day])
