"""Accepting prices: asks the CLOB in batches, applies the price rule, records what changed and why."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal

from django.db import transaction

from markets.models import Market, Outcome, PriceObservation
from markets.models.market import NO, YES
from markets.pricing import PriceRule, Verdict, judge, judge_quote, needs_book
from markets.services.writing import State, write_changes
from markets.sources.base import Book
from markets.sources.polymarket import Clob

PRICE_STEP = Decimal("0.0000000001")
ACCEPTED = ("price", "price_source", "price_stale", "price_at", "bid", "ask")


@dataclass(slots=True)
class Marks:
    """Verdicts by outcome id, and what could not be had."""

    verdicts: dict[int, Verdict] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    asked: int = 0
    answered: int = 0
    accepted: int = 0

    @property
    def trouble(self) -> str | None:
        """Why not a single price could be had, in one line; None where one could, or none was looked up."""
        if self.failures and self.asked and not self.answered:
            return f"no price could be had: {self.failures[0]}"
        if self.asked and not self.accepted:
            return f"no price could be had: none of the {self.asked} looked up could be accepted"
        return None

    def prices(self) -> dict[int, Decimal]:
        return {pk: verdict.price for pk, verdict in self.verdicts.items() if verdict.price is not None}

    @property
    def stale(self) -> set[int]:
        return {pk for pk, verdict in self.verdicts.items() if verdict.stale}


def as_price(value: Decimal) -> Decimal:
    return value.quantize(PRICE_STEP, rounding=ROUND_HALF_EVEN)


def is_replay(at: datetime) -> bool:
    """Is `at` older than the newest instant on record? Then nothing may be taken from the network for it."""
    newest = max(
        filter(None, (PriceObservation.objects.newest_instant(), Market.objects.newest_instant())),
        default=None,
    )
    return newest is not None and at < newest


def mark_markets(markets: Sequence[Market], *, rule: PriceRule, at: datetime, clob: Clob | None) -> Marks:
    """Accepts a price for every outcome of open `markets` (outcomes prefetched) and records it for `at`.

    Closed ones keep their last price. Without a `clob`, Gamma's quotes stand alone; another venue's always do. Never
    raises for an upstream that fails: its failure is in the result, and prices stay at the last accepted ones, flagged.
    """
    marks = Marks()
    led = [outcome for market in markets if market.is_open for outcome in leading_outcomes(market)]
    midpoints, books = _ask(led, rule, clob, marks)
    for outcome in led:
        book = books.get(outcome.token_id)
        if book is not None:
            outcome.bid, outcome.ask = book.bid, book.ask
        if outcome.market.source == Market.Source.POLYMARKET:
            marks.verdicts[outcome.pk] = judge(
                rule,
                midpoint=midpoints.get(outcome.token_id),
                gamma=outcome.quote,
                spread=book.spread if book else None,
                last=outcome.price,
                gamma_is_news=_is_news(outcome, at),
            )
        else:
            marks.verdicts[outcome.pk] = judge_quote(
                rule,
                quote=outcome.quote,
                bid=outcome.bid,
                ask=outcome.ask,
                last=outcome.price,
                is_news=_is_news(outcome, at),
            )
    marks.accepted = sum(not marks.verdicts[outcome.pk].stale for outcome in led)
    for market in markets:
        _complete(market, marks)
    _record([o for m in markets if m.is_open for o in m.outcomes.all()], marks, midpoints, at)
    return marks


def stored_marks(markets: Iterable[Market], at: datetime) -> Marks:
    """The prices that were accepted at or before `at`, from the record alone."""
    outcomes = [outcome for market in markets for outcome in market.outcomes.all()]
    observed = PriceObservation.objects.latest((outcome.pk for outcome in outcomes), at)
    return Marks({pk: Verdict(row.price, row.source, row.stale, row.reason) for pk, row in observed.items()})


def _is_news(outcome: Outcome, at: datetime) -> bool:
    """Was the catalogue's quote seen since a price was last accepted? Repeating an instant changes nothing."""
    if outcome.price_at is None or outcome.price_at == at:
        return True
    return outcome.quote_at is not None and outcome.quote_at > outcome.price_at


