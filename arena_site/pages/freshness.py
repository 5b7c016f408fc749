"""The instants of the leaderboards: past ones by address, the next decisions, and since when updates are missing."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from django.db.models import Max
from django.http import Http404, HttpRequest

from cohorts.models import Cohort
from cohorts.weeks import GRID, WEEK, week_start
from foundation.models import Run
from foundation.rest.filters import InstantField, InvalidValue
from scoring.models import Snapshot
from scoring.selectors.competition import CompetitionIndex

DECISIONS_AFTER = timedelta(minutes=5)
"""Time of a week's decision run after the week's start."""
STALE_AFTER = timedelta(minutes=30)
"""Three missed snapshots."""
PAST_SUNDAYS = 8
"""Dates of past leaderboards that a page links to."""


def requested_instant(request: HttpRequest, now: datetime) -> datetime | None:
    """The instant of the leaderboards (`as_of`). Raises Http404 for an unreadable one, and for one in the future."""
    try:
        at = InstantField(required=False).clean(request.GET.get("as_of", ""))
    except InvalidValue as error:
        raise Http404(f"as_of: {error}") from error
    if at is not None and at > now:
        raise Http404("as_of: the instant lies in the future")
    return at


def next_decision_run(at: datetime) -> datetime:
    """The first scheduled decision run after `at`."""
    this_week = week_start(at) + DECISIONS_AFTER
    return this_week if at < this_week else this_week + WEEK


class Pause(NamedTuple):
    """Updates that are overdue: when the last one came, and since when the next one has been due."""

    last_updated: datetime
    since: datetime


def current_pause(cohorts: Iterable[Cohort], now: datetime) -> Pause | None:
    """The pause of active cohorts that lack snapshots or a decision run; None where neither is overdue."""
    starts = [cohort.started_at for cohort in cohorts if cohort.status == Cohort.Status.ACTIVE]
    if not starts:
        return None
    newest: datetime | None = Snapshot.objects.aggregate(newest=Max("taken_at"))["newest"]
    if newest is not None and now - newest > STALE_AFTER:
        return Pause(newest, newest + GRID)
    run_at = next_decision_run(now) - WEEK
    runs = Run.objects.filter(kind="run_decisions", at__gte=run_at - DECISIONS_AFTER)
    overdue = min(starts) < run_at < now - STALE_AFTER and not runs.exists()
    return Pause(newest or max(starts), run_at) if overdue else None


def weeks_over(cohort: Cohort, now: datetime) -> int:
    """The number of the cohort's decision weeks whose window, retries included, is over: no decision can follow."""
    first = cohort.week_start + DECISIONS_AFTER + cohort.methodology.retry_window
    return min(max(0, (now - first) // WEEK + 1), cohort.weeks_begun(now))


def instants(competition: CompetitionIndex, now: datetime, pause: Pause | None) -> dict[str, str]:
    """The instants of a leaderboard that a page links to, with labels: now, or the last update, and past Sundays."""
    current = "now" if pause is None else f"last updated {pause.last_updated:%-d %b %Y, %H:%M} UTC"
    return {"": current, **past_sundays(competition, now)}


def past_sundays(competition: CompetitionIndex, now: datetime) -> dict[str, str]:
    """The last Sundays since the first cohort, newest first: labels by date."""
    first = min(map(attrgetter("week_start"), competition.cohorts.values()), default=now)
    last = week_start(now).astimezone(UTC)
    sundays = [last - week * WEEK for week in range(PAST_SUNDAYS)]
    return {f"{day:%Y-%m-%d}": f"{day.day} {day:%b}" for day in sundays if day > first}
