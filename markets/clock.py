"""The clock of doors: the real one, but in a demo."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone


def now() -> datetime:
    """The real time; for who plays a demo's season, the instant at which that stands still."""
    stands_at: datetime | None = settings.ARENA_CLOCK
    return stands_at or timezone.now()
