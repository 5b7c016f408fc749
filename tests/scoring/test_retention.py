"""Old detail is rolled up: what stays, for how long, and what is never deleted."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection
from django_q.models import Task

from agents.models import ModelCall
from arena_site import jobs
from cohorts.models import Cohort
from foundation import bulk
from foundation.models import Run
from markets.models import PriceObservation
from scoring.models import Snapshot
from scoring.services import retention
from tests.commands import run
from tests.factories import (
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    PriceObservationFactory,
    SnapshotFactory,
)
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
DAY, HOUR, GRID = timedelta(days=1), timedelta(hours=1), timedelta(minutes=10)


def snapshots(first: datetime, last: datetime, step: timedelta = GRID) -> None:
    """Snapshots of one agent, and a fresh one that keeps these from being the newest."""
    agent = AgentFactory()
    instants = [first + n * step for n in range((last - first) // step + 1)]
    for instant in (*instants, NOW - GRID):
        SnapshotFactory(agent=agent, taken_at=instant)


def remaining() -> list[str]:
    times = Snapshot.objects.filter(taken_at__lt=NOW - GRID).order_by("taken_at").values_list("taken_at", flat=True)
    return [f"{at:%H:%M}" for at in times]


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (29 * DAY, ["23:50", "00:00", "00:10", "00:20", "00:30", "00:40", "00:50", "01:00", "01:10"]),
        (31 * DAY, ["00:00", "01:00"]),
        (179 * DAY, ["00:00", "01:00"]),
        (181 * DAY, ["00:00"]),
        (900 * DAY, ["00:00"]),
    ],
)
def test_snapshots_grow_coarse_with_age(age: timedelta, expected: list[str]) -> None:
    midnight = (NOW - age).replace(hour=0)
    snapshots(midnight - GRID, midnight + HOUR + GRID)
    run("prune", NOW)
    assert remaining() == expected


@pytest.mark.parametrize(("limit", "expected"), [(30 * DAY, 1), (180 * DAY, 1)])
def test_what_is_exactly_as_old_as_the_limit_is_still_kept(limit: timedelta, expected: int) -> None:
    odd = GRID if limit == 30 * DAY else HOUR
    at = (NOW - limit).replace(hour=5) + odd
    snapshots(at, at)
    assert run("prune", at + limit)["snapshots"] == 0
    assert run("prune", at + limit + timedelta(seconds=1))["snapshots"] == expected


def test_an_agents_newest_snapshot_stays_however_old() -> None:
    for hour in (3, 4):
        SnapshotFactory(agent=AgentFactory(), taken_at=datetime(2026, 3, 9, hour, 10, tzinfo=UTC))
    assert run("prune", NOW)["snapshots"] == 0
    assert Snapshot.objects.count() == 2


def test_a_cohorts_closing_snapshot_stays_and_is_not_taken_again(venue: Venue) -> None:
    cohort_end = datetime(2026, 4, 20, 3, 5, tzinfo=UTC)
    cohort = CohortFactory(status=Cohort.Status.COMPLETED, completed_at=cohort_end)
    agent = AgentFactory(cohort=cohort)
    closing, later = cohort_end.replace(minute=10), cohort_end.replace(minute=30)
    for instant in (cohort_end.replace(minute=0), closing, later, later + GRID):
        SnapshotFactory(agent=agent, taken_at=instant)
    run("prune", NOW)
    assert set(Snapshot.objects.values_list("taken_at", flat=True)) == {closing, later + GRID}
    assert run("take_snapshots", NOW)["snapshots"] == 0


def test_old_prices_keep_the_last_of_each_day_and_outcome() -> None:
    market = MarketFactory()
    yes, no = market.outcomes.order_by("index")
    old = datetime(2026, 5, 4, 23, 50, tzinfo=UTC)
    for outcome in (yes, no):
        for instant in (old - HOUR, old, old + GRID, old + 2 * GRID, NOW - 2 * DAY, NOW - 2 * DAY + GRID):
            PriceObservationFactory(outcome=outcome, observed_at=instant)
    assert run("prune", NOW)["prices"] == 4
    for outcome in (yes, no):
        assert list(outcome.observations.order_by("observed_at").values_list("observed_at", flat=True)) == [
            *(old, old + 2 * GRID),
            *(NOW - 2 * DAY, NOW - 2 * DAY + GRID),
        ]


def test_of_two_prices_at_one_instant_the_later_written_stays() -> None:
    outcome = MarketFactory().outcomes.get(side="YES")
    old = datetime(2026, 5, 4, 12, tzinfo=UTC)
    for price in ("0.30", "0.35"):
        PriceObservationFactory(outcome=outcome, observed_at=old, price=Decimal(price))
    run("prune", NOW)
    assert PriceObservation.objects.get().price == Decimal("0.35")


def test_an_outcomes_newest_price_stays_however_old() -> None:
    outcome = MarketFactory().outcomes.get(side="YES")
    PriceObservationFactory(outcome=outcome, observed_at=datetime(2024, 5, 4, 12, tzinfo=UTC))
    assert run("prune", NOW)["prices"] == 0


@pytest.mark.parametrize(("until", "pruned"), [(181 * DAY - timedelta(microseconds=1), 0), (181 * DAY, 1)])
def test_prices_of_a_day_are_kept_whole_until_all_of_them_are_180_days_old(until: timedelta, pruned: int) -> None:
    day = datetime(2026, 5, 4, tzinfo=UTC)
    outcome = MarketFactory().outcomes.get(side="YES")
    for hour in (0, 23):
        PriceObservationFactory(outcome=outcome, observed_at=day + hour * HOUR)
    assert run("prune", day + until)["prices"] == pruned


def ran(kind: str, age: timedelta, status: str) -> Run:
    return Run.objects.create(kind=kind, at=NOW - age, started_at=NOW - age, status=status)


@pytest.mark.parametrize(
    ("status", "age", "stays"),
    [
        *(("succeeded", 90 * DAY, True), ("succeeded", 90 * DAY + GRID, False), ("running", 90 * DAY + GRID, False)),
        *(("failed", 90 * DAY + GRID, True), ("failed", 365 * DAY, True), ("failed", 365 * DAY + GRID, False)),
    ],
)
def test_runs_are_forgotten_after_three_months_failed_ones_after_a_year(
    status: str, age: timedelta, stays: bool
) -> None:
    old = ran("sync_markets", age, status)
    ran("sync_markets", HOUR, status)  # else the old one would be the newest
    assert run("prune", NOW)["runs"] == (0 if stays else 1)
    assert Run.objects.filter(pk=old.pk).exists() is stays


def test_the_newest_run_of_each_kind_and_status_is_remembered_however_old() -> None:
    """Metrics go by them: a job that stopped for good must not look as if it had never been."""
    for kind in ("sync_markets", "verify_ledger"):
        for status in ("running", "succeeded", "failed"):
            ran(kind, 800 * DAY, status)
    assert run("prune", NOW)["runs"] == 0
    ran("sync_markets", 799 * DAY, "failed")
    assert run("prune", NOW)["runs"] == 1


@pytest.mark.parametrize(("age", "expected"), [(90 * DAY, 1), (90 * DAY + GRID, 0)])
def test_jobs_that_failed_are_forgotten_by_the_queue_like_runs(age: timedelta, expected: int) -> None:
    Task.objects.create(id="1", name="a", func="f", started=NOW - age, stopped=NOW - age, success=False)
    assert run("prune", NOW)["tasks"] == 1 - expected
    assert Task.objects.count() == expected


@pytest.mark.thorough
def test_the_snapshots_of_an_agent_level_off() -> None:
    """Two hundred days: every ten minutes of the last thirty, every hour before that, every day at the far end."""
    agent, midnight = AgentFactory(), NOW.replace(hour=0)
    one = SnapshotFactory.build(agent=agent, taken_at=midnight)
    values = {f.attname: getattr(one, f.attname) for f in Snapshot._meta.concrete_fields if f.name != "id"}
    Snapshot.objects.bulk_create(Snapshot(**{**values, "taken_at": midnight - n * GRID}) for n in range(200 * 24 * 6))
    run("prune", midnight)
    assert Snapshot.objects.count() == 30 * 24 * 6 + 1 + 150 * 24 + 19


def test_pruning_is_scheduled_every_day() -> None:
    (schedule,) = [one for one in jobs.install() if one.func == "arena_site.jobs.prune"]
    assert schedule.cron == "40 3 * * *"
    snapshots(NOW - 40 * DAY + GRID, NOW - 40 * DAY + GRID)
    with time_machine.travel(NOW, tick=False):
        jobs.prune()
    assert remaining() == []


def test_calls_to_models_are_kept_for_ever() -> None:
    ModelCallFactory(decision=DecisionFactory(), sent_at=datetime(2020, 1, 1, tzinfo=UTC))
    run("prune", NOW)
    assert ModelCall.objects.count() == 1


def test_pruning_deletes_in_batches_and_again_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement keeps more rows locked than a batch has."""
    monkeypatch.setattr(bulk, "BATCH", 2)
    monkeypatch.setattr(retention, "INSTANTS", 2)
    deleted = []

    def counted(execute: Any, sql: str, params: Any, many: bool, context: dict[str, Any]) -> Any:
        result = execute(sql, params, many, context)
        if sql.startswith("DELETE"):
            deleted.append(context["cursor"].rowcount)
        return result

    snapshots(datetime(2026, 5, 4, tzinfo=UTC), datetime(2026, 5, 4, 2, tzinfo=UTC))
    outcome = MarketFactory().outcomes.get(side="YES")
    for n in range(7):
        PriceObservationFactory(outcome=outcome, observed_at=datetime(2026, 5, 4, tzinfo=UTC) + n * HOUR)
    with connection.execute_wrapper(counted):
        first, second = run("prune", NOW), run("prune", NOW)
    assert first.summary == {"snapshots": 12, "prices": 6, "runs": 0, "tasks": 0}
    assert second.summary == {"snapshots": 0, "prices": 0, "runs": 0, "tasks": 0}
    assert (sum(deleted), max(deleted)) == (30, 2)  # with each of 12 snapshots goes the total of its instant
