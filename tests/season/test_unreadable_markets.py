"""A venue whose rows can no longer be read, by commands alone: told with the reason, and what is held alarms."""

from datetime import timedelta
from typing import Any

import pytest

from foundation.models import Alert
from markets.models import Market
from tests.answers import GPT, bet
from tests.arena_site.dashboard.accounts import action_path, sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.sandbox import Kalshi, Venue
from tests.shared_rows import shared_rows_at_venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN, DAY, HOUR = "Will it rain?", timedelta(days=1), timedelta(hours=1)
UNREADABLE = "catalogue-unreadable"


def alerts(kind: str = UNREADABLE) -> list[Alert]:
    return list(Alert.objects.open().filter(kind=kind))


def hold(venue: Venue) -> None:
    """GPT holds YES of one of sixty markets."""
    line_up(GPT)
    venue.market(RAIN)
    for number in range(59):
        venue.market(f"Will it be {number}?")
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)


season = shared_rows_at_venue(hold)


@pytest.fixture
def holding(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def test_share_of_unreadable_rows_is_told_with_the_reason_until_they_can_be_read(holding: Venue) -> None:
    others = [row for question, row in ((row["question"], row) for row in holding.rows.values()) if question != RAIN]
    for row in others[:3]:
        row["version"] = "v3"
    assert run("sync_markets", SUNDAY + DAY).code == 0
    assert alerts() == []  # 5 % are not more than 5 %
    for row in others[3:30]:
        row["version"] = ""
    run("sync_markets", SUNDAY + DAY + HOUR)
    (alert,) = alerts()
    assert alert.names == ["Polymarket's catalogue"]
    assert "30 of 60 rows of Polymarket can not be read." in alert.message
    assert "version: '' is unknown (27); version: 'v3' is unknown (3)" in alert.message
    for row in others[:30]:
        row["version"] = "v1"
    run("sync_markets", SUNDAY + DAY + 2 * HOUR)
    assert alerts() == []


def test_held_market_that_can_not_be_read_is_told_at_once_and_alarms_after_72_hours(holding: Venue) -> None:
    holding.row(RAIN)["version"] = "v3"
    run("sync_markets", SUNDAY + DAY)
    (alert,) = alerts()
    assert alert.names == [RAIN]
    assert "version: 'v3' is unknown (1)" in alert.message
    holding.close(RAIN, "1", "0", status="resolved")
    run("check_resolutions", SUNDAY + 4 * DAY - HOUR)
    assert alerts("closed-unresolved") == []
    assert run("check_resolutions", SUNDAY + 4 * DAY)["checked"] == 0
    (alarm,) = alerts("closed-unresolved")
    assert alarm.names == [RAIN]
    market = Market.objects.get(question=RAIN)
    assert market.status == "active"

    values = {
        "market": market.pk,
        "result": "cancelled",
        "source": "the venue",
        "reason": "unreadable",
        "confirmed": "1",
    }
    assert sign_in("operator").post(action_path("settle"), values).status_code == 302
    market.refresh_from_db()
    assert market.status == "cancelled"
    assert alerts() == alerts("closed-unresolved") == []


def test_held_market_that_can_be_read_again_alarms_no_more(holding: Venue) -> None:
    holding.row(RAIN)["version"] = "v3"
    run("sync_markets", SUNDAY + DAY)
    run("check_resolutions", SUNDAY + 5 * DAY)
    assert len(alerts("closed-unresolved")) == 1
    holding.row(RAIN)["version"] = "v1"
    run("check_resolutions", SUNDAY + 6 * DAY)
    assert alerts() == alerts("closed-unresolved") == []
    holding.row(RAIN)["version"] = "v3"
    run("sync_markets", SUNDAY + 7 * DAY)
    run("check_resolutions", SUNDAY + 11 * DAY)
    assert len(alerts("closed-unresolved")) == 1, "it is another time"


@pytest.mark.parametrize(("field", "value"), [("status", "resting"), ("market_type", "vector")])
def test_new_word_of_kalshi_is_told(venue: Venue, kalshi: Kalshi, field: str, value: Any) -> None:
    venue.market(RAIN)
    rows = kalshi.event("Who wins?", "Ann", "Bo")
    run("sync_markets", SUNDAY)
    Market.objects.filter(option="Ann").update(has_questions=True)
    rows[0][field] = value
    run("sync_markets", SUNDAY + DAY)
    (alert,) = alerts()
    assert alert.names == ["Kalshi's catalogue", "Who wins? – Ann"]
    assert f"'{value}'" in alert.message
    run("check_resolutions", SUNDAY + 4 * DAY)
    assert [alarm.names for alarm in alerts("closed-unresolved")] == [["Who wins? – Ann"]]


def test_what_the_arena_leaves_out_is_not_unreadable(venue: Venue, kalshi: Kalshi) -> None:
    venue.market(RAIN)
    venue.market("Party A", active=False)
    (row,) = kalshi.event("A parlay")
    row["mve_collection_ticker"] = "KXMVE"
    assert run("sync_markets", SUNDAY)["skipped"] == 2
    assert alerts() == []
