"""Claims on decisions: one live lease each, and a worker that lost its lease executes nothing."""

import json
import os
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.conf import settings
from django.db.models import F
from django.utils import timezone

from agents import clients
from agents.gateway.client import Gateway
from agents.gateway.completions import Completion
from agents.models import Agent, Decision, ModelCall, Trade
from agents.services.claims import Claim, ClaimLost, claim_task
from agents.services.decisions import DecisionConversation, run_decisions
from agents.services.model_calls import CallSettings, request_answer
from foundation.models import Run
from foundation.process_names import process_name
from markets.models import Universe
from tests.answers import GEMINI, GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure

LEASE = timedelta(minutes=6)
RAIN = "Will it rain?"
NO_PROCESS = 999_999_999


def open_season(venue: Venue) -> None:
    """Cohort 1 in its first week: Gemini has decided, GPT has not."""
    venue.market(RAIN)
    line_up(GPT, GEMINI)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION, family=Agent.objects.get(model_id=GEMINI).family.slug)
    venue.asked.clear()


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


class StallingGateway(Gateway):
    """A gateway that calls `during_stall` before it returns its first answer."""

    def __init__(self, during_stall: Callable[[], Any]) -> None:
        super().__init__(settings.OPENROUTER_BASE_URL, None, 10)
        self.during_stall: Callable[[], Any] | None = during_stall

    def complete(self, **request: Any) -> Completion:
        completion = super().complete(**request)
        during_stall, self.during_stall = self.during_stall, None
        if during_stall is not None:
            during_stall()
        return completion


def try_claim(lease: timedelta = LEASE) -> Claim | None:
    agent = Agent.objects.select_related("cohort__methodology").get(model_id=GPT)
    identity = {"agent": agent, "cohort": agent.cohort, "week": 1}
    return claim_task(Decision, identity=identity, universe=Universe.objects.get(), refused_retries=2, lease=lease)


def claim_decision(lease: timedelta = LEASE) -> Claim:
    claim = try_claim(lease)
    assert claim is not None
    return claim


def expire_lease() -> None:
    assert Decision.objects.filter(status="claimed").update(lease_until=timezone.now()) == 1


def request_under(claim: Claim) -> ModelCall:
    """Asks the model under a claim, without executing the answer."""
    parts = DecisionConversation().prompt(claim.task)
    with clients.gateway() as gateway:
        return request_answer(CallSettings(gateway, Decimal(25), 0, LEASE), claim, parts, attempt=1, max_tokens=16_000)


def decision() -> Decision:
    return Decision.objects.get(agent__model_id=GPT)


def test_live_claim_excludes_other_workers(opened: Venue) -> None:
    first = claim_decision()
    assert try_claim() is None
    ran = run("run_decisions", DECISION + timedelta(minutes=1))
    assert (ran.code, ran["asked"], ran["skipped"]) == (0, 0, 2)
    first.renew()


def test_renewal_extends_the_lease(opened: Venue) -> None:
    claim = claim_decision()
    Decision.objects.filter(status="claimed").update(lease_until=F("lease_until") - timedelta(minutes=5))
    before = decision().lease_until
    claim.renew()
    after = decision().lease_until
    assert before is not None
    assert after is not None
    assert after - before > timedelta(minutes=4)


def test_expired_claim_is_taken_over_once_and_its_former_holder_can_not_write(opened: Venue) -> None:
    stalled = claim_decision()
    expire_lease()
    assert claim_decision().lease_id != stalled.lease_id
    assert try_claim() is None
    for write in (stalled.renew, lambda: stalled.finish(status="failed", error="mine")):
        with pytest.raises(ClaimLost):
            write()
    assert decision().error == ""


def test_expired_claim_that_nobody_took_over_can_be_renewed(opened: Venue) -> None:
    claim = claim_decision()
    expire_lease()
    claim.renew()
    assert try_claim() is None


