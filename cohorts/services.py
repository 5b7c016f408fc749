"""Writes of this floor: the catalogue brought to the size that the methodologies in play need; missed weeks."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import WEEK, week_start
from markets.services.sync import SyncReport, sync_markets
from markets.sources.base import Catalogue
from markets.sources.polymarket import Clob

CATALOGUE_MARGIN = 1.5
"""The catalogue is walked until it has half again the universe's size."""
START_WITHIN = timedelta(hours=24)
"""How late the schedule may start a week's cohort."""


def catalogue_sync(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> SyncReport:
    """Syncs as many markets of each source as the largest universe in play needs, and all that are awaited."""
    current = Methodology.objects.current()
    in_play = Methodology.objects.filter(cohorts__status=Cohort.Status.ACTIVE).values_list("universe_size", flat=True)
    size = max([current.universe_size, *in_play])
    return sync_markets(
        catalogues=catalogues,
        clob=clob,
        at=at,
        target=int(size * CATALOGUE_MARGIN),
        rule=current.price_rule,
        progress=progress,
    )


def weeks_missed(*, at: datetime) -> int:
    """Records every week since the newest cohort that has none and is too old to start one; returns how many.

    Without any cohort the arena has not begun, and only the week of `at` counts.
    """
    this_week = week_start(at)
    newest = Cohort.objects.order_by("-week_start").values_list("week_start", flat=True).first()
    week = newest + WEEK if newest is not None else this_week
    missed = 0
    while week <= this_week and at >= week + START_WITHIN:
        _, created = MissedWeek.objects.get_or_create(
            week_start=week, defaults={"recorded_at": at, "reason": "nothing started its cohort within 24 hours"}
        )
        missed += created
        week += WEEK
    return missed
