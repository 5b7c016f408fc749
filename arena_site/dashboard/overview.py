"""The overview on the admin's front page: what is due, what ran and failed, what it cost, and what to do about it."""

from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from operator import attrgetter

from django.core.cache import cache
from django.db.models.functions import Coalesce

from agents.models import ModelCall, RunSetting
from agents.services.planned_spending import PlannedCost, cap_reached_at, planned_costs
from agents.services.spending import WeekSpending, spending_by_protocol
from arena_site.dashboard.action import list_path
from arena_site.dashboard.alert_panel import AlertPanel
from arena_site.dashboard.causes import failure_causes
from arena_site.dashboard.failed_tasks import week_tasks
from arena_site.dashboard.infrastructure import Infrastructure
from arena_site.dashboard.job_panel import JobPanel
from arena_site.dashboard.model_panel import ModelPanel
from arena_site.dashboard.venue_panel import venue_rows
from arena_site.models import AuditEntry
from arena_site.operations import operational_metrics
from cohorts.models import Cohort
from cohorts.weeks import week_start
from foundation.bulk import rows_by
from markets.models import Market, Outcome
from scoring.models import Snapshot

ROWS_SHOWN = 12
PLAN_CACHED_S = 300
UNRESOLVED_AFTER = timedelta(hours=24)
"""A market closed for this long is listed as unresolved."""


class Spending:
    """A protocol's spending in the week of `at` and what is planned in the rest of it, against its cap."""

    def __init__(self, week: WeekSpending, at: datetime) -> None:
        self.week = week
        self.path = list_path(ModelCall, preset=week.protocol)
        planned = self._planned(at) if not week.is_reached else []
        self.planned = sum((run.cost_usd for run in planned), Decimal(0))
        self.reached_at = cap_reached_at(planned, spent=week.spent, cap=week.cap)
        self.fraction = week.spent / week.cap if week.cap else Decimal(1)
        self.css_class = "bad" if week.is_reached else "warn" if week.is_near else "good"

    def _planned(self, at: datetime) -> list[PlannedCost]:
        """The runs left in the week, cached for five minutes and until more is spent: they take 40 queries."""
        key = f"planned-costs:{self.week.protocol}:{self.week.spent}:{at:%Y-%m-%dT%H}"
        return list(cache.get_or_set(key, partial(planned_costs, self.week.protocol, at=at), PLAN_CACHED_S) or ())


class Overview:
    """The page's contents at instant `at` of the arena and `now` of the real clock, in a fixed number of queries."""

    def __init__(self, at: datetime, now: datetime) -> None:
        self.at, self.now, self.week_start = at, now, week_start(at)
        self.cohort = Cohort.objects.filter(week_start=self.week_start).first()
        self.jobs = JobPanel(now)
        self.pauses = list(RunSetting.objects.filter(paused=True).select_related("family"))
        self.tasks = week_tasks(at, now)
        self.causes = failure_causes(self.tasks)
        self.spending = [Spending(week, at) for week in spending_by_protocol(self.week_start)]
        paused = set(map(attrgetter("family_id"), self.pauses))
        self.models = ModelPanel(now, {spending.week.protocol: spending.week.cap for spending in self.spending}, paused)
        costs = rows_by("kind", self.jobs.jobs)["reconcile_costs"].last_success
        self.credits_run = costs if costs and costs.summary.get("credits_left_usd") else None
        """The last run that was told the credits of the gateway's key."""
        self.infrastructure = Infrastructure(at, now)
        unresolved = Market.objects.traded().overdue(at - UNRESOLVED_AFTER)
        self.unresolved_count = unresolved.count()
        self.overdue_count = operational_metrics.overdue_markets(at).count()
        self.unresolved_path = list_path(Market, preset="closed-24h")
        self.unresolved_markets = list(unresolved.order_by(Coalesce("closed_at", "unreadable_since"))[:ROWS_SHOWN])
        stale = operational_metrics.held_stale_outcomes()
        self.stale_count, self.stale_path = stale.count(), list_path(Outcome, preset="held")
        stale = stale.select_related("market").defer("market__description")
        self.stale_outcomes = list(stale.order_by("price_at")[:ROWS_SHOWN])
        self.alerts = AlertPanel()
        self.venues = venue_rows(self.alerts)
        self.last_verification = operational_metrics.last_verification()
        self.snapshot_at = Snapshot.objects.order_by("-taken_at").values_list("taken_at", flat=True).first()
        self.synced_at = Market.objects.newest_instant()
        self.audit_entries = list(AuditEntry.objects.order_by("-at", "-pk")[:8])
