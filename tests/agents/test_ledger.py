"""The ledger: no sequence of bets, sales and resolutions breaks an invariant, and `verify_ledger` finds tampering."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models import Agent, JournalEntry, Position, Settlement, Trade
from agents.services import ledger
from agents.services.execution import carry_out, judge_answer
from agents.services.resolutions import Resolution
from agents.services.settlement import settle_market
from arena_verifier.decisions import Answer, Bet, Sell
from markets.models import Market
from scoring.exports.verification.ledger_audit import violations_about
from scoring.selectors.valuations import valuations
from tests.factories import (
    WEEK,
    AgentFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    UniverseFactory,
    bet,
    chain_all,
    resolve,
    sale,
)
from tests.guards import guards_removed
from tests.selection import examples
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
OPENING = Decimal(10_000)
SIDES: tuple[dict[str, str], ...] = (
    {"YES": "0.40", "NO": "0.60"},
    {"YES": "0.0001", "NO": "0.9999"},
    {"Ann": "0.3333333333", "Bob": "0.6", "Cy": "0.07"},
)


# ── invariants ──────────────────────────────────────────────────────────────────────────────────


@dataclass
class Season:
    """An agent that executes given instructions, at prices that change weekly."""

    agent: Agent
    markets: list[Market]
    week: int = 0
    results: list[tuple[bool, str]] = field(default_factory=list)

    @classmethod
    def opened(cls) -> "Season":
        return cls(AgentFactory(), [MarketFactory(prices=prices) for prices in SIDES])

    def answer(self, instructions: list[tuple[Any, ...]], prices: list[str]) -> None:
        """One week: executes instructions on a universe that is frozen at new prices."""
        self.week += 1
        self._move(prices)
        universe = UniverseFactory(
            week_start=WEEK + self.week * timedelta(weeks=1),
            methodology=f"t{self.agent.pk}",
            markets=self.markets,
            listed_open=True,
        )
        decision = DecisionFactory(agent=self.agent, week=self.week, universe=universe)
        bets = tuple(Bet(self._market(m), side, amount) for kind, m, side, amount in instructions if kind == "bet")
        sells = tuple(Sell(self._position(n), share) for kind, n, share, _ in instructions if kind == "sell")
        before = self.ledger_rows()
        with transaction.atomic():
            answer = Answer("BET", bets=bets, sells=sells)
            call = ModelCallFactory(decision=decision)
            agent = ledger.lock_agent(self.agent.pk)
            results = judge_answer(answer, agent=agent, universe=universe)
            carry_out(results, agent=agent, decision=decision, call=call, at=decision.decided_at)
        self.results += [(result.is_executed, result.reason) for result in results]
        assert sum(result.is_executed for result in results) == decision.trades.count()
        if not any(result.is_executed for result in results):
            assert self.ledger_rows() == before

    def ledger_rows(self) -> tuple[Any, ...]:
        """The rows that a rejected instruction must not change."""
        agent = Agent.objects.get(pk=self.agent.pk)
        positions = agent.positions.order_by("pk").values_list("pk", "status", "shares", "cost_basis", "realized_pnl")
        return agent.cash, agent.journal_length, agent.status, list(positions), agent.trades.count()

    def resolve(self, index: int, side: int | None) -> None:
        market = self.markets[index]
        outcomes = list(market.outcomes.all())
        settle_market(
            market, Resolution(None if side is None else outcomes[side % len(outcomes)]), at=WEEK + timedelta(days=60)
        )

    def close(self, index: int) -> None:
        Market.objects.filter(pk=self.markets[index].pk, status="active").update(status="closed", closed_at=WEEK)

    def check(self) -> None:
        agent = Agent.objects.select_related("cohort__methodology").get(pk=self.agent.pk)
        last = agent.journal.order_by("-sequence").first()
        assert last is not None
        assert agent.cash == last.balance >= 0
        for position in agent.positions.all():
            trades = list(position.trades.all())
            bought = sum((t.cost_basis for t in trades if t.kind == "BUY"), Decimal(0))
            sold = sum((t.cost_basis for t in trades if t.kind == "SELL"), Decimal(0))
            if position.status == Position.Status.OPEN:
                assert position.cost_basis == bought - sold
        final = (Market.Status.RESOLVED, Market.Status.CANCELLED)
        assert not agent.positions.filter(status="open", market__status__in=final).exists()
        worth = valuations([agent])[agent.pk]
        realized = sum((p.realized_pnl for p in agent.positions.all()), Decimal(0))
        unrealized = sum((p.unrealized_pnl for p in agent.positions.filter(status="open")), Decimal(0))
        assert realized + unrealized == worth.total - OPENING == worth.pnl
        assert violations_about("accounts") == []

    def _move(self, prices: list[str]) -> None:
        for market, text in zip(self.markets, prices, strict=True):
            first, *other_outcomes = market.outcomes.all()
            first.price = Decimal(text)
            first.save()
            for other_outcome in other_outcomes:
                other_outcome.price = (1 - Decimal(text)) / len(other_outcomes)
                other_outcome.price = other_outcome.price.quantize(Decimal("0.0000000001"))
                other_outcome.save()

    def _market(self, index: int) -> str:
        return str(self.markets[index].pk) if index < len(self.markets) else "999999"

    def _position(self, number: int) -> str:
        position_ids = list(self.agent.positions.order_by("pk").values_list("pk", flat=True))
        return str(position_ids[number % len(position_ids)]) if position_ids else "1"


@contextmanager
def undone() -> Iterator[None]:
    """A savepoint for each example: pytest's transaction spans them all."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