def test_late_answer_of_a_stalled_worker_is_stored_and_not_executed(opened: Venue) -> None:
    """A worker stalls past its lease, another one takes over and trades, then the first gets its answer."""

    def overtake() -> None:
        expire_lease()
        assert run("run_decisions", DECISION + timedelta(hours=1))["trades"] == 1

    opened.says(GPT, bet(RAIN, "NO", 900), bet(RAIN, "YES", 500))
    with StallingGateway(overtake) as gateway:
        report = run_decisions(at=DECISION, settings=CallSettings(gateway, Decimal(25), 0, LEASE), clob=None)
    assert (report.asked, report.skipped, report.trades, report.failed) == (0, 2, 0, 0)
    assert Trade.objects.get().side == "YES"
    late, answer_call = decision().calls.order_by("sequence")
    assert (late.late, late.result, json.loads(late.content)["bets"][0]["amount"]) == (True, "answered", 900)
    assert (answer_call.late, answer_call.result) == (False, "answered")
    assert late.cost_usd == answer_call.cost_usd == Decimal("0.001")


def test_overlapping_runs_report_the_cost_of_their_own_answers(opened: Venue) -> None:
    costs = []

    def overtake() -> None:
        expire_lease()
        costs.append(run("run_decisions", DECISION + timedelta(hours=1))["cost_usd"])

    opened.says(GPT, bet(RAIN, "NO", 900), bet(RAIN, "YES", 500))
    with StallingGateway(overtake) as gateway:
        report = run_decisions(at=DECISION, settings=CallSettings(gateway, Decimal(25), 0, LEASE), clob=None)
    assert (costs, report.cost_usd) == (["0.001000"], Decimal("0.001"))


def test_worker_without_its_claim_sends_no_request(opened: Venue) -> None:
    stalled = claim_decision()
    expire_lease()
    claim_decision()
    with pytest.raises(ClaimLost):
        request_under(stalled)
    assert opened.asked == []


def test_unanswered_call_of_a_dead_worker_is_marked_lost(opened: Venue) -> None:
    claim = claim_decision()
    ModelCall.objects.create(
        decision=claim.task, sequence=1, attempt=1, idempotency_key="k", model=GPT,
        portfolio_block="", positions_block="", prompt_sha256="x", sent_at=timezone.now(),
    )  # fmt: skip
    expire_lease()
    claim_decision()
    call = ModelCall.objects.get(decision=claim.task)
    assert (call.result, call.error) == ("lost", "the worker was gone before the answer came")


@pytest.mark.parametrize(
    ("process", "call_count"), [(process_name(NO_PROCESS), 1), ("elsewhere:1", 0), (process_name(os.getppid()), 0)]
)
def test_claim_of_a_killed_run_is_taken_over_at_once_where_its_process_is_known_to_be_gone(
    opened: Venue, process: str, call_count: int
) -> None:
    claim_decision()
    Run.objects.create(kind="run_decisions", at=DECISION, process=process)
    assert run("run_decisions", DECISION)["asked"] == call_count
    assert len(opened.asked) == call_count


def test_stored_answer_of_a_crashed_worker_is_executed_without_another_request(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 500), bet(RAIN, "NO", 900))
    request_under(claim_decision())  # the worker dies here
    expire_lease()
    ran = run("run_decisions", DECISION + timedelta(hours=1))
    assert (ran["asked"], ran["completed"], ran["trades"]) == (1, 1, 1)
    assert len(opened.asked) == 1
    assert Trade.objects.get().side == "YES"


def test_retries_of_an_attempt_share_its_idempotency_key_and_the_next_attempt_has_another(opened: Venue) -> None:
    opened.says(GPT, Failure(503), "not json", '{"action": "HOLD"}')
    run("run_decisions", DECISION + timedelta(minutes=1))
    run("run_decisions", DECISION + timedelta(minutes=2))
    failed, again, third = (prompt.headers["Idempotency-Key"] for prompt in opened.asked)
    assert failed == again != third


def test_claim_lost_during_a_pause_ends_only_this_decision(opened: Venue) -> None:
    """The spend limit is reached too, but recording that failure would need the claim."""
    opened.says(GPT, Failure(503))
    spent = Decimal(25)

    def lose_claim(seconds: float) -> None:
        expire_lease()
        claim_decision()
        with guards_removed(ModelCall):
            ModelCall.objects.filter(decision=decision()).update(cost_usd=spent)

    with clients.gateway() as gateway:
        call_settings = CallSettings(gateway, spend_limit=spent, transport_retries=1, lease=LEASE, pause=lose_claim)
        report = run_decisions(at=DECISION + timedelta(minutes=1), settings=call_settings, clob=None)
    assert (report.asked, report.skipped, report.failed) == (0, 2, 0)
    assert any("taken over by another worker" in line for line in report.log)
    assert decision().status == "claimed"
