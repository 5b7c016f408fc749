"""Freezing the questions of a day: which, with which options, at which prices."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Max, prefetch_related_objects

from markets.blocks import json_line, json_number
from markets.choice import Candidate, ChoiceRule, choose, in_order
from markets.failpoints import reached
from markets.models import (
    Market,
    Outcome,
    PriceObservation,
    Question,
    QuestionEntry,
    QuestionOption,
    QuestionSet,
    QuestionSheet,
    Universe,
    UniverseEntry,
)
from markets.pricing import PriceRule
from markets.services.candidates import candidates_at, single_candidate, twins_of
from markets.services.marks import Marks, is_replay, mark_markets, stored_marks
from markets.sources.polymarket import Clob

QUESTION_COLUMNS = ["question_id", "question", "rules", "exclusive", "options", "prices", "closes"]
SPARE = 2
"""How many candidates, as a multiple of the day's questions, are priced to find enough."""
WITHOUT_PRICES = "blind"
"""The arm whose prompts show no prices."""


class NoQuestions(Exception):
    """Nothing qualifies to be asked."""


@dataclass(frozen=True, slots=True)
class Freeze:
    """What a freeze is about: the day, the methodology's version and rules, the week's universe on its day."""

    day: datetime
    methodology: str
    rule: ChoiceRule
    price_rule: PriceRule
    universe: Universe | None
    at: datetime
    clob: Clob | None
    priced_with: Callable[[Marks], None]


def question_set_freeze(freeze: Freeze, *, played: Iterable[int] = ()) -> QuestionSet:
    """The day's questions: those on record, else frozen now; with every market of `played` (ids) among them.

    Raises NoQuestions where nothing qualifies.
    """
    known = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology, part=0).first()
    if known is not None:
        return known
    replay = is_replay(freeze.at)
    ordered = in_order(candidates_at(freeze.at, replay=replay), freeze.rule, freeze.at)
    twins = twins_of(ordered)
    not_again = {twin.key for twin in twins.values()}
    once = [candidate for candidate in ordered if candidate.key not in not_again]
    in_question = choose(once, freeze.rule, freeze.rule.questions * SPARE)
    quotes = _quotes(freeze, [*in_question, *_singles(played)], replay=replay)
    chosen = choose(in_question, freeze.rule, freeze.rule.questions, usable=lambda c: _is_priced(c, quotes))
    covered = {market for candidate in chosen for market in candidate.markets}
    besides = [c for c in _singles(set(played) - covered) if _is_priced(c, quotes, strictly=False)]
    if not chosen and not besides:
        raise NoQuestions("no open question has usable prices: run sync_markets first")
    reached("questions.priced")
    reasons = [(c, QuestionEntry.Reason.CHOSEN) for c in chosen] + [(c, QuestionEntry.Reason.PLAYED) for c in besides]
    try:
        return _store(freeze, 0, reasons, quotes, twins)
    except IntegrityError:  # another run froze it in the meantime: that one counts
        return QuestionSet.objects.get(day=freeze.day, methodology=freeze.methodology, part=0)


def question_set_extend(freeze: Freeze, *, played: Iterable[int]) -> QuestionSet | None:
    """A further part of the day's questions, for markets of `played` that no part asks yet; None where all are."""
    while True:
        parts = QuestionSet.objects.filter(day=freeze.day, methodology=freeze.methodology)
        # Before anything else: a part that another run adds from here on has the number that this one would take.
        part = (parts.aggregate(last=Max("part"))["last"] or 0) + 1
        asked = QuestionOption.objects.filter(question__entries__question_set__in=parts)
        missing = set(played) - set(asked.values_list("outcome__market", flat=True))
        singles = _singles(missing)
        quotes = _quotes(freeze, singles, replay=is_replay(freeze.at))
        besides = [c for c in singles if _is_priced(c, quotes, strictly=False)]
        if not besides:
            return None
        try:
            return _store(freeze, part, [(c, QuestionEntry.Reason.PLAYED) for c in besides], quotes, {})
        except IntegrityError:
            continue  # another run added a part: what it asks need not be asked again


def _singles(markets: Iterable[int]) -> list[Candidate]:
    found = Market.objects.filter(pk__in=set(markets)).prefetch_related("outcomes").order_by("pk")
    return [single_candidate(market) for market in found]


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Quote:
    """The price of one side of a market at the freeze, and what its shares and those against it were offered at."""

    price: Decimal | None
    ask: Decimal | None
    no_ask: Decimal | None
    stale: bool

    def as_json(self) -> dict[str, Any]:
        def text(value: Decimal | None) -> str | None:
            return None if value is None else json_number(value)

        return {"price": text(self.price), "ask": text(self.ask), "no_ask": text(self.no_ask), "stale": self.stale}


