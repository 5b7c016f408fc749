"""Rows of methodologies, cohorts and universes as readers get them."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.test import Client

from cohorts.models import Methodology
from tests.factories import WEEK, AgentFactory, CohortFactory, MarketFactory, UniverseFactory

pytestmark = pytest.mark.django_db


def test_a_methodology_shows_all_that_a_result_depends_on(client: Client) -> None:
    row = client.get("/api/v1/methodologies/v1/").json()
    assert row["starting_balance"] == "10000.00"
    assert row["maximum_bet_fraction"] == "0.2500"
    assert row["retry_window_hours"] == 24
    assert row["temperature"] == 0.0
    assert row["sha256"] == Methodology.objects.get(version="v1").sha256
    assert row["actions"] == ["BET", "SELL", "HOLD"]


def test_a_cohort_is_shown_by_its_number_with_its_agents_counted(client: Client) -> None:
    cohort = CohortFactory()
    AgentFactory(cohort=cohort)
    AgentFactory(cohort=cohort)
    with time_machine.travel(WEEK + timedelta(days=8), tick=False):
        row = client.get("/api/v1/cohorts/1/").json()
    assert row == {
        "number": 1,
        "week_start": "2026-03-08T00:00:00Z",
        "methodology": "v2",
        "status": "active",
        "started_at": "2026-03-08T00:00:00Z",
        "completed_at": None,
        "decision_week": 2,
        "voided_at": None,
        "void_reason": None,
        "agents": 2,
        "chain_head": None,
    }


@pytest.mark.parametrize(
    ("now", "week"),
    [
        (datetime(2026, 3, 7, 23, 59, tzinfo=UTC), None),
        (datetime(2026, 3, 8, tzinfo=UTC), 1),
        (datetime(2026, 4, 11, 23, 59, tzinfo=UTC), 5),
        (datetime(2026, 4, 12, tzinfo=UTC), None),
    ],
)
def test_a_cohort_has_a_decision_week_only_while_it_decides(client: Client, now: datetime, week: int | None) -> None:
    CohortFactory()
    with time_machine.travel(now, tick=False):
        assert client.get("/api/v1/cohorts/1/").json()["decision_week"] == week


def test_a_universe_shows_its_entries_at_their_frozen_prices(client: Client) -> None:
    open_one, held_market = MarketFactory(prices={"YES": "0.0005", "NO": "0.9995"}), MarketFactory(closed=True)
    universe = UniverseFactory(markets=[open_one, held_market])
    open_one.outcomes.update(price=Decimal("0.5"))
    row = client.get(f"/api/v1/universes/{universe.pk}/").json()
    assert row["size"] == 1
    assert row["sha256"] == universe.sha256
    assert row["market_block"] == universe.market_block
    assert row["frozen_at"] == "2026-03-08T00:05:00Z"
    assert [entry["market"] for entry in row["entries"]] == [open_one.pk, held_market.pk]
    assert row["entries"][0]["prices"] == {"YES": "0.000500", "NO": "0.999500"}
    assert [(entry["bettable"], entry["open"]) for entry in row["entries"]] == [(True, True), (False, False)]
