"""Settling: markets that came to their documented end pay their positions, once; cohorts that are over complete."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from agents.models import Decision, Position, Settlement
from agents.services import ledger
from agents.services.missed import record_missed
from cohorts.models import Cohort
from markets.failpoints import reached
from markets.http import UpstreamError
from markets.models import Alert, Market, Outcome
from markets.services.marks import is_replay
from markets.services.sync import (
    UNFOLLOWED_PATIENCE,
    OutcomesChanged,
    SyncReport,
    match_outcomes,
    refresh_markets,
)
from markets.sources import kalshi
from markets.sources.base import Catalogue, MarketRow
from markets.sources.polymarket import Clob

ALARM_AFTER = timedelta(hours=72)
"""How long a market may be closed without a documented end before a person is called."""
SUM_TOLERANCE = Decimal("0.001")


@dataclass(slots=True)
class SettlementReport:
    checked: int = 0
    resolved: int = 0
    cancelled: int = 0
    positions_settled: int = 0
    cohorts_completed: int = 0
    waiting: int = 0
    missed: int = 0
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Won:
    """The market's end: this outcome."""

    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The market's end: nobody won, every cost basis goes back."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """No documented end yet, and why."""

    reason: str


def check_resolutions(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> SettlementReport:
    """Looks up every market that money or a score depends on, each at its own venue, and settles those that ended."""
    report = SettlementReport()
    if is_replay(at):
        report.log.append("a replay: newer instants are on record, so nothing is settled for this one")
        return report
    awaited = _awaited(at)
    total, done = sum(map(len, awaited.values())), 0
    for catalogue in catalogues:
        markets = awaited.pop(catalogue.source, [])
        rows = _refreshed(catalogue, markets, at, report)
        for market in markets:
            progress(done, total)
            done += 1
            row = rows.get(market.external_id)
            if row is not None:
                report.checked += 1
                _conclude(market, row, clob=clob, at=at, report=report)
        _alarm(catalogue.source, at)
    report.log += [f"{source} is not among the sources: {len(left)} not looked up" for source, left in awaited.items()]
    progress(done, total)
    report.positions_settled += _pay_latecomers(at=at)
    report.missed = record_missed(Cohort.objects.active().select_related("methodology"), at=at)
    report.cohorts_completed = cohorts_complete(at=at)
    reached("settlement.completed")
    return report


def _awaited(at: datetime) -> dict[str, list[Market]]:
    """The markets to look up, by source."""
    recently_closed = Q(status=Market.Status.CLOSED, closed_at__gt=at - UNFOLLOWED_PATIENCE)
    awaited: dict[str, list[Market]] = {}
    for market in Market.objects.unsettled().filter(Q(followed=True) | Q(asked=True) | recently_closed).order_by("pk"):
        awaited.setdefault(market.source, []).append(market)
    return awaited


def _refreshed(
    catalogue: Catalogue, markets: Sequence[Market], at: datetime, report: SettlementReport
) -> dict[str, MarketRow]:
    heard = SyncReport()
    rows = refresh_markets(catalogue=catalogue, markets=markets, at=at, report=heard)
    reached("settlement.refreshed")
    report.log += heard.log
    report.failures += heard.failures
    return rows


def _conclude(market: Market, row: MarketRow, *, clob: Clob, at: datetime, report: SettlementReport) -> None:
    if not row.closed:
        return
    try:
        end = final_signal(market, row, clob)
    except UpstreamError as error:
        report.failures.append(str(error))
        return
    except OutcomesChanged as error:
        end = Waiting(str(error))
    if isinstance(end, Waiting):
        report.waiting += 1
        report.log.append(f"market {market.external_id} waits: {end.reason}")
        return
    settled = market_settle(market, end, at=at)
    if settled is None:
        return  # another process was quicker
    report.positions_settled += settled
    if isinstance(end, Won):
        report.resolved += 1
        report.log.append(f"market {market.external_id} resolved: {end.outcome.side}")
    else:
        report.cancelled += 1
        report.log.append(f"market {market.external_id} cancelled: refunded")


def final_signal(market: Market, row: MarketRow, clob: Clob) -> Won | Cancelled | Waiting:
    """What a closed market's row says about its end, by its venue's rule."""
    if market.source == Market.Source.KALSHI:
        return _end_at_kalshi(market, row)
    return _end_at_polymarket(market, row, clob)


def _end_at_kalshi(market: Market, row: MarketRow) -> Won | Cancelled | Waiting:
    """Only the terminal status counts: a result that is merely determined may still be disputed and amended.

    Resolved: the result is yes or no, and a stated settlement value agrees. Cancelled: any settlement in between.
    """
    if row.oracle_status != kalshi.FINAL:
        return Waiting(f"Kalshi says {row.oracle_status or 'nothing'}, not {kalshi.FINAL}")
    if row.result in kalshi.NOBODY_WON:
        return Cancelled()
    matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
    winner = next((pair for pair in matched if pair[1].name.casefold() == row.result), None)
    if winner is None:
        return Waiting(f"{kalshi.FINAL} with the result {row.result!r}")
    outcome, quote = winner
    if quote.price != 1:
        return Waiting(f"{kalshi.FINAL} as {row.result}, which pays {quote.price}")
    return Won(outcome)


def _end_at_polymarket(market: Market, row: MarketRow, clob: Clob) -> Won | Cancelled | Waiting:
    """Nothing looks decisive by price alone.

    Resolved: prices exactly a permutation of 1 and 0s, and either the oracle's status `resolved` or exactly one
    winner flag at the CLOB that agrees. Cancelled: oracle `resolved`, all prices equal, positive, summing to 1.
    """
    prices = [outcome.price for outcome in row.outcomes]
    oracle_done = row.oracle_status == "resolved"
    known = [price for price in prices if price is not None]
    if len(known) < len(prices):
        return Waiting("a final price is missing")
    if known.count(Decimal(1)) == 1 and known.count(Decimal(0)) == len(known) - 1:
        matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
        winner = next(outcome for outcome, quote in matched if quote.price == 1)
        if oracle_done or _clob_agrees(winner, row, clob):
            return Won(winner)
        return Waiting(f"prices are final but the oracle says {row.oracle_status or 'nothing'}")
    if oracle_done and len(set(known)) == 1 and known[0] > 0 and abs(sum(known, Decimal(0)) - 1) <= SUM_TOLERANCE:
        return Cancelled()
    shown = ", ".join(f"{price:f}" for price in known)
    return Waiting(f"closed at {shown}, oracle says {row.oracle_status or 'nothing'}")


def _clob_agrees(winner: Outcome, row: MarketRow, clob: Clob) -> bool:
    if not row.condition_id or not winner.token_id:
        return False
    flagged = clob.winner(row.condition_id)
    return flagged is not None and flagged.token_id == winner.token_id


def market_settle(market: Market, end: Won | Cancelled, *, at: datetime) -> int | None:
    """Marks the market final and settles its open positions in one transaction; None if it was final already."""
    won = end.outcome if isinstance(end, Won) else None
    with transaction.atomic():
        taken = Market.objects.unsettled().filter(pk=market.pk)
        # A market that went from open to final between two looks was closed in between.
        taken.filter(closed_at=None).update(status=Market.Status.CLOSED, closed_at=at)
        status = Market.Status.RESOLVED if won else Market.Status.CANCELLED
        if not taken.update(status=status, winning_outcome=won, resolved_at=at):
            return None
        settled = _pay(market, won, at=at)
        Alert.objects.clear("closed-unresolved", market.external_id, at)
        reached("settlement.paid")
    reached("settlement.committed")
    return settled


def _pay(market: Market, won: Outcome | None, *, at: datetime) -> int:
    """Settles every open position on `market`; returns how many.

    Agents are locked in the order of their ids, so that two settlements at once can not lock each other out.
    """
    held = Position.objects.open().filter(market=market)
    settled = 0
    for agent_id in sorted(set(held.values_list("agent_id", flat=True))):
        agent = ledger.agent_lock(agent_id)
        for position in held.filter(agent=agent).order_by("pk"):
            if won is None:
                kind = Settlement.Kind.REFUNDED
            else:
                kind = Settlement.Kind.WON if position.outcome_id == won.pk else Settlement.Kind.LOST
            ledger.settle(agent, position, kind=kind, at=at)
            settled += 1
        ledger.declare_bankrupt_if_so(agent, agent.cohort.methodology)
    return settled


def _pay_latecomers(*, at: datetime) -> int:
    """Settles positions bought by a transaction that did not see its market being settled beside it."""
    # Where transactions do not queue (PostgreSQL), a bet may commit just after the settlement it could not see.
    final = Market.objects.filter(status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED))
    settled = 0
    for market in final.filter(positions__status=Position.Status.OPEN).select_related("winning_outcome").distinct():
        with transaction.atomic():
            settled += _pay(market, market.winning_outcome, at=at)
    return settled