NO_QUOTE = Quote(None, None, None, True)
Quotes = Mapping[tuple[int, str], Quote]


def _quotes(freeze: Freeze, candidates: Sequence[Candidate], *, replay: bool) -> Quotes:
    """The quote of each side by market and side: the universe's price where it has the market, else priced now."""
    ids = {market for candidate in candidates for market in candidate.markets}
    markets = list(Market.objects.filter(pk__in=ids).prefetch_related("outcomes").order_by("pk"))
    frozen = {
        entry.market_id: entry
        for entry in UniverseEntry.objects.filter(universe=freeze.universe, market__in=ids)
        if freeze.universe is not None
    }
    to_price = [market for market in markets if market.pk not in frozen]
    if replay:
        marks = stored_marks(to_price, freeze.at)
    else:
        marks = mark_markets(to_price, rule=freeze.price_rule, at=freeze.at, clob=freeze.clob)
    freeze.priced_with(marks)
    then = freeze.universe.frozen_at if freeze.universe is not None else freeze.at
    observed = PriceObservation.objects.latest(
        [o.pk for m in markets if replay or m.pk in frozen for o in m.outcomes.all()], then
    )
    quotes: dict[tuple[int, str], Quote] = {}
    for market in markets:
        outcomes = list(market.outcomes.all())
        asks = {o.side: observed[o.pk].ask if o.pk in observed else (None if replay else o.ask) for o in outcomes}
        entry = frozen.get(market.pk)
        for outcome in outcomes:
            price, stale = _price_of(outcome, entry, marks)
            others = [asks[other.side] for other in outcomes if other.side != outcome.side]
            no_ask = others[0] if len(others) == 1 else None
            against = None if price is None else 1 - price
            quotes[market.pk, outcome.side] = Quote(
                price, _of_now(asks[outcome.side], price), _of_now(no_ask, against), stale
            )
    return quotes


def _of_now(ask: Decimal | None, price: Decimal | None) -> Decimal | None:
    """The ask, unless it lies below the mid price: then it is from before the price moved."""
    return None if ask is None or price is None or ask < price else ask


def _price_of(outcome: Outcome, entry: UniverseEntry | None, marks: Marks) -> tuple[Decimal | None, bool]:
    if entry is not None:
        return entry.price(outcome.side), bool(entry.sources.get(outcome.side, {}).get("stale", True))
    verdict = marks.verdicts.get(outcome.pk)
    return (verdict.price, verdict.stale) if verdict else (None, True)


def _is_priced(candidate: Candidate, quotes: Quotes, *, strictly: bool = True) -> bool:
    """Every option of a market has a price; two of them, where `strictly`, lie inside (0, 1)."""
    prices = [_quote(candidate, i, quotes).price for i in range(len(candidate.options))]
    inside = sum(price is not None and 0 < price < 1 for price in prices)
    return all(price is not None for price in prices) and (inside >= 2 or not strictly)


def _quote(candidate: Candidate, index: int, quotes: Quotes) -> Quote:
    option = candidate.options[index]
    if option.market is not None:
        return quotes.get((option.market, option.side), NO_QUOTE)
    others = [_quote(candidate, i, quotes) for i, other in enumerate(candidate.options) if other.market is not None]
    rest = 1 - sum((quote.price or Decimal(0) for quote in others), Decimal(0))
    return Quote(max(Decimal(0), rest), None, None, any(quote.stale for quote in others))


# ── storing ───────────────────────────────────────────────────────────────────────────────────────


