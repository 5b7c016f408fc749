"""The problems at the top of the dashboard: one cause is one problem with one remedy, whatever tells of it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.urls import reverse
from django_q.models import Schedule

from agents.models import LineUp
from agents.services.lineups import propose_lineup, releases_of
from agents.services.release_check import UnusableRelease, raise_unusable_alerts
from arena_site import jobs
from arena_site.models import Worker
from arena_site.operations.alert_watch import watch_alerts
from arena_site.operations.condition import Occurrence
from arena_site.operations.conditions import refresh_conditions
from arena_site.operations.worker_watch import check_workers
from foundation.models import Alert
from foundation.services.alerts import raise_alert
from markets.models import Market
from markets.services.venue_health import refresh_stale_prices
from tests.answers import GPT, KIMI
from tests.arena_site.dashboard.accounts import action_path, perform, sign_in
from tests.commands import SUNDAY, run
from tests.factories import WEEK
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(minutes=40)
KEY = "sk-or-v1-0123456789abcdef"


def play(venue: Venue) -> None:
    """A cohort that may be asked, with schedules and a live worker."""
    with time_machine.travel(NOW, tick=False):
        venue.market("Will it rain?")
        venue.start_first_cohort()
        jobs.install()
        Schedule.objects.update(next_run=NOW + timedelta(minutes=1))
        Worker.objects.create(name="one", seen_at=NOW - timedelta(seconds=10))


played = shared_rows_at_venue(play)


@pytest.fixture
def season(played: tuple[Venue, None], venue: Venue, settings: Any) -> Venue:
    """The venue of an arena without any trouble."""
    settings.OPENROUTER_API_KEY, settings.ARENA_ALERT_WEBHOOK = KEY, ""
    return venue.as_left(played[0])


def problems() -> list[Occurrence]:
    concerns: list[Occurrence] = sign_in("operator").get(reverse("admin:index")).context["concerns"]
    return concerns


def open_kinds() -> set[str]:
    return set(Alert.objects.open().values_list("kind", flat=True))


def test_account_without_credit_is_one_problem(season: Venue) -> None:
    """Decisions, forecasts, both runs and the alerts of tasks and credits tell of it, each in its own words."""
    season.bills["key"] = {"label": "sk-or-v1-0e6...1c9", "usage": 5, "limit_remaining": 0.01}
    for text in ("This request requires more credits: you can only afford 812 tokens", "Insufficient credits"):
        season.says(GPT, Failure(402, {"error": {"code": 402, "message": text}}))
    assert run("run_decisions", NOW).code == 1
    assert run("run_forecasts", NOW).code == 1
    run("reconcile_costs", NOW)
    assert open_kinds() == {"tasks-failed", "credits-low"}
    (problem,) = problems()
    assert "7 decisions and 14 question batches of this week failed" in problem.message
    assert "add credit" in problem.remedy


def test_refused_key_is_one_problem(season: Venue) -> None:
    """The job that asks for bills tells of it too."""
    season.says(GPT, Failure(401), Failure(401))
    season.server.expect_oneshot_request("/openrouter/api/v1/key").respond_with_data("", status=401)
    assert run("run_decisions", NOW).code == 1
    season.server.expect_oneshot_request("/openrouter/api/v1/key").respond_with_data("", status=401)
    assert run("reconcile_costs", NOW).code == 1
    assert open_kinds() == {"tasks-failed", "job-failed"}
    (problem,) = problems()
    assert "OPENROUTER_API_KEY" in problem.remedy


def test_spend_cap_is_one_problem_whose_remedy_follows_from_what_is_booked(season: Venue, settings: Any) -> None:
    settings.ARENA_SPEND_LIMIT_USD = Decimal("0.0005")
    assert run("run_decisions", NOW).code == 1
    refresh_conditions(now=NOW)
    assert open_kinds() == {"tasks-failed", "spend-high"}
    (problem,) = problems()
    assert (problem.button, problem.action_path) == ("Change the cap", action_path("set-cap"))


def test_spend_cap_reached_by_booked_costs_says_to_reconcile(season: Venue, settings: Any) -> None:
    settings.ARENA_SPEND_LIMIT_USD = Decimal("0.01")
    season.says(GPT, Failure(504, body="<html>timed out</html>"))
    run("run_decisions", NOW, family="gpt-5.1")
    assert run("run_decisions", NOW + timedelta(minutes=1)).code == 1
    refresh_conditions(now=NOW)
    at_cap = [problem for problem in problems() if "spend cap" in problem.message or "are spent" in problem.message]
    assert [problem.action_path for problem in at_cap] == [action_path("reconcile_costs")]
    assert "reconcile_costs" in at_cap[0].remedy


def test_venue_without_an_answer_is_one_problem(season: Venue) -> None:
    """The sync, the snapshots, both services and the age of the prices tell of it."""
    season.down.update({"gamma", "clob"})
    run("sync_markets", NOW - timedelta(minutes=5))
    season.says(KIMI, {"action": "HOLD"})
    run("take_snapshots", NOW - timedelta(minutes=5))
    refresh_stale_prices(at=NOW)
    assert open_kinds() >= {"venue-down", "prices-stale"}
    (problem,) = problems()
    assert problem.message.startswith("Polymarket can not be read. ")
    assert problem.action_path == action_path("sync_markets")


def test_dead_worker_is_one_problem(season: Venue) -> None:
    """No sync ends without it, so that prices are old."""
    Worker.objects.update(seen_at=NOW - timedelta(hours=1))
    check_workers(now=NOW, since=NOW - timedelta(hours=1))
    watch_alerts(now=NOW)
    assert open_kinds() == {"no-worker", "prices-stale"}
    (problem,) = problems()
    assert problem.message.startswith("No worker has been seen since ")


def test_releases_that_ended_and_the_line_up_proposed_for_them_are_one_problem(season: Venue) -> None:
    line_up = LineUp.objects.get()
    releases = releases_of(line_up)
    unusable = [UnusableRelease(releases[0], "is no longer listed", None)]
    raise_unusable_alerts(releases, unusable, at=NOW)
    proposal = propose_lineup(releases=releases[1:], by="the catalogue's check", reason="one has ended", at=NOW)
    (problem,) = problems()
    assert problem.message.startswith("No cohort can start with gpt-5.1: ")
    assert (problem.button, problem.action_path) == (
        "Approve",
        f"{action_path('approve-line-up')}?line_up={proposal.pk}",
    )


@pytest.mark.parametrize(
    ("kind", "action"), [("backup-old", "backup"), ("credits-low", "reconcile_costs"), ("prices-stale", "sync_markets")]
)
def test_alert_offers_the_action_against_its_cause(season: Venue, kind: str, action: str) -> None:
    raise_alert(kind=kind, items={kind: kind}, message="Something is wrong.", at=NOW, urgent=False)
    (problem,) = problems()
    assert (problem.action_path, problem.urgent) == (action_path(action), False)


@pytest.mark.parametrize(
    ("kind", "subject", "action", "form"),
    [
        ("closed-unresolved", "{market.external_id}", "settle", "?market={market.pk}"),
        ("result-changed", "polymarket {market.external_id}: YES", "reverse", "?market={market.pk}"),
        ("tasks-failed", "decision 7", "retry", "?decision=7"),
        ("job-failed", "sync_markets", "sync_markets", ""),
        ("job-failed", "restore", "acknowledge", "?alert={alert.pk}"),
        ("line-up-proposed", "7", "approve-line-up", "?line_up=7"),
    ],
)
def test_action_against_an_alert_concerns_the_things_of_the_alert(
    season: Venue, kind: str, subject: str, action: str, form: str
) -> None:
    market = Market.objects.get()
    subject = subject.format(market=market)
    alert = raise_alert(kind=kind, items={subject: subject}, message="Something is wrong.", at=NOW)
    (problem,) = problems()
    assert problem.action_path == action_path(action) + form.format(market=market, alert=alert)


def test_test_alert_is_no_problem(season: Venue, settings: Any) -> None:
    settings.ARENA_ALERT_WEBHOOK = "http://127.0.0.1:1/"
    perform(sign_in("operator"), "test-alert")
    assert open_kinds() == {"test"}
    assert problems() == []


@pytest.mark.parametrize(("cap", "severe"), [("0.0075", False), ("0.007", True)])
def test_spending_near_its_cap_says_what_to_do(season: Venue, settings: Any, cap: str, severe: bool) -> None:
    assert run("run_decisions", NOW)["cost_usd"] == "0.007000"
    settings.ARENA_SPEND_LIMIT_USD = Decimal(cap)
    (problem,) = problems()
    assert (problem.urgent, problem.remedy) == (severe, "Raise the limit on the dashboard.")


def test_alert_of_nothing_else_is_a_problem_with_its_own_remedy(season: Venue) -> None:
    run("sync_markets", NOW - timedelta(minutes=1))
    alert = Alert.objects.create(
        kind="market-gone", subject="1", message="Gone from its venue.", remedy="Settle it.", raised_at=SUNDAY
    )
    (problem,) = problems()
    assert (problem.message, problem.remedy, problem.button) == ("Gone from its venue.", "Settle it.", "Acknowledge")
    assert problem.action_path == f"{action_path('acknowledge')}?alert={alert.pk}"
    assert problem.urgent
