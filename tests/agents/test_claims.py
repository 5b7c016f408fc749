"""Who may ask and write: one live token for each decision, and what becomes of those that lost it."""

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from agents import clients
from agents.gateway import Completion, Gateway
from agents.models import Agent, Decision, ModelCall, Trade
from agents.prompts import Prompt
from agents.services.asking import Asking, ask
from agents.services.audit import verify_ledger
from agents.services.claims import Claim, ClaimLost, task_claim
from agents.services.decisions import run_decisions
from markets.models import Universe
from tests.tampering import lifted
from tests.venue import DECISION, GEMINI, GPT, SUNDAY, Failure, Venue, bet, run

LEASE = timedelta(minutes=6)
RAIN = "Will it rain?"


@pytest.fixture
def opened(venue: Venue) -> Venue:
    """Cohort 1 in its first week: Gemini has decided, GPT has not, the others do not play."""
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    Agent.objects.exclude(model_id__in=(GPT, GEMINI)).update(status=Agent.Status.BANKRUPT)
    run("run_decisions", DECISION, family=Agent.objects.get(model_id=GEMINI).family.slug)
    venue.asked.clear()
    return venue


class Stalling(Gateway):
    """A gateway whose first answer arrives, but is not looked at before `meanwhile` has happened."""

    def __init__(self, meanwhile: Callable[[], Any]) -> None:
        super().__init__(settings.OPENROUTER_BASE_URL, None, 10)
        self.meanwhile: Callable[[], Any] | None = meanwhile

    def complete(self, **request: Any) -> Completion:
        completion = super().complete(**request)
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return completion


def claimed(lease: timedelta = LEASE) -> Claim | None:
    agent = Agent.objects.select_related("cohort__methodology").get(model_id=GPT)
    identity = {"agent": agent, "cohort": agent.cohort, "week": 1}
    return task_claim(Decision, identity=identity, universe=Universe.objects.get(), refused_retries=2, lease=lease)


def held(lease: timedelta = LEASE) -> Claim:
    claim = claimed(lease)
    assert claim is not None
    return claim


def let_leases_expire() -> None:
    assert Decision.objects.filter(status="claimed").update(lease_until=timezone.now()) == 1


def asked_by(claim: Claim) -> ModelCall:
    """The stored call of a worker that goes no further."""
    universe = Universe.objects.get()
    said = Prompt("", user=f"MARKETS\n{universe.market_block}")
    with clients.gateway() as gateway:
        return ask(Asking(gateway, Decimal(25), 0, LEASE), claim, said, attempt=1)


def decision() -> Decision:
    return Decision.objects.get(agent__model_id=GPT)


def test_live_claim_is_nobody_elses(opened: Venue) -> None:
    first = held()
    assert claimed() is None
    ran = run("run_decisions", DECISION + timedelta(minutes=1))
    assert (ran.code, ran["asked"], ran["skipped"]) == (0, 0, 2)
    first.renew()


def test_renewing_moves_the_end_of_the_lease(opened: Venue) -> None:
    claim = held()
    Decision.objects.filter(status="claimed").update(lease_until=F("lease_until") - timedelta(minutes=5))
    before = decision().lease_until
    claim.renew()
    after = decision().lease_until
    assert before is not None
    assert after is not None
    assert after - before > timedelta(minutes=4)


def test_failure_04_expired_claim_is_taken_over_once_and_its_holder_can_write_nothing(opened: Venue) -> None:
    zombie = held()
    let_leases_expire()
    assert held().token != zombie.token
    assert claimed() is None
    for write in (zombie.renew, lambda: zombie.finish(status="failed", error="mine")):
        with pytest.raises(ClaimLost):
            write()
    assert decision().error == ""


def test_expired_claim_that_nobody_took_over_is_still_its_holders(opened: Venue) -> None:
    claim = held()
    let_leases_expire()
    claim.renew()
    assert claimed() is None


