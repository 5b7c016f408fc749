"""The hash chains: completed tasks are linked at once, changes are found, heads are published."""

import hashlib
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from agents.models import Chain, ChainLink, Decision, Elicitation, Forecast, ModelCall, Trade
from agents.records import GENESIS, canonical, link_sha256, record_sha256
from agents.services.chain import append_to_chain
from scoring.exports.verification.ledger_audit import violations_about
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.shared_rows import scripted_venue, shared_rows
from venue_sandbox.script import Failure

RAIN = "Will it rain?"
WEEK = timedelta(weeks=1)


def play() -> None:
    """Week 1 of cohort 1: one bet, one model that is down, the others hold; and a forecast run."""
    with scripted_venue() as venue:
        venue.market(RAIN)
        run("sync_markets", SUNDAY)
        run("start_cohort", SUNDAY)
        venue.says(GPT, bet(RAIN, "YES", 500))
        venue.says("x-ai/grok-4.1-fast", Failure(503))
        run("run_decisions", DECISION)
        run("run_forecasts", SUNDAY + timedelta(hours=2))


week = shared_rows(play)


@pytest.fixture
def played(week: None, venue: Venue) -> Venue:
    venue.market(RAIN)
    return venue


def test_exactly_the_completed_tasks_are_linked(played: Venue) -> None:
    assert Decision.objects.exclude(link=None).count() == Decision.objects.filter(status="completed").count() == 6
    completed = Elicitation.objects.filter(status="completed")
    assert completed.exclude(link=None).count() == completed.count() > 0
    assert run("verify_ledger", DECISION)["chain_links"] == 6 + completed.count()


def test_a_link_is_the_hash_of_its_record_and_the_hash_before_it(played: Venue) -> None:
    first, second = ChainLink.objects.filter(protocol="trading").order_by("sequence")[:2]
    assert first.previous == GENESIS
    assert second.previous == first.sha256 == hashlib.sha256(f"{GENESIS}\n{first.record_sha256}".encode()).hexdigest()
    trade = Trade.objects.get()
    decision, call = trade.decision, trade.decision.calls.get()
    assert decision.universe is not None
    prompt, answer = call.prompt_sha256, hashlib.sha256(call.raw_response.encode()).hexdigest()
    record = {
        "protocol": "trading", "cohort": 1, "week": 1, "family": "gpt-5.1", "model": GPT,
        "methodology": decision.cohort.methodology.version, "universe": decision.universe.sha256, "prompt": prompt,
        "answer": answer, "action": "BET", "fallback": False, "refusals": 0, "error": "",
        "reasoning": hashlib.sha256(decision.reasoning.encode()).hexdigest(),
        "calls": [{"sequence": 1, "attempt": 1, "model": GPT, "returned_model": call.returned_model,
                   "provider": call.provider, "quantization": call.quantization, "result": "answered",
                   "finish_reason": call.finish_reason, "error": "", "prompt_sha256": prompt, "raw_response": answer}],
        "instructions": [{"call": 1, "sequence": 1, "kind": "BET", "executed": True, "reason": "",
                          "payload": {"market_id": str(trade.market_id), "side": "YES", "amount": "500"}}],
        "trades": [{"sequence": 1, "market": f"polymarket:{trade.market.external_id}", "side": "YES", "kind": "BUY",
                    "shares": f"{trade.shares.normalize():f}", "price": f"{trade.price.normalize():f}",
                    "amount": "500", "cost_basis": "500", "realized_pnl": "0", "implied_confidence": 0.2}],
        "decided_at": "2026-03-08T00:05:00.000000Z", "nonce": decision.nonce,
    }  # fmt: skip
    assert decision.link.record_sha256 == record_sha256(record)


def test_canonical_form_does_not_depend_on_the_order_of_keys() -> None:
    assert (
        canonical({"b": [1, "é"], "a": None}) == canonical({"a": None, "b": [1, "é"]}) == '{"a":null,"b":[1,"\\u00e9"]}'
    )


