"""Models that think while snapshots are taken, markets resolve and boards are computed: one record all the same."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.test import Client

from agents.models import Agent, Decision, Envelope, JournalEntry, Position, Trade
from agents.services import ledger
from markets.models import Market, Universe
from markets.sources import registry
from scoring.exports.verification.ledger_audit import violations_about
from scoring.models import BrierScore, Snapshot
from scoring.services.snapshots import take_snapshots
from tests.agents.test_settlement_beside_purchases import wait_for_waiting_session
from tests.answers import CLAUDE, GEMINI, GPT, GROK, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import WEEK, AgentFactory, SnapshotFactory, line_up
from tests.factories import bet as bet_of
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.threads import all_at_once
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Failure

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
TEN_PAST = SUNDAY + 10 * MINUTE
RAIN, CUP = "Will it rain?", "Will the cup stay?"


@pytest.fixture
def opened(venue: Venue, settings: Any) -> Venue:
    """Two markets and cohort 1 of four models, Sunday midnight."""
    settings.ARENA_LINEUP = "unchecked"
    venue.market(RAIN)
    venue.market(CUP)
    line_up(GPT, GEMINI, GROK, CLAUDE)
    venue.start_first_cohort()
    return venue


def decide(family: str, at: datetime = DECISION) -> None:
    assert run("run_decisions", at, family=family).code == 0


def dates(model: str) -> tuple[datetime, set[datetime]]:
    """When a model's newest decision was made, and when its effects on cash were dated."""
    decision = Decision.objects.filter(agent__model_id=model).latest("week")
    assert decision.decided_at is not None
    entries = JournalEntry.objects.filter(trade__decision=decision).values_list("occurred_at", flat=True)
    trades = Trade.objects.filter(decision=decision).values_list("executed_at", flat=True)
    return decision.decided_at, {*entries, *trades}


def assert_record_agrees(folder: Path, at: datetime) -> None:
    assert run("compute_scores", at).code == 0
    assert run("export_dataset", at, out=folder / "archive").code == 0
    ran = run("verify_export", None, folder / "archive")
    assert ran.code == 0, ran.stderr


def test_answers_after_a_snapshot_are_dated_after_it(opened: Venue, tmp_path: Path) -> None:
    """A run is slow: one model answers at once, a snapshot and a board follow, then the others answer."""
    opened.says(GPT, bet(RAIN, "YES", 500))
    opened.says(GEMINI, bet(RAIN, "NO", 700, (CUP, "YES", 300)))
    decide("gpt-5.1")
    for at in (TEN_PAST, TEN_PAST + 10 * MINUTE):
        assert run("take_snapshots", at).code == 0
    assert run("compute_scores", TEN_PAST + 12 * MINUTE).code == 0
    assert run("run_decisions", DECISION)["completed"] == 3
    assert dates(GPT) == (DECISION, {DECISION})
    later = TEN_PAST + 10 * MINUTE + MICROSECOND
    assert dates(GEMINI) == (later, {later})
    assert Position.objects.filter(agent__model_id=GEMINI).values_list("opened_at", flat=True)[0] == later
    assert dates(GROK) == (later, set())  # a HOLD is dated alike
    assert run("take_snapshots", SUNDAY + 30 * MINUTE).code == 0
    newest = Snapshot.objects.filter(agent__model_id=GEMINI).latest("taken_at")
    assert (str(newest.cash), newest.open_positions) == ("9000.00", 2)
    assert_record_agrees(tmp_path, SUNDAY + HOUR)


@pytest.mark.django_db(transaction=True)
def test_live_run_dates_each_answer_by_the_clock(opened: Venue, settings: Any) -> None:
    """Each model thinks for seven minutes, during which the snapshots that are due are taken."""
    settings.ARENA_CLOCK = DECISION
    snapshots: list[int] = []

    def after_seven_minutes(answer: Any) -> Any:
        def think(prompt: ModelRequest) -> Any:
            settings.ARENA_CLOCK += 7 * MINUTE
            snapshots.append(all_at_once(lambda: run("take_snapshots"))[0].code)
            return answer(prompt)

        return think

    for model in (GPT, GEMINI, GROK, CLAUDE):
        opened.says(model, after_seven_minutes(bet(RAIN, "YES", 500)))
    ran = run("run_decisions")
    assert (ran["completed"], ran["trades"], snapshots) == (4, 4, [0, 0, 0, 0])
    decided = list(Decision.objects.order_by("decided_at").values_list("decided_at", flat=True))
    assert decided == [DECISION + minutes * MINUTE for minutes in (7, 14, 21, 28)]
    settings.ARENA_CLOCK = SUNDAY + 40 * MINUTE
    assert run("take_snapshots").code == 0


def test_agent_whose_ledger_moved_on_is_asked_in_its_window(opened: Venue) -> None:
    """A decision of week 2 fails, a market of week 1 is settled later on the day, and the retry has an earlier T."""
    opened.says(GPT, bet(RAIN, "YES", 500, (CUP, "YES", 500)), Failure(500), sell(CUP, 50))
    decide("gpt-5.1")
    sunday, week = SUNDAY + 7 * DAY, timedelta(weeks=1)
    assert run("sync_markets", sunday).code == 0
    assert run("run_decisions", DECISION + week).code == 1
    opened.resolve(RAIN, "Yes")
    assert run("check_resolutions", sunday + 3 * HOUR)["positions_settled"] == 1
    assert run("take_snapshots", sunday + 3 * HOUR).code == 0
    decide("gpt-5.1", sunday + 2 * HOUR)
    later = sunday + 3 * HOUR + MICROSECOND
    assert dates(GPT) == (later, {later})
    assert run("take_snapshots", sunday + 4 * HOUR).code == 0


