"""The arena's calendar: weeks from Sunday 00:00 UTC, and the ten-minute grid of snapshots."""

from datetime import UTC, datetime, timedelta

WEEK = timedelta(weeks=1)
GRID = timedelta(minutes=10)
FIRST_FORECASTS = timedelta(hours=2)
"""The time of the day's first forecast run."""
SUNDAY = 6  # datetime.weekday()
OPEN_WINDOW_HOURS = 12
"""How long agents of the open track may answer where a version does not state it."""
LONGEST_OPEN_WINDOW = timedelta(hours=24)


def week_start(at: datetime) -> datetime:
    """The Sunday 00:00 UTC at or before `at`; the boundary itself belongs to the new week."""
    at = at.astimezone(UTC)
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=(midnight.weekday() - SUNDAY) % 7)


def decision_week(start_cohort: datetime, at: datetime) -> int:
    """The number of a cohort's week that contains `at`: 1 for the first, 0 or less before it started."""
    return (week_start(at) - start_cohort) // WEEK + 1


def grid_instant(at: datetime) -> datetime:
    """The last grid instant at or before `at`."""
    at = at.astimezone(UTC)
    return at - (at - at.replace(hour=0, minute=0, second=0, microsecond=0)) % GRID


def next_grid_instant(at: datetime) -> datetime:
    """The first grid instant after `at`."""
    return grid_instant(at) + GRID
