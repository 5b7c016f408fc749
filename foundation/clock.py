"""The clock of commands, jobs and views: the real time, or the demo's fixed instant."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone


def now() -> datetime:
    """The real time; in a demo, the instant at which its season stands still (`ARENA_CLOCK`)."""
    demo_time: datetime | None = settings.ARENA_CLOCK
    return demo_time or timezone.now()
