"""The operator dashboard on a Sunday of failures: runs, errors, concerns and the actions against them."""

import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_q.models import Failure, Schedule, Task

from agents.models import Decision, Elicitation, Release
from agents.services.task_alerts import refresh_task_alerts
from arena_site import jobs
from arena_site.dashboard.overview import Overview
from arena_site.models import Worker
from arena_site.operations.condition import Occurrence
from foundation.models import Alert, Notice, Run
from markets.models import Market, Outcome
from markets.services.venue_health import alert_venue_down
from tests.arena_site.dashboard.accounts import sign_in
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    RunFactory,
    UniverseFactory,
    ask,
    bet,
)

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(minutes=40)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def viewer() -> Client:
    return sign_in("viewer")


def overview(client: Client) -> Overview:
    return client.get(reverse("admin:index")).context["overview"]


def concern_rows(client: Client) -> list[Occurrence]:
    return client.get(reverse("admin:index")).context["concerns"]


def dashboard_html(client: Client) -> str:
    return client.get(reverse("admin:index")).content.decode()


def concerns(client: Client) -> list[str]:
    return [concern.message for concern in concern_rows(client)]


def create_healthy_state() -> None:
    """Schedules, a live worker, and a successful run."""
    jobs.install()
    Schedule.objects.update(next_run=NOW + timedelta(minutes=1))
    Worker.objects.create(name="one", seen_at=NOW - timedelta(seconds=10))
    RunFactory(at=NOW - timedelta(minutes=2))


def test_healthy_state_has_no_concern(viewer: Client) -> None:
    create_healthy_state()
    assert concerns(viewer) == []
    assert "No problems" in dashboard_html(viewer)


def test_failed_run_shows_its_error_and_the_last_success(viewer: Client) -> None:
    create_healthy_state()
    RunFactory(kind="run_decisions", at=NOW - timedelta(days=7))
    RunFactory(kind="run_decisions", at=NOW - timedelta(minutes=30), status="failed", error="GPT-5.2: HTTP 503\nmore")
    assert concerns(viewer) == ["decisions: GPT-5.2: HTTP 503"]
    job = next(job for job in overview(viewer).jobs.jobs if job.name == "decisions")
    assert (job.failed, job.duration, job.last_success.started_at) == (True, "20 s", NOW - timedelta(days=7))


def test_failed_run_followed_by_a_success_is_no_concern(viewer: Client) -> None:
    create_healthy_state()
    RunFactory(kind="run_decisions", at=NOW - timedelta(minutes=30), status="failed", error="HTTP 503")
    RunFactory(kind="run_decisions", at=NOW - timedelta(minutes=10))
    assert concerns(viewer) == []


def test_failed_decisions_of_this_week_link_to_their_retry(viewer: Client) -> None:
    create_healthy_state()
    universe = UniverseFactory(markets=[])
    decision = DecisionFactory(failed=True, universe=universe)
    claimed = DecisionFactory(
        agent=AgentFactory(cohort=decision.cohort), status="claimed", action=None, decided_at=None,
        lease_id=uuid.uuid4(), lease_until=NOW - timedelta(minutes=1), universe=universe,
    )  # fmt: skip
    live = DecisionFactory(
        agent=AgentFactory(cohort=decision.cohort), status="claimed", action=None, decided_at=None,
        lease_id=uuid.uuid4(), lease_until=NOW + timedelta(minutes=1), universe=universe,
    )  # fmt: skip
    DecisionFactory(failed=True, cohort__week_start=WEEK - timedelta(weeks=3), week=1)
    markup = dashboard_html(sign_in("operator"))
    assert f'{reverse("admin:action", args=["retry"])}?decision={decision.pk}"' in markup
    assert f'{reverse("admin:action", args=["release-claim"])}?decision={claimed.pk}"' in markup
    assert f'decision={live.pk}"' not in markup
    assert [(task.status, task.error) for task in overview(viewer).tasks[0].failed] == [
        ("interrupted", "its worker died"),
        ("failed", "HTTP 503"),
    ]
    assert concerns(viewer) == [
        f"HTTP 503: 1 decision of this week failed ({decision.agent.display_name}, cohort 1)",
        "1 decision was interrupted: its worker died",
    ]


