"""`updated_since`: a client that polls sees each change of a row, whatever instant of the domain it belongs to."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client

from agents.models import Agent, Decision, Forecast, ModelCall, Position
from foundation.bulk import field_values, update_changed
from markets.models import Market, Question
from scoring.services.scores import compute_scores
from tests.factories import WEEK, AgentFactory, MarketFactory, ModelCallFactory, QuestionFactory, ask, bet, end_question
from tests.problems import errors

pytestmark = pytest.mark.django_db

LISTS = (
    "markets", "questions", "agents", "decisions", "trades", "positions", "forecasts", "brier-scores", "settlements",
)  # fmt: skip
START = datetime(2026, 6, 1, tzinfo=UTC)
"""Months after the week that is played: rows are of its instants and are written now."""


@pytest.fixture
def clock() -> Iterator[Any]:
    with time_machine.travel(START, tick=False) as coordinates:
        yield coordinates


@pytest.fixture
def season(db: None, clock: Any) -> list[Market]:
    """Two markets, each with an agent that holds it and a question with a forecast."""
    markets = [MarketFactory(), MarketFactory()]
    for market, slug in zip(markets, ("gpt-5.1", "grok-4"), strict=True):
        trade = bet(AgentFactory(slug=slug), market, amount="100.00")
        ModelCallFactory(decision=trade.decision)
        ask(QuestionFactory(markets=[market]), {slug: (0.5, 0.5)}, day=WEEK)
    clock.shift(timedelta(hours=1))
    return markets


def changed(client: Client) -> dict[str, list[int]]:
    """The ids of the rows that changed in this hour, by list; lists without any left out."""
    rows = {name: client.get(f"/api/v1/{name}/", {"updated_since": _hour()}).json()["results"] for name in LISTS}
    return {name: sorted(row["id"] for row in changed_rows) for name, changed_rows in rows.items() if changed_rows}


def _hour() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:00:00Z}"


def test_nothing_has_changed_at_first_and_everything_since_the_start(season: list[Market], client: Client) -> None:
    assert changed(client) == {}
    for name in LISTS:
        all_rows = client.get(f"/api/v1/{name}/").json()["results"]
        assert client.get(f"/api/v1/{name}/?updated_since=2026-06-01").json()["results"] == all_rows
        assert list(errors(client.get(f"/api/v1/{name}/?updated_since=soon"))) == ["updated_since"]


def test_price_changes_market_question_position_and_agent(season: list[Market], client: Client) -> None:
    market = season[0]
    outcome = market.outcomes.get(side="YES")
    before = {outcome.pk: field_values(outcome, ["price"])}
    outcome.price = Decimal("0.55")
    update_changed([outcome], before, ["price"])
    position = Position.objects.get(market=market)
    assert changed(client) == {
        "markets": [market.pk],
        "questions": [Question.objects.get(market=market).pk],
        "positions": [position.pk],
        "agents": [position.agent_id],
    }


def test_resolution_changes_all_that_hangs_on_it(season: list[Market], client: Client, clock: Any) -> None:
    market = season[0]
    question, position = Question.objects.get(market=market), Position.objects.get(market=market)
    end_question(question, "YES", at=WEEK + timedelta(days=9))
    compute_scores(at=WEEK + timedelta(days=9))
    changes = changed(client)
    settlement = changes.pop("settlements")
    (score,) = changes.pop("brier-scores")
    assert len(settlement) == 1
    assert client.get(f"/api/v1/brier-scores/{score}/").json()["market"] == market.pk
    assert changes == {
        "markets": [market.pk],
        "questions": [question.pk],
        "positions": [position.pk],
        "agents": [position.agent_id],
        "forecasts": [Forecast.objects.get(question=question).pk],
    }
    clock.shift(timedelta(hours=1))
    assert changed(client) == {}


def test_trade_changes_its_decision_agent_and_position(season: list[Market], client: Client) -> None:
    agent = Agent.objects.get(family__slug="grok-4")
    trade = bet(agent, season[1], amount="60.00", week=2)
    assert changed(client) == {
        "decisions": [trade.decision_id],
        "trades": [trade.pk],
        "positions": [trade.position_id],
        "agents": [agent.pk],
    }


def test_cost_of_a_call_changes_its_decision(season: list[Market], client: Client) -> None:
    decision = Decision.objects.order_by("pk")[0]
    booked = ModelCallFactory(decision=decision, cost_source="booked", cost_usd=Decimal(1), booked_usd=Decimal(1))
    assert changed(client) == {"decisions": [decision.pk]}
    assert ModelCall.objects.get(pk=booked.pk).updated_at == datetime.now(UTC)


def test_each_way_to_write_a_row_dates_the_change(season: list[Market], clock: Any) -> None:
    market = season[0]

    def dated() -> bool:
        has_new_date = Market.objects.values_list("updated_at", flat=True).get(pk=market.pk) == datetime.now(UTC)
        clock.shift(timedelta(hours=1))
        return bool(has_new_date)

    assert not dated()
    Market.objects.filter(pk=market.pk).update(slug="a")
    assert dated()
    market.slug = "b"
    market.save(update_fields=["slug"])
    assert dated()
    Market.objects.bulk_update([market], ["slug"])
    assert dated()
    assert not dated()