def _alarm(source: str, at: datetime) -> None:
    """Calls a person for every market of a source that has been closed too long without an end."""
    overdue = Market.objects.awaited().filter(
        source=source, status=Market.Status.CLOSED, closed_at__lte=at - ALARM_AFTER
    )
    called = Alert.objects.filter(kind="closed-unresolved")
    # Once acknowledged it is not raised anew.
    for market in overdue.exclude(external_id__in=called.values("subject")).order_by("pk"):
        Alert.objects.raise_once(
            "closed-unresolved",
            market.external_id,
            f"Closed for over {ALARM_AFTER // timedelta(hours=1)} hours without an end: {market.question}",
            at,
        )


def cohorts_complete(*, at: datetime) -> int:
    """Completes the cohorts whose decision weeks are over and in which nobody holds a position or may yet get one."""
    held = Position.objects.open().filter(agent__cohort=OuterRef("pk"))
    # A model asked in the last minute of the last week may still answer with a bet.
    deciding = Decision.objects.filter(cohort=OuterRef("pk"), status=Decision.Status.CLAIMED)
    deciding = deciding.filter(lease_until__gt=timezone.now())
    over: Iterable[Cohort] = (
        cohort
        for cohort in Cohort.objects.active().filter(~Exists(held), ~Exists(deciding)).select_related("methodology")
        if cohort.deciding_ends_at <= at
    )
    return sum(
        Cohort.objects.active().filter(pk=cohort.pk).update(status=Cohort.Status.COMPLETED, completed_at=at)
        for cohort in over
    )
