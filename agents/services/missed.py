"""Decisions whose window passed without success: recorded as missed, once and for ever."""

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone

from agents.models import Agent, Decision
from cohorts.models import Cohort
from cohorts.weeks import WEEK
from markets.models import Universe


def record_missed(cohorts: Iterable[Cohort], *, at: datetime, family: str | None = None) -> int:
    """Marks every decision of `cohorts` that can no longer be made at `at`; returns how many."""
    return sum(_record(cohort, at, family) for cohort in cohorts)


def _record(cohort: Cohort, at: datetime, family: str | None) -> int:
    over = _weeks_over(cohort, at)
    if not over:
        return 0
    agents = Agent.objects.filter(cohort=cohort, status=Agent.Status.ACTIVE)
    if family:
        agents = agents.filter(family__slug=family)
    ids = list(agents.values_list("pk", flat=True))
    decided = Decision.objects.filter(agent__in=ids, week__in=over)
    unsuccessful = Decision.objects.claimable(timezone.now()).filter(agent__in=ids, week__in=over)
    missed = unsuccessful.update(status=Decision.Status.MISSED, claim_token=None, lease_until=None)
    known = set(decided.values_list("agent_id", "week"))
    never_asked = [
        Decision(
            agent_id=agent,
            cohort=cohort,
            week=week,
            universe=universe,
            status=Decision.Status.MISSED,
            error="never asked within the window",
        )
        for week, universe in over.items()
        for agent in ids
        if (agent, week) not in known
    ]
    Decision.objects.bulk_create(never_asked, ignore_conflicts=True)
    return missed + len(never_asked)


def _weeks_over(cohort: Cohort, at: datetime) -> dict[int, Universe | None]:
    """The cohort's decision weeks whose window has passed by `at`, with their universe if one was frozen."""
    methodology = cohort.methodology
    asked_so_far = min(cohort.decision_week(at), methodology.decision_weeks)
    starts = {cohort.week_start + (week - 1) * WEEK: week for week in range(1, asked_so_far + 1)}
    universes = {
        universe.week_start: universe
        for universe in Universe.objects.filter(methodology=methodology.version, week_start__in=starts)
    }
    over: dict[int, Universe | None] = {}
    for start, week in starts.items():
        universe = universes.get(start)
        ends = universe.frozen_at + methodology.retry_window if universe else start + WEEK
        if at >= ends:
            over[week] = universe
    return over
