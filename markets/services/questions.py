"""Freezing the questions of a day with their options, prices and prompt blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from django.db.models import Max, Q, prefetch_related_objects

from foundation.bulk import rows_by
from foundation.failpoints import failpoint
from foundation.json_lines import json_number
from markets.models import (
    EvidenceSnippet,
    Market,
    Outcome,
    PriceObservation,
    QuestionBatch,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    Universe,
    UniverseEntry,
)
from markets.pricing import PriceRule
from markets.prompt_blocks import evidence_block, question_block, whole_dollars
from markets.question_quotes import Quote, Quotes, current_ask, is_priced, option_quotes_of
from markets.question_selection import QuestionCandidate, market_ids, rank_candidates, select_candidates
from markets.selectors.question_candidates import (
    is_before_close,
    open_candidates,
    single_candidate,
)
from markets.services.evidence import Evidence, EvidenceUnavailable, claim_evidence, evidence_sha256, store_snippets
from markets.services.prices import PricingResult, is_replay, recorded_prices, spread, update_prices
from markets.services.question_storage import store_questions
from markets.sources.polymarket import Clob
from markets.sources.registry import SOURCES

if TYPE_CHECKING:
    from markets.selection_rule import Condition, SelectionRule

CANDIDATE_RATIO = 2
"""Candidates priced for each question of the day: some will lack a price."""


class NoQuestions(Exception):
    """No question qualifies."""


@dataclass(frozen=True, slots=True)
class FreezeParameters:
    """A freeze: its day and instant, the methodology's version and rules, and the universe frozen on that day.

    conditions : those that are on; every later part of a day has those of its first part
    gather : the evidence for chosen questions; raises EvidenceUnavailable
    seal_end : the end of the set's seal, by its freeze
    """

    day: datetime
    methodology: str
    rule: SelectionRule
    conditions: Sequence[Condition]
    price_rule: PriceRule
    universe: Universe | None
    at: datetime
    clob: Clob | None
    on_priced: Callable[[PricingResult], None]
    gather: Callable[[Sequence[QuestionCandidate]], Evidence] | None = None
    seal_end: Callable[[datetime], datetime | None] = lambda frozen_at: None


def freeze_question_set(freeze: FreezeParameters, *, traded: Iterable[int] = ()) -> QuestionSet:
    """The day's questions: the stored set, else a new one of one venue, with every market of `traded` (ids) there.

    Raises NoQuestions if no question qualifies, and EvidenceClaimed while another run gathers their evidence.
    """
    stored = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology, part=0).first()
    if stored is not None:
        return stored
    selected: Sequence[QuestionCandidate] = ()
    of_trades = _market_candidates(traded, freeze.at)
    for eligible in [*_eligible_by_venue(freeze), []]:
        quotes = _quotes(freeze, [*eligible, *of_trades], replay=is_replay(freeze.at))
        if selected := _selected(freeze, eligible, quotes):
            of_trades = [candidate for candidate in of_trades if candidate.source == selected[0].source]
            break
    asked = market_ids(selected)
    added = [candidate for candidate in _priced_candidates(of_trades, quotes) if not candidate.market_ids & asked]
    if not selected and not added:
        raise NoQuestions("no open question has usable prices: run sync_markets first")
    failpoint("questions.priced")
    try:
        with _evidence_claim(freeze, 0):
            return _store(freeze, 0, selected, added, quotes)
    except IntegrityError:  # another run stored it first
        return QuestionSet.objects.get(day=freeze.day, methodology=freeze.methodology, part=0)


def extend_question_set(freeze: FreezeParameters, *, traded: Iterable[int]) -> QuestionSet | None:
    """A further part of the day's questions for markets of `traded` that no part contains; None if there are none.

    Raises EvidenceClaimed while another run gathers the day's evidence.
    """
    while True:
        parts = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology)
        first_arms = set(parts.filter(part=0).values_list("batches__arm", flat=True))
        conditions = [condition for condition in freeze.rule.conditions if condition.name in first_arms]
        # Read first: a part that another run adds from here on takes this number, and storing ours fails.
        part = (parts.aggregate(last=Max("part"))["last"] or 0) + 1
        options = QuestionOption.objects.filter(question__entries__question_set__in=parts)
        missing = set(traded) - set(options.values_list("outcome__market", flat=True))
        candidates = _market_candidates(missing, freeze.at)
        quotes = _quotes(freeze, candidates, replay=is_replay(freeze.at))
        added = _priced_candidates(candidates, quotes)
        if not added:
            return None
        try:
            with _evidence_claim(freeze, part):
                return _store(replace(freeze, conditions=conditions), part, (), added, quotes)
        except IntegrityError:
            continue  # another run added a part: leave out its questions


def count_drafted_questions(freeze: FreezeParameters) -> int:
    """The number of questions that a freeze would choose at recorded prices, without the markets that agents trade."""
    for eligible in _eligible_by_venue(freeze):
        if selected := _selected(freeze, eligible, _quotes(freeze, eligible, replay=True)):
            return len(selected)
    return 0


def _eligible_by_venue(freeze: FreezeParameters) -> list[list[QuestionCandidate]]:
    """The candidates to price of each venue, those of the day's venue first: a question set draws on one.

    With a universe that is the venue of its markets; else the venues take turns, day by day.
    """
    candidates = open_candidates(freeze.at, replay=is_replay(freeze.at))
    ranked = rank_candidates(candidates, freeze.rule, freeze.at)
    sources = {candidate.source for candidate in ranked}
    limit = freeze.rule.questions_per_day * CANDIDATE_RATIO
    by_venue = []
    for venue in venues_by_turn([name for name in SOURCES if name in sources], freeze.day, freeze.universe):
        of_venue = [candidate for candidate in ranked if candidate.source == venue]
        by_venue.append(select_candidates(of_venue, freeze.rule, limit))
    return by_venue


def venues_by_turn(venues: Sequence[str], day: datetime, universe: Universe | None) -> list[str]:
    """The venues, beginning with the one whose turn it is on a day."""
    if universe is not None or not venues:
        return list(venues)
    turn = day.toordinal() % len(venues)
    return [*venues[turn:], *venues[:turn]]


def _selected(
    freeze: FreezeParameters, eligible: Sequence[QuestionCandidate], quotes: Quotes
) -> list[QuestionCandidate]:
    """The day's questions among candidates, without those that lack a price."""
    number, usable = freeze.rule.questions_per_day, partial(is_priced, quotes=quotes)
    return select_candidates(eligible, freeze.rule, number, usable=usable)