AMOUNTS = st.one_of(
    st.sampled_from(["50", "50.009", "49.99", "2500", "2500.01", "1875", "0", "-50", "1e30", "333.33", "50.01"]).map(
        Decimal
    ),
    st.decimals("40", "2600", places=2),
)
PERCENTAGES = st.one_of(
    st.sampled_from(["1", "100", "33.3", "99.9999999", "0.99", "100.01", "-5", "50", "66.6666666666"]).map(Decimal),
    st.decimals("1", "100", places=3),
)
BETS = st.tuples(
    st.just("bet"), st.integers(0, 3), st.sampled_from(["YES", "NO", "yes", "Ann", "bob", "Cy", "MAYBE"]), AMOUNTS
)
SALES = st.tuples(st.just("sell"), st.integers(0, 9), PERCENTAGES, st.none())
TICKS = st.sampled_from(["0.0001", "0.9999", "0.5", "0.3333333333", "0.07", "0.005", "0.995", "0.40"])
STEPS = st.one_of(
    st.tuples(
        st.just("answer"),
        st.lists(st.one_of(BETS, SALES), min_size=1, max_size=6),
        st.lists(TICKS, min_size=3, max_size=3),
    ),
    st.tuples(st.just("close"), st.integers(0, 2), st.none()),
    st.tuples(st.just("resolve"), st.integers(0, 2), st.one_of(st.none(), st.integers(0, 2))),
)


@settings(max_examples=examples(40))
@given(st.lists(STEPS, min_size=1, max_size=7))
def test_no_sequence_of_answers_closings_and_resolutions_breaks_the_ledger(steps: list[tuple[Any, ...]]) -> None:
    with undone():
        season = Season.opened()
        for kind, target, how in steps:
            {"answer": season.answer, "resolve": season.resolve}.get(kind, lambda index, _: season.close(index))(
                target, how
            )
            season.check()


def test_sequences_contain_valid_and_invalid_instructions() -> None:
    """Guards the property above against an alphabet of which every instruction is rejected."""
    season = Season.opened()
    season.answer(
        [
            ("bet", 0, "YES", Decimal("2500")),
            ("bet", 0, "YES", Decimal("1875.01")),
            ("bet", 1, "yes", Decimal("50.009")),
            ("bet", 2, "bob", Decimal("333.33")),
            ("bet", 3, "YES", Decimal("50")),
        ],
        ["0.40", "0.0001", "0.3333333333"],
    )
    season.answer([("sell", 0, Decimal("33.3"), None), ("sell", 1, Decimal(100), None)], ["0.9999", "0.005", "0.5"])
    season.check()
    assert [executed for executed, _ in season.results] == [True, False, True, True, False, True, True]
    assert Trade.objects.get(sequence=2, kind="BUY").amount == Decimal("50.00")


