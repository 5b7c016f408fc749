"""Returns after costs by hand: what each trade gives in the captured book, and what is left of a portfolio."""

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Trade
from arena_verifier.intervals import return_error
from arena_verifier.order_books import TakerBook, family_after_costs, walk
from markets.models import Market, OrderBook, Outcome, PriceObservation
from scoring.models import Leaderboard
from scoring.selectors.after_costs import stored_after_costs
from scoring.services.after_costs import agents_after_costs
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    MarketFactory,
    SnapshotFactory,
    bet,
    resolve,
    sale,
)
from tests.markup import element, get_page, table_rows, visible_text

pytestmark = pytest.mark.django_db
SETTLED = WEEK + timedelta(days=30)
Levels = Sequence[tuple[str, str]]


def book(trade: Trade, asks: Levels = (), bids: Levels = (), fee: tuple[str, str] | None = None) -> OrderBook:
    """The captured book of a trade's side in its universe."""
    assert trade.decision.universe is not None
    rate, exponent = (None, None) if fee is None else map(Decimal, fee)
    return OrderBook.objects.create(
        universe=trade.decision.universe,
        outcome=trade.outcome,
        captured_at=WEEK,
        asks=[list(level) for level in asks],
        bids=[list(level) for level in bids],
        fee_rate=rate,
        fee_exponent=exponent,
    )


def figures(agent: Agent) -> dict[str, Any]:
    agents = Agent.objects.select_related("family", "cohort__methodology")
    return {name: value for name, value in agents_after_costs(agents)[agent.pk].items() if name != "weeks"}


def bought(agent: Agent, amount: str, asks: Levels, *, market: Market | None = None, **more: Any) -> Trade:
    trade = bet(agent, market or MarketFactory(), "YES", amount)
    book(trade, asks, **more)
    return trade


# one trade


def test_purchase_walks_the_asks_until_its_amount_is_spent() -> None:
    agent = AgentFactory()
    trade = bought(agent, "100.00", [("0.42", "100"), ("0.45", "1000")])
    resolve(trade.market, "YES")
    # $42 buy 100 shares, $58 at 0.45 another 128.888888; each pays a dollar: 228.89 - 100 = 128.89.
    assert figures(agent)["return_after_costs"] == pytest.approx(1.2889)


def test_fee_of_takers_is_part_of_each_level() -> None:
    agent = AgentFactory()
    trade = bought(agent, "100.00", [("0.40", "1000")], fee=("0.25", "2"))
    resolve(trade.market, "YES")
    # 0.25 × (0.4 × 0.6)² = 0.0144 a share: 100 / 0.4144 = 241.312741 shares.
    assert figures(agent)["return_after_costs"] == pytest.approx(1.4131)


def test_what_the_book_can_not_fill_is_not_traded() -> None:
    agent = AgentFactory()
    trade = bought(agent, "500.00", [("0.41", "100")])
    resolve(trade.market, "NO")
    assert figures(agent)["return_after_costs"] == pytest.approx(-0.41)


def test_sale_offers_its_share_of_the_position_to_the_bids_less_the_fee() -> None:
    agent = AgentFactory()
    trade = bought(agent, "100.00", [("0.50", "1000")])  # 200 shares
    sold = sale(trade.position, "50")
    book(sold, bids=[("0.40", "60"), ("0.30", "1000")], fee=("0.05", "1"))
    resolve(trade.market, "NO")
    # 60 × (0.40 - 0.05 × 0.24) + 40 × (0.30 - 0.05 × 0.21) = 23.28 + 11.58; the other 100 shares are lost.
    assert figures(agent)["return_after_costs"] == pytest.approx((34.86 - 100) / 100)


def test_shares_that_no_bid_takes_are_held_to_the_end_though_the_ledger_sold_them() -> None:
    agent = AgentFactory()
    trade = bought(agent, "100.00", [("0.50", "1000")])
    book(sale(trade.position), bids=[("0.40", "50")])
    resolve(trade.market, "YES")
    assert figures(agent)["return_after_costs"] == pytest.approx((50 * 0.40 + 150 - 100) / 100)


def test_cancelled_market_gives_back_what_was_paid_after_costs() -> None:
    agent = AgentFactory()
    trade = bought(agent, "500.00", [("0.50", "100")])
    resolve(trade.market, None)
    assert figures(agent)["return_after_costs"] == 0


def test_second_purchase_of_a_decision_goes_on_where_the_first_ended() -> None:
    agent, market = AgentFactory(), MarketFactory()
    bought(agent, "100.00", [("0.40", "300"), ("0.80", "1000")], market=market)  # 250 shares
    bet(agent, market, "YES", "100.00")  # 50 at 0.40, then 80 / 0.80 = 100
    resolve(market, "YES")
    assert figures(agent)["return_after_costs"] == pytest.approx((400 - 200) / 100)


