"""Delivery of alerts by mail and webhook: once when raised, once when resolved, retried, and revealing no secrets."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core import mail
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from agents.models import Decision, Elicitation
from arena_site import jobs
from arena_site.operations.operational_metrics import model_figures
from foundation.models import Alert, Notice, Run
from foundation.services.alerts import acknowledge_alerts, clear_alert, raise_alert
from tests.answers import GPT
from tests.commands import run
from tests.factories import WEEK
from tests.sandbox import Venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
KIND = "closed-unresolved"


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

    @property
    def told(self) -> list[tuple[str, str, int]]:
        """Status, kind and count of each notice."""
        return [(payload["status"], payload["kind"], payload["count"]) for payload in self.payloads]


@pytest.fixture
def hook(httpserver: HTTPServer, settings: Any) -> Hook:
    webhook = Hook(httpserver)
    settings.ARENA_ALERT_WEBHOOK = webhook.url
    settings.ARENA_SITE_URL = "https://arena.example"
    return webhook


@pytest.fixture
def inbox(settings: Any) -> list[Any]:
    settings.ARENA_ALERT_EMAIL = ["night@example.org", "day@example.org"]
    return mail.outbox


def alert(subject: str = "1", message: str = "Closed for over 72 hours.", **fields: Any) -> Alert:
    raised = raise_alert(kind=KIND, items={subject: f"market {subject}"}, message=message, at=WEEK, **fields)
    assert raised is not None
    return raised


def enqueue(after: timedelta = timedelta(0)) -> str:
    with time_machine.travel(WEEK + after, tick=False):
        try:
            return jobs.alerts()
        except jobs.JobFailed as failed:
            return str(failed)


def send(after: timedelta = timedelta(0)) -> dict[str, int]:
    with time_machine.travel(WEEK + after, tick=False):
        return dict(run("send_alerts").summary)


def test_alert_is_sent_once_by_each_channel(hook: Hook, inbox: list[Any]) -> None:
    raised = alert(path="/markets/7/", remedy="Settle it.")
    assert send() == {"sent": 2, "failed": 0}
    assert send(5 * MINUTE) == {"sent": 0, "failed": 0}
    (payload,) = hook.payloads
    assert payload == {
        "id": raised.pk,
        "status": "open",
        "kind": "closed-unresolved",
        "subject": "1",
        "count": 1,
        "names": ["market 1"],
        "text": "Closed for over 72 hours.",
        "url": "https://arena.example/markets/7/",
        "remedy": "Settle it.",
        "severity": "critical",
        "instance": "localhost:8000",
        "raised_at": "2026-03-08T00:00:00Z",
    }
    assert hook.keys == [f"alert-{raised.pk}-open"]
    (mail,) = inbox
    assert mail.to == ["night@example.org", "day@example.org"]
    assert mail.subject == "[arena] Closed for over 72 hours."
    assert "Settle it.\nhttps://arena.example/markets/7/" in mail.body


def test_end_of_an_alert_is_sent_with_its_id(hook: Hook, inbox: list[Any]) -> None:
    raised = alert()
    enqueue()
    clear_alert(KIND, ["1"], at=WEEK + HOUR)
    enqueue(HOUR)
    enqueue(2 * HOUR)
    assert [(payload["id"], payload["status"]) for payload in hook.payloads] == [
        (raised.pk, "open"), (raised.pk, "resolved"),
    ]  # fmt: skip
    assert hook.payloads[1]["names"] == ["market 1"]
    assert [mail.subject for mail in inbox] == [
        "[arena] Closed for over 72 hours.", "[arena] resolved: Closed for over 72 hours.",
    ]  # fmt: skip


def test_alert_that_was_over_before_it_was_sent_is_not_sent(hook: Hook) -> None:
    alert()
    clear_alert(KIND, ["1"], at=WEEK)
    assert send() == {"sent": 0, "failed": 0}
    assert hook.payloads == []


def test_things_with_one_cause_are_one_alert_and_leave_it_one_by_one(hook: Hook) -> None:
    markets = {str(number): f"market {number}" for number in range(1, 6)}
    raise_alert(kind=KIND, items=markets, message="5 markets are closed.", at=WEEK)
    assert raise_alert(kind=KIND, items=markets, message="again", at=WEEK) is None
    enqueue()
    clear_alert(KIND, ["1", "2", "3", "4"], at=WEEK)
    enqueue(HOUR)
    assert hook.told == [("open", KIND, 5)]
    assert hook.payloads[0]["names"] == ["market 1", "market 2", "market 3"]
    assert Alert.objects.open().get().count == 1
    clear_alert(KIND, ["5"], at=WEEK)
    enqueue(2 * HOUR)
    assert hook.told == [("open", KIND, 5), ("resolved", KIND, 5)]


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


@pytest.mark.parametrize("address", [f"http://{'a' * 70}.example", "http://a..b/", "http://a\nb/"])
def test_webhook_of_no_host_fails_like_one_that_is_down(hook: Hook, settings: Any, address: str) -> None:
    settings.ARENA_ALERT_WEBHOOK = address
    alert()
    assert "was not sent" in enqueue()
    assert Notice.objects.get().error in ("UnicodeError", "InvalidURL")


def test_acknowledged_alert_is_not_sent(hook: Hook) -> None:
    hook.statuses = [500]
    alert()
    enqueue()
    acknowledge_alerts(Alert.objects.all(), at=WEEK)
    assert enqueue(10 * MINUTE) == "nothing to send"


def test_line_breaks_in_a_message_add_no_mail_header(inbox: list[Any]) -> None:
    alert(message="Gone:\nBcc: all@example.org")
    enqueue()
    assert inbox[0].subject == "[arena] Gone: Bcc: all@example.org"
    assert inbox[0].bcc == []


# ── decisions ─────────────────────────────────────────────────────────────────────────────────────

FOUR = ("openai/gpt-5.2", "moonshotai/kimi-k2-thinking", "deepseek/deepseek-v3.2", "qwen/qwen3-235b-a22b-2507")


@pytest.fixture
def failed_sunday(venue: Venue, hook: Hook) -> Venue:
    """A Sunday on which the gateway refused four models, twice."""
    venue.market("Will it rain?")
    run("sync_markets", WEEK)
    run("start_cohort", WEEK)
    for _ in range(2):
        for model in FOUR:
            venue.says(model, Failure(503))
        assert run("run_decisions", WEEK + 5 * MINUTE).code == 1
    return venue


def test_bad_sunday_is_one_alert(failed_sunday: Venue, hook: Hook) -> None:
    enqueue(10 * MINUTE)
    (payload,) = hook.payloads
    assert (payload["kind"], payload["subject"], payload["count"]) == ("tasks-failed", "2026-03-08", 4)
    assert payload["text"].startswith("4 decisions of 8 March 2026 failed: ")
    assert "503" in payload["text"]
    assert payload["names"] == ["GPT-5.2, cohort 1", "DeepSeek V3.2, cohort 1", "Kimi K2, cohort 1"]
    assert payload["url"] == "https://arena.example/admin/agents/decision/?status__exact=failed"


def test_one_retried_decision_leaves_the_alert_of_the_other_three(failed_sunday: Venue, hook: Hook) -> None:
    enqueue(10 * MINUTE)
    assert run("run_decisions", WEEK + 15 * MINUTE, family="gpt-5.1").code == 0
    open_alert = Alert.objects.open().get()
    assert (open_alert.kind, open_alert.count) == ("tasks-failed", 3)
    enqueue(20 * MINUTE)
    assert hook.told == [("open", "tasks-failed", 4)]
    assert run("run_decisions", WEEK + 25 * MINUTE).code == 0
    enqueue(30 * MINUTE)
    assert hook.told == [("open", "tasks-failed", 4), ("resolved", "tasks-failed", 4)]


def test_missed_decisions_raise_one_alert_in_place_of_the_failed_ones(failed_sunday: Venue, hook: Hook) -> None:
    enqueue(10 * MINUTE)
    with time_machine.travel(WEEK + timedelta(days=1, minutes=10), tick=False):
        jobs.missed_decisions()
        jobs.missed_decisions()
    enqueue(25 * HOUR)
    assert sorted(hook.told) == [
        ("open", "tasks-failed", 4), ("open", "tasks-missed", 4), ("resolved", "tasks-failed", 4),
    ]  # fmt: skip
    acknowledge_alerts(Alert.objects.all(), at=WEEK)
    assert run("run_decisions", WEEK + timedelta(days=2)).code == 0
    assert not Alert.objects.open().exists(), "once acknowledged, it is not raised again"


def test_decisions_that_were_never_asked_raise_one_alert(venue: Venue, hook: Hook) -> None:
    run("start_cohort", WEEK)
    for hour in (1, 2):  # nothing ran that Sunday
        with time_machine.travel(WEEK + timedelta(days=8, hours=hour), tick=False):
            jobs.missed_decisions()
    enqueue(timedelta(days=8, hours=3))
    (payload,) = hook.payloads
    assert (payload["kind"], payload["subject"], payload["count"]) == ("tasks-missed", "2026-03-08", 7)
    assert payload["text"] == "7 decisions of 8 March 2026 were missed: never asked within the window"


def test_weeks_without_a_cohort_raise_one_alert(hook: Hook) -> None:
    run("start_cohort", WEEK)
    with time_machine.travel(WEEK + timedelta(weeks=2, days=2), tick=False):
        jobs.cohort()
        jobs.cohort()
    enqueue(timedelta(weeks=3))
    (payload,) = hook.payloads
    assert (payload["kind"], payload["names"]) == ("week-missed", ["2026-03-15", "2026-03-22"])


# ── commands ──────────────────────────────────────────────────────────────────────────────────────


def test_command_raises_the_alert_of_its_failure_and_its_success_clears_it(venue: Venue, hook: Hook) -> None:
    run("start_cohort", WEEK)
    for minute in range(2):
        assert run("run_decisions", WEEK + (5 + minute) * MINUTE).code == 1
    raised = Alert.objects.open().get()
    assert (raised.kind, raised.subject) == ("job-failed", "run_decisions")
    assert raised.path == f"/admin/foundation/run/{Run.objects.filter(kind='run_decisions').earliest('pk').pk}/change/"
    venue.market("Will it rain?")
    run("sync_markets", WEEK + 10 * MINUTE)
    assert run("run_decisions", WEEK + 15 * MINUTE).code == 0
    assert not Alert.objects.open().exists()


def test_successful_job_clears_its_alert() -> None:
    raise_alert(kind="job-failed", items={"start_cohort": "start_cohort"}, message="start_cohort failed", at=WEEK)
    with time_machine.travel(WEEK + MINUTE, tick=False):
        jobs.cohort()
    assert not Alert.objects.open().exists()


# ── a day without an account ──────────────────────────────────────────────────────────────────────


def test_day_without_an_account_is_counted_and_blames_no_model(venue: Venue, hook: Hook) -> None:
    for number in range(3):
        venue.market(f"Will it rain in town {number}?")
    run("sync_markets", WEEK)
    run("start_cohort", WEEK)
    statuses = {"run_decisions": 401, "run_forecasts": 402}
    for hours, command in ((0, "run_decisions"), (0, "run_decisions"), (2, "run_forecasts"), (3, "run_decisions")):
        venue.says(GPT, Failure(statuses[command], {"error": {"message": "refused"}}))
        assert run(command, WEEK + hours * HOUR + 5 * MINUTE).code == 1
        enqueue(hours * HOUR + 10 * MINUTE)
    assert hook.told == [("open", "tasks-failed", 7), ("open", "tasks-failed", 7 + 14)]
    assert len(set(hook.keys)) == 2, "no receiver takes the second for the first"
    assert hook.payloads[1]["text"].startswith(
        "7 decisions and 14 forecast batches of 8 March 2026 failed: the account"
    )
    (row,) = [line for line in model_figures(WEEK + 4 * HOUR).items() if line[0] == GPT]
    assert row[1].failures == 0
    hook.payloads.clear()
    with time_machine.travel(WEEK + timedelta(days=1, minutes=10), tick=False):
        jobs.missed_decisions()
    enqueue(25 * HOUR)
    assert run("run_forecasts", WEEK + timedelta(days=1, hours=3))["missed"] == 14
    enqueue(28 * HOUR)
    assert [told for told in hook.told if told[1] == "tasks-missed"] == [
        ("open", "tasks-missed", 7), ("open", "tasks-missed", 7 + 14),
    ]  # fmt: skip
    for model, status in ((Decision, 401), (Elicitation, 402)):
        rows = model.objects.filter(status="missed").values_list("error", flat=True)
        assert set(rows) == {f"the account was refused, not the model: gateway answered {status}: refused"}


def test_batches_that_nobody_was_asked_for_are_missed(venue: Venue, hook: Hook) -> None:
    venue.market("Will it rain?")
    run("sync_markets", WEEK)
    assert run("run_forecasts", WEEK + HOUR, minutes=0)["unasked"] == 14
    assert not Elicitation.objects.exists()
    assert run("run_forecasts", WEEK + timedelta(days=1, hours=2))["missed"] == 14
    missed = Elicitation.objects.filter(batch__question_set__day=WEEK)
    assert set(missed.values_list("status", "error")) == {("missed", "never asked within the window")}


def test_release_that_the_gateway_does_not_have_is_one_alert_and_asked_once(venue: Venue, hook: Hook) -> None:
    venue.market("Will it rain?")
    run("sync_markets", WEEK)
    run("start_cohort", WEEK)
    venue.says(GPT, Failure(404, {"error": {"code": 404, "message": "No endpoints found"}}))
    for hours, command in ((0, "run_decisions"), (1, "run_decisions"), (2, "run_forecasts"), (3, "run_forecasts")):
        run(command, WEEK + hours * HOUR + 5 * MINUTE)
        enqueue(hours * HOUR + 10 * MINUTE)
    assert [prompt.model for prompt in venue.asked].count(GPT) == 1
    assert hook.told == [("open", "release-gone", 1)]
    (payload,) = hook.payloads
    assert payload["text"].startswith(f"{GPT} is not asked any more: the gateway has no such release any more: ")
    assert set(Elicitation.objects.filter(release__model_id=GPT).values_list("status", flat=True)) == {"failed"}
    acknowledge_alerts(Alert.objects.all(), at=WEEK + 4 * HOUR)
    assert run("run_decisions", WEEK + 5 * HOUR, family="gpt-5.1")["completed"] == 1
