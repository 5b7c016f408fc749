"""Reversal of a settlement: compensating entries, permissions, consistent ledger, scores and archive."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client

from agents.models import Agent, JournalEntry, Position, Reversal
from arena_site.models import AuditEntry
from cohorts.models import Cohort
from markets.models import Market
from markets.services.question_resolution import resolve_questions
from scoring.exports.verification.ledger_audit import violations_about
from scoring.exports.verification.verifier import verify_archive
from scoring.models import BrierScore, ForecastScore, Snapshot
from scoring.services.scores import compute_scores
from scoring.services.snapshots import ended_cohorts
from tests.arena_site.dashboard.accounts import REASON, action_path, outcome_form, perform, sign_in
from tests.factories import (
    WEEK,
    AgentFactory,
    MarketFactory,
    QuestionFactory,
    ask,
    bet,
    chain_all,
    end_question,
    resolve,
    sale,
)

pytestmark = pytest.mark.django_db
SETTLED = WEEK + timedelta(days=30)
NOW = SETTLED + timedelta(days=1)


@pytest.fixture
def operator() -> Client:
    return sign_in("operator")


def settled_market(side: str | None = "YES") -> tuple[Agent, Agent, Market]:
    """Two agents bet 500 dollars each at 0.40 and 0.60 on the two sides of a market that was settled."""
    market = MarketFactory(question="Did it happen?")
    yes, no = AgentFactory(), AgentFactory()
    bet(yes, market, "YES")
    bet(no, market, "NO")
    resolve(market, side, at=SETTLED)
    compute_scores(at=SETTLED, refit=False, forecast_leaderboards=False)
    return yes, no, market


def cash(*agents: Agent) -> list[Decimal]:
    return [Agent.objects.get(pk=agent.pk).cash for agent in agents]


def test_other_side_is_paid_by_compensating_entries(operator: Client) -> None:
    yes, no, market = settled_market()
    assert cash(yes, no) == [Decimal("10750.00"), Decimal("9500.00")]
    journal = list(JournalEntry.objects.order_by("pk").values())
    preview = operator.get(action_path("reverse"), outcome_form(market, "NO")).context["preview"]
    assert preview.possible
    assert preview.details[0].endswith("lost instead, 0.00 for the 1250.00 that was paid: -1250.00")

    perform(operator, "reverse", **outcome_form(market, "NO"))
    assert cash(yes, no) == [Decimal("9500.00"), Decimal("10333.33")]
    market.refresh_from_db()
    assert (market.status, market.winning_side, market.resolved_at) == ("resolved", "NO", NOW)
    assert list(JournalEntry.objects.order_by("pk").values())[: len(journal)] == journal
    entries = JournalEntry.objects.filter(kind="reversal").order_by("agent_id")
    assert [entry.amount for entry in entries] == [Decimal("-1250.00"), Decimal("833.33")]
    assert [score.outcome for score in BrierScore.objects.order_by("agent_id")] == [False, True]
    assert violations_about("accounts") == []
    reversal = Reversal.objects.get(agent=yes)
    assert (reversal.reversed_by, reversal.reason) == ("operator", f"{REASON} (source: the venue)")
    entry = AuditEntry.objects.get()
    assert (entry.before["winner"], entry.after["winner"]) == ("YES", "NO")


def test_repeated_reversal_changes_nothing(operator: Client) -> None:
    yes, no, market = settled_market()
    perform(operator, "reverse", **outcome_form(market, "NO"))
    before = cash(yes, no), JournalEntry.objects.count()
    perform(operator, "reverse", **outcome_form(market, "NO"))
    assert (cash(yes, no), JournalEntry.objects.count()) == before
    assert AuditEntry.objects.first().result == "unchanged"


def test_reversal_can_be_reversed_and_then_cancelled(operator: Client) -> None:
    yes, no, market = settled_market()
    for side in ("NO", "YES"):
        perform(operator, "reverse", **outcome_form(market, side))
    assert cash(yes, no) == [Decimal("10750.00"), Decimal("9500.00")]
    perform(operator, "reverse", **outcome_form(market, None))
    assert cash(yes, no) == [Decimal("10000.00"), Decimal("10000.00")]
    assert not BrierScore.objects.exists()
    assert {position.status for position in Position.objects.all()} == {"cancelled"}
    assert list(Reversal.objects.filter(agent=yes).values_list("sequence", "kind")) == [
        (1, "lost"),
        (2, "won"),
        (3, "refunded"),
    ]
    assert violations_about("accounts") == []


def test_cancelled_market_can_get_a_winner(operator: Client) -> None:
    yes, no, market = settled_market(None)
    perform(operator, "reverse", **outcome_form(market, "YES"))
    assert cash(yes, no) == [Decimal("10750.00"), Decimal("9500.00")]
    assert BrierScore.objects.count() == 2
    assert violations_about("accounts") == []


def test_spent_payout_prevents_the_reversal(operator: Client) -> None:
    yes, no, market = settled_market()
    for week in range(2, 22):
        agent = Agent.objects.get(pk=yes.pk)
        bet(yes, MarketFactory(), amount=(agent.cash / 4).quantize(Decimal("0.01")), week=week)
    before = cash(yes, no), JournalEntry.objects.count()
    preview = operator.get(action_path("reverse"), outcome_form(market, "NO")).context["preview"]
    assert not preview.possible
    assert "may not fall below zero" in preview.summary
    perform(operator, "reverse", **outcome_form(market, "NO"))
    assert (cash(yes, no), JournalEntry.objects.count()) == before
    market.refresh_from_db()
    assert market.winning_side == "YES"
    assert AuditEntry.objects.get().result == "unchanged"


def test_shares_sold_before_the_resolution_are_not_paid(operator: Client) -> None:
    market, agent = MarketFactory(), AgentFactory()
    trade = bet(agent, market)
    sale(trade.position, "50")
    resolve(market, "NO", at=SETTLED)
    perform(operator, "reverse", **outcome_form(market, "YES"))
    assert cash(agent) == [Decimal("10375.00")]
    assert violations_about("accounts") == []


def test_questions_and_forecasts_are_scored_again(operator: Client) -> None:
    question = QuestionFactory()
    ask(question, {"gpt-5.1": [0.6, 0.4]}, day=WEEK)
    end_question(question, "YES", at=SETTLED)
    compute_scores(at=SETTLED, refit=False, forecast_leaderboards=False)
    before = ForecastScore.objects.get().brier
    perform(operator, "reverse", **outcome_form(Market.objects.get(), "NO"))
    question.refresh_from_db()
    assert (question.status, question.resolved_at) == ("resolved", NOW)
    assert [option.happened for option in question.options.order_by("index")] == [False, True]
    assert (before, ForecastScore.objects.get().brier) == (pytest.approx(0.16), pytest.approx(0.36))


def test_independent_option_that_is_cancelled_leaves_the_scores_of_the_others(operator: Client) -> None:
    markets = [MarketFactory(question=name) for name in "AB"]
    question = QuestionFactory(markets=markets, exclusive=False)
    ask(question, {"gpt-5.1": [0.6, 0.1]}, day=WEEK)
    end_question(question, "A", at=SETTLED)
    compute_scores(at=SETTLED, refit=False, forecast_leaderboards=False)
    before = ForecastScore.objects.get().brier
    perform(operator, "reverse", **outcome_form(markets[0], None))
    question.refresh_from_db()
    assert (question.status, question.resolved_at) == ("resolved", NOW)
    assert [option.happened for option in question.options.order_by("index")] == [None, False]
    assert (before, ForecastScore.objects.get().brier) == (pytest.approx(0.17 / 2), pytest.approx(0.01))
    assert violations_about("accounts") == []


def test_question_that_is_no_longer_decided_is_open_again(operator: Client) -> None:
    first, second = MarketFactory(), MarketFactory()
    question = QuestionFactory(markets=[first, second])
    resolve(first, "YES", at=SETTLED)
    resolve_questions(at=SETTLED)
    question.refresh_from_db()
    assert question.status == "resolved"
    perform(operator, "reverse", **outcome_form(first, "NO"))
    question.refresh_from_db()
    assert (question.status, question.resolved_at) == ("open", None)
    assert {option.happened for option in question.options.all()} == {None}
    resolve(second, "YES", at=NOW)
    resolve_questions(at=NOW)
    question.refresh_from_db()
    assert question.status == "resolved"


def test_market_that_is_not_final_has_no_settlement_to_reverse(operator: Client) -> None:
    market = MarketFactory(closed=True)
    perform(operator, "reverse", **outcome_form(market, "NO"))
    market.refresh_from_db()
    assert market.status == "closed"
    assert "no settlement to reverse" in AuditEntry.objects.get().message


def test_completed_cohort_gets_new_final_snapshots(operator: Client) -> None:
    _, _, market = settled_market()
    Cohort.objects.update(status="completed", completed_at=SETTLED)
    perform(operator, "reverse", **outcome_form(market, "NO"))
    assert {cohort.ended_at for cohort in ended_cohorts()} == {NOW}
    assert not Snapshot.objects.exists()


def test_exported_reversal_passes_verification(operator: Client, tmp_path: Path, client: Client) -> None:
    _, _, market = settled_market()
    chain_all()
    perform(operator, "reverse", **outcome_form(market, "NO"))
    call_command("export_dataset", "--out", str(tmp_path / "data"), "--at", NOW.isoformat(), verbosity=0)
    # Rows made by factories rest on no answer of a model and no observed price.
    violations = verify_archive(tmp_path / "data").violations
    assert not [line for line in violations if not line.startswith(("decisions: ", "outcomes: "))]
    rows = client.get("/api/v1/reversals/").json()["results"]
    assert {(row["kind"], row["previous_payout"], row["payout"]) for row in rows} == {
        ("won", "0.00", "833.33"),
        ("lost", "1250.00", "0.00"),
    }
