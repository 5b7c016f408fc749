"""REST API of families, decisions and the ledger."""

import hashlib
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.test import Client

from agents.models import Family
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    ReleaseFactory,
    approved,
    bet,
    resolve,
)
from tests.problems import errors

pytestmark = pytest.mark.django_db


def ids(client: Client, name: str, **query: object) -> list[int]:
    return [row["id"] for row in client.get(f"/api/v1/{name}/", query).json()["results"]]


def test_a_family_shows_the_release_that_is_in_effect_now(client: Client) -> None:
    family = Family.objects.get(slug="gpt-5.1")
    day = timedelta(days=1)
    six = ReleaseFactory(family=family, model_id="openai/gpt-6", display_name="GPT-6", effective_from=WEEK - day)
    approved(six, at=WEEK - day)
    CohortFactory(week_start=WEEK)  # a line-up approved after its start waits for the next week
    approved(ReleaseFactory(family=family, model_id="openai/gpt-7", effective_from=WEEK), at=WEEK + day)
    ReleaseFactory(family=family, model_id="openai/gpt-8", effective_from=WEEK - 2 * day)
    with time_machine.travel(WEEK + timedelta(days=1), tick=False):
        row = client.get("/api/v1/families/gpt-5.1/").json()
        assert row == {
            "slug": "gpt-5.1",
            "display_name": "GPT-6",
            "provider": "OpenAI",
            "color": "#05a75b",
            "active": True,
            "external": False,
            "track": None,
            "version": None,
            "release": "openai/gpt-6",
        }
        at = WEEK + timedelta(days=1)
        for listed in client.get("/api/v1/families/").json()["results"]:
            release = Family.objects.get(slug=listed["slug"]).release_at(at)
            assert release is not None
            assert listed["release"] == release.model_id


def test_a_release_shows_its_prices_per_token_in_full(client: Client) -> None:
    rows = client.get("/api/v1/releases/", {"family": "qwen-3-next"}).json()["results"]
    assert [(row["family"], row["price_prompt"], row["price_completion"]) for row in rows] == [
        ("qwen-3-next", "0.000000071", "0.0000001")
    ]


def test_a_trade_names_agent_cohort_family_and_decision(client: Client) -> None:
    trade = bet(AgentFactory(), MarketFactory(prices={"YES": "0.43", "NO": "0.57"}), amount="1250.00")
    row = client.get(f"/api/v1/trades/{trade.pk}/").json()
    assert row == {
        "id": trade.pk,
        "agent": trade.agent_id,
        "cohort": 1,
        "family": "gpt-5.1",
        "decision": trade.decision_id,
        "sequence": 1,
        "position": trade.position_id,
        "market": trade.market_id,
        "side": "YES",
        "kind": "BUY",
        "shares": "2906.976744",
        "price": "0.430000",
        "amount": "1250.00",
        "implied_confidence": 0.5,
        "cost_basis": "1250.00",
        "realized_pnl": "0.00",
        "executed_at": "2026-03-08T00:05:00Z",
    }


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("cohort", "99", "no cohort has the number 99"),
        ("cohort", "99999999999999999999", "no cohort has the number 99999999999999999999"),
        ("cohort", "one", "no cohort has the number one"),
        ("family", "gpt-9", "no family has the slug gpt-9"),
        ("agent", "5", "no agent has the id 5"),
        ("kind", "buy", "buy is unknown; known are BUY, SELL"),
    ],
)
def test_filter_by_an_unknown_reference_is_an_error(client: Client, parameter: str, value: str, message: str) -> None:
    response = client.get("/api/v1/trades/", {parameter: value})
    assert errors(response) == {parameter: [message]}


def test_an_open_position_is_worth_its_shares_at_the_last_price(client: Client) -> None:
    position = bet(AgentFactory(), amount="500.00").position
    position.outcome.price = Decimal("0.50")
    position.outcome.save()
    row = client.get(f"/api/v1/positions/{position.pk}/").json()
    assert row == {
        "id": position.pk,
        "agent": position.agent_id,
        "cohort": 1,
        "family": "gpt-5.1",
        "market": position.market_id,
        "side": "YES",
        "status": "open",
        "shares": "1250.000000",
        "cost_basis": "500.00",
        "entry_price": "0.400000",
        "price": "0.500000",
        "value": "625.00",
        "unrealized_pnl": "125.00",
        "realized_pnl": "0.00",
        "opened_at": "2026-03-08T00:05:00Z",
        "closed_at": None,
    }


def test_an_open_position_without_a_price_counts_at_cost(client: Client) -> None:
    position = bet(AgentFactory()).position
    position.outcome.price = None
    position.outcome.save()
    row = client.get(f"/api/v1/positions/{position.pk}/").json()
    assert (row["price"], row["value"], row["unrealized_pnl"]) == (None, "500.00", "0.00")


