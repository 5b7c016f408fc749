"""Answers under seal: judged when they come, without effect until they are opened, exactly once."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from agents.models import (
    Agent,
    Attempt,
    Decision,
    Envelope,
    Forecast,
    JournalEntry,
    ModelCall,
    Position,
    Receipt,
    Settlement,
    Trade,
)
from agents.services import submission_targets
from agents.services.registrations import register_external_agent
from arena_site.models import AuditEntry
from arena_site.operations.conditions import UNOPENED, refresh_conditions
from cohorts.models import Cohort
from foundation.models import Alert
from markets.models import Market, Outcome, Universe
from scoring.exports.verification.verifier import verify_archive
from tests.answers import GEMINI, GPT, bet, forecast, sell
from tests.arena_site.dashboard.accounts import outcome_form, perform, sign_in
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.problems import problem
from tests.sandbox import Venue
from tests.scoring.exports.forgeries import first
from tests.scoring.exports.forgery import Cells, rewrite, standalone_violations
from tests.shared_rows import shared_rows_at_venue

RAIN, SNOW = "Will it rain?", "Will it snow?"
MINUTE, HOUR, WEEK = timedelta(minutes=1), timedelta(hours=1), timedelta(weeks=1)
UNDER_SEAL, SEAL_END = DECISION + 10 * MINUTE, DECISION + 15 * MINUTE
HOLD = {"action": "HOLD", "reasoning": "nothing to do"}


def ask(venue: Venue) -> str:
    """The first week of GPT, who buys RAIN, Gemini and a visitor, frozen. Returns the visitor's token."""
    token = register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK).token
    line_up(GPT, GEMINI)
    venue.market(RAIN)
    venue.market(SNOW)
    venue.says(GPT, bet(RAIN, "YES", 500))
    venue.start_first_cohort()
    assert run("run_decisions", DECISION)["completed"] == 2
    return token


asked_week = shared_rows_at_venue(ask)


@pytest.fixture
def token(asked_week: tuple[Venue, str], venue: Venue, settings: Any) -> str:
    """The token of a visitor, ten minutes after the freeze: GPT bought RAIN, and nobody may know it yet."""
    settings.ARENA_CLOCK = UNDER_SEAL
    venue.as_left(asked_week[0])
    return asked_week[1]


def submit(client: Client, token: str, body: Any, key: str) -> Any:
    agent, universe = Agent.objects.get(family__slug="visitor"), Universe.objects.latest("pk")
    return client.post(
        f"/api/v1/submissions/?agent={agent.pk}&universe={universe.pk}",
        json.dumps(body),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token}", "Idempotency-Key": key},
    )


def buy(question: str, amount: str) -> dict[str, Any]:
    market = str(Market.objects.get(question=question).pk)
    return {"action": "BET", "bets": [{"market_id": market, "side": "YES", "amount": amount}], "reasoning": "so"}


# effects


def test_sealed_answer_has_no_effect_and_then_the_one_that_was_judged(token: str) -> None:
    gpt = Agent.objects.get(model_id=GPT)
    assert (gpt.cash, gpt.journal_length, Trade.objects.count(), Position.objects.count()) == (10_000, 1, 0, 0)
    assert set(Decision.objects.values_list("status", "action", "decided_at")) == {("answered", None, None)}
    opened = run("open_envelopes", SEAL_END)
    assert (opened.code, opened["opened"], opened["trades"]) == (0, 2, 1)
    decision = Decision.objects.get(agent=gpt)
    assert (decision.status, decision.action, decision.decided_at) == ("completed", "BET", DECISION)
    trade = Trade.objects.get()
    assert (trade.amount, trade.executed_at, trade.position.opened_at) == (500, SEAL_END, SEAL_END)
    assert JournalEntry.objects.get(trade=trade).occurred_at == SEAL_END
    assert run("open_envelopes", SEAL_END)["opened"] == 0


def test_nothing_is_opened_before_the_seal_ends(token: str) -> None:
    assert run("open_envelopes", SEAL_END - timedelta(microseconds=1))["opened"] == 0
    assert not Trade.objects.exists()


def test_command_that_touches_a_ledger_opens_what_is_due(token: str) -> None:
    for command in ("take_snapshots", "check_resolutions", "run_decisions", "run_forecasts", "start_cohort"):
        with transaction.atomic():
            run(command, SEAL_END)
            assert Trade.objects.count() == 1, command
            transaction.set_rollback(True)


