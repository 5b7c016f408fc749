"""Settlement: positions of resolved and cancelled markets are paid once; cohorts that are over are completed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Value, prefetch_related_objects
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.models import Decision, Position
from agents.services import ledger
from agents.services.missed import record_missed_decisions
from agents.services.resolutions import Resolution, read_resolution
from cohorts.models import Cohort
from markets.foundation.failpoints import failpoint
from markets.foundation.http import UpstreamError
from markets.foundation.run_log import FailureLines, ReportLines
from markets.models import AlertItem, Market
from markets.services.alerts import clear_alert, listing, raise_alert
from markets.services.cache_versions import Scope, renew_versions
from markets.services.market_storage import OutcomesChanged, SyncReport
from markets.services.prices import is_replay
from markets.services.sync import MAX_CLOSED_AGE, refresh_markets
from markets.sources.base import Catalogue, Unresolved, VenueMarket

OVERDUE_AFTER = timedelta(hours=72)
"""How long a market may stay closed without a resolution before an alert is raised."""
OVERDUE_ALERT = "closed-unresolved"


@dataclass(slots=True)
class SettlementReport:
    """The counts of a settlement pass. `failures` has a line for each upstream that gave nothing."""

    checked: int = 0
    resolved: int = 0
    cancelled: int = 0
    positions_settled: int = 0
    cohorts_completed: int = 0
    waiting: int = 0
    missed: int = 0
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)


def check_resolutions(
    *,
    catalogues: Sequence[Catalogue],
    at: datetime,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SettlementReport:
    """Looks up every market that positions or forecasts depend on at its venue, and settles those that are final."""
    report = SettlementReport()
    if is_replay(at):
        report.log.append("a replay: newer instants are on record, so nothing is settled for this one")
        return report
    unsettled = _unsettled_markets(at)
    total, done = sum(map(len, unsettled.values())), 0
    for catalogue in catalogues:
        markets = unsettled.pop(catalogue.source, [])
        looked_up = SyncReport()
        rows = refresh_markets(catalogue=catalogue, markets=markets, at=at, report=looked_up)
        report.log += looked_up.log
        report.failures += looked_up.failures
        failpoint("settlement.refreshed")
        closed = {external_id for external_id, row in rows.items() if row.closed}
        prefetch_related_objects([market for market in markets if market.external_id in closed], "outcomes")
        for market in markets:
            progress(done, total)
            done += 1
            row = rows.get(market.external_id)
            if row is not None:
                report.checked += 1
                _settle_if_final(market, row, catalogue, at=at, report=report)
        _alert_overdue(catalogue.source, at)
    for source, markets in unsettled.items():
        report.log.append(f"{source} is not among the sources: {len(markets)} not looked up")
    progress(done, total)
    report.positions_settled += _settle_late_positions(at=at)
    report.missed = record_missed_decisions(Cohort.objects.active().select_related("methodology"), at=at)
    report.cohorts_completed = complete_cohorts(at=at)
    failpoint("settlement.completed")
    return report


def _unsettled_markets(at: datetime) -> dict[str, list[Market]]:
    """The markets to look up, by source."""
    recently_closed = Q(status=Market.Status.CLOSED, closed_at__gt=at - MAX_CLOSED_AGE)
    by_source: dict[str, list[Market]] = {}
    for market in (
        Market.objects.unsettled().filter(Q(traded=True) | Q(has_questions=True) | recently_closed).order_by("pk")
    ):
        by_source.setdefault(market.source, []).append(market)
    return by_source


def _settle_if_final(
    market: Market, row: VenueMarket, catalogue: Catalogue, *, at: datetime, report: SettlementReport
) -> None:
    if not row.closed:
        return
    try:
        resolution = read_resolution(market, row, catalogue)
    except UpstreamError as error:
        report.failures.append(str(error))
        return
    except OutcomesChanged as error:
        resolution = Unresolved(str(error))
    if isinstance(resolution, Unresolved):
        report.waiting += 1
        report.log.add(f"market {market.external_id} waits: {resolution.reason}", market=market.pk)
        waiting = Market.objects.awaiting_resolution().filter(pk=market.pk)
        waiting.exclude(unresolved_reason=resolution.reason).update(unresolved_reason=resolution.reason)
        return
    settled = settle_market(market, resolution, at=at)
    if settled is None:
        return  # settled by another process in the meantime
    report.positions_settled += settled
    if resolution.winner:
        report.resolved += 1
        report.log.add(f"market {market.external_id} resolved: {resolution.winner.side}", market=market.pk)
    else:
        report.cancelled += 1
        report.log.add(f"market {market.external_id} cancelled: refunded", market=market.pk)


def settle_market(market: Market, resolution: Resolution, *, at: datetime) -> int | None:
    """Marks a market final and settles its open positions, in one transaction.

    Returns the number of positions, or None if the market was final already.
    """
    with transaction.atomic():
        final = {"status": resolution.market_status, "winning_outcome": resolution.winner, "resolved_at": at}
        # A market may go from open to final between two looks.
        closed_at = Coalesce("closed_at", Value(at))
        if not Market.objects.unsettled().filter(pk=market.pk).update(**final, closed_at=closed_at):
            return None
        settled = _settle_positions(market, resolution, at=at)
        clear_alert(OVERDUE_ALERT, [market.external_id], at=at)
        failpoint("settlement.paid")
    failpoint("settlement.committed")
    return settled


def _settle_positions(market: Market, resolution: Resolution, *, at: datetime) -> int:
    """Settles every open position on a market; returns their number."""
    positions = Position.objects.open().filter(market=market)
    owners = list(positions.values_list("agent_id", flat=True))
    if not owners:
        return 0
    agents = ledger.lock_agents(owners)
    held = list(positions.filter(agent__in=agents).order_by("agent", "pk"))
    ledger.settle(agents, held, resolution=resolution, at=at)
    for agent in agents.values():
        ledger.declare_bankruptcy_if_due(agent, agent.cohort.methodology)
    return len(held)


def _settle_late_positions(*, at: datetime) -> int:
    """Settles positions that were opened while their market was being settled; returns their number."""
    # On PostgreSQL a bet may commit just after a settlement that it could not see.
    final = Market.objects.filter(status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED))
    settled = 0
    for market in final.filter(positions__status=Position.Status.OPEN).select_related("winning_outcome").distinct():
        with transaction.atomic():
            settled += _settle_positions(market, Resolution(market.winning_outcome), at=at)
    return settled


def _alert_overdue(source: str, at: datetime) -> None:
    """Raises one alert for the tracked markets of a source that were found closed too long without a resolution."""
    overdue = Market.objects.tracked().filter(
        source=source, status=Market.Status.CLOSED, closed_at__lte=at - OVERDUE_AFTER
    )
    # An acknowledged alert is not raised again.
    alerted = AlertItem.objects.filter(kind=OVERDUE_ALERT).values("subject")
    markets = list(overdue.exclude(external_id__in=alerted).order_by("pk"))
    if markets:
        raise_alert(
            kind=OVERDUE_ALERT,
            items={market.external_id: market.question for market in markets},
            message=f"Closed for over {OVERDUE_AFTER // timedelta(hours=1)} hours without a resolution: "
            + listing([market.question for market in markets]),
            at=at,
            path=f"/markets/{markets[0].pk}/" if len(markets) == 1 else "/admin/markets/market/?status__exact=closed",
            remedy="Read the venue, then settle or cancel the market manually on the dashboard, with a reason.",
            urgent=False,
        )


def complete_cohorts(*, at: datetime) -> int:
    """Completes the active cohorts whose decision weeks are over and that have no open position nor a live claim."""
    positions = Position.objects.open().filter(agent__cohort=OuterRef("pk"))
    # A model that was asked in the last minute of the last week may still answer with a bet.
    claims = Decision.objects.filter(
        cohort=OuterRef("pk"), status=Decision.Status.CLAIMED, lease_until__gt=timezone.now()
    )
    candidates = Cohort.objects.active().filter(~Exists(positions), ~Exists(claims)).select_related("methodology")
    with transaction.atomic():
        completed = sum(
            Cohort.objects.active().filter(pk=cohort.pk).update(status=Cohort.Status.COMPLETED, completed_at=at)
            for cohort in candidates
            if cohort.decisions_end_at <= at
        )
        if completed:
            renew_versions(Scope.COMPETITION)
    return completed
