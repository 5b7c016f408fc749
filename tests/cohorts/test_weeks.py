"""The calendar: weeks begin on Sunday 00:00 UTC, snapshots stand on a ten-minute grid."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cohorts.models import Cohort, MissedWeek
from cohorts.services import record_missed_weeks
from cohorts.weeks import decision_week, grid_instant, next_grid_instant, week_start
from tests.factories import CohortFactory

SUNDAY = datetime(2026, 3, 8, tzinfo=UTC)
INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("at", "start"),
    [
        ("2026-03-08T00:00:00+00:00", "2026-03-08"),  # the boundary belongs to the new week
        ("2026-03-07T23:59:59.999999+00:00", "2026-03-01"),
        ("2026-03-14T23:59:59+00:00", "2026-03-08"),
        ("2026-03-11T12:00:00+00:00", "2026-03-08"),
        ("2026-03-08T01:00:00+02:00", "2026-03-01"),  # still Saturday in UTC
        ("2026-03-07T20:00:00-05:00", "2026-03-08"),  # Sunday already
        ("2028-03-01T00:00:00+00:00", "2028-02-27"),  # over a leap day
        ("2027-01-01T00:00:00+00:00", "2026-12-27"),
    ],
)
def test_week_starts_on_sunday_midnight_which_belongs_to_it(at: str, start: str) -> None:
    assert week_start(datetime.fromisoformat(at)) == datetime.fromisoformat(f"{start}T00:00:00+00:00")


@given(INSTANTS)
def test_every_instant_lies_in_the_week_that_starts_at_its_week_start(at: datetime) -> None:
    start = week_start(at)
    assert start <= at < start + timedelta(weeks=1)
    assert (start.weekday(), start.hour, start.minute, start.microsecond) == (6, 0, 0, 0)
    assert week_start(at.astimezone(timezone(timedelta(hours=9)))) == start


@pytest.mark.parametrize(
    ("after", "week"),
    [
        (timedelta(0), 1),
        (timedelta(weeks=1, microseconds=-1), 1),
        (timedelta(weeks=1), 2),
        (timedelta(weeks=4, days=6), 5),
        (timedelta(weeks=5), 6),
        (-timedelta(seconds=1), 0),
    ],
)
def test_decision_week(after: timedelta, week: int) -> None:
    assert decision_week(SUNDAY, SUNDAY + after) == week


@pytest.mark.parametrize(
    ("at", "down", "following"),
    [("00:00:00", "00:00", "00:10"), ("00:09:59", "00:00", "00:10"), ("13:37:00", "13:30", "13:40")],
)
def test_grid(at: str, down: str, following: str) -> None:
    day = "2026-03-08T{}+00:00"
    instant = datetime.fromisoformat(day.format(at))
    assert grid_instant(instant) == datetime.fromisoformat(day.format(down))
    assert next_grid_instant(instant) == datetime.fromisoformat(day.format(following))


@given(INSTANTS)
def test_grid_is_reached_by_going_down_and_stays_where_it_is(at: datetime) -> None:
    instant = grid_instant(at)
    assert instant <= at < instant + timedelta(minutes=10)
    assert instant.minute % 10 == 0
    assert grid_instant(instant) == instant
    assert next_grid_instant(at) == instant + timedelta(minutes=10)


@pytest.mark.django_db
@pytest.mark.parametrize(("late", "missed"), [(timedelta(hours=24, seconds=-1), False), (timedelta(hours=24), True)])
def test_week_without_a_cohort_is_missed_after_24_hours(late: timedelta, missed: bool) -> None:
    assert record_missed_weeks(at=SUNDAY + late) == missed
    assert MissedWeek.objects.filter(week_start=SUNDAY).exists() is missed
    assert not Cohort.objects.exists()


@pytest.mark.django_db
def test_missed_week_is_recorded_once_and_a_started_one_never() -> None:
    assert [record_missed_weeks(at=SUNDAY + timedelta(days=day)) for day in (2, 3)] == [1, 0]
    assert MissedWeek.objects.count() == 1
    CohortFactory(week_start=SUNDAY + timedelta(weeks=1))
    assert record_missed_weeks(at=SUNDAY + timedelta(days=9)) == 0