def test_sales_of_one_position_are_judged_in_order_and_carried_out_alike(venue: Venue, token: str) -> None:
    assert run("open_envelopes", SEAL_END).code == 0
    shares = Position.objects.get().shares

    def sell_twice(prompt: Any) -> Any:
        half, rest = sell(RAIN, 50)(prompt), sell(RAIN, 100)(prompt)
        return half | {"sells": [*half["sells"], *rest["sells"], *rest["sells"]]}

    venue.says(GPT, sell_twice)
    run("sync_markets", SUNDAY + WEEK)
    run("run_decisions", DECISION + WEEK)
    assert Position.objects.get().shares == shares
    assert run("open_envelopes", SEAL_END + WEEK)["trades"] == 2
    position = Position.objects.get()
    assert (position.status, position.shares) == ("closed", 0)
    call = ModelCall.objects.get(decision__agent__model_id=GPT, decision__week=2)
    assert list(call.instructions.values_list("executed", flat=True)) == [True, True, False]


def test_ledgers_of_models_end_alike_with_and_without_an_external_agent(venue: Venue) -> None:
    columns = ("agent__family__slug", "kind", "amount", "balance")
    ledgers = []
    for with_visitor in (False, True):
        with transaction.atomic():
            point = transaction.savepoint()
            if with_visitor:
                register_external_agent(name="Visitor", protocol="both", at=SUNDAY - WEEK)
            line_up(GPT, GEMINI)
            if not with_visitor:
                venue.market(RAIN)
                venue.market(SNOW)
            venue.says(GPT, bet(RAIN, "YES", 500, (SNOW, "YES", 9_000)))
            venue.says(GEMINI, bet(SNOW, "NO", 700))
            venue.start_first_cohort()
            run("run_decisions", DECISION)
            run("open_envelopes", SEAL_END)
            run("take_snapshots", SEAL_END)
            of_models = JournalEntry.objects.filter(agent__family__external=False)
            ledgers.append(sorted(of_models.values_list(*columns)))
            transaction.savepoint_rollback(point)
    assert ledgers[0] == ledgers[1]
    assert len(ledgers[0]) == 4


# waiting


def test_no_market_of_the_universe_is_settled_before_the_opening(venue: Venue, token: str) -> None:
    venue.resolve(RAIN, "Yes")
    venue.resolve(SNOW, "No")
    assert run("sync_markets", UNDER_SEAL).code == 0
    waiting = run("check_resolutions", UNDER_SEAL)
    assert (waiting.code, waiting["resolved"], waiting["waiting"]) == (0, 0, 2)
    assert not Market.objects.filter(status="resolved").exists()
    assert run("check_resolutions", SEAL_END)["resolved"] == 2
    assert Settlement.objects.get().payout == Trade.objects.get().shares


def test_no_market_is_settled_or_reversed_and_no_week_voided_by_hand(venue: Venue, token: str) -> None:
    venue.close(RAIN, "1", "0", status="disputed")
    run("sync_markets", UNDER_SEAL)
    rain, cohort = Market.objects.get(question=RAIN), Cohort.objects.get()
    assert rain.status == "closed"
    staff = sign_in("operator")
    yes = Outcome.objects.get(market=rain, side="YES").pk
    settle = f"/admin/actions/settle/?market={rain.pk}&result=outcome-{yes}&source=the+venue&reason=r"
    assert "are sealed" in staff.get(settle).text
    assert run("void_week", UNDER_SEAL, cohort.number, reason="wrong prices")["changed"] is False
    cohort.refresh_from_db()
    assert cohort.voided_at is None


def test_settlement_reversal_and_voiding_by_hand_open_first_what_is_due(
    venue: Venue, token: str, settings: Any
) -> None:
    venue.close(RAIN, "1", "0", status="disputed")
    run("sync_markets", UNDER_SEAL)
    rain, staff = Market.objects.get(question=RAIN), sign_in("operator")
    settings.ARENA_CLOCK = SEAL_END
    for action, side, cash in (("settle", "YES", "10750.00"), ("reverse", "NO", "9500.00")):
        perform(staff, action, **outcome_form(rain, side))
        assert f"{Agent.objects.get(model_id=GPT).cash}" == cash, action


