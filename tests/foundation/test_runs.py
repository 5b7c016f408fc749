"""The record of runs: one whose process was killed is lost after a minute, and blocks nothing."""

from datetime import timedelta
from threading import Semaphore
from typing import Any

import pytest
from django.core.management import call_command, get_commands, load_command_class
from django.db import OperationalError, connection
from django.utils import timezone
from django_q.exceptions import TimeoutException
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_site import jobs
from foundation import heartbeats
from foundation.commands import CommandResult
from foundation.consistent_reads import consistent_reads
from foundation.heartbeats import parallel_results
from foundation.http import HttpService
from foundation.models import Alert, Run
from foundation.process_names import process_name
from foundation.services.runs import begin_run
from tests.commands import SUNDAY, run
from tests.sandbox import Venue
from tests.threads import all_at_once

pytestmark = pytest.mark.django_db
SILENCE = timedelta(seconds=61)


@pytest.fixture
def killed(venue: Venue) -> Run:
    """A sync whose process was gone before it could say how it ended."""
    venue.market("Will it rain?")
    ago = timezone.now() - SILENCE
    return Run.objects.create(kind="sync_markets", at=SUNDAY, started_at=ago, heartbeat_at=ago)


def beats(pk: int) -> Any:
    return Run.objects.values_list("heartbeat_at", flat=True).get(pk=pk)


def test_next_run_marks_one_without_a_heartbeat_as_lost(killed: Run) -> None:
    run("take_snapshots", SUNDAY)
    killed.refresh_from_db()
    assert (killed.status, killed.error) == ("lost", "its process ended without recording a result")
    assert killed.finished_at is not None
    assert Run.objects.get(kind="take_snapshots").status == "succeeded"


@pytest.mark.urls("arena_site.urls")
def test_api_shows_a_silent_run_as_lost(killed: Run, client: Any) -> None:
    busy = Run.objects.create(kind="take_snapshots", at=SUNDAY, started_at=timezone.now() - timedelta(hours=3))
    rows = client.get("/api/v1/runs/").json()["results"]
    assert {row["id"]: row["status"] for row in rows} == {killed.pk: "lost", busy.pk: "running"}
    assert [row["id"] for row in client.get("/api/v1/runs/?status=lost").json()["results"]] == [killed.pk]
    detail = client.get(f"/api/v1/runs/{killed.pk}/").json()
    assert (detail["status"], detail["error"]) == ("lost", "its process ended without recording a result")
    assert client.get("/api/v1/runs/?status=running").json()["results"][0]["id"] == busy.pk
    killed.refresh_from_db()
    assert (killed.status, killed.finished_at) == ("running", None), "a job marks it, not a reader"


def test_lost_run_of_an_alerting_command_raises_its_alert() -> None:
    ago = timezone.now() - SILENCE
    Run.objects.create(kind="run_forecasts", at=SUNDAY, heartbeat_at=ago, raises_alert=True)
    run("take_snapshots", SUNDAY)
    raised = Alert.objects.get()
    assert (raised.kind, raised.subject) == ("job-failed", "run_forecasts")
    assert raised.message == "run_forecasts failed: lost: its process ended without recording a result"


