"""The overview on the admin's front page: what is due, what ran and failed, what it cost, and what to do about it."""

from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter

from django.conf import settings
from django.db.models import Count, Q

from agents.models import ModelCall, RunSetting
from agents.services.model_calls import TASK_MODELS, cap_remedy, spend_in_week
from agents.services.run_settings import spend_limit
from agents.services.settlement import OVERDUE_AFTER
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
from arena_site.operations.resource_alerts import SPENDING_WARNING
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from foundation.bulk import rows_by
from markets.models import Market, Outcome
from scoring.models import Snapshot

ROWS_SHOWN = 12
UNRESOLVED_AFTER = timedelta(hours=24)
"""A market closed for this long is listed as unresolved."""


class Spending:
    """A protocol's spending in a week, against its cap."""

    def __init__(self, protocol: str, week: datetime, now: datetime) -> None:
        self.protocol, self.cap = protocol, spend_limit(protocol, settings.ARENA_SPEND_LIMIT_USD)
        spend = spend_in_week(protocol, week)
        self.spent, self.billed, self.booked = spend.counted, spend.billed, spend.booked
        self.remedy = cap_remedy(spend)
        self.path = list_path(ModelCall, preset=protocol)
        self.reached_at = self._reached_at(week, now)
        self.fraction = self.spent / self.cap if self.cap else Decimal(1)
        self.css_class = "bad" if self.fraction >= 1 else "warn" if self.fraction >= SPENDING_WARNING else "good"

    def _reached_at(self, week: datetime, now: datetime) -> datetime | None:
        """When the cap is reached at this week's pace; None if not in this week, or reached already."""
        if not self.spent or not self.spent < self.cap or now <= week:
            return None
        reached_at = week + (now - week) * float(self.cap / self.spent)
        return reached_at if reached_at < week + WEEK else None


class Overview:
    """The page's contents at instant `at` of the arena and `now` of the real clock, in a fixed number of queries."""

    def __init__(self, at: datetime, now: datetime) -> None:
        self.at, self.now, self.week_start = at, now, week_start(at)
        self.cohort = Cohort.objects.filter(week_start=self.week_start).first()
        self.jobs = JobPanel(now)
        self.pauses = list(RunSetting.objects.filter(paused=True).select_related("family"))
        self.tasks = week_tasks(at, now)
        self.causes = failure_causes(self.tasks)
        self.spending = [Spending(protocol, self.week_start, at) for protocol in TASK_MODELS]
        paused = set(map(attrgetter("family_id"), self.pauses))
        self.models = ModelPanel(now, {spending.protocol: spending.cap for spending in self.spending}, paused)
        costs = rows_by("kind", self.jobs.jobs)["reconcile_costs"].last_success
        self.credits_run = costs if costs and costs.summary.get("credits_left_usd") else None
        """The last run that was told the credits of the gateway's key."""
        self.infrastructure = Infrastructure(at, now)
        unresolved = operational_metrics.unresolved_markets().filter(closed_at__lte=at - UNRESOLVED_AFTER)
        overdue = Count("pk", filter=Q(closed_at__lte=at - OVERDUE_AFTER))
        counts = unresolved.aggregate(all=Count("pk"), overdue=overdue)
        self.unresolved_count, self.overdue_count = counts["all"], counts["overdue"]
        self.unresolved_path = self.unresolved_list(UNRESOLVED_AFTER)
        self.unresolved_markets = list(unresolved.order_by("closed_at")[:ROWS_SHOWN])
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

    def unresolved_list(self, age: timedelta) -> str:
        """The list of traded markets that closed so long ago and are unresolved."""
        closed_by = (self.at - age).isoformat()
        return list_path(Market, traded__exact=1, status__exact=Market.Status.CLOSED, closed_at__lte=closed_by)