def test_a_market_closed_for_three_days_leads_to_its_settlement(viewer: Client) -> None:
    create_healthy_state()
    agent = AgentFactory()
    for days, closed in ((4, "Four days?"), (2, "Two days?"), (0, "Today?")):
        market = MarketFactory(question=closed)
        bet(agent, market, amount="100.00")
        Market.objects.filter(pk=market.pk).update(status="closed", closed_at=NOW - timedelta(days=days))
    assert [market.question for market in overview(viewer).unresolved_markets] == ["Four days?", "Two days?"]
    (concern,) = concern_rows(viewer)
    assert concern.message == "1 market closed or unreadable for over 72 hours without a resolution"
    four = Market.objects.get(question="Four days?")
    assert concern.action_path == f"{reverse('admin:action', args=['settle'])}?market={four.pk}"


def test_spending_is_shown_with_its_cap(viewer: Client, settings: Any) -> None:
    create_healthy_state()
    settings.ARENA_SPEND_LIMIT_USD = Decimal("10")
    ModelCallFactory(cost_usd="8.5")
    assert [(s.week.protocol, s.week.spent, s.css_class) for s in overview(viewer).spending] == [
        ("trading", Decimal("8.5"), "warn"),
        ("forecast", Decimal(0), "good"),
    ]
    assert concerns(viewer) == ["trading: $8.50 of this week's $10.00 are spent"]


def test_stale_prices_and_alerts_are_shown(viewer: Client) -> None:
    create_healthy_state()
    trade = bet(AgentFactory(), MarketFactory())
    Outcome.objects.filter(pk=trade.outcome_id).update(price_stale=True)
    alert = Alert.objects.create(kind="market-gone", subject="1", message="Gone from its venue.", raised_at=WEEK)
    Notice.objects.create(alert=alert, channel="mail", tries=2, next_try_at=NOW)
    assert concerns(viewer) == ["Gone from its venue.", "1 held price stale", "1 alert could not be sent yet"]
    assert "Gone from its venue." in dashboard_html(viewer)


def test_missing_worker_and_late_schedules_are_concerns(viewer: Client) -> None:
    assert concerns(viewer) == ["No schedules are installed: no job runs by itself"]
    create_healthy_state()
    Worker.objects.update(seen_at=NOW - timedelta(hours=1))
    Schedule.objects.filter(name="sync").update(next_run=NOW - timedelta(minutes=20))
    Schedule.objects.filter(name="prune").update(repeats=jobs.PAUSED)
    Failure.objects.create(id="x" * 32, name="x", func="x", started=NOW, stopped=NOW, success=False, result="killed")
    assert concerns(viewer) == [
        "No worker has been seen since 07 March, 23:40 UTC: no job runs by itself (overdue: sync)",
        "Paused: prune",
        "1 job failed or was stopped in the last day",
    ]


def test_top_names_what_is_wrong_now_and_forgets_what_has_succeeded_since(viewer: Client) -> None:
    create_healthy_state()
    for number, (function, minutes, success) in enumerate(
        [("sync", 30, False), ("sync", 10, True), ("missed_decisions", 20, False), ("sync", 35, False)]
    ):
        stopped = NOW - timedelta(minutes=minutes)
        Task.objects.create(
            id=f"{number}" * 32, name=function, func=f"arena_site.jobs.{function}", started=stopped, stopped=stopped,
            success=success, result="",
        )  # fmt: skip
    assert concerns(viewer) == ["missed decisions: its last run ended at 08 March, 00:20 UTC without a result"]


def test_venue_that_is_down_is_one_problem_with_its_remedy() -> None:
    create_healthy_state()
    RunFactory(kind="sync_markets", at=NOW - timedelta(minutes=1), status="failed", error="gamma: no answer")
    alert_venue_down("gamma", "gamma: no answer", at=NOW)
    operator = sign_in("operator")
    assert concerns(operator) == ["Polymarket can not be read. gamma: no answer"]
    assert concern_rows(operator)[0].action_path == reverse("admin:action", args=["sync_markets"])


def test_account_without_credit_is_one_problem_with_one_remedy() -> None:
    create_healthy_state()
    universe = UniverseFactory(markets=[])
    decisions = [
        DecisionFactory(
            failed=True, universe=universe, error=f"gateway answered 402: you can only afford {number} tokens"
        )
        for number in (812, 70)
    ]
    batch = ask(QuestionFactory(), {"gpt-5.1": [0.6, 0.4]}).question_set.batches.get(arm="priced").elicitations.get()
    release = Release.objects.exclude(family=batch.family).earliest("pk")
    Elicitation.objects.create(
        batch=batch.batch, methodology=batch.methodology, release=release, family=release.family, status="failed",
        error="gateway answered 402: Insufficient credits",
    )  # fmt: skip
    error = "\n".join(f"{decision.agent}: {decision.error}" for decision in decisions)
    RunFactory(kind="run_decisions", at=NOW - timedelta(minutes=30), status="failed", error=error)
    RunFactory(
        kind="run_forecasts", at=NOW - timedelta(minutes=20), status="failed", error="x: gateway answered 402: no"
    )
    refresh_task_alerts(at=NOW)
    operator = sign_in("operator")
    (concern,) = concern_rows(operator)
    assert "2 decisions and 1 question batch of this week failed" in concern.message
    assert "add credit" in concern.remedy
    assert overview(operator).alerts.count == 1
    page = operator.get(concern.action_path)
    assert [len(page.context["form"].cleaned_data[kind]) for kind in ("decision", "elicitation")] == [2, 1]