def _market_candidates(markets: Iterable[int], at: datetime) -> list[QuestionCandidate]:
    """The questions on these markets, without those of which the answer is public, or whose close has passed."""
    rows = Market.objects.filter(Q(over_since=None) | Q(over_since__gt=at), pk__in=set(markets))
    candidates = map(single_candidate, rows.prefetch_related("outcomes").order_by("pk"))
    return [candidate for candidate in candidates if is_before_close(candidate, at)]


def _priced_candidates(candidates: Iterable[QuestionCandidate], quotes: Quotes) -> list[QuestionCandidate]:
    """The candidates whose options all have a price, certain ones included."""
    return [candidate for candidate in candidates if is_priced(candidate, quotes, certain=True)]


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def _quotes(freeze: FreezeParameters, candidates: Sequence[QuestionCandidate], *, replay: bool) -> Quotes:
    """Quotes by market and side: at the universe's price if it has the market, else at a price decided now."""
    ids = market_ids(candidates)
    markets = list(Market.objects.filter(pk__in=ids).prefetch_related("outcomes").order_by("pk"))
    universe = UniverseEntry.objects.filter(universe=freeze.universe, market__in=ids) if freeze.universe else []
    frozen = rows_by("market_id", universe)
    to_price = [market for market in markets if market.pk not in frozen]
    if replay:
        pricing = recorded_prices(to_price, freeze.at)
    else:
        pricing = update_prices(to_price, rule=freeze.price_rule, at=freeze.at, clob=freeze.clob)
    freeze.on_priced(pricing)
    quoted_at = freeze.universe.frozen_at if freeze.universe is not None else freeze.at
    outcome_ids = []
    for market in markets:
        if replay or market.pk in frozen:
            for outcome in market.outcomes.all():
                outcome_ids.append(outcome.pk)
    observed = PriceObservation.objects.latest(outcome_ids, quoted_at)
    quotes: dict[tuple[int, str], Quote] = {}
    for market in markets:
        outcomes = list(market.outcomes.all())
        asks: dict[str, Decimal | None] = {}
        spreads: dict[str, Decimal | None] = {}
        for outcome in outcomes:
            book: Outcome | PriceObservation | None = observed.get(outcome.pk, None if replay else outcome)
            asks[outcome.side] = book.ask if book else None
            spreads[outcome.side] = spread(book) if book else None
        entry = frozen.get(market.pk)
        for outcome in outcomes:
            decision = pricing.decisions.get(outcome.pk)
            price, stale = (decision.price, decision.stale) if decision else (None, True)
            if entry is not None:
                price, stale = entry.price(outcome.side), entry.is_stale(outcome.side)
            asks_of_rest = [ask for side, ask in asks.items() if side != outcome.side]
            no_ask = asks_of_rest[0] if len(asks_of_rest) == 1 else None
            no_price = None if price is None else 1 - price
            ask, no_ask = current_ask(asks[outcome.side], price), current_ask(no_ask, no_price)
            quotes[market.pk, outcome.side] = Quote(price, ask, no_ask, stale, spreads[outcome.side])
    return quotes