@pytest.mark.parametrize(("end", "state"), [("closed", "closed and awaits"), ("won", "resolved"), ("cancelled",) * 2])
def test_market_closed_since_the_freeze_accepts_neither_bet_nor_sale(end: str, state: str) -> None:
    season = Season.opened()
    prices = ["0.40", "0.0001", "0.3333333333"]
    season.answer([("bet", 0, "YES", Decimal(500))], prices)
    season.close(0) if end == "closed" else season.resolve(0, 0 if end == "won" else None)
    before = season.ledger_rows()
    season.answer([("bet", 0, "YES", Decimal(500)), ("sell", 0, Decimal(100), None)], prices)
    assert season.ledger_rows() == before
    assert [executed for executed, _ in season.results] == [True, False, False]
    assert f"is {state}" in season.results[1][1]


# ── rounding ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("amount", "price", "shares"),
    [
        ("2500.00", "0.0001", "25000000"),
        ("50.00", "0.9999", "50.005001"),  # 50.00500050005…
        ("100.00", "0.3", "333.333333"),
        ("50.00", "0.0005", "100000"),
        ("333.33", "0.0655", "5089.007634"),  # …633.58, rounded up
    ],
)
def test_shares_are_amount_over_price_to_the_millionth(amount: str, price: str, shares: str) -> None:
    assert bet(AgentFactory(), amount=amount, price=price).shares == Decimal(shares)


@pytest.mark.parametrize("percentages", [["33.3", "33.3", "100"], ["1"] * 7 + ["100"], ["99.9", "99.9", "100"]])
def test_partial_sales_add_up_to_the_whole_position(percentages: list[str]) -> None:
    bought = bet(AgentFactory(), amount="333.33", price="0.0655")
    for percentage in percentages:
        position = Position.objects.get()
        sale(position, percentage, price="0.0917")
    sales = Trade.objects.filter(kind="SELL")
    assert sum(t.shares for t in sales) == bought.shares
    assert sum(t.cost_basis for t in sales) == bought.amount
    position = Position.objects.get()
    assert (position.status, position.shares, position.cost_basis) == ("closed", 0, 0)
    assert position.realized_pnl == sum(t.amount for t in sales) - bought.amount
    assert violations_about("accounts") == []


@pytest.mark.parametrize(("lost", "status"), [("9800.00", "active"), ("9800.01", "bankrupt")])
def test_agent_that_can_pay_the_least_bet_is_not_bankrupt(lost: str, status: str) -> None:
    trade = bet(AgentFactory(), market := MarketFactory(), amount=lost)
    resolve(market, "NO")
    agent = Agent.objects.get(pk=trade.agent_id)
    assert (agent.cash, agent.status) == (OPENING - Decimal(lost), status)


@pytest.mark.parametrize(("shares_price", "payout"), [("0.3", "333.33"), ("0.9999", "100.01"), ("0.0001", "1000000")])
def test_winner_is_paid_a_dollar_a_share_to_the_cent(shares_price: str, payout: str) -> None:
    trade = bet(AgentFactory(), market := MarketFactory(), amount="100.00", price=shares_price)
    resolve(market, "YES")
    settlement = Settlement.objects.get()
    assert (settlement.payout, settlement.realized_pnl) == (Decimal(payout), Decimal(payout) - 100)
    assert trade.agent.journal.last().balance == Decimal("9900.00") + Decimal(payout)