def test_tasks_that_fail_for_two_reasons_are_two_problems(viewer: Client) -> None:
    create_healthy_state()
    universe = UniverseFactory(markets=[])
    for error in ("HTTP 503", "HTTP 503", "no answer within 600 s"):
        DecisionFactory(failed=True, universe=universe, error=error)
    RunFactory(kind="run_decisions", at=NOW - timedelta(minutes=30), status="failed", error="A: HTTP 503\nuniverse: no")
    messages = [message.partition(" (")[0] for message in concerns(viewer)]
    assert messages == [
        "decisions: A: HTTP 503",
        "HTTP 503: 2 decisions of this week failed",
        "no answer within 600 s: 1 decision of this week failed",
    ]


def test_ledger_violations_are_a_concern(viewer: Client) -> None:
    create_healthy_state()
    RunFactory(kind="verify_ledger", at=NOW - timedelta(hours=1), status="failed", error="", summary={"violations": 2})
    assert "The last ledger verification found 2 violations" in concerns(viewer)


def test_dashboard_needs_the_same_queries_for_any_number_of_failures() -> None:
    operator = sign_in("operator")
    create_healthy_state()
    universe = UniverseFactory(markets=[])

    def grow() -> None:
        cohort = CohortFactory()
        for _ in range(3):
            agent = AgentFactory(cohort=cohort)
            DecisionFactory(agent=agent, failed=True, universe=universe)
            trade = bet(agent, MarketFactory(), week=2)
            Market.objects.filter(pk=trade.market_id).update(status="closed", closed_at=WEEK - timedelta(days=4))
            Outcome.objects.filter(pk=trade.outcome_id).update(price_stale=True)
            Alert.objects.create(kind="market-gone", subject=str(trade.pk), message="Gone.", raised_at=WEEK)
            RunFactory(kind="run_decisions", status="failed", error="HTTP 503")
            operator.post(reverse("admin:action", args=["sync_markets"]), {"reason": "x", "confirmed": "yes"})

    def counted() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert operator.get(reverse("admin:index")).status_code == 200
        return len(captured)

    grow()
    counted()
    before = counted()
    grow()
    grow()
    assert counted() == before <= 64


def test_text_of_models_and_venues_is_escaped(viewer: Client) -> None:
    create_healthy_state()
    DecisionFactory(failed=True, error=HOSTILE, universe=UniverseFactory(markets=[]))
    trade = bet(AgentFactory(), MarketFactory(question=HOSTILE))
    Market.objects.filter(pk=trade.market_id).update(status="closed", closed_at=WEEK - timedelta(days=4))
    Outcome.objects.filter(pk=trade.outcome_id).update(price_stale=True)
    Alert.objects.create(kind="x", subject="1", message=HOSTILE, raised_at=WEEK)
    RunFactory(kind="run_decisions", status="failed", error=HOSTILE, at=NOW)
    markup = dashboard_html(viewer)
    assert "<script>alert(1)" not in markup
    assert markup.count("&lt;script&gt;alert(1)") >= 5
    assert ' style="' not in markup


def test_a_rows_page_links_to_its_action(admin_client: Client) -> None:
    decision = DecisionFactory(failed=True, universe=UniverseFactory(markets=[]))
    market = MarketFactory(closed=True)
    markup = admin_client.get(reverse("admin:agents_decision_change", args=[decision.pk])).content.decode()
    assert f'{reverse("admin:action", args=["retry"])}?decision={decision.pk}"' in markup
    markup = admin_client.get(reverse("admin:markets_market_change", args=[market.pk])).content.decode()
    assert f'{reverse("admin:action", args=["settle"])}?market={market.pk}"' in markup
    assert Run.objects.count() == Decision.objects.filter(status="completed").count() == 0
