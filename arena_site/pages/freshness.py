"""The instants of the leaderboards: past ones by address, the next decisions, and since when updates are missing."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from arena_site.pages.filters import exact_iso
from cohorts.models import Cohort
from cohorts.weeks import GRID, WEEK, week_start
from foundation.clock import present
from foundation.models import Run
from foundation.rest.filters import InstantField, InvalidValue
from scoring.models import Snapshot
from scoring.selectors.published_boards import first_publication, published_boards

DECISIONS_AFTER = timedelta(minutes=5)
"""Time of a week's decision run after the week's start."""
STALE_AFTER = timedelta(minutes=30)
"""Three missed snapshots."""
PAST_SUNDAYS = 8
"""Dates of past leaderboards that a page links to."""


View = Callable[..., HttpResponse]


class OtherInstant(Exception):
    """A requested instant at which no board was published: the last one before it stands at another address."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


def dated(view: View) -> View:
    """The view of a page whose boards have dated addresses: other instants are led to the last published one."""

    @wraps(view)
    def wrapped(request: HttpRequest, **parts: Any) -> HttpResponse:
        try:
            return view(request, **parts)
        except OtherInstant as other:
            return HttpResponseRedirect(other.address)

    return wrapped


def requested_instant(request: HttpRequest, protocol: str, **selection: str) -> datetime | None:
    """The instant of the published board that a page shows (`as_of`); None for the current one.

    Raises OtherInstant where none was published at just this instant, and Http404 for an unreadable or future one and
    for one before the first publication.
    """
    try:
        at = InstantField(required=False).clean(request.GET.get("as_of", ""))
    except InvalidValue as error:
        raise Http404(f"as_of: {error}") from error
    if at is None:
        return None
    if at > present():
        raise Http404("as_of: the instant lies in the future")
    instant = published_boards(protocol, **selection).filter(at__lte=at).values_list("at", flat=True).first()
    if instant is None:
        raise Http404("as_of: no board had been published by then")
    if instant != at:
        query = request.GET.copy()
        query["as_of"] = exact_iso(instant)
        raise OtherInstant(f"{request.path}?{query.urlencode()}")
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
    """The pause of active cohorts that lack snapshots or a decision run; None where neither is overdue.

    A demo has none: its season is played on a coarser grid, and then stands still.
    """
    if settings.ARENA_DEMO:
        return None
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


def instants(protocol: str, now: datetime, pause: Pause | None, **selection: str) -> dict[str, str]:
    """The instants of a selected board that a page links to, with labels: now, or the last update, and past Sundays."""
    current = "now" if pause is None else f"last updated {pause.last_updated:%-d %b %Y, %H:%M} UTC"
    first = first_publication(protocol, **selection)
    last = week_start(now).astimezone(UTC)
    sundays = [last - week * WEEK for week in range(PAST_SUNDAYS)]
    return {"": current, **{f"{day:%Y-%m-%d}": f"{day.day} {day:%b}" for day in sundays if first and day >= first}}