def test_run_that_was_thought_lost_still_has_the_last_word(venue: Venue) -> None:
    with Run.objects.recorded("sync_markets", SUNDAY) as slow:
        Run.objects.update(heartbeat_at=timezone.now() - SILENCE)
        run("sync_markets", SUNDAY)
        assert Run.objects.get(pk=slow.pk).status == "lost"
    slow.refresh_from_db()
    assert (slow.status, slow.error) == ("succeeded", "")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every occasion to beat is taken."""
    monkeypatch.setattr(heartbeats, "INTERVAL_S", 0)


@pytest.mark.django_db(transaction=True)
def test_each_query_is_a_heartbeat_and_brings_a_lost_run_back(eager: None) -> None:
    with Run.objects.recorded("sync_markets", SUNDAY) as slow:
        Run.objects.filter(pk=slow.pk).update(status="lost", heartbeat_at=SUNDAY, finished_at=SUNDAY)
        assert not Run.objects.exclude(pk=slow.pk).exists()
        assert beats(slow.pk) > SUNDAY
        assert Run.objects.get(pk=slow.pk).status == "running"


@pytest.mark.django_db(transaction=True)
def test_heartbeat_that_can_not_be_written_leaves_the_query_its_connection(eager: None) -> None:
    def fail() -> None:
        raise OperationalError("database or disk is full")

    with heartbeats.heartbeat(fail):
        assert not Run.objects.exists()


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_reading_of_one_state_beats_by_a_connection_of_its_own(eager: None) -> None:
    with Run.objects.recorded("verify_ledger", SUNDAY) as slow:
        Run.objects.filter(pk=slow.pk).update(heartbeat_at=SUNDAY)
        monitor = connection.copy()
        try:
            with consistent_reads():
                first = beats(slow.pk)
                assert beats(slow.pk) == first, "the block sees the state that it began with"
                with monitor.cursor() as cursor:
                    cursor.execute("SELECT count(*) FROM foundation_run WHERE heartbeat_at > %s", [first])
                    assert cursor.fetchone() == (1,)
        finally:
            monitor.close()


def test_run_beats_while_a_model_thinks(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "INTERVAL_S", 0.05)
    beaten = Semaphore(0)

    def think(request: Request) -> Response:
        return Response("{}" if all(beaten.acquire(timeout=20) for _ in range(3)) else "no heartbeat came", 200)

    httpserver.expect_request("/think").respond_with_handler(think)
    with HttpService("gateway", httpserver.url_for("")) as service, heartbeats.heartbeat(beaten.release):
        connection.in_atomic_block = False  # the test's own transaction
        try:
            assert service.get_json("/think") == {}
        finally:
            connection.in_atomic_block = True


def test_run_beats_while_requests_are_under_way_in_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "INTERVAL_S", 0.05)
    beaten = Semaphore(0)
    with heartbeats.heartbeat(beaten.release):
        connection.in_atomic_block = False  # the test's own transaction
        try:
            results = list(parallel_results(lambda _: beaten.acquire(timeout=20), range(6), at_once=4))
        finally:
            connection.in_atomic_block = True
    assert results == [True] * 6


# ── one at a time, and alerts of every job ────────────────────────────────────────────────────────


def test_sync_that_finds_another_at_work_does_nothing_and_is_no_failure(venue: Venue) -> None:
    venue.market("Will it rain?")
    with Run.objects.recorded("sync_markets", SUNDAY):
        second = run("sync_markets", SUNDAY)
    assert (second.code, second["seen"], second["created"]) == (0, 0, 0)
    assert second.stderr.startswith("skipped: another sync_markets has been at work since ")
    assert Run.objects.count() == 1
    assert run("sync_markets", SUNDAY)["created"] == 1, "it has ended"


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_syncs_that_begin_at_once_are_one_run() -> None:
    def begins() -> bool:
        _, is_new = begin_run("sync_markets", SUNDAY, raises_alert=True, alone=True, now=timezone.now())
        return is_new

    assert sorted(all_at_once(*[begins] * 6)) == [False] * 5 + [True]


def test_sync_whose_process_was_killed_holds_up_nobody(venue: Venue) -> None:
    venue.market("Will it rain?")
    process_of_the_past = process_name(999_999_999)
    killed = Run.objects.create(kind="sync_markets", at=SUNDAY, process=process_of_the_past, raises_alert=True)
    assert run("sync_markets", SUNDAY)["created"] == 1
    killed.refresh_from_db()
    assert killed.status == "lost"
    elsewhere = Run.objects.create(kind="sync_markets", at=SUNDAY, process="another-machine:1")
    assert run("sync_markets", SUNDAY)["seen"] == 0, "whether that one has ended is not known before it is silent"
    elsewhere.refresh_from_db()
    assert elsewhere.status == "running"


COMMANDS = sorted({job.command for job in jobs.JOBS if job.command} - {"send_alerts"})


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), TimeoutException("exceeded 60 seconds")])
def test_each_failed_job_is_an_alert_with_a_remedy(
    name: str, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = load_command_class(get_commands()[name], name)

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(type(command), "perform", fail)
    with pytest.raises(type(error)):
        call_command(name, at=SUNDAY)
    alert = Alert.objects.get()
    assert (alert.kind, alert.subject) == ("job-failed", name)
    assert str(error) in alert.message
    assert f"manage.py {name}" in alert.remedy
    monkeypatch.setattr(type(command), "perform", lambda *_: CommandResult({}))
    run(name, SUNDAY)
    assert not Alert.objects.open().exists()