def test_no_purchase_spends_more_than_the_cash_after_costs() -> None:
    agent = AgentFactory()
    for _ in range(8):  # cash of 1,001.13 is left in the ledger; without a fill of the winner less after costs
        amount = str((agent.cash * Decimal("0.25")).quantize(Decimal("0.01"), rounding="ROUND_DOWN"))
        market = MarketFactory(prices={"YES": "0.01", "NO": "0.99"})
        resolve(bought(agent, amount, [("0.02", "1000000")], market=market).market, "NO")
    winner = bet(agent, MarketFactory(prices={"YES": "0.001", "NO": "0.999"}), "YES", "200.00")
    book(winner)  # no asks
    resolve(winner.market, "YES", at=WEEK + timedelta(days=8))
    assert agent.__class__.objects.get(pk=agent.pk).cash > 200_000
    last = bet(Agent.objects.get(pk=agent.pk), None, "YES", "2000.00", week=3)
    book(last, [("0.40", "1000000")])
    resolve(last.market, "NO")
    assert figures(agent)["return_after_costs"] == pytest.approx(-100)


def test_walk_skips_what_is_used_and_takes_no_price_below_the_fee() -> None:
    levels = [(Decimal("0.5"), Decimal(10)), (Decimal("0.4"), Decimal(10))]
    assert walk(levels, Decimal(12), shares=Decimal(5)) == (5, Decimal("2.00"))
    fees = TakerBook({"bids": [["0.01", "5"]], "asks": [], "fee_rate": Decimal(2), "fee_exponent": Decimal(1)})
    assert walk(fees.bids, shares=Decimal(5)) == (0, 0)


# portfolios


def test_open_positions_count_at_the_last_price_and_are_sold_to_the_last_bids() -> None:
    agent, market = AgentFactory(), MarketFactory()
    trade = bought(agent, "100.00", [("0.50", "1000")], market=market, bids=[("0.39", "1000")])
    assert figures(agent) == {
        "return_after_costs": pytest.approx((200 * 0.40 - 100) / 100), "liquidation_value": Decimal("9978.00"),
        "trades_without_book": 0,
    }  # fmt: skip
    book(bet(AgentFactory(cohort=agent.cohort), market, "YES", "50.00", week=2), [], [("0.30", "120")])
    assert figures(agent)["liquidation_value"] == Decimal("9936.00")  # 120 × 0.30; nobody takes the other 80
    assert trade.position.shares == 250


def test_trade_without_a_book_leaves_no_figure_but_its_count() -> None:
    agent = AgentFactory()
    bought(agent, "100.00", [("0.40", "1000")])
    bet(agent, None, "YES", "60.00")
    missing = {"return_after_costs": None, "liquidation_value": None, "trades_without_book": 1}
    assert figures(agent) == missing
    idle = AgentFactory(cohort=agent.cohort)
    assert figures(idle)["return_after_costs"] == 0


def test_family_is_compared_over_the_cohorts_without_a_missing_book() -> None:
    def row(before: float, after: float | None, missing: int = 0) -> dict[str, Any]:
        value = None if after is None else 10_000 + 100 * Decimal(str(after))
        return {
            "return_percent": before, "return_after_costs": after, "liquidation_value": value,
            "trades_without_book": missing, "weeks": {WEEK: after} if after is not None else {},
        }  # fmt: skip

    assert family_after_costs([row(6, 4), row(2, 0), row(50, None, 3)]) == {
        "return_before_costs": 4, "return_after_costs": 2, "vanished_share": 0.5, "cohorts_with_books": 2,
        "liquidation_value": Decimal("10200.00"), "trades_without_book": 3, "return_after_costs_ci": None,
    }  # fmt: skip
    assert family_after_costs([row(-4, -6)])["vanished_share"] is None
    assert family_after_costs([row(1, None, 2)])["return_after_costs"] is None


def play_cohorts(price: str) -> dict[str, Any]:
    """The board's entry of a family that bets $100 at 0.40 in four cohorts, in books with asks at a price."""
    for number, side in enumerate(("YES", "NO", "YES", "NO")):
        cohort = CohortFactory(week_start=WEEK + number * timedelta(weeks=1))
        agent = AgentFactory(cohort=cohort, slug="gpt-5.1")
        market = MarketFactory(prices={"YES": "0.40", "NO": "0.60"})
        trade = bought(agent, "100.00", [(price, "100000")], market=market)
        won = cohort.week_start + timedelta(days=10)
        resolve(trade.market, side, at=won)
        opening, pays = Decimal(9_900), Decimal("250.00") if side == "YES" else Decimal(0)
        PriceObservation.objects.create(outcome=trade.outcome, observed_at=cohort.week_start, price="0.40")
        for days, cash, held in ((7, opening, "100.00"), (14, opening + pays, "0.00"), (21, opening + pays, "0.00")):
            SnapshotFactory(
                agent=agent, taken_at=cohort.week_start + timedelta(days=days), cash=cash, positions_value=Decimal(held)
            )
    refresh_trading_leaderboards(at=SETTLED)
    entry: dict[str, Any] = Leaderboard.objects.get(protocol="trading", methodology="").entries[0]
    return entry


