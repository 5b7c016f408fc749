"""Alerts by mail and webhook: once each, tried until they are out, and never at anybody else's expense."""

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
    """Somebody's webhook: keeps what it was sent, and answers with the statuses it is told, then 200."""

    def __init__(self, server: HTTPServer) -> None:
        self.heard: list[Any] = []
        self.keys: list[str | None] = []
        self.statuses: list[int] = []
        server.expect_request("/hook/T0KEN", method="POST").respond_with_handler(self._answer)
        self.url = server.url_for("/hook/T0KEN")

    def _answer(self, request: Request) -> Response:
        self.heard.append(request.json)
        self.keys.append(request.headers.get("Idempotency-Key"))
        return Response(status=self.statuses.pop(0) if self.statuses else 200)


@pytest.fixture
def hook(httpserver: HTTPServer, settings: Any) -> Hook:
    made = Hook(httpserver)
    settings.ARENA_ALERT_WEBHOOK = made.url
    return made


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


def test_an_alert_goes_out_once_by_each_way(hook: Hook, inbox: list[Any]) -> None:
    raised = alert()
    enqueue()
    assert enqueue(5 * MINUTE) == "nothing to send"
    assert hook.heard == [
        {
            "text": "Closed for over 72 hours.",
            "kind": "closed-unresolved",
            "subject": "1",
            "raised_at": WEEK.isoformat(),
        }
    ]
    assert hook.keys == [f"alert-{raised.pk}"]
    (sent,) = inbox
    assert sent.to == ["night@example.org", "day@example.org"]
    assert sent.subject == "[arena] Closed for over 72 hours."


def test_nothing_goes_out_where_no_way_is_set() -> None:
    alert()
    assert enqueue() == "nothing to send"
    assert not Notice.objects.exists()
    assert not Run.objects.exists()


def test_what_could_not_be_sent_is_tried_again_later_and_the_other_way_is_not_doubled(
    hook: Hook, inbox: list[Any]
) -> None:
    alert()
    hook.statuses = [500, 503]
    assert "HTTP 500" in enqueue()
    assert enqueue(4 * MINUTE) == "nothing to send"
    assert "HTTP 503" in enqueue(6 * MINUTE)
    assert enqueue(10 * MINUTE) == "nothing to send"
    enqueue(30 * MINUTE)
    assert (len(hook.heard), len(inbox)) == (3, 1)
    assert Notice.objects.filter(sent_at=None).count() == 0
    assert Run.objects.filter(status="failed").count() == 2


def test_a_webhook_s_address_is_told_to_nobody(hook: Hook, settings: Any) -> None:
    settings.ARENA_ALERT_WEBHOOK = "http://127.0.0.1:9/T0KEN"
    alert()
    result = enqueue()
    assert "ConnectError" in result
    assert "T0KEN" not in f"{result}{Notice.objects.get().error}{Run.objects.get().error}{Run.objects.get().log}"


def test_what_was_acknowledged_before_it_went_out_stays_in(hook: Hook) -> None:
    hook.statuses = [500]
    raised = alert()
    enqueue()
    Alert.objects.filter(pk=raised.pk).update(cleared_at=WEEK)
    assert enqueue(10 * MINUTE) == "nothing to send"


def test_a_message_with_line_breaks_makes_no_header(inbox: list[Any]) -> None:
    alert(message="Gone:\nBcc: all@example.org")
    enqueue()
    assert inbox[0].subject == "[arena] Gone: Bcc: all@example.org"
    assert inbox[0].bcc == []


def test_a_failed_run_of_decisions_calls_a_person_until_it_is_mended(venue: Venue) -> None:
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


def test_a_job_that_succeeds_clears_its_alert() -> None:
    Alert.objects.create(kind="job-failed", subject="start_cohort", message="start_cohort failed", raised_at=WEEK)
    with time_machine.travel(WEEK + MINUTE, tick=False):
        jobs.cohort()
    assert not Alert.objects.filter(cleared_at=None).exists()