# ── storing ───────────────────────────────────────────────────────────────────────────────────────


def _store(
    freeze: FreezeParameters,
    part: int,
    selected: Sequence[QuestionCandidate],
    added: Sequence[QuestionCandidate],
    quotes: Quotes,
) -> QuestionSet:
    """Stores the set with its questions, entries and batches. Raises IntegrityError if the part exists."""
    candidates = [*selected, *added]
    evidence, left_out = _gather(freeze, candidates)
    conditions = [condition for condition in freeze.conditions if condition.name not in left_out]
    frozen_at = max(freeze.at, evidence.ended_at) if evidence else freeze.at
    with transaction.atomic():
        questions = store_questions(candidates, freeze.at)
        entries: dict[str, QuestionEntry] = {}
        for position, candidate in enumerate(candidates, start=1):
            entry = _entry(candidate, option_quotes_of(candidate, quotes), freeze, position=position)
            entry.question = questions[candidate.key]
            if position > len(selected):
                entry.reason = QuestionEntry.Reason.TRADED
            entries[candidate.key] = entry
        question_set = QuestionSet(
            day=freeze.day, methodology=freeze.methodology, part=part, universe=freeze.universe, frozen_at=frozen_at,
            sealed_until=freeze.seal_end(frozen_at),
            sha256=fingerprint(list(entries.values())), left_out=left_out,
        )  # fmt: skip
        if evidence is not None:
            question_set.evidence_dropped = dict(evidence.dropped)
            question_set.evidence_sha256 = evidence_sha256(_shown_snippets(entries, evidence))
        question_set.save(force_insert=True)
        for entry in entries.values():
            entry.question_set = question_set
        QuestionEntry.objects.bulk_create(entries.values())
        if evidence is not None:
            store_snippets(entries, evidence)
        QuestionBatch.objects.bulk_create(_batches(question_set, entries, conditions, evidence, freeze.rule))
    failpoint("questions.frozen")
    return question_set


