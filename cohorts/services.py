"""Services of cohorts: syncing as many markets as the methodologies in use need, and recording missed weeks."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from cohorts.models import Cohort, Methodology, MissedWeek
from cohorts.weeks import WEEK, week_start
from markets.services.market_storage import SyncReport
from markets.services.sync import sync_markets
from markets.sources.base import Catalogue
from markets.sources.polymarket import Clob

CATALOGUE_MARGIN = 1.5
"""Markets synced for each place in the universe."""
HOUR = timedelta(hours=1)
MAX_START_DELAY = 24 * HOUR
"""The longest delay into its week with which a cohort may start."""


def is_left_to_a_person(at: datetime) -> bool:
    """True once no schedule starts the cohort of the week of `at`, or asks for its decisions: both try hourly."""
    return at > week_start(at) + MAX_START_DELAY - HOUR


def sync_markets_in_play(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> SyncReport:
    """Syncs as many markets of each source as the largest universe in use needs, and all tracked markets."""
    current = Methodology.objects.current()
    in_use = Methodology.objects.filter(cohorts__status=Cohort.Status.ACTIVE).values_list("universe_size", flat=True)
    size = max([current.universe_size, *in_use])
    return sync_markets(
        catalogues=catalogues,
        clob=clob,
        at=at,
        target=int(size * CATALOGUE_MARGIN),
        rule=current.price_rule,
        progress=progress,
    )


def record_missed_weeks(*, at: datetime) -> int:
    """Records the weeks since the newest cohort in which none started in time; returns how many.

    Without any cohort only the week of `at` counts.
    """
    this_week = week_start(at)
    newest = Cohort.objects.order_by("-week_start").values_list("week_start", flat=True).first()
    week = newest + WEEK if newest is not None else this_week
    missed = 0
    while week <= this_week and at >= week + MAX_START_DELAY:
        _, created = MissedWeek.objects.get_or_create(
            week_start=week,
            defaults={"recorded_at": at, "reason": f"no cohort started within {MAX_START_DELAY // HOUR} hours"},
        )
        missed += created
        week += WEEK
    return missed