def test_interval_after_costs_is_that_of_the_return_where_nothing_costs() -> None:
    entry = play_cohorts("0.40")
    assert entry["return_ci"] is not None
    assert entry["return_after_costs"] == pytest.approx(entry["return_percent"])
    assert entry["return_after_costs_ci"] == pytest.approx(entry["return_ci"])


def test_interval_after_costs_follows_from_the_weeks_after_costs() -> None:
    entry = play_cohorts("0.50")
    # 200 shares: worth $80 at 0.40 on the first Sunday, -0.2 %; then $200, +1.2 %, or nothing, -0.8 %.
    weeks = {}
    for number, second in enumerate((1.2, -0.8, 1.2, -0.8)):
        start = WEEK + number * timedelta(weeks=1)
        values = (-0.2, second, 0.0)
        weeks[number] = {start + place * timedelta(weeks=1): value for place, value in enumerate(values)}
    _, half = return_error(weeks)
    assert half is not None
    assert entry["return_after_costs"] == pytest.approx(0.0)
    assert entry["return_after_costs_ci"] == pytest.approx([-half, half])
    assert half != pytest.approx(entry["return_ci"][1] - entry["return_percent"], rel=0.05)


# where it is shown


def test_page_api_and_agent_show_what_costs_take(client: Client) -> None:
    agent = AgentFactory(slug="gpt-5.1")
    resolve(bought(agent, "100.00", [("0.50", "1000")], bids=[("0.30", "9")]).market, "YES")
    unknown = AgentFactory(cohort=CohortFactory(), slug="grok-4")
    bet(unknown, None, "YES", "60.00")
    refresh_trading_leaderboards(at=SETTLED)
    entries = {entry["family"]: entry for entry in client.get("/api/v1/leaderboard/").json()["results"]}
    gpt, grok = entries["gpt-5.1"], entries["grok-4"]
    assert (gpt["return_before_costs"], gpt["return_after_costs"], gpt["liquidation_value"]) == (1.5, 1.0, "10100.00")
    assert gpt["vanished_share"] == pytest.approx(1 / 3)
    assert (grok["return_after_costs"], grok["cohorts_with_books"], grok["trades_without_book"]) == (None, 0, 1)
    page = get_page(client, "/trading/")
    first = next(row for row in table_rows(page) if "GPT-5.2" in row[1])
    assert "+1.00 % 33.3 % of profit lost" in first[3].replace("\u2009", " ")
    text = visible_text(page).replace("\u2009", " ")
    assert "After costs GPT-5.2 has a mean return of +1.00 % instead of +1.50 % over 1 cohort" in text
    assert "they take 33.3 % of its profit" in text
    assert "1 trade has no captured book" in text
    assert client.get("/trading/charts/after-costs.csv").content.decode().splitlines()[1] == "GPT-5.2,1.0,1.0,1.5"
    api = {row["id"]: row for row in client.get("/api/v1/agents/").json()["results"]}
    assert (api[agent.pk]["return_after_costs"], api[agent.pk]["liquidation_value"]) == (1.0, "10100.00")
    assert (api[unknown.pk]["return_after_costs"], api[unknown.pk]["trades_without_book"]) == (None, 1)
    facts = visible_text(element(get_page(client, "/cohorts/1/gpt-5.1/"), "dl.facts")).replace("\u2009", " ")
    assert "+1.00 %" in facts
    assert "$10,100.00" in facts


def test_accounts_are_walked_again_only_after_a_trade_or_a_result() -> None:
    agent, idle = AgentFactory(slug="gpt-5.1"), AgentFactory(cohort=CohortFactory(), slug="grok-4")
    for owner in (agent, idle):
        trade = bought(owner, "100.00", [("0.50", "50")])
        Outcome.objects.filter(pk=trade.outcome_id).update(price="0.40")
    refresh_trading_leaderboards(at=SETTLED)
    board = Leaderboard.objects.get(protocol="trading", methodology="")
    stored = board.report["accounts"]
    assert [stored[str(owner.pk)]["cash"] for owner in (agent, idle)] == ["9975.00", "9975.00"]
    for account in stored.values():
        account["cash"] = "9000.00"  # so that it shows which ones are taken as they are
    board.save()
    bought(agent, "100.00", [("0.50", "50")])
    refresh_trading_leaderboards(at=SETTLED)
    figures = stored_after_costs()
    assert figures[agent.pk].liquidation_value == Decimal("9950.00")
    assert figures[idle.pk].return_after_costs == pytest.approx((9000 + 50 * 0.40 - 10_000) / 100)
    resolve(Trade.objects.get(agent=idle).market, "YES")
    refresh_trading_leaderboards(at=SETTLED)
    assert stored_after_costs()[idle.pk].return_after_costs == pytest.approx((9975 + 50 - 10_000) / 100)
