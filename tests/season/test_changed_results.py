"""Results that a venue changes after settlement, by commands alone: told with both readings, and nothing moves."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agents.models import Agent
from foundation.models import Alert
from markets.models import Market, Question
from tests.answers import GPT, bet
from tests.arena_site.dashboard.accounts import action_path, sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Kalshi, Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN, DAY, WEEK = "Will it rain?", timedelta(days=1), timedelta(weeks=1)
FLIPPED = {"closed": True, "umaResolutionStatus": "resolved", "outcomePrices": '["0","1"]'}
REOPENED = {"closed": False, "umaResolutionStatus": None, "outcomePrices": '["0.4","0.6"]'}
HALVED = {"closed": True, "umaResolutionStatus": "resolved", "outcomePrices": '["0.5","0.5"]'}
DISPUTED = {"closed": True, "umaResolutionStatus": "disputed", "outcomePrices": '["0.9","0.1"]'}


def alerts() -> list[Alert]:
    return list(Alert.objects.open().filter(kind="result-changed"))


def settle(venue: Venue) -> None:
    """GPT has won with YES on a market that was settled on Monday."""
    venue.market(RAIN)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    run("run_forecasts", DECISION)
    venue.resolve(RAIN, "Yes")
    assert run("check_resolutions", SUNDAY + DAY)["resolved"] == 1


settled_week = shared_rows_at_venue(settle)


@pytest.fixture
def settled(settled_week: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(settled_week[0])


def test_changed_result_is_told_once_with_both_readings_and_changes_nothing(settled: Venue) -> None:
    cash = Agent.objects.get(release__model_id=GPT).cash
    questions = list(Question.objects.values("status", "resolved_at"))
    settled.row(RAIN).update(FLIPPED)
    run("check_resolutions", SUNDAY + DAY + WEEK - timedelta(hours=1))
    assert alerts() == []
    ran = run("check_resolutions", SUNDAY + DAY + WEEK)
    assert (ran.code, ran["results_read_again"], ran["results_changed"], ran["resolved"]) == (0, 1, 1, 0)
    (alert,) = alerts()
    assert "settled as YES won on 2026-03-09" in alert.message
    assert "; now NO won" in alert.message
    assert run("check_resolutions", SUNDAY + DAY + WEEK + timedelta(hours=1))["results_read_again"] == 0
    run("check_resolutions", SUNDAY + DAY + 2 * WEEK)
    assert len(alerts()) == Alert.objects.filter(kind="result-changed").count() == 1
    market = Market.objects.get()
    assert (market.status, market.winning_side) == ("resolved", "YES")
    assert Agent.objects.get(release__model_id=GPT).cash == cash
    assert list(Question.objects.values("status", "resolved_at")) == questions


@pytest.mark.parametrize(
    ("later", "reading"),
    [(REOPENED, "open again"), (HALVED, "cancelled"), (DISPUTED, "without a result: closed at 0.9")],
)
def test_later_reading_is_told_in_its_words(settled: Venue, later: dict[str, Any], reading: str) -> None:
    settled.row(RAIN).update(later)
    assert run("check_resolutions", SUNDAY + DAY + WEEK, skip_leaderboards=True)["results_changed"] == 1
    (alert,) = alerts()
    assert f"; now {reading}" in alert.message
    assert Market.objects.get().winning_side == "YES"


@pytest.mark.forged_record
def test_reversal_by_an_operator_ends_the_alert(settled: Venue) -> None:
    settled.row(RAIN).update(FLIPPED)
    run("check_resolutions", SUNDAY + DAY + WEEK)
    market = Market.objects.get()
    values = {"market": market.pk, "result": f"outcome-{market.outcomes.get(side='NO').pk}", "source": "the venue"}
    reversed_ = sign_in("operator").post(action_path("reverse"), values | {"reason": "changed", "confirmed": "1"})
    assert reversed_.status_code == 302
    market.refresh_from_db()
    assert market.winning_side == "NO"
    # The reversal resolved it anew, by the real clock.
    Market.objects.update(resolved_at=SUNDAY + DAY + WEEK)
    run("check_resolutions", SUNDAY + DAY + 2 * WEEK)
    assert alerts() == []


def test_same_result_and_those_of_sixty_days_ago_raise_nothing(settled: Venue) -> None:
    assert run("check_resolutions", SUNDAY + DAY + WEEK)["results_read_again"] == 1
    settled.row(RAIN).update(FLIPPED)
    assert run("check_resolutions", SUNDAY + 62 * DAY)["results_read_again"] == 0
    assert alerts() == []


@pytest.mark.parametrize(("result", "pays", "reading"), [("no", "0.0000", "NO won"), ("scalar", "0.4000", "cancelled")])
def test_changed_result_of_a_question_at_kalshi_is_told(
    venue: Venue, kalshi: Kalshi, result: str, pays: str, reading: str
) -> None:
    venue.market(RAIN)
    rows = kalshi.event("Who wins?", "Ann")
    run("sync_markets", SUNDAY)
    Market.objects.filter(source="kalshi").update(has_questions=True)
    kalshi.end(rows, "finalized", "yes", pays="1.0000")
    assert run("check_resolutions", SUNDAY + DAY)["resolved"] == 1
    kalshi.end(rows, "finalized", result, pays=pays)
    run("check_resolutions", SUNDAY + DAY + WEEK)
    (alert,) = alerts()
    assert "Kalshi changed a result." in alert.message
    assert f"settled as YES won on 2026-03-09 00:00 UTC; now {reading}." in alert.message


def test_market_that_an_operator_settled_is_not_said_to_have_changed(venue: Venue) -> None:
    row = venue.market(RAIN)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    venue.close(RAIN)
    row.update(version="v2", positionIds=json.loads(row["clobTokenIds"]))
    run("check_resolutions", SUNDAY + DAY)
    market = Market.objects.get()
    values = {"market": market.pk, "result": "cancelled", "source": "the venue", "reason": "v2", "confirmed": "1"}
    assert sign_in("operator").post(action_path("settle"), values).status_code == 302
    Market.objects.update(resolved_at=SUNDAY + DAY)
    assert run("check_resolutions", SUNDAY + DAY + WEEK)["results_read_again"] == 1
    assert alerts() == []