@contextmanager
def _evidence_claim(freeze: FreezeParameters, part: int) -> Iterator[None]:
    """The claim on the day's evidence, if this freeze gathers any. Raises IntegrityError if the part was stored."""
    if freeze.gather is None or not any(condition.has_evidence for condition in freeze.conditions):
        yield
        return
    with claim_evidence(freeze.day, freeze.methodology):
        if QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology, part=part).exists():
            raise IntegrityError("the run that held the claim before has stored this part")
        yield


def _gather(
    freeze: FreezeParameters, candidates: Sequence[QuestionCandidate]
) -> tuple[Evidence | None, dict[str, str]]:
    """The evidence, None where no condition shows any; and the conditions that can not be asked, with the reason."""
    names = [condition.name for condition in freeze.conditions if condition.has_evidence]
    if not names or freeze.gather is None:
        return None, dict.fromkeys(names, "no source of evidence is configured")
    try:
        evidence = freeze.gather(candidates)
    except EvidenceUnavailable as error:
        return None, dict.fromkeys(names, str(error))
    return evidence, {}


def _shown_snippets(entries: Mapping[str, QuestionEntry], evidence: Evidence) -> Iterator[tuple[int, EvidenceSnippet]]:
    """The snippets in the order of their questions, each with its question's position in the set."""
    for key, entry in entries.items():
        for snippet in evidence.snippets.get(key, ()):
            yield entry.position, snippet


def _batches(
    question_set: QuestionSet,
    entries: Mapping[str, QuestionEntry],
    conditions: Sequence[Condition],
    evidence: Evidence | None,
    rule: SelectionRule,
) -> Iterator[QuestionBatch]:
    """The batches of a set under each condition, with their blocks."""
    prefetch_related_objects(list(map(attrgetter("question"), entries.values())), "options")
    for number, batch_entries in groupby(entries.items(), key=lambda entry: entry[1].batch):
        rows, snippets = [], []
        for key, entry in batch_entries:
            rows.append(entry)
            for snippet in evidence.snippets.get(key, ()) if evidence else ():
                snippets.append((entry.question_id, snippet))
        for condition in conditions:
            yield QuestionBatch(
                question_set=question_set,
                arm=condition.name,
                number=number,
                block=question_block(rows, condition, rule),
                evidence_block=evidence_block(snippets) if condition.has_evidence else "",
            )


def _entry(
    candidate: QuestionCandidate, quotes: Mapping[str, Quote], freeze: FreezeParameters, *, position: int
) -> QuestionEntry:
    """The entry of a candidate at its place in the set, without its question."""
    return QuestionEntry(
        position=position,
        batch=(position - 1) // freeze.rule.questions_per_call + 1,
        reason=QuestionEntry.Reason.SELECTED,
        prices={name: quote.as_json() for name, quote in quotes.items()},
        facts=_facts(candidate, quotes, freeze.rule),
        closes_on=candidate.closes_at.date() if candidate.closes_at else None,
    )


def _facts(candidate: QuestionCandidate, quotes: Mapping[str, Quote], rule: SelectionRule) -> dict[str, Any]:
    """What the prompt shows of a candidate's markets besides their prices, where the rule has columns for it."""
    spreads = {}
    for name, quote in quotes.items():
        spreads[name] = None if quote.spread is None else json_number(quote.spread)
    facts = {
        "event": candidate.event or None, "spread": spreads, "volume_24h_usd": whole_dollars(candidate.volume_24h),
    }  # fmt: skip
    for name in facts.keys() - set(rule.question_columns):
        del facts[name]
    return facts


def fingerprint(entries: Sequence[QuestionEntry]) -> str:
    """SHA-256 of the entries in order: position, batch, the question's hash, text, rules, reason, prices, facts."""
    lines = []
    for entry in entries:
        question = entry.question
        identity = [entry.position, entry.batch, question.options_sha256, question.text, question.rules]
        facts = [entry.facts] if entry.facts else []
        lines.append(json.dumps([*identity, str(entry.reason), entry.prices, *facts], sort_keys=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