def test_settlement_and_score_of_a_slow_pass_follow_the_snapshots_taken_meanwhile(
    opened: Venue, tmp_path: Path
) -> None:
    """The pass begins at 01:00 and pays after the snapshot of 01:10, whose agents it changes."""
    opened.says(GPT, bet(RAIN, "YES", 500))
    opened.says(GEMINI, bet(RAIN, "NO", 500))
    run("run_decisions", DECISION)
    opened.resolve(RAIN, "Yes")
    market = Market.objects.get(question=RAIN)
    begun, taken_at = SUNDAY + DAY + HOUR, SUNDAY + DAY + HOUR + 10 * MINUTE
    run("sync_markets", begun)
    for agent in Agent.objects.all():
        held = Position.objects.filter(agent=agent)
        figures = {"cash": agent.cash, "positions_value": 500 * held.count(), "open_positions": held.count()}
        SnapshotFactory(agent=agent, taken_at=taken_at, **figures)
    assert run("check_resolutions", begun)["positions_settled"] == 2
    market.refresh_from_db()
    later = taken_at + MICROSECOND
    assert market.resolved_at == later
    assert set(Position.objects.values_list("closed_at", flat=True)) == {later}
    assert BrierScore.objects.filter(resolved_at=later, scored_at__gte=later).count() == 2
    assert run("take_snapshots", taken_at + 10 * MINUTE).code == 0
    assert_record_agrees(tmp_path, taken_at + HOUR)


def test_external_agent_answers_after_a_snapshot_of_the_same_instant(
    opened: Venue, client: Client, settings: Any
) -> None:
    """Its cohort begins a week later; the clock stands at the instant of a snapshot that has been taken."""
    stdout = StringIO()
    call_command("register_agent", "Visitor", protocol="trading", at=SUNDAY + DAY, json=True, stdout=stdout)
    sunday = SUNDAY + 7 * DAY
    for command in ("sync_markets", "start_cohort"):
        assert run(command, sunday).code == 0
    run("run_decisions", sunday + 5 * MINUTE)
    at = settings.ARENA_CLOCK = sunday + 10 * MINUTE
    assert run("take_snapshots", at).code == 0
    agent, universe = Agent.objects.get(family__slug="visitor"), Universe.objects.latest("pk")
    market = Market.objects.get(question=RAIN)
    bets = [{"market_id": str(market.pk), "side": "YES", "amount": "500"}]
    headers = {"Authorization": f"Bearer {json.loads(stdout.getvalue())['token']}", "Idempotency-Key": "1"}
    path = f"/api/v1/submissions/?agent={agent.pk}&universe={universe.pk}"
    body = json.dumps({"action": "BET", "bets": bets, "reasoning": "because"})
    assert client.post(path, body, content_type="application/json", headers=headers).status_code == 201
    assert Envelope.objects.get(decision__agent=agent).received_at == at + MICROSECOND
    assert run("take_snapshots", sunday + 20 * MINUTE).code == 0
    trade = Trade.objects.get(agent=agent)
    assert (trade.decision.decided_at, trade.executed_at) == (at + MICROSECOND, sunday + 20 * MINUTE)


# what the database and the proofs refuse


@pytest.mark.parametrize(
    ("model", "message"), [(JournalEntry, "a journal goes forward"), (Snapshot, "journals are dated after snapshots")]
)
def test_database_refuses_an_entry_that_is_dated_too_early(model: Any, message: str, db: None) -> None:
    agent = AgentFactory()
    if model is Snapshot:
        SnapshotFactory(agent=agent, taken_at=WEEK + DAY)
    else:
        bet_of(agent)
    first = JournalEntry.objects.filter(agent=agent).latest("sequence")
    early = {"agent": agent, "kind": "reversal", "amount": 0, "balance": agent.cash}
    with pytest.raises(IntegrityError, match=message), transaction.atomic():
        JournalEntry.objects.create(sequence=first.sequence + 1, occurred_at=WEEK - DAY, **early)
    JournalEntry.objects.create(sequence=first.sequence + 1, occurred_at=WEEK + DAY, **early)


def test_verification_names_an_entry_that_is_dated_before_an_earlier_one(db: None) -> None:
    trade = bet_of(AgentFactory())
    entry = trade.journal_entry
    with guards_removed(JournalEntry, Trade, Decision):
        for row in (JournalEntry.objects.filter(pk=entry.pk), Trade.objects.filter(pk=trade.pk)):
            row.update(**{"occurred_at" if row.model is JournalEntry else "executed_at": WEEK - DAY})
    assert any("before the entry of" in line for line in violations_about("accounts"))


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_snapshot_waits_for_a_trade_that_is_being_written() -> None:
    """The trade is dated before the snapshot's instant, and committed after the snapshot had begun."""
    agent = AgentFactory()

    def take() -> int:
        try:
            with registry.clob() as clob:
                return take_snapshots(at=WEEK + HOUR, clob=clob).snapshots
        finally:
            connection.close()

    with ThreadPoolExecutor() as pool:
        with transaction.atomic():
            ledger.lock_agent(agent.pk)
            taking = pool.submit(take)
            wait_for_waiting_session()
            bet_of(agent, amount="400.00")
        assert taking.result(20) == 1
    assert agent.snapshots.get().cash == Decimal("9600.00")