def test_a_chain_does_not_fork(played: Venue) -> None:
    link = ChainLink.objects.get(protocol="trading", sequence=3)
    decision = Decision.objects.filter(link=None).first()
    for fields in ({"sequence": 7, "previous": link.previous}, {"sequence": 3, "previous": "0" * 63 + "1"}):
        with pytest.raises(IntegrityError), transaction.atomic():
            ChainLink.objects.create(
                protocol="trading", decision=decision, record_sha256="a" * 64, sha256="b" * 64, **fields
            )


def test_link_is_rolled_back_with_the_completion_of_its_task(played: Venue) -> None:
    before = Chain.objects.get(protocol="trading")
    task = Decision.objects.get(status="failed")
    with transaction.atomic():
        Decision.objects.filter(pk=task.pk).update(status="completed", action="HOLD", decided_at=DECISION)
        task.refresh_from_db()
        append_to_chain(task)
        transaction.set_rollback(True)
    after = Chain.objects.get(protocol="trading")
    assert (after.length, after.head) == (before.length, before.head)


def _change_a_trade() -> None:
    Trade.objects.update(amount="499.99")


def _change_an_answer() -> None:
    ModelCall.objects.filter(decision__trades__isnull=False).update(raw_response="{}")


def _change_a_forecast() -> None:
    row = Forecast.objects.order_by("pk")[0]
    Forecast.objects.filter(pk=row.pk).update(probabilities={"YES": 0.5, "NO": 0.5001})


def _change_an_action() -> None:
    Decision.objects.filter(action="HOLD").order_by("pk")[:1].get()
    Decision.objects.filter(pk=Decision.objects.filter(action="HOLD")[0].pk).update(action="SELL")


def _change_a_time() -> None:
    Decision.objects.filter(action="BET").update(decided_at=DECISION + timedelta(seconds=1))


def _recompute_a_link() -> None:
    _change_a_trade()
    link = Trade.objects.get().decision.link
    link.record_sha256 = "c" * 64
    link.sha256 = link_sha256(link.previous, link.record_sha256)
    link.save()


def _delete_the_last_link() -> None:
    ChainLink.objects.filter(protocol="trading").order_by("-sequence")[:1].get().delete()


def _complete_a_task_without_a_link() -> None:
    Decision.objects.filter(status="failed").update(status="completed", action="HOLD", decided_at=DECISION)


@pytest.mark.forged_record
def test_tampering_is_found(played: Venue) -> None:
    for tamper in (
        _change_a_trade, _change_an_answer, _change_a_forecast, _change_an_action, _change_a_time, _recompute_a_link,
        _delete_the_last_link, _complete_a_task_without_a_link,
    ):  # fmt: skip
        with transaction.atomic():
            with guards_removed():
                tamper()
            assert violations_about("chains"), tamper
            transaction.set_rollback(True)
    with guards_removed():
        _change_a_trade()
    assert run("verify_ledger", DECISION).code == 1


def test_heads_are_published(played: Venue, client: Client) -> None:
    heads = {row["protocol"]: row for row in client.get("/api/v1/chain/").json()["results"]}
    last = ChainLink.objects.filter(protocol="trading").latest("sequence")
    assert heads["trading"] == {"protocol": "trading", "length": 6, "head": last.sha256}
    assert heads["forecast"]["length"] == ChainLink.objects.filter(protocol="forecast").count()
    assert client.get("/api/v1/chain/forecast/").json() == heads["forecast"]
    page = client.get("/methodology/").content.decode()
    assert last.sha256 in page
    assert heads["forecast"]["head"] in page


def test_cohort_shows_the_head_after_its_newest_decision(played: Venue, client: Client) -> None:
    first = ChainLink.objects.filter(protocol="trading").latest("sequence").sha256
    assert client.get("/api/v1/cohorts/1/").json()["chain_head"] == first
    run("sync_markets", SUNDAY + WEEK)
    run("start_cohort", SUNDAY + WEEK)
    assert client.get("/api/v1/cohorts/2/").json()["chain_head"] is None
    run("run_decisions", DECISION + WEEK, cohort=2)
    rows = {row["number"]: row["chain_head"] for row in client.get("/api/v1/cohorts/").json()["results"]}
    assert rows == {1: first, 2: Chain.objects.get(protocol="trading").head}
    assert rows[2] != first