@pytest.mark.parametrize(("price", "proceeds"), [("0.05", "0.12"), ("0.07", "0.18")])
def test_half_a_cent_rounds_to_even(price: str, proceeds: str) -> None:
    """2.5 of 100 shares make 12.5 cents at 0.05 and 17.5 at 0.07."""
    position = bet(AgentFactory(), amount="50.00", price="0.5").position
    assert sale(position, "2.5", price=price).amount == Decimal(proceeds)


def test_database_refuses_negative_cash() -> None:
    agent = AgentFactory()
    with pytest.raises(IntegrityError), transaction.atomic():
        Agent.objects.filter(pk=agent.pk).update(cash=Decimal("-0.01"))


# ── tampering ─────────────────────────────────────────────────────────────────────────────────────


def play() -> Agent:
    """An agent with a purchase, a partial sale, a payout, a refund and an open position."""
    agent = AgentFactory()
    won, cancelled = MarketFactory(), MarketFactory()
    bet(agent, won, "YES", "1000.00")
    bet(agent, cancelled, "NO", "500.00")
    position = bet(agent, MarketFactory(), "YES", "300.00").position
    sale(Position.objects.get(outcome__market=won), "25", price="0.47")
    sale(position, "10", price="0.33")
    resolve(won, "YES")
    resolve(cancelled, None)
    assert violations_about("accounts") == []
    chain_all()
    return agent


played = shared_rows(play)


def run_verification() -> tuple[int, list[str], str]:
    """Exit code, lines without the summary, and stderr of the command."""
    output, errors = StringIO(), StringIO()
    code = 0
    try:
        call_command("verify_ledger", at=WEEK, json=True, stdout=output, stderr=errors)
    except SystemExit as end:
        code = int(end.code or 0)
    return code, output.getvalue().splitlines()[:-1], errors.getvalue()


