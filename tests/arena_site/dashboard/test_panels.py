"""The dashboard's panels: what is due, the runs of a day, models, costs, and the disk."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.urls import reverse
from django_q.models import Schedule
from selectolax.lexbor import LexborHTMLParser

from agents.models import Elicitation, RunSetting
from agents.services.run_settings import set_spend_limit
from arena_site import jobs
from arena_site.dashboard.infrastructure import Disk
from foundation.models import Run
from markets.models import Market, VenueTraffic
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
)
from tests.markup import element, elements, get_page, links, section, table_row, table_rows, visible_text

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(minutes=40)


@pytest.fixture
def viewer() -> Client:
    return sign_in("viewer")


def dashboard(client: Client) -> LexborHTMLParser:
    return get_page(client, reverse("admin:index"))


def spending(client: Client) -> list[Any]:
    """Trading's and the forecasts' spending on the dashboard."""
    return list(client.get(reverse("admin:index")).context["overview"].spending)


def test_jobs_due_next_count_down(viewer: Client) -> None:
    jobs.install()
    Schedule.objects.update(next_run=NOW + timedelta(days=2, hours=3))
    for name, seconds in (("scores", 90), ("sync", 5), ("prune", 3900), ("ledger", -900)):
        Schedule.objects.filter(name=name).update(next_run=NOW + timedelta(seconds=seconds))
    page = section(dashboard(viewer), "h-due")
    assert table_rows(page)[:4] == [
        ["ledger", "overdue Sun 00:25", "due now"],
        ["sync", "Sun 00:40", "in 0:05"],
        ["scores", "Sun 00:41", "in 1:30"],
        ["prune", "Sun 01:45", "in 1 h 5 min"],
    ]
    assert table_rows(page)[4][2] == "in 2 d 3 h"
    times = [time.attributes["datetime"] for time in elements(page, "time[data-countdown]")]
    assert times[1] == "2026-03-08T00:40:05+00:00"


def test_runs_of_a_day_are_bars_with_the_time_taken_and_the_end(viewer: Client) -> None:
    ends = (("succeeded", 10, 1), ("failed", 40, 6), ("lost", 20, 12), ("succeeded", 10, 25))
    runs = [
        RunFactory(
            status=status, error="HTTP 503", at=NOW - timedelta(hours=hours),
            finished_at=NOW - timedelta(hours=hours) + timedelta(seconds=length),
        )
        for status, length, hours in ends
    ]  # fmt: skip
    page = element(dashboard(viewer), "#jobs svg.bars")
    bars = [(bar.attributes["class"], bar.attributes["height"]) for bar in elements(page, "rect")]
    assert bars == [("bad", "50.0"), ("bad", "100.0"), ("good", "25.0")]
    assert [visible_text(title) for title in elements(page, "title")][1] == "18:40, 40 s, failed"
    assert links(page) == [reverse("admin:foundation_run_change", args=[run.pk]) for run in reversed(runs[:3])]
    assert page.attributes["aria-label"] == "3 runs of sync_markets in 24 hours, 2 of them failed or lost"


def test_run_without_a_heartbeat_is_shown_as_lost_and_blocks_no_action() -> None:
    silent = RunFactory(status="running", finished_at=None, at=NOW - timedelta(minutes=9))
    Run.objects.update(heartbeat_at=NOW - timedelta(minutes=2))
    operator = sign_in("operator")
    assert "Lost" in table_row(section(dashboard(operator), "h-jobs"), "sync")
    path = reverse("admin:action", args=["sync_markets"])
    assert operator.get(path).context["preview"].possible
    page = get_page(operator, reverse("admin:foundation_run_change", args=[silent.pk]))
    assert element(page, "#run section").attributes["data-status"] == "lost"


def test_grid_shows_the_worst_of_each_run(viewer: Client) -> None:
    cohort, universe = CohortFactory(), UniverseFactory(markets=[])
    deciding_agent, failed, third = (AgentFactory(cohort=cohort) for _ in range(3))
    DecisionFactory(agent=deciding_agent, universe=universe)
    DecisionFactory(agent=failed, failed=True, universe=universe)
    DecisionFactory(agent=third, fallback=True, universe=universe)
    batch = ask(QuestionFactory(), {failed.family.slug: [0.6, 0.4]}).question_set.batches.get(arm="priced")
    first = batch.elicitations.get()
    Elicitation.objects.create(
        batch=batch,
        methodology=first.methodology,
        release=deciding_agent.release,
        family=deciding_agent.family,
        status="failed",
        error="x",
    )
    rows = {row[0]: row[1:3] for row in table_rows(section(dashboard(viewer), "h-models"))}
    assert [rows[agent.family.display_name] for agent in (deciding_agent, failed, third)] == [
        ["✓ 08 March 2026: 1 completed", "✗ 08 March 2026: 1 failed"],
        ["✗ 08 March 2026: 1 failed", "✓ 08 March 2026: 1 completed"],
        ["! 08 March 2026: 1 fallback", ""],
    ]


def test_models_show_calls_failures_latency_and_cost(viewer: Client) -> None:
    decision = DecisionFactory()
    for number in range(1, 21):
        result = "malformed" if number == 1 else "answered"
        ModelCallFactory(decision=decision, result=result, latency_ms=1000 * number, cost_usd="0.00125", sent_at=NOW)
    row = table_row(section(dashboard(viewer), "h-models"), "5.0 %")
    assert row.endswith("20 1 , 5.0 % 10.0 s 19.0 s $0.0250")


def test_models_show_their_state_and_last_answer(viewer: Client) -> None:
    good = DecisionFactory()
    bad, paused = (DecisionFactory(agent=AgentFactory(cohort=good.agent.cohort)) for _ in range(2))
    for decision, result, minutes in ((good, "answered", 10), (bad, "answered", 20), (bad, "failed", 5)):
        ModelCallFactory(decision=decision, result=result, sent_at=NOW - timedelta(minutes=minutes))
    ModelCallFactory(decision=paused, sent_at=NOW - timedelta(minutes=30))
    RunSetting.objects.create(protocol="forecast", family=paused.agent.family, paused=True)
    page = section(dashboard(viewer), "h-models")
    rows = [table_row(page, decision.agent.family.display_name) for decision in (good, bad, paused)]
    expected = ("answers 10 min ago", "fails 20 min ago", "paused 30 min ago")
    assert [row for row, state in zip(rows, expected, strict=True) if state not in row] == []


def test_venues_show_state_last_success_failures_and_latency(viewer: Client, settings: Any) -> None:
    settings.ARENA_SOURCES = ("polymarket", "kalshi")
    Market.objects.filter(pk=MarketFactory().pk).update(refreshed_at=NOW - timedelta(minutes=7))
    VenueTraffic.objects.create(venue="polymarket", requests=1200, failures=30, latency_s=0.25)
    alert_venue_down("gamma", "gamma: no answer", at=NOW)
    page = section(dashboard(viewer), "h-venues")
    assert table_row(page, "Polymarket") == "Polymarket down 7 min ago 30 of 1,200 0.2 s"
    assert table_row(page, "Kalshi") == "Kalshi not asked yet never 0 of 0 –"


def test_cap_is_forecast_from_the_decisions_still_planned(viewer: Client, settings: Any) -> None:
    """One of three agents has answered for a dollar in the first 40 minutes of the week; two are to be asked."""
    cohort, universe = CohortFactory(), UniverseFactory(markets=[MarketFactory()])
    decision = DecisionFactory(agent=AgentFactory(cohort=cohort), universe=universe)
    for _ in range(2):
        AgentFactory(cohort=cohort)
    ModelCallFactory(decision=decision, cost_usd="1")
    (trading, _) = spending(viewer)
    assert (trading.week.spent, trading.reached_at) == (1, None)
    assert Decimal("0.01") < trading.planned < Decimal("0.5")
    settings.ARENA_SPEND_LIMIT_USD = 1 + trading.planned
    text = visible_text(dashboard(viewer), "#failures")
    assert f"about ${trading.planned:.4f} more is planned this week: the cap is reached on Sunday 00:40" in text
    settings.ARENA_SPEND_LIMIT_USD += Decimal("0.0001")
    trading_text = visible_text(dashboard(viewer), "#failures").partition("Forecast cost")[0]
    assert "more is planned this week: the cap is not reached" in trading_text


def test_cap_of_forecasts_is_reached_on_the_day_whose_plan_exceeds_it(viewer: Client, settings: Any) -> None:
    """Seven days of forecasts are left on a Sunday at 00:40, and one on a Saturday at 03:00."""
    MarketFactory()
    (_, forecasts) = spending(viewer)
    day = forecasts.planned / 7
    for days, name in ((0.5, "Sunday"), (1.5, "Monday"), (4.5, "Thursday"), (6.9, "Saturday")):
        settings.ARENA_SPEND_LIMIT_USD = day * Decimal(days)
        assert f"reached on {name} 02:00" in visible_text(dashboard(viewer), "#failures")
    with time_machine.travel(WEEK + timedelta(days=6, hours=3), tick=False):
        (trading, forecasts) = spending(sign_in("viewer"))
    assert trading.planned == 0
    assert forecasts.planned == pytest.approx(day, rel=Decimal("0.01"))


def test_jobs_that_never_ran_are_folded_away(viewer: Client) -> None:
    RunFactory(kind="prune", at=NOW - timedelta(days=3))
    page = section(dashboard(viewer), "h-jobs")
    assert [row[0] for row in table_rows(page)[1:]] == ["prune"]
    assert "jobs never ran" in visible_text(page, "details summary")
    assert "sync" in visible_text(page, "details")


@pytest.mark.parametrize(("cap", "lines"), [("1", ["50.0"]), ("20", [])])
def test_costs_are_stacked_by_model_and_day_against_the_cap(
    viewer: Client, settings: Any, cap: str, lines: list[str]
) -> None:
    settings.ARENA_SPEND_LIMIT_USD = Decimal(cap)
    first = DecisionFactory()
    second = DecisionFactory(agent=AgentFactory(cohort=first.cohort))
    for decision, cost, days in ((first, "1.5", 0), (second, "0.5", 0), (first, "1", 6)):
        ModelCallFactory(decision=decision, cost_usd=cost, sent_at=NOW - timedelta(days=days))
    page = section(dashboard(viewer), "h-costs")
    bars = sorted(
        (float(bar.attributes["x"] or 0), float(bar.attributes["height"] or 0)) for bar in elements(page, "rect")
    )
    assert [height for _, height in bars] == [50.0, 25.0, 75.0]
    assert bars[0][0] < bars[1][0] == bars[2][0]
    assert [line.attributes["y1"] for line in elements(page, "line.cap")] == lines
    assert ("far below the cap" in visible_text(page)) == (not lines)
    assert visible_text(page).startswith("Cost of seven days: $3.0000")


def test_costs_are_measured_by_the_caps_in_force(viewer: Client) -> None:
    set_spend_limit("trading", Decimal("2"))
    set_spend_limit("forecast", Decimal("4"))
    ModelCallFactory(cost_usd="1", sent_at=NOW)
    page = section(dashboard(viewer), "h-costs")
    assert "$4.00, the higher of the week's caps (trading $2.00, forecast $4.00)" in visible_text(page)


def test_disk_forecast_counts_the_days_at_a_weeks_growth() -> None:
    disk = Disk(database_bytes=10**9, total=10**11, free=6 * 10**9, bytes_per_day=2.5 * 10**8)
    assert (disk.days_left, disk.is_short, disk.lasts) == (24, True, False)
    assert Disk(10**9, 10**11, 6 * 10**10, 10**6).lasts
    assert Disk(10**9, 10**11, 6 * 10**9, 0.0).days_left is None


def test_viewer_sees_no_buttons(viewer: Client) -> None:
    DecisionFactory(failed=True, universe=UniverseFactory(markets=[]))
    page = dashboard(viewer)
    assert elements(page, "a.action-link") == []
    assert "Your role is read-only." in visible_text(page, "#actions")
    assert elements(dashboard(sign_in("operator")), "a.action-link")