def test_failure_04_zombies_late_answer_is_kept_and_executes_nothing(opened: Venue) -> None:
    """A worker stalls past its lease, another takes over and trades, then the first one looks at its answer."""

    def overtake() -> None:
        let_leases_expire()
        assert run("run_decisions", DECISION + timedelta(hours=1))["trades"] == 1

    opened.says(GPT, bet(RAIN, "NO", 900), bet(RAIN, "YES", 500))
    with Stalling(overtake) as gateway:
        report = run_decisions(at=DECISION, asking=Asking(gateway, Decimal(25), 0, LEASE), clob=None)
    assert (report.asked, report.skipped, report.trades, report.failed) == (0, 2, 0, 0)
    assert Trade.objects.get().side == "YES"
    late, counted = decision().calls.order_by("sequence")
    assert (late.late, late.result, json.loads(late.content)["bets"][0]["amount"]) == (True, "answered", 900)
    assert (counted.late, counted.result) == (False, "answered")
    assert late.cost_usd == counted.cost_usd == Decimal("0.001")
    assert verify_ledger().violations == []


def test_each_of_two_overlapping_runs_states_what_its_own_answers_cost(opened: Venue) -> None:
    costs = []

    def overtake() -> None:
        let_leases_expire()
        costs.append(run("run_decisions", DECISION + timedelta(hours=1))["cost_usd"])

    opened.says(GPT, bet(RAIN, "NO", 900), bet(RAIN, "YES", 500))
    with Stalling(overtake) as gateway:
        report = run_decisions(at=DECISION, asking=Asking(gateway, Decimal(25), 0, LEASE), clob=None)
    assert (costs, report.cost_usd) == (["0.001000"], Decimal("0.001"))


def test_failure_04_zombie_sends_no_further_request(opened: Venue) -> None:
    zombie = held()
    let_leases_expire()
    held()
    with pytest.raises(ClaimLost):
        asked_by(zombie)
    assert opened.asked == []


def test_call_that_never_came_back_is_marked_lost(opened: Venue) -> None:
    claim = held()
    ModelCall.objects.create(
        decision=claim.task, sequence=1, attempt=1, idempotency_key="k", model=GPT,
        portfolio_block="", positions_block="", prompt_sha256="x", sent_at=timezone.now(),
    )  # fmt: skip
    let_leases_expire()
    held()
    call = ModelCall.objects.get(decision=claim.task)
    assert (call.result, call.error) == ("lost", "the worker was gone before the answer came")


def test_crash_after_an_answer_was_stored_executes_it_without_asking_again(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 500), bet(RAIN, "NO", 900))
    asked_by(held())  # and the worker dies here
    let_leases_expire()
    ran = run("run_decisions", DECISION + timedelta(hours=1))
    assert (ran["asked"], ran["completed"], ran["trades"]) == (1, 1, 1)
    assert len(opened.asked) == 1
    assert Trade.objects.get().side == "YES"


def test_same_attempt_carries_the_same_key_after_a_death_and_another_one_after_a_refusal(opened: Venue) -> None:
    opened.says(GPT, Failure(503), "not json", '{"action": "HOLD"}')
    run("run_decisions", DECISION + timedelta(minutes=1))
    run("run_decisions", DECISION + timedelta(minutes=2))
    failed, again, third = (prompt.headers["Idempotency-Key"] for prompt in opened.asked)
    assert failed == again != third


def test_claim_lost_while_pausing_ends_only_this_decision(opened: Venue) -> None:
    """The cap was reached meanwhile: to record that as our failure would need the claim, which is another's by now."""
    opened.says(GPT, Failure(503))
    spent = Decimal(25)

    def stolen(seconds: float) -> None:
        let_leases_expire()
        held()
        with lifted(ModelCall):
            ModelCall.objects.filter(decision=decision()).update(cost_usd=spent)

    with clients.gateway() as gateway:
        asking = Asking(gateway, spend_limit=spent, transport_retries=1, lease=LEASE, pause=stolen)
        report = run_decisions(at=DECISION + timedelta(minutes=1), asking=asking, clob=None)
    assert (report.asked, report.skipped, report.failed) == (0, 2, 0)
    assert any("taken over by another worker" in line for line in report.log)
    assert decision().status == "claimed"