def add_one_unit(table: str, column: str, row: int, places: int = 2) -> None:
    """Adds one unit of the last decimal place, without the ledger."""
    step: Any = 1 if connection.vendor == "sqlite" else Decimal(1).scaleb(-places)
    with guards_removed(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE {table} SET {column} = {column} + %s WHERE id = %s", [step, row])
        assert cursor.rowcount == 1


ONE_CENT: list[tuple[Any, dict[str, str], str, str]] = [
    (JournalEntry, {"kind": "buy"}, "amount", "journal row"),
    (JournalEntry, {"kind": "deposit"}, "amount", "journal row"),
    (JournalEntry, {"kind": "refund"}, "amount", "journal row"),
    (JournalEntry, {"kind": "sell"}, "balance", "journal row"),
    (JournalEntry, {"kind": "payout"}, "balance", "journal row"),
    (Position, {"status": "open"}, "cost_basis", "position"),
    (Position, {"status": "open"}, "realized_pnl", "position"),
    (Position, {"status": "settled"}, "realized_pnl", "position"),
    (Trade, {"kind": "BUY"}, "amount", "trade"),
    (Trade, {"kind": "SELL"}, "amount", "trade"),
    (Trade, {"kind": "BUY"}, "cost_basis", "trade"),
    (Trade, {"kind": "SELL"}, "cost_basis", "trade"),
    (Trade, {"kind": "SELL"}, "realized_pnl", "trade"),
    (Trade, {"kind": "BUY"}, "shares", "trade"),
    (Settlement, {"kind": "won"}, "payout", "settlement"),
    (Settlement, {"kind": "refunded"}, "payout", "settlement"),
    (Settlement, {"kind": "won"}, "realized_pnl", "settlement"),
    (Settlement, {"kind": "won"}, "cost_basis", "settlement"),
    (Agent, {}, "cash", "cash is"),
]
"""By model, rows and column of an amount, the name of its rows in the lines of the verification."""


def test_change_of_one_cent_is_found_and_named(played: Agent) -> None:
    for model, where, column, name in ONE_CENT:
        row = model.objects.filter(**where).order_by("pk").first()
        with undone():
            add_one_unit(model._meta.db_table, column, row.pk, places=6 if column == "shares" else 2)
            lines = violations_about("accounts")
        assert all(f"(agent {played.pk})" in line and played.family.slug in line for line in lines)
        subject = name if model is Agent else f"{name} {row.pk} "
        assert any(subject in line for line in lines), (name, where, column, lines)


def test_change_of_a_millionth_share_is_found_at_its_position(played: Agent) -> None:
    sold = Trade.objects.filter(kind="SELL").latest("pk")
    for row, position in ((sold, sold.position_id), (Position.objects.get(status="open"), sold.position_id)):
        with undone():
            add_one_unit(row._meta.db_table, "shares", row.pk, places=6)
            assert any(f"position {position} (open) has shares" in line for line in violations_about("accounts"))


def test_deleted_journal_row_is_found(played: Agent) -> None:
    for kind in ("deposit", "buy", "sell", "payout", "refund"):
        row = JournalEntry.objects.filter(kind=kind).order_by("pk")[0]
        with undone():
            with guards_removed(JournalEntry):
                connection.cursor().execute(f"DELETE FROM {JournalEntry._meta.db_table} WHERE id = %s", [row.pk])
            lines = violations_about("accounts")
        cause = {"buy": f"trade {row.trade_id} ", "sell": f"trade {row.trade_id} "}.get(
            kind, "a row is missing" if kind == "deposit" else f"settlement {row.settlement_id} "
        )
        assert any(cause in line for line in lines), (kind, lines)


def test_consistently_forged_journal_contradicts_its_trades(played: Agent) -> None:
    """A cent is added to a sale, to all later balances and to the cash."""
    sale_row = JournalEntry.objects.get(sequence=5)
    add_one_unit(JournalEntry._meta.db_table, "amount", sale_row.pk)
    for row in JournalEntry.objects.filter(sequence__gte=5):
        add_one_unit(JournalEntry._meta.db_table, "balance", row.pk)
    add_one_unit(Agent._meta.db_table, "cash", played.pk)
    lines = violations_about("accounts")
    assert any(f"journal row {sale_row.pk} (no. 5) moves 293.76, its sell says 293.75" in line for line in lines), lines


def test_only_the_changed_agent_is_named(played: Agent) -> None:
    other_agent = AgentFactory(cohort=played.cohort)
    bet(other_agent, amount="700.00")
    chain_all()
    add_one_unit(Agent._meta.db_table, "cash", other_agent.pk)
    _, lines, _ = run_verification()
    assert lines
    assert all(f"(agent {other_agent.pk})" in line for line in lines)


@pytest.mark.parametrize(
    ("amount", "fault"),
    [
        ("2500.01", "above the maximum of 2500.00 (25 % of the cash of 10000.00 at that moment)"),
        ("49.99", "below the minimum of 50.00"),
    ],
)
def test_bet_beyond_a_limit_is_named(played: Agent, amount: str, fault: str) -> None:
    trade = bet(AgentFactory(cohort=played.cohort), amount=amount)
    chain_all()
    code, lines, _ = run_verification()
    assert code == 1
    assert [line.partition("): ")[2] for line in lines] == [
        f"trade {trade.pk} (BUY) breaks a limit: amount: {amount} is {fault}"
    ]


def test_intact_ledger_passes_with_counts(played: Agent) -> None:
    output = StringIO()
    call_command("verify_ledger", at=WEEK, json=True, stdout=output)
    assert (
        output.getvalue().strip()
        == '{"agents": 1, "journal_rows": 8, "forecasts": 0, "chain_links": 2, "violations": 0}'
    )


def test_settlement_that_contradicts_its_market_is_found(played: Agent) -> None:
    """With another winner stored, all amounts agree with each other, but not with the market."""
    settlement = Settlement.objects.get(kind="won")
    loser = settlement.market.outcomes.exclude(pk=settlement.market.winning_outcome_id).get()
    type(settlement.market).objects.filter(pk=settlement.market_id).update(winning_outcome=loser)
    code, lines, _ = run_verification()
    assert code == 1
    assert any(f"settlement {settlement.pk} (won) over {settlement.payout} should be lost" in line for line in lines)
