"""Instants ahead of the clock: refused where they are typed, by a machine that runs ahead, and mended where stored."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import IntegrityError, transaction
from django.utils import timezone

from arena_site import conf, jobs
from arena_site.operations.alert_watch import watch_alerts
from foundation.clock import database_now
from foundation.models import Alert, Run
from markets.models import Market, Outcome, PriceObservation
from tests.arena_site.dashboard.accounts import action_path, sign_in
from tests.commands import run
from tests.factories import SnapshotFactory
from tests.sandbox import Venue

pytestmark = [pytest.mark.django_db, pytest.mark.each_database]
MINUTE = timedelta(minutes=1)


@pytest.fixture(autouse=True)
def _live_clock(settings: Any) -> None:
    settings.ARENA_ANY_DATE = False


@pytest.fixture
def synced_ahead(venue: Venue, settings: Any) -> datetime:
    """A market that was read, and priced, a month ahead of the clock, as earlier versions allowed."""
    venue.market("Will it rain?")
    before = timezone.now() - MINUTE
    assert run("sync_markets", before).code == 0
    settings.ARENA_ANY_DATE = True
    venue.move("Will it rain?", Yes="0.55", No="0.45")
    ahead = timezone.now() + timedelta(days=30)
    assert run("sync_markets", ahead)["seen"] == 1
    settings.ARENA_ANY_DATE = False
    return ahead


def record_alerts() -> list[str]:
    return list(Alert.objects.open().filter(kind="record-ahead").values_list("message", flat=True))


@pytest.mark.parametrize("command", ["sync_markets", "start_cohort", "take_snapshots", "doctor", "verify_ledger"])
def test_instant_ahead_of_the_clock_is_refused_in_one_line(venue: Venue, command: str) -> None:
    venue.market("Will it rain?")
    result = run(command, timezone.now() + 3 * MINUTE)
    assert result.code == 2
    assert "--at" in result.stderr
    assert "more than 2 minutes ahead of the clock" in result.stderr
    assert "\n" not in result.stderr.strip()
    assert not venue.requests
    assert not Run.objects.exists()


def test_instant_within_two_minutes_is_taken(venue: Venue) -> None:
    venue.market("Will it rain?")
    assert run("sync_markets", timezone.now() + MINUTE)["seen"] == 1


def test_only_a_demo_on_this_machine_may_date_ahead() -> None:
    assert conf.are_local("http://127.0.0.1:8001/gamma", "http://localhost:9", "http://[::1]:9")
    assert not conf.are_local("http://127.0.0.1:8001", "https://gamma-api.polymarket.com")


def test_machine_whose_clock_is_ahead_records_nothing_and_tells(venue: Venue) -> None:
    venue.market("Will it rain?")
    client = sign_in("operator")
    with time_machine.travel(datetime.now(UTC) + 10 * MINUTE, tick=False):
        with pytest.raises(jobs.JobFailed, match="ahead of the database's"):
            jobs.sync()
        assert "ahead of the database's" in run("sync_markets").stderr
        assert run("sync_markets", database_now() - MINUTE).code == 2
        with pytest.raises(jobs.JobFailed, match="ahead of the database's"):
            jobs.missed_decisions()
        values = {"reason": "new disks", "confirmed": "1"}
        assert client.post(action_path("maintenance"), values).status_code == 503
    assert not Market.objects.exists()
    assert len(record_alerts()) == 1
    assert "No job runs on" in record_alerts()[0]
    jobs.sync()
    assert not record_alerts()


def test_clock_a_little_ahead_records_by_the_database(venue: Venue) -> None:
    venue.market("Will it rain?")
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=100), tick=False):
        assert run("sync_markets")["seen"] == 1
    assert Market.objects.get().refreshed_at <= database_now()


def test_record_ahead_of_the_clock_is_told_and_mended(synced_ahead: datetime, venue: Venue) -> None:
    assert run("sync_markets")["seen"] == 0  # a replay, in silence
    venue.server.expect_request(re.compile(r"^/(gamma|clob)/$")).respond_with_json({})
    doctor = {item["name"]: item for item in run("doctor")["items"]}
    assert not doctor["record"]["ok"]
    assert f"{synced_ahead:%Y-%m-%d %H:%M}" in doctor["record"]["detail"]
    watch_alerts(now=timezone.now())
    assert f"{synced_ahead:%Y-%m-%d %H:%M}" in record_alerts()[0]

    assert run("withdraw_readings").summary == {"markets": 1, "prices": 2}

    assert not record_alerts()
    assert not PriceObservation.objects.filter(observed_at__gt=timezone.now()).exists()
    assert f"{Outcome.objects.get(side='YES').price:.2f}" == "0.40"
    assert run("sync_markets")["seen"] == 1
    assert f"{Outcome.objects.get(side='YES').price:.2f}" == "0.55"
    doctor = {item["name"]: item for item in run("doctor")["items"]}
    assert doctor["record"]["ok"]


def test_facts_ahead_of_the_clock_are_not_withdrawn(synced_ahead: datetime) -> None:
    SnapshotFactory(taken_at=synced_ahead)
    result = run("withdraw_readings")
    assert result.code == 1
    assert "snapshot taken_at" in result.stderr
    assert PriceObservation.objects.filter(observed_at=synced_ahead).count() == 2


def test_price_that_was_observed_stays_protected(venue: Venue) -> None:
    venue.market("Will it rain?")
    assert run("sync_markets", timezone.now() - MINUTE).code == 0
    with pytest.raises(IntegrityError), transaction.atomic():
        PriceObservation.objects.all().delete()