@pytest.mark.parametrize("action", ["settle", "void-week"])
def test_action_by_hand_waits_for_an_answer_that_can_not_be_opened(
    venue: Venue, token: str, settings: Any, action: str
) -> None:
    venue.close(RAIN, "1", "0", status="disputed")
    run("sync_markets", UNDER_SEAL)
    rain, cohort = Market.objects.get(question=RAIN), Cohort.objects.get()
    fields = {"settle": outcome_form(rain, "YES"), "void-week": {"cohort": cohort.pk}}
    settings.ARENA_CLOCK = SEAL_END
    with broken_envelope(Envelope.objects.filter(state="sealed", verdict__action="HOLD")[0]):
        perform(sign_in("administrator"), action, **fields[action])
    assert "sealed" in AuditEntry.objects.get(action=action).message
    rain.refresh_from_db()
    cohort.refresh_from_db()
    assert (rain.status, cohort.voided_at) == ("closed", None)


def test_week_is_voided_once_its_answers_are_due(venue: Venue, token: str) -> None:
    assert run("void_week", SEAL_END, Cohort.objects.get().number, reason="wrong prices")["changed"] is True
    assert Trade.objects.count() == 1


def test_no_cohort_completes_while_an_answer_waits(venue: Venue, token: str) -> None:
    venue.resolve(RAIN, "Yes")
    for week in range(1, 5):
        run("sync_markets", SUNDAY + week * WEEK)
        run("check_resolutions", SUNDAY + week * WEEK)
        run("run_decisions", DECISION + week * WEEK)
    over = SUNDAY + 5 * WEEK
    with broken_envelope(Envelope.objects.filter(state="sealed", verdict__action="HOLD").latest("pk")):
        run("check_resolutions", over)
        assert not Position.objects.open().exists()
        assert Cohort.objects.get().status == "active"
    run("check_resolutions", over)
    assert Cohort.objects.get().status == "completed"


# replacement


def forge_verdict(rows: Cells) -> None:
    for row in rows:
        verdict = json.loads(row["verdict"])
        for instruction in verdict.get("instructions", ()):
            instruction["amount"] = "501"
        row["verdict"] = json.dumps(verdict)


FORGERIES = [
    ("envelopes", first("nonce", "0" * 64), "has another hash than its record with its nonce"),
    ("envelopes", first("sha256", "0" * 64), "is not the one that was linked"),
    ("envelopes", first("state", "sealed"), "was never opened"),
    ("envelopes", forge_verdict, "holds other trades"),
    ("envelopes", first("received_at", "2026-03-08T00:04:00.000000Z"), "holds"),
]


def test_last_answer_counts_and_each_has_its_receipt(client: Client, token: str, settings: Any, tmp_path: Path) -> None:
    bodies = [submit(client, token, body, key) for key, body in (("1", buy(RAIN, "900")), ("2", buy(SNOW, "300")))]
    assert [answer.status_code for answer in bodies] == [201, 201]
    assert [answer.json()["receipt"]["body"]["sequence"] for answer in bodies] == [1, 2]
    envelopes = Envelope.objects.filter(decision__agent__family__slug="visitor").order_by("number")
    assert list(envelopes.values_list("number", "state")) == [(1, "replaced"), (2, "sealed")]
    assert run("open_envelopes", SEAL_END).code == 0
    settings.ARENA_CLOCK = SEAL_END
    trade = Trade.objects.get(agent__family__slug="visitor")
    assert (trade.market.question, trade.amount) == (SNOW, 300)
    calls = ModelCall.objects.filter(model="external/visitor").order_by("sequence")
    assert list(calls.values_list("result", flat=True)) == ["replaced", "answered"]
    assert Receipt.objects.count() == 2
    archive = tmp_path / "archive"
    assert run("export_dataset", SEAL_END + 2 * HOUR, out=archive, format=["csv"]).code == 0
    assert verify_archive(archive).violations == standalone_violations(archive) == []
    for table, change, sentence in FORGERIES:
        forged = Path(shutil.copytree(archive, tmp_path / sentence))
        rewrite(forged, table, change, record=True)
        assert any(sentence in line for line in verify_archive(forged).violations), sentence
        assert any(sentence in line for line in standalone_violations(forged)), sentence


def test_refused_replacement_leaves_the_earlier_answer(client: Client, token: str) -> None:
    assert submit(client, token, buy(RAIN, "900"), "1").status_code == 201
    for key, body, reason in (("2", "no", "earlier answer stands"), ("3", buy(RAIN, "20"), "below the minimum")):
        assert reason in problem(submit(client, token, body, key), 422)["detail"]
    run("open_envelopes", SEAL_END)
    assert Trade.objects.get(agent__family__slug="visitor").amount == 900
    assert list(Attempt.objects.values_list("kind", flat=True)) == ["refused", "refused"]


