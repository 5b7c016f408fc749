"""Heartbeats of workers, the web's watch over them, the dead-man service, and messages of killed workers."""

from datetime import datetime, timedelta
from threading import Event
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signals import post_execute_in_worker, pre_execute
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_site import jobs
from arena_site.models import Worker
from arena_site.operations import worker_heartbeats, worker_watch
from arena_site.operations.queue_messages import STARTED, drop_abandoned_messages, queue_state
from arena_site.operations.worker_watch import check_workers
from foundation import heartbeats
from foundation.models import Alert, Notice
from foundation.services.alerts import raise_alert
from tests.arena_site.test_notices import Hook, hook, inbox  # noqa: F401 - fixtures
from tests.factories import WEEK
from tests.faults.upstream import misbehaving, saying
from tests.threads import all_at_once

pytestmark = pytest.mark.django_db
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def look(after: timedelta) -> bool:
    """A look at the workers by a web process that started at the week's beginning."""
    return check_workers(now=WEEK + after, since=WEEK)


# ── the web's watch ───────────────────────────────────────────────────────────────────────────────


def test_silent_worker_is_an_alert_after_a_minute_and_sent_once(hook: Hook) -> None:  # noqa: F811
    Worker.objects.create(name="host:1", seen_at=WEEK + 10 * MINUTE)
    assert look(10 * MINUTE + 59 * SECOND)
    assert hook.payloads == []
    for seconds in (61, 76, 91):
        assert not look(10 * MINUTE + seconds * SECOND)
    (payload,) = hook.payloads
    assert (payload["status"], payload["kind"], payload["names"]) == ("open", "no-worker", ["host:1"])
    assert "2026-03-08 00:10:00 UTC" in payload["text"]
    assert "qcluster" in payload["remedy"]


def test_return_of_a_worker_is_sent_with_the_same_id(hook: Hook) -> None:  # noqa: F811
    Worker.objects.create(name="host:1", seen_at=WEEK)
    look(2 * MINUTE)
    Worker.objects.create(name="host:2", seen_at=WEEK + 3 * MINUTE)
    assert look(3 * MINUTE)
    assert look(4 * MINUTE - SECOND)
    assert [(payload["id"], payload["status"]) for payload in hook.payloads] == [
        (Alert.objects.get().pk, "open"), (Alert.objects.get().pk, "resolved"),
    ]  # fmt: skip


def test_worker_that_never_came_is_an_alert_too(hook: Hook) -> None:  # noqa: F811
    assert not look(59 * SECOND)
    assert hook.payloads == []
    look(61 * SECOND)
    assert hook.payloads[0]["text"] == "No worker has been seen yet: no job runs, and no decision is asked for."


def test_web_without_worker_sends_the_other_alerts_as_well(hook: Hook) -> None:  # noqa: F811
    raise_alert(kind="closed-unresolved", items={"1": "market 1"}, message="Closed.", at=WEEK)
    Worker.objects.create(name="host:1", seen_at=WEEK)
    assert look(30 * SECOND)
    assert hook.payloads == []
    look(2 * MINUTE)
    assert sorted(payload["kind"] for payload in hook.payloads) == ["closed-unresolved", "no-worker"]


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_many_web_processes_at_once_send_one_notice(hook: Hook) -> None:  # noqa: F811
    all_at_once(*[lambda: look(2 * MINUTE)] * 6)
    assert len(hook.payloads) == 1
    assert Notice.objects.get().tries == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.django_db(transaction=True)
def test_watch_goes_on_after_a_look_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_watch, "INTERVAL_S", 0)
    errors: list[BaseException] = [OperationalError("the server closed the connection"), ValueError("a fault")]
    ended = Event()

    def look(*, now: datetime) -> None:
        if errors:
            raise errors.pop(0)
        ended.set()
        raise SystemExit  # which ends this thread alone

    worker_watch.start_watch("a watch", look)
    assert ended.wait(20)
    assert errors == []


# ── the worker's heartbeat ────────────────────────────────────────────────────────────────────────


@pytest.fixture
def dead_man(httpserver: HTTPServer, settings: Any) -> list[str]:
    """The requests that a dead-man service got."""
    requests: list[str] = []

    def answer(request: Request) -> Response:
        requests.append(request.method)
        return Response(status=500)

    httpserver.expect_request("/ping/5ECRET").respond_with_handler(answer)
    settings.ARENA_HEARTBEAT_URL = httpserver.url_for("/ping/5ECRET")
    return requests


