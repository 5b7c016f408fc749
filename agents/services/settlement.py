"""Settlement: positions of resolved and cancelled markets are paid once; cohorts that are over are completed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from django.db import DataError, IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, prefetch_related_objects
from django.db.models.functions import Coalesce
from django.utils import timezone

from agents.models import Agent, Decision, Position
from agents.services import ledger
from agents.services.envelopes import (
    answered_decisions,
    open_envelopes,
    unanswered_cohorts,
    waiting_ids,
    waiting_markets,
)
from agents.services.missed import record_missed_decisions
from agents.services.resolutions import Resolution, read_resolution
from agents.services.settled_results import review_settled_results
from cohorts.models import Cohort
from foundation.bulk import compare_and_swap, subset
from foundation.failpoints import failpoint
from foundation.http import UpstreamError
from foundation.models import AlertItem
from foundation.run_log import FailureLines, ReportLines
from foundation.services.alerts import clear_alert, listing, raise_alert
from markets.models import Market
from markets.services.cache_versions import Scope, renew_versions
from markets.services.market_storage import OutcomesChanged, SyncReport
from markets.services.prices import is_replay
from markets.services.sync import MAX_CLOSED_AGE, refresh_markets
from markets.services.unreadable_markets import clear_unreadable
from markets.sources.base import Catalogue, Unresolved, VenueMarket

OVERDUE_AFTER = timedelta(hours=72)
"""How long a market may stay closed without a resolution before an alert is raised."""
SETTLED_AT_ONCE = 50
"""Markets settled in one transaction: few, since their owners are locked for as long."""
LOOKED_UP_FIELDS = ("source", "external_id", "question", "traded", "has_questions")
"""The columns of a market that look-up and settlement read; the others hold long texts."""
BROKEN_ROWS = (DataError, IntegrityError)
"""Errors of the database that lie in the rows of a market, so that other markets can be settled all the same."""
OVERDUE_ALERT = "closed-unresolved"


@dataclass(slots=True)
class SettlementReport:
    """The counts of a settlement pass. `failures` names failed requests and markets that could not be settled."""

    checked: int = 0
    resolved: int = 0
    cancelled: int = 0
    positions_settled: int = 0
    cohorts_completed: int = 0
    waiting: int = 0
    results_read_again: int = 0
    results_changed: int = 0
    missed: int = 0
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)


def check_resolutions(
    *,
    catalogues: Sequence[Catalogue],
    at: datetime,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> SettlementReport:
    """Looks up every market that positions or forecasts depend on at its venue, and settles those that are final."""
    report = SettlementReport()
    report.failures.write_all(open_envelopes(at=at).failures)
    if is_replay(at):
        report.log.write("a replay: newer instants are on record, so nothing is settled for this one")
        return report
    unsettled = _unsettled_markets(at)
    total, number = sum(map(len, unsettled.values())), 0
    for catalogue in catalogues:
        markets = unsettled.pop(catalogue.source, [])
        looked_up = SyncReport()
        rows = refresh_markets(catalogue=catalogue, markets=markets, at=at, report=looked_up)
        report.log.write_all(looked_up.log)
        report.failures.write_all(looked_up.failures)
        failpoint("settlement.refreshed")
        closed = {external_id for external_id, row in rows.items() if row.closed}
        report.checked += sum(market.external_id in rows for market in markets)
        to_settle = [market for market in markets if market.external_id in closed]
        prefetch_related_objects(to_settle, "outcomes")
        number += len(markets) - len(to_settle)
        for start in range(0, len(to_settle), SETTLED_AT_ONCE):
            batch = to_settle[start : start + SETTLED_AT_ONCE]
            progress(number, total)
            _settle_documented(batch, rows, catalogue, at=at, report=report)
            number += len(batch)
        _alert_overdue(catalogue.source, at)
        review = review_settled_results(catalogue, at=at)
        report.results_read_again += review.read
        report.results_changed += review.changed
        report.log.write_all(review.log)
        report.failures.write_all(review.failures)
    for source, markets in unsettled.items():
        report.log.write(f"{source} is not among the sources: {len(markets)} not looked up")
    progress(number, total)
    report.positions_settled += _settle_late_positions(at=at, report=report)
    report.missed = record_missed_decisions(Cohort.objects.active().select_related("methodology"), at=at)
    report.cohorts_completed = complete_cohorts(at=at)
    failpoint("settlement.completed")
    return report


def _unsettled_markets(at: datetime) -> dict[str, list[Market]]:
    """The markets to look up, by source."""
    recently_closed = Q(status=Market.Status.CLOSED, closed_at__gt=at - MAX_CLOSED_AGE)
    by_source: dict[str, list[Market]] = {}
    dependent = Q(traded=True) | Q(has_questions=True)
    followed = Market.objects.unsettled().filter(dependent | recently_closed)
    for market in followed.only(*LOOKED_UP_FIELDS).order_by("pk"):
        by_source.setdefault(market.source, []).append(market)
    return by_source


def _settle_documented(
    markets: Sequence[Market],
    rows: Mapping[str, VenueMarket],
    catalogue: Catalogue,
    *,
    at: datetime,
    report: SettlementReport,
) -> None:
    """Settles the closed markets whose rows document a resolution, but for those that wait for a sealed answer."""
    resolutions, sealed = {}, waiting_ids(markets)
    for market in markets:
        if market.pk in sealed:
            report.waiting += 1
            report.log.write(f"market {market.external_id} waits for sealed answers", market=market.pk)
            continue
        resolution = _resolution(market, rows[market.external_id], catalogue, report)
        if resolution is not None:
            resolutions[market] = resolution
    if not resolutions:
        return
    settled = _settle_together_or_singly(partial(settle_markets, at=at), resolutions, report)
    report.positions_settled += sum(settled.values())
    for market, resolution in resolutions.items():
        if market.pk not in settled:
            continue  # settled by another process in the meantime, or failed
        if resolution.winner:
            report.resolved += 1
            report.log.write(f"market {market.external_id} resolved: {resolution.winner.side}", market=market.pk)
        else:
            report.cancelled += 1
            report.log.write(f"market {market.external_id} cancelled: refunded", market=market.pk)


def _resolution(market: Market, row: VenueMarket, catalogue: Catalogue, report: SettlementReport) -> Resolution | None:
    """The resolution of a closed market; None if its venue failed or documents none yet, which the report tells."""
    try:
        resolution = read_resolution(market, row, catalogue)
    except UpstreamError as error:
        report.failures.write(str(error))
        return None
    except OutcomesChanged as error:
        resolution = Unresolved(str(error))
    if isinstance(resolution, Resolution):
        return resolution
    report.waiting += 1
    report.log.write(f"market {market.external_id} waits: {resolution.reason}", market=market.pk)
    waiting = Market.objects.awaiting_resolution().filter(pk=market.pk)
    waiting.exclude(unresolved_reason=resolution.reason).update(unresolved_reason=resolution.reason)
    return None


def _settle_together_or_singly(
    settle: Callable[[Mapping[Market, Resolution]], dict[int, int]],
    resolutions: Mapping[Market, Resolution],
    report: SettlementReport,
) -> dict[int, int]:
    """Settles markets in one transaction of `settle`; returns the number of positions by market.

    If their rows break a constraint, each has a transaction of its own, and the report names those that fail.
    """
    try:
        return settle(resolutions)
    except BROKEN_ROWS as error:
        if len(resolutions) == 1:
            (market,) = resolutions
            reason = str(error).strip().splitlines()[0]
            report.failures.write(f"market {market.external_id} could not be settled: {reason}")
            return {}
    settled: dict[int, int] = {}
    for market, resolution in resolutions.items():
        settled |= _settle_together_or_singly(settle, {market: resolution}, report)
    return settled


def settle_market(market: Market, resolution: Resolution, *, at: datetime) -> int | None:
    """Marks a market final and settles its open positions, in one transaction.

    Returns the number of positions, or None if the market was final already.
    """
    return settle_markets({market: resolution}, at=at).get(market.pk)


def settle_markets(resolutions: Mapping[Market, Resolution], *, at: datetime) -> dict[int, int]:
    """Marks markets final and settles their open positions, in one transaction.

    Returns the number of positions by market, without markets that were final already or wait for a sealed answer.
    """
    with transaction.atomic():
        # Agents before markets, as a purchase locks them: the other order could end in a deadlock.
        agents = _lock_owners([market.pk for market in resolutions])
        sealed = waiting_ids(resolutions)
        resolutions = {market: resolution for market, resolution in resolutions.items() if market.pk not in sealed}
        at = ledger.following_instant(agents.values(), at, same=True)
        final = _mark_final(resolutions, at)
        settled = Counter(position.market_id for position in _settle_positions(agents, final, at=at))
        settled_markets = [market for market in resolutions if market.pk in final]
        clear_alert(OVERDUE_ALERT, [market.external_id for market in settled_markets], at=at)
        clear_unreadable(settled_markets, at=at)
        failpoint("settlement.paid")
    failpoint("settlement.committed")
    return subset(settled, final)


def _mark_final(resolutions: Mapping[Market, Resolution], at: datetime) -> dict[int, Resolution]:
    """Stores the resolutions of markets that were not final yet; returns these by market."""
    by_id = {market.pk: resolution for market, resolution in resolutions.items()}
    # A market may go from open to final between two looks.
    Market.objects.filter(pk__in=by_id, status=Market.Status.ACTIVE).update(status=Market.Status.CLOSED, closed_at=at)
    final = {}
    for pk, resolution in by_id.items():
        final[pk] = (resolution.market_status, resolution.winner and resolution.winner.pk, at)
    fields = ("status", "winning_outcome", "resolved_at")
    closed = dict.fromkeys(final, Market.Status.CLOSED)
    swapped = compare_and_swap(Market, final, fields, field="status", expected=closed)
    return subset(by_id, swapped)


def _lock_owners(markets: Sequence[int]) -> dict[int, Agent]:
    """The agents that traded on markets by id, locked until the transaction ends: their records change, sold or not."""
    owners = set(Position.objects.filter(market__in=markets).order_by().values_list("agent_id", flat=True))
    return ledger.lock_agents(owners) if owners else {}


def _settle_positions(
    agents: Mapping[int, Agent], resolutions: Mapping[int, Resolution], *, at: datetime
) -> list[Position]:
    """Settles the open positions of locked agents on markets, whose resolutions are given by id; returns them."""
    positions = list(
        Position.objects.open().filter(market__in=resolutions, agent__in=agents).order_by("market", "agent", "pk")
    )
    if not positions:
        return []
    ledger.settle(agents, positions, resolutions=resolutions, at=at)
    for pk in sorted({position.agent_id for position in positions}):
        ledger.declare_bankruptcy_if_due(agents[pk], agents[pk].cohort.methodology)
    return positions


def _settle_late_positions(*, at: datetime, report: SettlementReport) -> int:
    """Settles positions that were opened while their market was being settled; returns their number."""
    # On PostgreSQL a bet may commit just after a settlement that it could not see.
    final = Market.objects.filter(status__in=(Market.Status.RESOLVED, Market.Status.CANCELLED))
    if answered_decisions().exists():
        final = final.exclude(waiting_markets(answered_decisions()))
    late = final.filter(positions__status=Position.Status.OPEN).select_related("winning_outcome").distinct()
    resolutions = {market: Resolution(market.winning_outcome) for market in late}
    if not resolutions:
        return 0
    return sum(_settle_together_or_singly(partial(_settle_late, at=at), resolutions, report).values())


def _settle_late(resolutions: Mapping[Market, Resolution], *, at: datetime) -> dict[int, int]:
    """The number of positions settled by market, in one transaction."""
    by_id = {market.pk: resolution for market, resolution in resolutions.items()}
    with transaction.atomic():
        agents = _lock_owners(list(by_id))
        at = ledger.following_instant(agents.values(), at, same=True)
        return Counter(position.market_id for position in _settle_positions(agents, by_id, at=at))


def _alert_overdue(source: str, at: datetime) -> None:
    """Raises one alert for the tracked markets of a source that are closed or unreadable for too long."""
    readable = Market.objects.filter(source=source, status=Market.Status.ACTIVE, unreadable_since=None)
    alerts = AlertItem.objects.filter(kind=OVERDUE_ALERT, subject=OuterRef("external_id"))
    mended = readable.filter(Exists(alerts.filter(cleared_at=None)))
    clear_alert(OVERDUE_ALERT, mended.values_list("external_id", flat=True), at=at)
    # An acknowledged alert is not raised again, unless the market was readable meanwhile.
    alerted = alerts.filter(alert__raised_at__gte=Coalesce(OuterRef("closed_at"), OuterRef("unreadable_since")))
    overdue = Market.objects.tracked().overdue(at - OVERDUE_AFTER).filter(~Exists(alerted), source=source)
    markets = list(overdue.order_by("pk"))
    if markets:
        raise_alert(
            kind=OVERDUE_ALERT,
            items={market.external_id: market.question for market in markets},
            message=f"For over {OVERDUE_AFTER // timedelta(hours=1)} hours closed without a resolution, or unreadable: "
            f"{listing([market.question for market in markets])}",
            at=at,
            path=f"/markets/{markets[0].pk}/" if len(markets) == 1 else "/admin/markets/market/?traded__exact=1",
            remedy="Read the venue, then settle or cancel the market manually on the dashboard, with a reason.",
            urgent=False,
        )


def complete_cohorts(*, at: datetime) -> int:
    """Completes the active cohorts whose weeks are over and that have no open position, live claim or sealed answer."""
    positions = Position.objects.open().filter(agent__cohort=OuterRef("pk"))
    # A model that was asked in the last minute of the last week may still answer with a bet.
    claims = Decision.objects.filter(
        cohort=OuterRef("pk"), status=Decision.Status.CLAIMED, lease_until__gt=timezone.now()
    )
    idle = Cohort.objects.active().filter(~Exists(positions), ~Exists(claims), unanswered_cohorts())
    candidates = idle.select_related("methodology")
    with transaction.atomic():
        ids = [cohort.pk for cohort in candidates if cohort.decisions_end_at <= at]
        completed = 0
        for cohort in Cohort.objects.active().filter(pk__in=ids):
            ended_at = ledger.following_instant(cohort.agents.all(), at, same=True)
            active = Cohort.objects.active().filter(pk=cohort.pk)
            completed += active.update(status=Cohort.Status.COMPLETED, completed_at=ended_at)
        if completed:
            renew_versions(Scope.COMPETITION)
    return completed
