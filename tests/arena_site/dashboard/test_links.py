"""Every number of the overview leads to the rows that it counts, and every cost to the calls that it sums."""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from django.urls import reverse
from django_q.models import Failure, OrmQ, Schedule
from selectolax.lexbor import LexborHTMLParser, LexborNode

from agents.models import Elicitation, Release
from arena_site import jobs
from arena_site.dashboard.alert_panel import ALERTS_SHOWN
from arena_site.models import Worker
from arena_site.operations.queue_messages import STARTED
from foundation.models import Alert, Notice
from markets.models import Market, Outcome
from tests.factories import (
    WEEK,
    AgentFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    RunFactory,
    UniverseFactory,
    ask,
    bet,
)
from tests.markup import elements, get_page

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(minutes=40)


def create_rows() -> None:
    """Rows of every kind that the overview counts, and some like them that it does not."""
    jobs.install()
    universe = UniverseFactory(markets=[])
    for number, status in enumerate(("failed", "failed", "succeeded", "running")):
        error = "HTTP 503" if status == "failed" else ""
        RunFactory(kind="run_decisions", at=NOW - timedelta(hours=number + 1), status=status, error=error)
    RunFactory(kind="run_decisions", at=NOW - timedelta(hours=25), status="failed", error="HTTP 503")
    RunFactory(kind="sync_markets", at=NOW - timedelta(hours=1))
    failed = DecisionFactory(failed=True, universe=universe)
    for _ in range(2):
        DecisionFactory(agent=AgentFactory(cohort=failed.cohort), failed=True, universe=universe)
    completed_decision = DecisionFactory(agent=AgentFactory(cohort=failed.cohort), universe=universe)
    DecisionFactory(
        agent=AgentFactory(cohort=failed.cohort), status="claimed", action=None, decided_at=None,
        lease_id=uuid.uuid4(), lease_until=NOW - timedelta(minutes=1), universe=universe,
    )  # fmt: skip
    DecisionFactory(failed=True, cohort__week_start=WEEK - timedelta(weeks=3), week=1)
    for result, cost, days in (
        ("answered", "0.25", 0),
        ("malformed", "0.125", 0),
        ("failed", "0", 1),
        ("answered", "2", 8),
    ):
        ModelCallFactory(decision=completed_decision, result=result, cost_usd=cost, sent_at=NOW - timedelta(days=days))
    batch = ask(QuestionFactory(), {"gpt-5.1": [0.6, 0.4]}).question_set.batches.get(arm="priced")
    first = batch.elicitations.get()
    other_release = Release.objects.exclude(family=first.family).earliest("pk")
    Elicitation.objects.create(
        batch=batch,
        methodology=first.methodology,
        release=other_release,
        family=other_release.family,
        status="failed",
        error="HTTP 503",
    )
    for days in (4, 2, 0):
        trade = bet(AgentFactory(), MarketFactory(), amount="100.00")
        Market.objects.filter(pk=trade.market_id).update(status="closed", closed_at=NOW - timedelta(days=days))
        Outcome.objects.filter(pk=trade.outcome_id).update(price_stale=True)
    MarketFactory(closed=True)
    alert = Alert.objects.create(kind="market-gone", subject="1", message="Gone from its venue.", raised_at=WEEK)
    Alert.objects.create(kind="market-gone", subject="2", message="Gone.", raised_at=WEEK, cleared_at=NOW)
    for number in range(ALERTS_SHOWN):
        Alert.objects.create(
            kind="market-gone", subject=f"old {number}", message="Gone.", raised_at=WEEK - timedelta(days=1)
        )
    Notice.objects.create(alert=alert, channel="mail", tries=2, next_try_at=NOW)
    jobs.enqueue("sync")
    jobs.enqueue("scores")
    OrmQ.objects.filter(pk=OrmQ.objects.latest("pk").pk).update(key=STARTED, lock=NOW + timedelta(minutes=1))
    Failure.objects.create(id="x" * 32, name="x", func="x", started=NOW, stopped=NOW, success=False, result="killed")


def overview(client: Client) -> LexborHTMLParser:
    return get_page(client, reverse("admin:index"))


def rows_behind(client: Client, link: LexborNode) -> Any:
    response = client.get(link.attributes["href"])
    assert response.status_code == 200, link.attributes["href"]
    return response.context["cl"].queryset


def test_every_number_leads_to_the_rows_that_it_counts(admin_client: Client) -> None:
    create_rows()
    links = elements(overview(admin_client), "a[data-rows]")
    rows = {link.attributes["href"]: rows_behind(admin_client, link).count() for link in links}
    counts_by_link = {link.attributes["href"]: int(link.attributes["data-rows"] or "") for link in links}
    assert counts_by_link == rows
    texts = [
        (f"{link.text()} {link.attributes.get('title') or ''}".strip(), link.attributes["data-rows"])
        for link in links
        if "cell" not in (link.attributes.get("class") or "")
    ]
    assert [text for text, number in texts if str(number) not in text] == []
    labels = {text for text, _ in texts}
    assert labels >= {
        "3 failed", "1 completed", "1 claimed", "1 failed", "1 queued", "1 running", "1 stopped in 24 h", "4", "3", "2",
        "1 market closed or unreadable for over 72 hours without a resolution", "1 older alert not acknowledged",
        "3 held prices stale", "1 job failed or was stopped in the last day", "1 alert could not be sent yet",
    }  # fmt: skip


def test_every_problem_has_a_remedy_or_an_action(admin_client: Client) -> None:
    jobs.install()
    create_rows()
    RunFactory(kind="verify_ledger", at=NOW, status="failed", error="", summary={"violations": 2})
    RunFactory(kind="prune", at=NOW, status="failed", error="no reason given")
    Worker.objects.create(name="one", seen_at=NOW)
    Schedule.objects.filter(name="sync").update(next_run=NOW - timedelta(hours=1))
    problems = admin_client.get(reverse("admin:index")).context["concerns"]
    assert len(problems) >= 10
    assert [problem.message for problem in problems if not (problem.remedy or problem.button)] == []


def test_every_cost_leads_to_the_calls_that_it_sums(admin_client: Client) -> None:
    create_rows()
    links = elements(overview(admin_client), "a[data-cost]")
    counts_by_link = {link.attributes["href"]: Decimal(link.attributes["data-cost"] or "") for link in links}
    sums = {
        link.attributes["href"]: rows_behind(admin_client, link).aggregate(sum=Sum("cost_usd"))["sum"] or Decimal(0)
        for link in links
    }
    assert counts_by_link == sums
    # Of the week, of the last seven days, of today, and of each model.
    assert {link.text() for link in links} == {"$2.3750", "$0.0100", "$0.3850", "$0.3750", "$0.0000"}


def test_numbers_of_an_empty_arena_lead_to_empty_lists(admin_client: Client) -> None:
    links = elements(overview(admin_client), "a[data-rows]")
    assert {link.attributes["data-rows"] for link in links} == {"0"}
    assert [link.text() for link in links if rows_behind(admin_client, link).exists()] == []