def test_opened_answer_is_replaced_no_more(client: Client, token: str, settings: Any) -> None:
    assert submit(client, token, HOLD, "1").status_code == 201
    run("open_envelopes", SEAL_END)
    settings.ARENA_CLOCK = SEAL_END
    assert "completed already" in problem(submit(client, token, HOLD, "2"), 409)["detail"]


def test_answers_to_one_task_are_limited(client: Client, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submission_targets, "MAX_ANSWERS", 3)
    codes = [submit(client, token, HOLD, str(number)).status_code for number in range(4)]
    assert codes == [201] * 3 + [409]


# guards, faults


def test_database_guards_envelopes_and_what_waits_in_them(token: str) -> None:
    envelope = Envelope.objects.filter(decision__isnull=False)[0]
    for values in ({"verdict": {}}, {"nonce": ""}, {"state": "opened"}, {"sealed_until": UNDER_SEAL}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Envelope.objects.filter(pk=envelope.pk).update(**values)
    with pytest.raises(IntegrityError, match="can not be deleted"), transaction.atomic():
        Envelope.objects.filter(pk=envelope.pk)._raw_delete("default")
    waiting = Decision.objects.filter(pk=envelope.decision_id)
    for status in ("completed", "failed", "missed"):
        with pytest.raises(IntegrityError), transaction.atomic():
            waiting.update(status=status, action="HOLD" if status == "completed" else None, decided_at=SEAL_END)
    visitor = Agent.objects.get(family__slug="visitor")
    with pytest.raises(IntegrityError, match="wait in their envelopes"), transaction.atomic():
        Decision.objects.create(agent=visitor, cohort=visitor.cohort, week=1, status="answered")


@contextmanager
def broken_envelope(envelope: Envelope) -> Iterator[None]:
    """Within the block this envelope's verdict can not be carried out."""
    rows = Envelope.objects.filter(pk=envelope.pk)
    with guards_removed(Envelope):
        rows.update(verdict=envelope.verdict | {"instructions": [{}]})
    yield
    with guards_removed(Envelope):
        rows.update(verdict=envelope.verdict)


def test_opening_that_raises_leaves_the_others_alone_and_raises_an_alert(token: str, settings: Any) -> None:
    settings.ARENA_ANY_DATE = False
    broken = Envelope.objects.get(verdict__action="BET")
    with broken_envelope(broken):
        failed = run("open_envelopes", SEAL_END)
        assert (failed.code, failed["opened"], failed["failed"]) == (1, 1, 1)
        assert f"envelope {broken.pk} can not be opened" in failed.stderr
        assert not Trade.objects.exists()
        refresh_conditions(now=SEAL_END + 9 * MINUTE)
        assert not Alert.objects.open().filter(kind=UNOPENED).exists()
        refresh_conditions(now=SEAL_END + 10 * MINUTE)
        assert f"envelope {broken.pk}" in Alert.objects.open().get(kind=UNOPENED).message
    assert run("open_envelopes", SEAL_END)["opened"] == 1
    refresh_conditions(now=SEAL_END + 11 * MINUTE)
    assert not Alert.objects.open().filter(kind=UNOPENED).exists()


@pytest.mark.forged_record
def test_ledger_names_an_envelope_that_was_never_opened(token: str, settings: Any) -> None:
    assert run("verify_ledger", UNDER_SEAL)["violations"] == 0
    settings.ARENA_CLOCK = SEAL_END + timedelta(hours=2)
    named = run("verify_ledger", SEAL_END + timedelta(hours=2))
    assert named["violations"] == 2
    assert "was never opened, though its seal ended at" in named.stdout


def test_forecasts_wait_and_are_dated_by_their_answer(venue: Venue, token: str) -> None:
    frozen_at = SUNDAY + timedelta(hours=2)
    venue.says(GPT, forecast(lean=0.2))
    run("run_forecasts", frozen_at)
    assert not Forecast.objects.exists()
    assert run("open_envelopes", frozen_at + 15 * MINUTE)["forecasts"] == Forecast.objects.count() > 0
    assert set(Forecast.objects.values_list("made_at", flat=True)) == {frozen_at}