def _store(
    freeze: Freeze,
    part: int,
    reasons: Sequence[tuple[Candidate, QuestionEntry.Reason]],
    quotes: Quotes,
    twins: Mapping[str, Candidate],
) -> QuestionSet:
    """The set with its questions, entries and sheets, in one transaction. Raises IntegrityError if it exists."""
    with transaction.atomic():
        asked_with = [(candidate, twins.get(candidate.key)) for candidate, _ in reasons]
        questions = _questions([one for pair in asked_with for one in pair if one is not None], freeze.at)
        entries = [
            QuestionEntry(
                question=questions[candidate.key],
                position=position + 1,
                sheet=position // freeze.rule.per_sheet + 1,
                reason=reason,
                prices={o.name: _quote(candidate, i, quotes).as_json() for i, o in enumerate(candidate.options)},
                twin=questions[twin.key] if twin else None,
            )
            for position, ((candidate, twin), (_, reason)) in enumerate(zip(asked_with, reasons, strict=True))
        ]
        asked = QuestionSet.objects.create(
            day=freeze.day,
            methodology=freeze.methodology,
            part=part,
            universe=freeze.universe,
            frozen_at=freeze.at,
            sha256=fingerprint(entries),
        )
        for entry in entries:
            entry.question_set = asked
        QuestionEntry.objects.bulk_create(entries)
        prefetch_related_objects([entry.question for entry in entries], "options")
        QuestionSheet.objects.bulk_create(
            QuestionSheet(
                question_set=asked,
                arm=arm,
                number=number,
                block=question_block([e for e in entries if e.sheet == number], priced=arm != WITHOUT_PRICES),
            )
            for number in sorted({entry.sheet for entry in entries})
            for arm in freeze.rule.arms
        )
    reached("questions.frozen")
    return asked


def _questions(candidates: Sequence[Candidate], at: datetime) -> dict[str, Question]:
    """The question of each candidate, by its key: the one on record, else made now.

    The markets of a new one are looked after from then on.
    """
    markets = {market for candidate in candidates for market in candidate.markets}
    names = dict(Market.objects.filter(pk__in=markets).order_by().values_list("pk", "external_id"))
    identities = {candidate.key: _identity(candidate, names) for candidate in candidates}
    known = {q.options_sha256: q for q in Question.objects.filter(options_sha256__in=identities.values())}
    new: list[tuple[Question, Candidate]] = []
    for candidate in candidates:
        sha256 = identities[candidate.key]
        if sha256 not in known:
            known[sha256], created = _question(candidate, sha256, at)
            new += [(known[sha256], candidate)] if created else []
    _look_after(new)
    return {key: known[sha256] for key, sha256 in identities.items()}


def _identity(candidate: Candidate, names: Mapping[int, str]) -> str:
    """The hash by which a candidate's question is known; `names` are the venue's ids of markets."""
    identity = [candidate.source, candidate.key, candidate.exclusive, [[o.name, o.side] for o in candidate.options]]
    identity.append([names.get(option.market or 0, "") for option in candidate.options])
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()


def _question(candidate: Candidate, sha256: str, at: datetime) -> tuple[Question, bool]:
    """The question, and whether it is new."""
    return Question.objects.get_or_create(
        options_sha256=sha256,
        defaults={
            "source": candidate.source,
            "event_key": candidate.event_key,
            "market_id": candidate.single,
            "text": candidate.text,
            "rules": candidate.rules,
            "category": candidate.category,
            "exclusive": candidate.exclusive,
            "closes_at": candidate.closes_at,
            "first_asked_at": at,
        },
    )


def _look_after(new: Sequence[tuple[Question, Candidate]]) -> None:
    """Gives new questions their options, and has their markets followed to their end."""
    if not new:
        return
    markets = {market for _, candidate in new for market in candidate.markets}
    sides = {(o.market_id, o.side): o for o in Outcome.objects.filter(market__in=markets)}
    QuestionOption.objects.bulk_create(
        QuestionOption(question=question, index=i, name=o.name, outcome=sides.get((o.market or 0, o.side)))
        for question, candidate in new
        for i, o in enumerate(candidate.options)
    )
    Market.objects.filter(pk__in=markets, asked=False).update(asked=True)


def fingerprint(entries: Sequence[QuestionEntry]) -> str:
    """SHA-256 over the entries in order: each question's own hash, why it is asked, and its prices."""
    lines = (
        json.dumps([e.position, e.question.options_sha256, str(e.reason), e.prices], sort_keys=True) for e in entries
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def question_block(entries: Sequence[QuestionEntry], *, priced: bool) -> str:
    """The QUESTIONS block: a header and one JSON line for each question (its options loaded)."""
    lines = [json_line(QUESTION_COLUMNS)]
    for entry in entries:
        question = entry.question
        options = [option.name for option in question.options.all()]
        prices = {name: _shown(entry.prices[name]) for name in options} if priced else None
        closes = question.closes_at.date().isoformat() if question.closes_at else None
        lines.append(
            json_line(
                [
                    str(question.pk),
                    question.text,
                    question.rules,
                    question.exclusive,
                    options,
                    prices,
                    closes,
                ]
            )
        )
    return "\n".join(lines)


def _shown(quote: Mapping[str, Any]) -> Decimal | None:
    return None if quote["price"] is None else Decimal(quote["price"])
