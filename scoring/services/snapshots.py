"""Snapshots: every playing agent's portfolio on the ten-minute grid, at prices known by then."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, QuerySet, Sum
from django.db.models.functions import Coalesce

from agents.models import Agent, JournalEntry, Position, Reversal, Settlement, Trade
from agents.models.ledger import marked_value
from agents.services.envelopes import open_envelopes
from agents.services.ledger import lock_agents
from cohorts.models import Cohort, Methodology
from cohorts.weeks import grid_instant, next_grid_instant
from foundation.bulk import create_missing
from foundation.failpoints import failpoint
from foundation.run_log import FailureLines, ReportLines
from markets.models import Market
from markets.services.cache_versions import Scope, renew_versions
from markets.services.prices import PricingResult, is_replay, recorded_prices, update_prices
from markets.services.venue_health import alert_venue_down, clear_venue_down, refresh_stale_prices
from markets.sources.polymarket import Clob
from scoring.constants import TRADING
from scoring.models import Leaderboard, Snapshot
from scoring.selectors.valuations import NO_RECORD, ZERO, Valuation, bet_records
from scoring.services.family_totals import refresh_family_totals
from scoring.services.trading_leaderboards import refresh_trading_leaderboards


@dataclass(slots=True)
class SnapshotReport:
    taken_at: datetime
    snapshots: int = 0
    priced: int = 0
    fallback_prices: int = 0
    replay: bool = False
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)
    alerted: int = 0
    """How many of the failures are those of a venue that is down, which is an alert of its own."""


@dataclass(slots=True)
class Holding:
    """The shares and the cost of a position at an instant; its agent and its outcome by their ids."""

    agent: int
    outcome: int
    shares: Decimal
    cost_basis: Decimal


def take_snapshots(*, at: datetime, clob: Clob) -> SnapshotReport:
    """Prices every unsettled position and records each agent that plays at `at`, rounded down to the grid.

    An instant older than the newest on record is a replay: stored prices, no network. An agent that has its
    snapshot keeps it.
    """
    instant = grid_instant(at)
    report = SnapshotReport(taken_at=instant, replay=is_replay(instant))
    report.failures.write_all(open_envelopes(at=at).failures)
    marks = _marks(instant, clob, report)
    failpoint("snapshots.marked")
    report.snapshots = _record(Agent.objects.filter(cohort__in=Cohort.objects.active(instant)), instant, marks)
    report.snapshots += _close_out(instant)
    failpoint("snapshots.recorded")
    if not report.replay:
        refresh_trading_leaderboards(at=instant)
    elif report.snapshots:  # a Sunday's snapshot moves returns from one week to another
        stored = Leaderboard.objects.filter(protocol=TRADING).aggregate(at=Max("computed_at"))["at"]
        refresh_trading_leaderboards(at=max(instant, stored or instant))
    return report


def _marks(instant: datetime, clob: Clob, report: SnapshotReport) -> PricingResult:
    if report.replay:
        markets_of_positions = Market.objects.filter(
            traded=True, positions__in=Position.objects.held_at(instant)
        ).distinct()
        marks = recorded_prices(markets_of_positions.prefetch_related("outcomes"), instant)
    else:
        followed = list(Market.objects.unsettled().filter(traded=True).prefetch_related("outcomes"))
        marks = update_prices(followed, rule=Methodology.objects.current().price_rule, at=instant, clob=clob)
        if marks.unanswered:
            report.alerted = 1
            alert_venue_down(clob.service, marks.unanswered, at=instant)
        else:
            clear_venue_down([clob.service], at=instant)
        if followed:
            refresh_stale_prices(at=instant)
    held_outcomes = set(Position.objects.held_at(instant).values_list("outcome", flat=True))
    report.fallback_prices = len(marks.stale & held_outcomes)
    report.priced = len((held_outcomes & marks.prices().keys()) - marks.stale)
    report.log.write_all(marks.failures)
    report.failures.write_all(filter(None, [marks.total_failure]))
    return marks


def _record(queryset: QuerySet[Agent], instant: datetime, marks: PricingResult) -> int:
    """Snapshots of agents at `instant`, but for those that have one; returns how many are new."""
    missing = list(queryset.exclude(snapshots__taken_at=instant).values_list("pk", flat=True))
    if not missing:
        return 0
    # Locked until they are stored: a trade of before `instant` is in them, and one of after is dated later than them.
    with transaction.atomic():
        rows = _new_snapshots(lock_agents(missing), instant, marks)
        record_snapshots(rows)
    return len(rows)


def _new_snapshots(agents: Mapping[int, Agent], instant: datetime, marks: PricingResult) -> list[Snapshot]:
    """Snapshots of locked agents at `instant`, not stored yet."""
    holdings = _holdings(agents, instant)
    cash_since = _cash_since(agents, instant)
    scores = bet_records(agents.values(), at=instant)
    prices, stale = marks.prices(), marks.stale
    rows = []
    for agent in agents.values():
        agent_holdings = holdings[agent.pk]
        positions_value, stale_positions = ZERO, 0
        for holding in agent_holdings:
            positions_value += marked_value(holding.shares, holding.cost_basis, prices.get(holding.outcome))
            stale_positions += holding.outcome in stale or holding.outcome not in prices
        worth = Valuation(
            cash=agent.cash - cash_since.get(agent.pk, ZERO),
            positions_value=positions_value,
            starting_balance=agent.cohort.methodology.starting_balance,
        )
        record = scores.get(agent.pk, NO_RECORD)
        rows.append(
            Snapshot(
                agent=agent,
                taken_at=instant,
                cash=worth.cash,
                positions_value=worth.positions_value,
                total_value=worth.total,
                pnl=worth.pnl,
                pnl_percent=worth.pnl_percent,
                brier=record.brier,
                resolved_bets=record.resolved_bets,
                open_positions=len(agent_holdings),
                stale_positions=stale_positions,
            )
        )
    return rows


def record_snapshots(rows: Sequence[Snapshot]) -> None:
    """Stores snapshots with all that is derived from them; one that is there already stays as it is."""
    with transaction.atomic():
        renew_versions(Scope.SNAPSHOTS)  # first, since its lock makes writers of snapshots take turns
        create_missing(rows, "agent", "taken_at")
        refresh_family_totals({row.taken_at for row in rows})


def delete_snapshots(keys: Sequence[int]) -> int:
    """Deletes snapshots with all that is derived from them; returns how many."""
    with transaction.atomic():
        renew_versions(Scope.SNAPSHOTS)
        rows = Snapshot.objects.filter(pk__in=keys)
        instants = set(rows.order_by().values_list("taken_at", flat=True))
        deleted: int = rows.delete()[0]
        refresh_family_totals(instants)
    return deleted


def _holdings(agents: Iterable[int], instant: datetime) -> dict[int, list[Holding]]:
    """The positions of each agent as they were at `instant`: all later trades and settlements are taken back."""
    positions = Position.objects.held_at(instant).filter(agent__in=list(agents))
    # Columns, since models of all positions would take half of a pass.
    rows = positions.values_list("pk", "agent", "outcome", "shares", "cost_basis", named=True)
    holding_by_position = {row.pk: Holding(row.agent, row.outcome, row.shares, row.cost_basis) for row in rows}
    later = Trade.objects.filter(executed_at__gt=instant, agent__in=list(agents), position__opened_at__lte=instant)
    for trade in later:
        if trade.position_id in holding_by_position:
            sign = -1 if trade.kind == Trade.Kind.BUY else 1
            holding_by_position[trade.position_id].shares += sign * trade.shares
            holding_by_position[trade.position_id].cost_basis += sign * trade.cost_basis
    for settlement in Settlement.objects.filter(settled_at__gt=instant, agent__in=list(agents)):
        if settlement.position_id in holding_by_position:
            holding_by_position[settlement.position_id].shares += settlement.shares
            holding_by_position[settlement.position_id].cost_basis += settlement.cost_basis
    by_agent: dict[int, list[Holding]] = defaultdict(list)
    for holding in holding_by_position.values():
        if holding.shares > 0:
            by_agent[holding.agent].append(holding)
    return by_agent


def _cash_since(agents: Iterable[int], instant: datetime) -> dict[int, Decimal]:
    """The change of each agent's cash after `instant`."""
    rows = JournalEntry.objects.filter(agent__in=list(agents), occurred_at__gt=instant).order_by()
    return dict(rows.values_list("agent").annotate(Sum("amount")))


def ended_cohorts() -> QuerySet[Any]:
    """Completed cohorts with `ended_at`, their last settlement or reversal: the closing snapshot is due after it."""
    settled = Settlement.objects.filter(agent__cohort=OuterRef("pk")).order_by().values("agent__cohort")
    last_settled = settled.annotate(last=Max("settled_at")).values("last")
    reversed_since = Reversal.objects.filter(agent__cohort=OuterRef("pk")).order_by().values("agent__cohort")
    last_reversed = reversed_since.annotate(last=Max("reversed_at")).values("last")
    completed = Cohort.objects.filter(status=Cohort.Status.COMPLETED)
    return completed.annotate(ended_at=Coalesce(last_reversed, last_settled, F("completed_at")))


def _close_out(instant: datetime) -> int:
    """The closing snapshot of completed cohorts: at the grid instant after their last settlement."""
    after = Snapshot.objects.filter(agent__cohort=OuterRef("pk"), taken_at__gt=OuterRef("ended_at"))
    snapshots = 0
    for cohort in ended_cohorts().filter(~Exists(after)):
        closing = next_grid_instant(cohort.ended_at)
        if closing <= instant:
            snapshots += _record(cohort.agents.all(), closing, PricingResult())
    return snapshots
