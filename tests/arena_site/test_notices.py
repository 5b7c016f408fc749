"""Delivery of alerts by mail and webhook: once each, retried, and without revealing secrets."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from arena_site import jobs
from arena_site.models import Notice
from markets.models import Alert, Run
from tests.factories import WEEK
from tests.venue import Failure, Venue

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


class Hook:
    """A webhook that stores requests and responds with the given statuses, then with 200."""

    def __init__(self, server: HTTPServer) -> None:
        self.payloads: list[Any] = []
        self.keys: list[str | None] = []
        self.statuses: list[int] = []
        server.expect_request("/hook/T0KEN", method="POST").respond_with_handler(self._answer)
        self.url = server.url_for("/hook/T0KEN")

    def _answer(self, request: Request) -> Response:
        self.payloads.append(request.json)
        self.keys.append(request.headers.get("Idempotency-Key"))
        return Response(status=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
def hook(httpserver: HTTPServer, settings: Any) -> Hook:
    webhook = Hook(httpserver)
    settings.ARENA_ALERT_WEBHOOK = webhook.url
    return webhook


@pytest.fixture
def inbox(settings: Any) -> list[Any]:
    settings.ARENA_ALERT_EMAIL = ["night@example.org", "day@example.org"]
    return mail.outbox


def alert(subject: str = "1", message: str = "Closed for over 72 hours.") -> Alert:
    return Alert.objects.create(kind="closed-unresolved", subject=subject, message=message, raised_at=WEEK)


def enqueue(after: timedelta = timedelta(0)) -> str:
    with time_machine.travel(WEEK + after, tick=False):
        try:
            return jobs.alerts()
        except jobs.JobFailed as failed:
            return str(failed)


def test_alert_is_sent_once_by_each_channel(hook: Hook, inbox: list[Any]) -> None:
    raised = alert()
    enqueue()
    assert enqueue(5 * MINUTE) == "nothing to send"
    (payload,) = hook.payloads
    assert payload == {
        "text": "Closed for over 72 hours.",
        "kind": "closed-unresolved",
        "subject": "1",
        "raised_at": WEEK.isoformat(),
    }
    assert hook.keys == [f"alert-{raised.pk}"]
    (sent,) = inbox
    assert sent.to == ["night@example.org", "day@example.org"]
    assert sent.subject == "[arena] Closed for over 72 hours."


def test_nothing_is_sent_without_a_channel() -> None:
    alert()
    assert enqueue() == "nothing to send"
    assert not Notice.objects.exists()
    assert not Run.objects.exists()


def test_failed_delivery_is_retried_and_the_other_channel_is_not_repeated(hook: Hook, inbox: list[Any]) -> None:
    alert()
    hook.statuses = [500, 503]
    assert "HTTP 500" in enqueue()
    assert enqueue(4 * MINUTE) == "nothing to send"
    assert "HTTP 503" in enqueue(6 * MINUTE)
    assert enqueue(10 * MINUTE) == "nothing to send"
    enqueue(30 * MINUTE)
    assert (len(hook.payloads), len(inbox)) == (3, 1)
    assert Notice.objects.filter(sent_at=None).count() == 0
    assert Run.objects.filter(status="failed").count() == 2


def test_address_of_a_webhook_stays_secret(hook: Hook, settings: Any) -> None:
    settings.ARENA_ALERT_WEBHOOK = "http://127.0.0.1:9/T0KEN"
    alert()
    result = enqueue()
    assert "ConnectError" in result
    assert "T0KEN" not in f"{result}{Notice.objects.get().error}{Run.objects.get().error}{Run.objects.get().log}"


def test_acknowledged_alert_is_not_sent(hook: Hook) -> None:
    hook.statuses = [500]
    raised = alert()
    enqueue()
    Alert.objects.filter(pk=raised.pk).update(cleared_at=WEEK)
    assert enqueue(10 * MINUTE) == "nothing to send"


def test_line_breaks_in_a_message_add_no_mail_header(inbox: list[Any]) -> None:
    alert(message="Gone:\nBcc: all@example.org")
    enqueue()
    assert inbox[0].subject == "[arena] Gone: Bcc: all@example.org"
    assert inbox[0].bcc == []


def test_failed_decision_run_raises_one_alert(venue: Venue) -> None:
    venue.market("Will it rain?")
    venue.says("openai/gpt-5.2", Failure(402))
    with time_machine.travel(WEEK, tick=False):
        jobs.sync()
        jobs.cohort()
    with time_machine.travel(WEEK + 5 * MINUTE, tick=False):
        for _ in range(2):
            with pytest.raises(jobs.JobFailed):
                jobs.decisions()
            venue.says("openai/gpt-5.2", Failure(402))
    raised = Alert.objects.get(kind="job-failed", cleared_at=None)
    assert raised.subject == "run_decisions"
    assert "402" in raised.message


def test_successful_job_clears_its_alert() -> None:
    Alert.objects.create(kind="job-failed", subject="start_cohort", message="start_cohort failed", raised_at=WEEK)
    with time_machine.travel(WEEK + MINUTE, tick=False):
        jobs.cohort()
    assert not Alert.objects.filter(cleared_at=None).exists()