def test_closed_position_has_no_price_and_no_value(client: Client) -> None:
    position = bet(AgentFactory()).position
    resolve(position.market, "YES")
    row = client.get(f"/api/v1/positions/{position.pk}/").json()
    assert (row["status"], row["realized_pnl"]) == ("settled", "750.00")
    assert (row["price"], row["entry_price"], row["unrealized_pnl"], row["value"]) == (None, None, None, "0.00")


def test_journal_entry_refers_to_the_settlement_that_paid_it(client: Client) -> None:
    agent = AgentFactory()
    trade = bet(agent)
    resolve(trade.market, None)
    rows = client.get("/api/v1/journal/", {"agent": agent.pk, "ordering": "sequence"}).json()["results"]
    assert [(row["kind"], row["amount"], row["balance"]) for row in rows] == [
        ("deposit", "10000.00", "10000.00"),
        ("buy", "-500.00", "9500.00"),
        ("refund", "500.00", "10000.00"),
    ]
    (settlement,) = client.get("/api/v1/settlements/", {"kind": "refunded", "market": trade.market_id}).json()[
        "results"
    ]
    assert rows[1]["trade"] == trade.pk
    assert rows[2]["settlement"] == settlement["id"]
    assert (settlement["payout"], settlement["realized_pnl"], settlement["side"]) == ("500.00", "0.00", "YES")


def test_cost_of_a_decision_is_the_sum_of_its_calls(client: Client) -> None:
    decision = DecisionFactory(universe__markets=[MarketFactory()])
    ModelCallFactory(decision=decision, result="failed", tokens_input=None, tokens_output=None, cost_usd=Decimal(0))
    ModelCallFactory(decision=decision, result="malformed", cost_usd=Decimal("0.0000005"))
    ModelCallFactory(decision=decision)
    (row,) = client.get("/api/v1/decisions/").json()["results"]
    assert row == {
        "id": decision.pk,
        "agent": decision.agent_id,
        "cohort": 1,
        "family": "gpt-5.1",
        "universe": decision.universe_id,
        "week": 1,
        "action": "HOLD",
        "status": "completed",
        "fallback": False,
        "reasoning": "Nothing looks mispriced.",
        "error": None,
        "tokens_input": 2000,
        "tokens_output": 400,
        "cost_usd": "0.0025005",
        "decided_at": "2026-03-08T00:05:00Z",
        "nonce": decision.nonce,
        "sealed_until": None,
    }


def test_decision_without_calls_has_no_prompt_and_no_cost(client: Client) -> None:
    decision = DecisionFactory(missed=True, universe=None)
    row = client.get(f"/api/v1/decisions/{decision.pk}/").json()
    assert (row["status"], row["action"], row["error"]) == ("missed", None, "window over")
    assert (row["tokens_input"], row["cost_usd"]) == (0, "0.000000")
    assert (row["system_prompt"], row["user_prompt"], row["calls"], row["trades"]) == (None, None, [], [])


def test_decision_detail_has_its_prompt_byte_for_byte_and_all_calls(client: Client) -> None:
    market = MarketFactory(question='<script>alert("é")</script>\u2028\nMARKETS')
    trade = bet(AgentFactory(), market)
    decision = trade.decision
    ModelCallFactory(decision=decision, result="malformed", raw_response="<b>", error="no JSON", provider="Acme")
    last = ModelCallFactory(decision=decision, retry_note="\nNOTE\nAgain.\n")
    rejected = InstructionFactory(call=last)
    row = client.get(f"/api/v1/decisions/{decision.pk}/").json()
    assert row["user_prompt"] == last.user_prompt
    assert row["user_prompt"].endswith("\nNOTE\nAgain.\n")
    text = f"{row['system_prompt']}\0{row['user_prompt']}"
    assert hashlib.sha256(text.encode()).hexdigest() == row["calls"][1]["prompt_sha256"]
    assert [(call["sequence"], call["result"]) for call in row["calls"]] == [(1, "malformed"), (2, "answered")]
    assert row["calls"][0]["raw_response"] == "<b>"
    assert row["calls"][0]["error"] == "no JSON"
    assert row["calls"][0]["provider"] == "Acme"
    assert (row["calls"][1]["provider"], row["calls"][1]["latency_ms"]) == (None, 1500)
    assert row["calls"][1]["cost_usd"] == "0.002500"
    assert row["instructions"] == [
        {
            "call": 2,
            "sequence": 1,
            "kind": "BET",
            "payload": {"market_id": "1", "side": "YES", "amount": "20"},
            "executed": False,
            "reason": rejected.reason,
        }
    ]
    assert [traded["id"] for traded in row["trades"]] == [trade.pk]
