"""The log and progress of a run: stored while it goes on, with times, levels and rows, and followed on its page."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents.models import Decision
from foundation import run_log
from foundation.models import Run
from tests.answers import GPT
from tests.commands import DECISION, SUNDAY, run
from tests.factories import MarketFactory, RunFactory
from tests.markup import element, elements, get_page, links, table_rows, visible_text
from tests.sandbox import Venue
from venue_sandbox.script import Failure

HOSTILE = "<script>alert(1)</script>"


def stored(run: Run) -> Run:
    return Run.objects.get(pk=run.pk)


def live(run: Run) -> str:
    return reverse("admin:foundation_run_live", args=[run.pk])


@pytest.mark.django_db(transaction=True)
def test_lines_and_progress_are_stored_while_the_run_goes_on() -> None:
    with Run.objects.recorded("run_decisions", SUNDAY) as under_way:
        run_log.write(run_log.ERROR, "GPT-5.2: HTTP 503", decision=3)
        (line,) = stored(under_way).log
        assert (line["level"], line["text"], line["rows"]) == ("error", "GPT-5.2: HTTP 503", {"decision": 3})
        assert line["at"].endswith("+00:00")
        run_log.record_progress(1, 7, "GPT-5.2")
    assert stored(under_way).progress == {"done": 1, "of": 7, "caption": "GPT-5.2"}
    run_log.write(run_log.INFO, "after the end")
    assert stored(under_way).log_texts == ["GPT-5.2: HTTP 503"]


@pytest.mark.django_db(transaction=True)
def test_lines_of_a_transaction_that_is_undone_stay_in_the_log() -> None:
    with Run.objects.recorded("check_resolutions", SUNDAY) as under_way:
        with transaction.atomic():
            run_log.write(run_log.INFO, "market 7 resolved: YES", market=7)
            assert stored(under_way).log == []
            transaction.set_rollback(True)
        run_log.write(run_log.INFO, "the next market")
    assert stored(under_way).log_texts == ["market 7 resolved: YES", "the next market"]


@pytest.mark.django_db
def test_log_is_bounded_and_errors_come_last_to_the_bound() -> None:
    with Run.objects.recorded("sync_markets", SUNDAY) as under_way:
        lines = run_log.ReportLines()
        for number in range(502):
            lines.write(f"skipped {number}")
        run_log.FailureLines().write("the venue is down")
    texts = stored(under_way).log_texts
    assert texts[499:] == ["skipped 499", "the venue is down", "… and 2 more lines"]
    assert len(lines) == 502


@pytest.mark.django_db
def test_each_step_of_a_decision_is_a_line_that_names_its_decision(venue: Venue) -> None:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    venue.says(GPT, Failure(503))
    run("run_decisions", DECISION)
    log = Run.objects.latest("pk").log
    failed = Decision.objects.get(status="failed")
    of_failed = [(line["level"], line["text"]) for line in log if line.get("rows") == {"decision": failed.pk}]
    assert [level for level, _ in of_failed] == ["info", "info", "error"]
    assert of_failed[0][1] == "gpt-5.1: claimed"
    assert "503" in of_failed[-1][1]
    completed_decision = Decision.objects.filter(status="completed").earliest("pk")
    steps = [line["text"] for line in log if line.get("rows") == {"decision": completed_decision.pk}]
    assert [step.split(": ")[1].split()[0] for step in steps] == ["claimed", "asked", "answered", "executed"]


@pytest.mark.django_db
def test_page_shows_times_levels_and_links_to_rows(admin_client: Client) -> None:
    market = MarketFactory()
    at = "2026-03-08T00:05:01.250+00:00"
    lines = [
        {"at": at, "level": "info", "text": f"{HOSTILE} resolved", "rows": {"market": market.pk}},
        {"at": at, "level": "error", "text": "no price was accepted"},
        "a line of an older run",
    ]
    row = RunFactory(status="failed", error="no price was accepted", log=lines, summary={"positions_settled": 3})
    page = get_page(admin_client, reverse("admin:foundation_run_change", args=[row.pk]))
    assert table_rows(element(page, "table.log"))[1:] == [
        ["00:05:01", "info", f"{HOSTILE} resolved"],
        ["00:05:01", "error", "no price was accepted"],
        ["", "", "a line of an older run"],
    ]
    assert links(page, "table.log a") == [reverse("admin:markets_market_change", args=[market.pk])]
    assert visible_text(page, "dl.facts") == "positions settled 3"
    assert element(page, "#run").attributes["data-live"] == live(row)


@pytest.mark.django_db
def test_page_follows_a_run_until_it_has_ended(admin_client: Client) -> None:
    started_at = timezone.now() - timedelta(seconds=75)
    row = RunFactory(
        kind="run_decisions", status="running", started_at=started_at, finished_at=None, summary={},
        progress={"done": 3, "of": 7, "caption": HOSTILE},
    )  # fmt: skip
    followed = get_page(admin_client, live(row))
    assert element(followed, "section").attributes["data-status"] == "running"
    assert element(followed, "progress").attributes == {"max": "7", "value": "3"}
    assert f"3 of 7: {HOSTILE}" in visible_text(followed)
    assert "No lines yet." in visible_text(followed)
    row.finish(failed=False)
    last_page = get_page(admin_client, live(row))
    assert element(last_page, "section").attributes["data-status"] == "succeeded"
    assert elements(last_page, "progress") == []


@pytest.mark.django_db
def test_only_accounts_that_may_view_runs_follow_one(client: Client) -> None:
    row = RunFactory()
    assert client.get(live(row)).status_code == 302
    account = User.objects.create_user("ann", is_staff=True)
    client.force_login(account)
    assert client.get(live(row)).status_code == 403
    account.user_permissions.add(Permission.objects.get(codename="view_run"))
    assert client.get(live(row)).status_code == 200
    assert client.get(reverse("admin:foundation_run_live", args=[0])).status_code == 404
