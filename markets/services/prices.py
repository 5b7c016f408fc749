"""Accepting prices: reads the CLOB in batches, applies the price rule and records the decisions that changed."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TypeVar

from django.db import transaction

from foundation.bulk import FieldValues, update_changed
from markets.models import Market, Outcome, PriceObservation
from markets.models.market import NO, YES
from markets.pricing import (
    PRICE_STEP,
    RETAINED,
    PriceDecision,
    PriceRule,
    book_midpoint,
    decide_polymarket_price,
    decide_quoted_price,
)
from markets.sources.base import TopOfBook
from markets.sources.field_parsers import complement
from markets.sources.polymarket import Clob
from markets.sources.registry import TRADED_SOURCE

Price = TypeVar("Price", Decimal, Decimal | None)
ACCEPTED_FIELDS = ("price", "price_source", "price_stale", "price_at", "bid", "ask")


@dataclass(slots=True)
class PricingResult:
    """Price decisions by outcome id, and failed requests to the CLOB."""

    decisions: dict[int, PriceDecision] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    requested: int = 0
    """Tokens whose midpoint was requested of the CLOB."""
    answered: int = 0
    accepted: int = 0
    """Decisions that are not stale, counted for one side of a binary market."""

    @property
    def unanswered(self) -> str | None:
        """Why the CLOB answered for no token, in one line; None if it did, or was not asked."""
        return self.failures[0] if self.failures and self.requested and not self.answered else None

    @property
    def total_failure(self) -> str | None:
        """Why no price was accepted, in one line; None if one was, or none was requested."""
        if self.unanswered:
            return f"no price was accepted: {self.unanswered}"
        if self.requested and not self.accepted:
            return f"no price was accepted: the price rule refused all {self.requested} requested"
        return None

    def price(self, outcome: Outcome) -> Decimal | None:
        decision = self.decisions.get(outcome.pk)
        return decision.price if decision else None

    def prices(self) -> dict[int, Decimal]:
        return {pk: decision.price for pk, decision in self.decisions.items() if decision.price is not None}

    @property
    def stale(self) -> set[int]:
        return {pk for pk, decision in self.decisions.items() if decision.stale}


@dataclass(frozen=True, slots=True)
class Candidates:
    """The prices of one side of a market between which the price rule chooses."""

    midpoint: Decimal | None
    gamma: Decimal | None
    bid: Decimal | None
    ask: Decimal | None
    last: Decimal | None
    """The last accepted price."""

    @property
    def complement(self) -> "Candidates":
        """The prices of the other side of a binary market."""
        numbers = (self.midpoint, self.gamma, self.ask, self.bid, self.last)
        return Candidates(*map(complement, numbers))


def as_price(value: Price) -> Price:
    """The value rounded to the places of a stored price."""
    return None if value is None else value.quantize(PRICE_STEP, rounding=ROUND_HALF_EVEN)


def spread(book: Outcome | PriceObservation) -> Decimal | None:
    """The ask less the bid, in dollars a share; None where a side is empty."""
    return None if book.ask is None or book.bid is None else book.ask - book.bid


def is_replay(at: datetime) -> bool:
    """True if `at` is older than the newest recorded instant; then no service may be asked for data."""
    newest = max(
        filter(None, (PriceObservation.objects.newest_instant(), Market.objects.newest_instant())), default=None
    )
    return newest is not None and at < newest


def update_prices(markets: Sequence[Market], *, rule: PriceRule, at: datetime, clob: Clob | None) -> PricingResult:
    """Decides and records the price of every outcome of `markets` (outcomes prefetched) at `at`.

    Closed markets keep their last price. Polymarket's midpoints come from the `clob`; without it, and at other venues,
    the catalogue's quotes decide. A failing service raises nothing: the result names the failure, and its outcomes
    keep the last accepted price, marked stale.
    """
    result = PricingResult()
    quoted: list[Outcome] = []
    outcomes: list[Outcome] = []
    for market in markets:
        if market.is_open:
            quoted += leading_outcomes(market)
            outcomes += market.outcomes.all()
        else:
            _retain_prices(market, result)
    midpoints, books = _read_clob(quoted, clob, result)
    candidates: dict[int, Candidates] = {}
    for outcome in quoted:
        book = books.get(outcome.token_id)
        if book is not None:
            outcome.bid, outcome.ask = book.bid, book.ask
        midpoint = midpoints.get(outcome.token_id)
        if outcome.market.source != TRADED_SOURCE:
            midpoint = book_midpoint(rule, outcome.bid, outcome.ask)
        offered = Candidates(midpoint, outcome.quote, outcome.bid, outcome.ask, outcome.price)
        sides = [(outcome, offered)]
        if outcome.market.kind == Market.Kind.BINARY:
            no = next(side for side in outcome.market.outcomes.all() if side.side == NO)
            sides.append((no, offered.complement))
            no.bid, no.ask = offered.complement.bid, offered.complement.ask
        for side, side_candidates in sides:
            candidates[side.pk] = side_candidates
            result.decisions[side.pk] = _decide(
                rule, outcome.market, side_candidates, book_was_read=book is not None, is_new=_is_quote_new(outcome, at)
            )
    result.accepted = sum(not result.decisions[outcome.pk].stale for outcome in quoted)
    _record(outcomes, result, candidates, at)
    return result


def _decide(
    rule: PriceRule, market: Market, candidates: Candidates, *, book_was_read: bool, is_new: bool
) -> PriceDecision:
    """The decision on one side, from its own candidates; on NO of a binary market it mirrors the one on YES."""
    if market.source != TRADED_SOURCE:
        return decide_quoted_price(
            rule,
            trade=candidates.gamma,
            bid=candidates.bid,
            ask=candidates.ask,
            last=candidates.last,
            is_new=is_new,
        )
    return decide_polymarket_price(
        rule,
        midpoint=candidates.midpoint,
        gamma=candidates.gamma,
        bid=candidates.bid,
        ask=candidates.ask,
        last=candidates.last,
        gamma_is_new=is_new,
        book_is_own=book_was_read,
    )


def recorded_prices(markets: Iterable[Market], at: datetime) -> PricingResult:
    """The last price decisions recorded at or before `at`."""
    outcome_ids: list[int] = []
    for market in markets:
        for outcome in market.outcomes.all():
            outcome_ids.append(outcome.pk)
    result = PricingResult()
    for pk, row in PriceObservation.objects.latest(outcome_ids, at).items():
        result.decisions[pk] = PriceDecision(row.price, row.source, row.stale, row.reason)
    return result


def _is_quote_new(outcome: Outcome, at: datetime) -> bool:
    """True if the catalogue was read since a price was last accepted, or if `at` is that instant, repeated."""
    if outcome.price_at is None or outcome.price_at == at:
        return True
    return outcome.quote_at is not None and outcome.quote_at > outcome.price_at


def leading_outcomes(market: Market) -> list[Outcome]:
    """The outcomes whose prices are requested: of a binary market YES alone, since NO is 1 - YES."""
    outcomes = list(market.outcomes.all())
    if market.kind == Market.Kind.BINARY:
        return [outcome for outcome in outcomes if outcome.side == YES]
    return outcomes


def _read_clob(
    outcomes: Sequence[Outcome], clob: Clob | None, result: PricingResult
) -> tuple[dict[str, Decimal], dict[str, TopOfBook]]:
    tokens = [outcome.token_id for outcome in outcomes if outcome.token_id]
    if clob is None or not tokens:
        return {}, {}
    response = clob.midpoints(tokens)
    midpoints = {token: as_price(price) for token, price in response.values.items()}
    result.failures += response.failed
    result.requested, result.answered = len(tokens), len(midpoints) + len(response.rejected)
    if not midpoints:
        return {}, {}
    response_books = clob.books(midpoints)
    result.failures += response_books.failed
    books: dict[str, TopOfBook] = {}
    for token, book in response_books.values.items():
        books[token] = TopOfBook(token, as_price(book.bid), as_price(book.ask))
    return midpoints, books


def _retain_prices(market: Market, result: PricingResult) -> None:
    """Adds the decisions on the outcomes of a closed market."""
    for outcome in market.outcomes.all():
        source = RETAINED if outcome.price is not None else ""
        why = "closed: keeps its last price"
        result.decisions[outcome.pk] = PriceDecision(outcome.price, source, outcome.price_stale, why)


def _record(outcomes: list[Outcome], result: PricingResult, candidates: dict[int, Candidates], at: datetime) -> None:
    with transaction.atomic():
        observations, stored = [], _stored_values(outcomes)
        for outcome in outcomes:
            decision = result.decisions[outcome.pk]
            if stored[outcome.pk][:3] != (decision.price, decision.source, decision.stale):
                numbers = asdict(candidates[outcome.pk])
                del numbers["last"]
                observations.append(PriceObservation(outcome=outcome, observed_at=at, **numbers, **asdict(decision)))
            outcome.price, outcome.price_source, outcome.price_stale = decision.price, decision.source, decision.stale
            if not decision.stale:
                outcome.price_at = at
        PriceObservation.objects.bulk_create(observations, batch_size=500)
        update_changed(outcomes, stored, ACCEPTED_FIELDS)


def _stored_values(outcomes: list[Outcome]) -> dict[int, FieldValues]:
    """The stored ACCEPTED_FIELDS by outcome id; another process may have changed them since `outcomes` were read."""
    # Locked until the transaction ends, in the order of ids; SQLite locked the database when it began. Without the
    # keys: a freeze that commits references to these rows would deadlock with us.
    rows = Outcome.objects.select_for_update(no_key=True).filter(pk__in=[outcome.pk for outcome in outcomes])
    return {pk: tuple(values) for pk, *values in rows.order_by("pk").values_list("pk", *ACCEPTED_FIELDS)}