def tick(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One tick of a worker's scheduler, and the end of its ping."""
    monkeypatch.setattr(broker, "scheduled_s", -100.0)
    broker.dequeue()
    if broker.heartbeat.ping:
        broker.heartbeat.ping.join(20)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("django_q.conf.Conf.POLL", 0)
    return get_broker()


@pytest.mark.django_db(transaction=True)
def test_tick_of_the_scheduler_stores_a_heartbeat_and_pings(
    broker: Any, dead_man: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tick(broker, monkeypatch)
    tick(broker, monkeypatch)
    assert dead_man == ["GET"], "at most every half minute"
    assert Worker.objects.get().name == worker_heartbeats.cluster_name()
    broker.heartbeat.pinged_s -= 30
    tick(broker, monkeypatch)
    assert dead_man == ["GET", "GET"]
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("arena_site")]
    assert logged == ["ARENA_HEARTBEAT_URL could not be reached: HTTPError"] * 2, "the address is a secret"


def test_garbled_answer_to_a_ping_or_an_address_of_no_host_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with misbehaving(saying(b"\xff\xfe\0garbage\r\n\r\n")) as garbled:
        for address in (garbled, f"http://{'a' * 70}.example", "http://a b.example"):
            worker_heartbeats.ping(address)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(": ")[0] for line in lines] == ["ARENA_HEARTBEAT_URL could not be reached"] * 3
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.django_db(transaction=True)
def test_no_ping_without_a_tick(broker: Any, dead_man: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> None:
        raise OperationalError("the server closed the connection")

    with connection.execute_wrapper(gone):
        tick(broker, monkeypatch)
    assert dead_man == []


def test_web_never_pings(dead_man: list[str]) -> None:
    look(2 * MINUTE)
    call_command("send_alerts", "--json")
    assert dead_man == []


def test_clusters_of_this_machine_that_ended_are_forgotten() -> None:
    host = worker_heartbeats.cluster_name().rpartition(":")[0]
    for name in (f"{host}:999999999", "elsewhere:1", worker_heartbeats.cluster_name()):
        Worker.objects.create(name=name, seen_at=timezone.now())
    worker_heartbeats.delete_ended_clusters(timezone.now())
    assert set(Worker.objects.values_list("name", flat=True)) == {"elsewhere:1", worker_heartbeats.cluster_name()}


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def start_job(function: str) -> OrmQ:
    """The message of a job that a worker has just started."""
    assert jobs.enqueue(function)
    message = OrmQ.objects.latest("pk")
    pre_execute.send(sender="django_q", func=function, task={"ack_id": message.pk})
    message.refresh_from_db()
    return message


@pytest.fixture(autouse=True)
def _no_job_goes_on() -> Any:
    yield
    post_execute_in_worker.send(sender="django_q", func=None, task={})


def test_message_of_a_killed_worker_is_not_at_work_after_a_minute() -> None:
    with time_machine.travel(WEEK, tick=False):
        message = start_job("scores")
        assert message.key == STARTED
        assert not jobs.enqueue("scores"), "it is running"
        assert (queue_state(timezone.now()).at_work, queue_state(timezone.now()).depth) == (1, 0)
    later = WEEK + 61 * SECOND
    with time_machine.travel(later, tick=False):
        assert (queue_state(later).at_work, queue_state(later).depth) == (0, 0)
        assert jobs.enqueue("scores")
        assert drop_abandoned_messages(later) == 1
        assert [row.key for row in OrmQ.objects.all()] == ["arena"]


@pytest.mark.django_db(transaction=True)
def test_heartbeat_of_a_job_extends_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "INTERVAL_S", 0)
    message = start_job("scores")
    OrmQ.objects.filter(pk=message.pk).update(lock=WEEK)
    heartbeats.beat()
    message.refresh_from_db()
    assert message.lock > timezone.now() + 50 * SECOND


def test_age_of_the_queue_is_that_of_its_oldest_waiting_message() -> None:
    assert queue_state(WEEK).oldest_age_s == 0
    with time_machine.travel(WEEK, tick=False):
        jobs.enqueue("scores")
        jobs.enqueue("ledger")
    assert (queue_state(WEEK + MINUTE).depth, queue_state(WEEK + MINUTE).oldest_age_s) == (2, 60.0)


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_equal_requests_at_once_enqueue_one_job() -> None:
    results = all_at_once(*[lambda: jobs.enqueue("scores")] * 6)
    assert sorted(results) == [False] * 5 + [True]
    assert OrmQ.objects.count() == 1
