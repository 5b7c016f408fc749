"""The clocks: of this machine, of the database, by which nothing is recorded ahead, and of a demo that stands still."""

from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Max
from django.utils import timezone

from foundation.models import Run

TOLERANCE = timedelta(minutes=2)
"""How far ahead of the clock an instant may lie."""
NOW = {"postgresql": "SELECT clock_timestamp()", "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"}


class ClockAhead(Exception):
    """This machine's clock is ahead of the database's by more than the tolerance."""


def now() -> datetime:
    """The real time; in a demo, the instant at which its season stands still (`ARENA_CLOCK`)."""
    demo_time: datetime | None = settings.ARENA_CLOCK
    return demo_time or timezone.now()


def present() -> datetime:
    """The instant of which pages and the API tell: the real time; in a demo, that which its season has reached."""
    clock = now()
    if not settings.ARENA_DEMO:
        return clock
    played = Run.objects.filter(at__lte=clock).aggregate(until=Max("at"))
    reached: datetime | None = played["until"]
    return reached or clock


def recording_now() -> datetime:
    """The present as it may be recorded: this machine's time, or the database's where that is earlier.

    Raises ClockAhead.
    """
    if settings.ARENA_CLOCK or settings.ARENA_ANY_DATE:
        return now()
    ours, theirs = timezone.now(), database_now()
    if ours > theirs + TOLERANCE:
        seconds = (ours - theirs).total_seconds()
        raise ClockAhead(f"this machine's clock is {seconds:.0f} s ahead of the database's: set it (NTP)")
    return min(ours, theirs)


def database_now() -> datetime:
    """The database's own time, whatever transaction is open."""
    with connection.cursor() as cursor:
        cursor.execute(NOW[connection.vendor])  # the ORM's Now() is the start of the transaction
        (instant,) = cursor.fetchone()
    return instant if isinstance(instant, datetime) else datetime.fromisoformat(instant).replace(tzinfo=UTC)


def is_ahead(at: datetime) -> bool:
    """Whether an instant lies further ahead of this machine's clock than may be recorded."""
    return not settings.ARENA_ANY_DATE and at > timezone.now() + TOLERANCE
