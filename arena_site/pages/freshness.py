"""The instants of the leaderboards: past ones by address, the next decisions, and since when updates are missing."""

from datetime import UTC, datetime, timedelta

from django.db.models import Max
from django.http import Http404, HttpRequest

from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from markets.foundation.rest.filters import InstantField, InvalidValue
from markets.models import Run
from scoring.competition import CompetitionIndex
from scoring.models import Snapshot

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


def paused_since(competition: CompetitionIndex, now: datetime) -> datetime | None:
    """The instant since which active cohorts lack snapshots, or a decision run; None where neither is overdue."""
    started = [c.started_at for c in competition.cohorts.values() if c.status == Cohort.Status.ACTIVE]
    if not started:
        return None
    newest: datetime | None = Snapshot.objects.aggregate(newest=Max("taken_at"))["newest"]
    if newest is not None and now - newest > STALE_AFTER:
        return newest
    due = next_decision_run(now) - WEEK
    runs = Run.objects.filter(kind="run_decisions", at__gte=due - DECISIONS_AFTER)
    return due if min(started) < due < now - STALE_AFTER and not runs.exists() else None


def past_sundays(competition: CompetitionIndex, now: datetime) -> dict[str, str]:
    """The last Sundays since the first cohort, newest first: labels by date."""
    first = min((cohort.week_start for cohort in competition.cohorts.values()), default=now)
    last = week_start(now).astimezone(UTC)
    sundays = [last - week * WEEK for week in range(PAST_SUNDAYS)]
    return {f"{day:%Y-%m-%d}": f"{day.day} {day:%b}" for day in sundays if day > first}
