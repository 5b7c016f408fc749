"""What broke in the field, line by line: which tests stand guard, and those guards that have no better home.

Each of these failures happened to a system of this kind. A guard's name begins with the number of its failure, so that
`pytest -k failure_07` runs all that keeps number 7 from coming back.
"""

import ast
from collections.abc import Callable, Iterable
from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from agents import clients
from agents.models import Decision, Trade
from agents.services.asking import spent_in_week
from agents.services.audit import verify_ledger
from agents.services.decisions import run_decisions
from arena_site import jobs
from cohorts.models import Cohort
from markets.models import Run, Universe
from markets.sources.polymarket import Clob
from markets.sources.polymarket.clob import Midpoints
from tests.kills import ROOT
from tests.venue import CLAUDE, DECISION, DEEPSEEK, GEMINI, GPT, GROK, KIMI, QWEN, SUNDAY, Failure, Venue, bet, run

FAILURES = {
    1: "the gateway fails for every model, and the week is lost though it comes back",
    2: "everybody holds, and the cohort is over before it began",
    3: "the last position settles, and some place never shows the money",
    4: "two runs overlap, or a worker stalls past its lease, and trades are made twice",
    5: "a position is paid twice, or a crash after the payout loses the score",
    6: "one malformed row stops the sync of all others",
    7: "a price vanishes or is absurd, and a portfolio collapses, or nobody is told",
    8: "a market closed and not resolved drops out of sight, or is never resolved",
    9: "a dispute is settled by its price, half a chance is never refunded, a settled market reopens",
    10: "YES is taken for the first outcome, or an outcome is found by its spelling",
    11: "only the last answer's cost is counted",
    12: "an instant on the boundary falls into the wrong week",
    13: "two places show different numbers under one name",
    14: "a negative number becomes text in CSV, or text a formula",
    15: "a stranger uses up everybody's rate, or locks the operator out",
    16: "a job stalls the pages",
    17: "a migration stops the snapshots, or the disk fills",
    18: "text from outside changes a prompt's frame or a page",
}
RAIN = "Will it rain?"
EVERYBODY = (GPT, GEMINI, GROK, CLAUDE, DEEPSEEK, KIMI, QWEN)


def guards() -> set[int]:
    """The failures whose number begins the name of a test."""
    names = (
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    )
    return {int(name.split("_")[2]) for name in names if name.startswith("test_failure_")}


def test_every_failure_has_its_guard() -> None:
    assert guards() == set(FAILURES)


@pytest.fixture
def opened(venue: Venue) -> Venue:
    """One market synced and cohort 1 started, Sunday midnight."""
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    return venue


@pytest.mark.parametrize("status", [402, 503])
def test_failure_01_a_gateway_that_fails_for_everybody_costs_the_week_nothing_but_time(
    opened: Venue, status: int
) -> None:
    for model in EVERYBODY:
        opened.says(model, Failure(status))
    with time_machine.travel(DECISION, tick=False), pytest.raises(jobs.JobFailed, match=rf"GPT-5.2.*{status}"):
        jobs.decisions()
    assert Run.objects.get(kind="run_decisions").status == Run.Status.FAILED
    recorded = Decision.objects.filter(status="failed", action=None, error__contains=str(status))
    assert recorded.count() == len(EVERYBODY)
    assert run("check_resolutions", DECISION + timedelta(hours=1))["cohorts_completed"] == 0
    assert Cohort.objects.get().status == Cohort.Status.ACTIVE
    with time_machine.travel(DECISION + timedelta(hours=23), tick=False):
        jobs.decisions()
    assert Decision.objects.filter(status="completed", action="HOLD", fallback=False).count() == len(EVERYBODY)


class Stalling(Clob):
    """Has its prices, but does not come back with them before `meanwhile` is over."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__(settings.CLOB_BASE_URL)
        self.meanwhile = meanwhile

    def midpoints(self, token_ids: Iterable[str]) -> Midpoints:
        found = super().midpoints(token_ids)
        self.meanwhile()
        return found


def test_failure_04_a_worker_that_waits_on_prices_while_another_decides_trades_nothing(opened: Venue) -> None:
    def overtake() -> None:
        opened.move(RAIN, Yes="0.44", No="0.56")
        assert run("run_decisions", DECISION)["trades"] == 1

    opened.says(GPT, bet(RAIN, "YES", 500), bet(RAIN, "NO", 900))
    with Stalling(overtake) as clob, clients.gateway() as gateway:
        report = run_decisions(at=DECISION, asking=clients.asking(gateway), clob=clob)
    assert (report.asked, report.trades, report.failed) == (0, 0, 0)
    assert len(opened.asked) == len(EVERYBODY)
    assert Universe.objects.count() == 1
    assert Trade.objects.get().price == Decimal("0.44")
    assert verify_ledger().violations == []


def test_failure_11_a_malformed_answer_is_paid_for_wherever_a_cost_is_shown(opened: Venue, client: Client) -> None:
    opened.says(GPT, "I would rather not say.", '{"action": "HOLD"}')
    ran = run("run_decisions", DECISION)
    assert Decimal(ran["cost_usd"]) == Decimal("0.008")
    decision = Decision.objects.get(agent__model_id=GPT)
    assert [call.result for call in decision.calls.all()] == ["malformed", "answered"]
    assert client.get(f"/api/v1/decisions/{decision.pk}/").json()["cost_usd"] == "0.002000"
    (entry,) = [e for e in client.get("/api/v1/leaderboard/").json()["results"] if e["family"] == "gpt-5.1"]
    assert entry["cost_usd"] == "0.002000"
    places = {f"/decisions/{decision.pk}/": 1, "/cohorts/1/gpt-5.1/": 2, "/models/gpt-5.1/": 4, "/": 1}
    assert {page: client.get(page).content.decode().count("$0.0020") for page in places} == places
    assert spent_in_week("trading", SUNDAY) == Decimal("0.008")


def test_failure_12_sunday_midnight_belongs_to_the_new_week(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", SUNDAY - timedelta(hours=1))
    assert run("start_cohort", SUNDAY - timedelta(microseconds=1)).summary["cohort"] == 1
    assert run("start_cohort", SUNDAY).summary["cohort"] == 2
    assert [c.week_start for c in Cohort.objects.order_by("number")] == [SUNDAY - timedelta(weeks=1), SUNDAY]
    for at in (SUNDAY - timedelta(microseconds=1), SUNDAY):
        assert run("run_decisions", at).code == 0
    weeks = Decision.objects.values_list("cohort__number", "week").distinct()
    assert set(weeks) == {(1, 1), (1, 2), (2, 1)}
