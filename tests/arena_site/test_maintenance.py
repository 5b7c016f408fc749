"""Maintenance: no model is asked, everything else goes on, and pages say so."""

import pytest
import time_machine
from django.test import Client
from django.urls import reverse

from agents.models import Maintenance
from agents.services.decisions import DecisionReport
from arena_site.models import AuditEntry
from foundation.models import Alert
from markets.models import QuestionSet, Universe
from tests.arena_site.dashboard.accounts import sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.markup import get_page, visible_text
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db


@pytest.fixture
def cohort_venue(venue: Venue) -> Venue:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    return venue


def test_nobody_is_asked_and_nothing_is_frozen_until_it_ends(cohort_venue: Venue) -> None:
    assert run("maintenance", None, "on", reason="new disks")["changed"]
    for command in ("run_decisions", "run_forecasts"):
        output = run(command, DECISION)
        assert (output.code, output["asked"], output["failed"]) == (0, 0, 0)
    assert (cohort_venue.asked, Universe.objects.count(), QuestionSet.objects.count()) == ([], 0, 0)
    assert not Alert.objects.open().exists()
    assert run("take_snapshots", DECISION)["snapshots"] == 7
    assert run("maintenance", None, "off")["changed"]
    assert run("run_decisions", DECISION)["completed"] == 7


def test_run_under_way_asks_nobody_new() -> None:
    report = DecisionReport()
    assert not report.is_stopped("openai/gpt-5.2", "GPT-5.2")
    run("maintenance", None, "on", reason="new disks")
    assert report.is_stopped("openai/gpt-5.2", "GPT-5.2")
    assert (report.unasked, report.failed) == (1, 0)
    (line,) = report.log
    assert line.endswith("new disks; no model is asked")


def test_command_says_how_it_stands_and_wants_a_reason() -> None:
    assert run("maintenance")["maintenance"] == "off"
    assert "--reason" in run("maintenance", None, "on").stderr
    with time_machine.travel(SUNDAY, tick=False):
        run("maintenance", None, "on", reason="new disks")
    line = "maintenance since 2026-03-08 00:00 UTC: new disks; no model is asked"
    assert run("maintenance")["maintenance"] == line
    assert not run("maintenance", None, "on", reason="again")["changed"]
    entry = AuditEntry.objects.get()
    assert (entry.action, entry.by, entry.reason) == ("maintenance", "manage.py", "new disks")


def test_pages_and_dashboard_say_so(client: Client) -> None:
    assert "Maintenance" not in visible_text(get_page(client, "/"))
    run("maintenance", None, "on", reason="new <disks>")
    assert "new <disks>. No model is asked until it ends." in visible_text(get_page(client, "/"))
    staff = sign_in("operator")
    assert "no model is asked" in visible_text(get_page(staff, reverse("admin:index")))


def test_dashboard_begins_and_ends_it_on_record() -> None:
    operator = sign_in("operator")
    for name in ("maintenance", "end-maintenance"):
        operator.post(reverse("admin:action", args=[name]), {"reason": "new disks", "confirmed": "yes"})
    assert [entry.action for entry in AuditEntry.objects.order_by("pk")] == ["maintenance", "end-maintenance"]
    assert Maintenance.objects.get().ended_at is not None