def leading_outcomes(market: Market) -> list[Outcome]:
    """The outcomes whose prices are looked up: YES alone on a binary market, since NO is 1 - YES."""
    outcomes = list(market.outcomes.all())
    return [o for o in outcomes if o.side == YES] if market.kind == Market.Kind.BINARY else outcomes


def _ask(
    outcomes: Sequence[Outcome], rule: PriceRule, clob: Clob | None, marks: Marks
) -> tuple[dict[str, Decimal], dict[str, Book]]:
    tokens = [outcome.token_id for outcome in outcomes if outcome.token_id]
    if clob is None or not tokens:
        return {}, {}
    answer = clob.midpoints(tokens)
    midpoints = {token: as_price(price) for token, price in answer.prices.items()}
    marks.failures += answer.failed
    marks.asked, marks.answered = len(tokens), len(midpoints) + len(answer.rejected)
    doubtful = [
        outcome.token_id
        for outcome in outcomes
        if needs_book(rule, midpoint=midpoints.get(outcome.token_id), gamma=outcome.quote)
    ]
    if not doubtful:
        return midpoints, {}
    books = clob.books(doubtful)
    marks.failures += books.failed
    return midpoints, {token: _exact(book) for token, book in books.books.items()}


def _exact(book: Book) -> Book:
    bid = None if book.bid is None else as_price(book.bid)
    ask = None if book.ask is None else as_price(book.ask)
    return Book(book.token_id, bid, ask)


def _complete(market: Market, marks: Marks) -> None:
    """Adds the other side of a binary market, and the last price of a closed one."""
    outcomes = list(market.outcomes.all())
    if not market.is_open:
        for outcome in outcomes:
            marks.verdicts[outcome.pk] = Verdict(
                outcome.price,
                "last" if outcome.price is not None else "",
                outcome.price_stale,
                "closed: its last price stays",
            )
        return
    if market.kind == Market.Kind.BINARY:
        sides = {outcome.side: outcome for outcome in outcomes}
        marks.verdicts[sides[NO].pk] = marks.verdicts[sides[YES].pk].complement


def _record(outcomes: list[Outcome], marks: Marks, midpoints: dict[str, Decimal], at: datetime) -> None:
    with transaction.atomic():
        observations, known = [], _on_record(outcomes)
        for outcome in outcomes:
            verdict = marks.verdicts[outcome.pk]
            if known[outcome.pk][:3] != (verdict.price, verdict.source, verdict.stale):
                observations.append(
                    PriceObservation(
                        outcome=outcome,
                        observed_at=at,
                        price=verdict.price,
                        source=verdict.source,
                        stale=verdict.stale,
                        reason=verdict.reason,
                        midpoint=midpoints.get(outcome.token_id),
                        gamma=outcome.quote,
                        bid=outcome.bid,
                        ask=outcome.ask,
                    )
                )
            outcome.price, outcome.price_source, outcome.price_stale = verdict.price, verdict.source, verdict.stale
            if not verdict.stale:
                outcome.price_at = at
        PriceObservation.objects.bulk_create(observations, batch_size=500)
        write_changes(Outcome, outcomes, known, ACCEPTED)


def _on_record(outcomes: list[Outcome]) -> dict[int, State]:
    """What is ACCEPTED on record now, by outcome id: another process may have written it since `outcomes` were read.

    The rows stay locked to the transaction's end, in the order of their ids; SQLite locked everything at its begin.
    Their keys do not: a freeze that refers to them as it commits would wait for us, and we for it.
    """
    rows = Outcome.objects.select_for_update(no_key=True).filter(pk__in=[outcome.pk for outcome in outcomes])
    return {pk: tuple(accepted) for pk, *accepted in rows.order_by("pk").values_list("pk", *ACCEPTED)}
