"""REST API of markets, prices and runs."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client

from foundation.json_lines import decimal_text
from tests.factories import WEEK, MarketFactory, PriceObservationFactory, RunFactory, resolve
from tests.problems import errors

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("value", "places", "text"),
    [
        ("0.43", 6, "0.430000"),
        ("0.4300000000", 6, "0.430000"),
        ("0.0000005", 6, "0.0000005"),
        ("1", 6, "1.000000"),
        ("0E-10", 6, "0.000000"),
        ("1E+4", 2, "10000.00"),
        ("-12.50", 2, "-12.50"),
    ],
)
def test_decimal_text_has_all_digits_and_a_minimum_of_places(value: str, places: int, text: str) -> None:
    assert decimal_text(Decimal(value), places) == text


def test_a_market_shows_each_side_with_its_price(client: Client) -> None:
    market = MarketFactory(
        prices={"Lakers": "0.4300005", "Celtics": None}, volume=Decimal("1200.50"), category="", slug=""
    )
    row = client.get(f"/api/v1/markets/{market.pk}/").json()
    assert row == {
        "id": market.pk,
        "source": "polymarket",
        "external_id": market.external_id,
        "slug": None,
        "question": market.question,
        "category": None,
        "kind": "multi",
        "status": "active",
        "outcomes": [
            {
                "side": "Lakers",
                "name": "Lakers",
                "price": "0.4300005",
                "price_at": "2026-03-07T00:00:00Z",
                "stale": False,
            },
            {"side": "Celtics", "name": "Celtics", "price": None, "price_at": None, "stale": False},
        ],
        "volume": "1200.50",
        "liquidity": None,
        "closes_at": None,
        "over_since": None,
        "closed_at": None,
        "resolved_at": None,
        "winning_side": None,
    }


def test_a_resolved_market_names_its_winner(client: Client) -> None:
    market = resolve(MarketFactory(), "NO", at=WEEK + timedelta(days=3))
    row = client.get(f"/api/v1/markets/{market.pk}/").json()
    assert (row["status"], row["winning_side"]) == ("resolved", "NO")
    assert row["resolved_at"] == "2026-03-11T00:00:00Z"


def test_an_unknown_filter_value_is_named(client: Client) -> None:
    assert errors(client.get("/api/v1/markets/", {"category": "Chess"})) == {"category": ["Chess occurs nowhere"]}
    assert errors(client.get("/api/v1/markets/", {"status": "open"})) == {
        "status": ["open is unknown; known are active, closed, resolved, cancelled"]
    }
    assert errors(client.get("/api/v1/prices/", {"market": "7"})) == {"market": ["no market has the id 7"]}
    assert errors(client.get("/api/v1/prices/", {"stale": "yes"})) == {"stale": ["yes is neither true nor false"]}


@pytest.mark.parametrize(("yes", "no"), [("true", "false"), ("True", "False"), ("1", "0")])
def test_boolean_filters_take_true_false_1_and_0(client: Client, yes: str, no: str) -> None:
    stale = PriceObservationFactory(outcome=MarketFactory().outcomes.get(side="NO"), observed_at=WEEK, stale=True)

    def filtered_ids(flag: str) -> list[int]:
        return [row["id"] for row in client.get("/api/v1/prices/", {"stale": flag}).json()["results"]]

    assert stale.pk in filtered_ids(yes)
    assert stale.pk not in filtered_ids(no)


def test_a_price_has_its_inputs_and_its_reason(client: Client) -> None:
    market = MarketFactory()
    outcome = market.outcomes.get(side="NO")
    observed = PriceObservationFactory(
        outcome=outcome, observed_at=WEEK, price=None, source="", stale=True, reason="no midpoint", gamma=Decimal(1)
    )
    (row,) = client.get("/api/v1/prices/", {"market": market.pk, "stale": "true"}).json()["results"]
    assert row == {
        "id": observed.pk,
        "market": market.pk,
        "side": "NO",
        "observed_at": "2026-03-08T00:00:00Z",
        "price": None,
        "source": None,
        "stale": True,
        "reason": "no midpoint",
        "midpoint": None,
        "gamma": "1.000000",
        "bid": None,
        "ask": None,
    }
    assert client.get("/api/v1/prices/", {"stale": "false"}).json()["results"] == []


def test_only_the_detail_of_a_run_has_its_log(client: Client) -> None:
    run = RunFactory(kind="take_snapshots", status="failed", log=["clob: timeout"], error="no price was accepted")
    RunFactory()
    (row,) = client.get("/api/v1/runs/", {"status": "failed", "kind": "take_snapshots"}).json()["results"]
    assert row["error"] == "no price was accepted"
    assert "log" not in row
    assert client.get(f"/api/v1/runs/{run.pk}/").json()["log"] == ["clob: timeout"]
