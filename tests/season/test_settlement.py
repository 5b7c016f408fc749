"""Settlement through its command: what ends a market, what it pays, and when a cohort is over."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Agent, Decision, JournalEntry, Position, Settlement
from agents.services.claims import Claim, claim_task
from agents.services.resolutions import CANCELLATION, Resolution
from agents.services.settlement import check_resolutions, settle_market
from cohorts.models import Cohort, Methodology
from foundation.models import Alert, Run
from foundation.services.alerts import acknowledge_alerts
from markets.models import Market, Universe
from markets.services.universes import freeze_universe
from markets.sources import registry as clients
from markets.sources.base import Unresolved
from markets.sources.polymarket import Gamma
from scoring.models import BrierScore, Leaderboard, Snapshot
from tests.answers import GEMINI, GPT, GROK, HOLD, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import bet as record_bet
from tests.factories import chain_all, line_up
from tests.markets.test_polymarket import row as venue_market
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest

pytestmark = [pytest.mark.usefixtures("retries_without_waits"), pytest.mark.slow]

WEEK, DAY, TEN = timedelta(weeks=1), timedelta(days=1), timedelta(minutes=10)
RAIN, CUP, RACE = "Will it rain?", "Lakers or Celtics?", "Who wins the race?"
ENDS = SUNDAY + 5 * WEEK
NOWHERE = "http://127.0.0.1:9"


def open_season(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    venue.market(RACE, {"Ann": "0.50", "Bob": "0.30", "Cy": "0.20"})
    line_up(GPT, GEMINI, GROK)
    venue.start_first_cohort()


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def decided(venue: Venue, week: int = 1) -> None:
    at = (week - 1) * WEEK
    run("sync_markets", SUNDAY + at)
    assert run("run_decisions", DECISION + at).code == 0


def hold(venue: Venue) -> None:
    venue.says(GPT, bet(RAIN, "YES", 500))
    decided(venue)


season_with_a_bet = shared_rows_at_venue(hold, after=season, name="season")


@pytest.fixture
def holding(season_with_a_bet: tuple[Venue, None], venue: Venue) -> Venue:
    """GPT holds 1,250 YES shares of RAIN, bought for 500."""
    return venue.as_left(season_with_a_bet[0])


def market(question: str = RAIN) -> Market:
    return Market.objects.get(question=question)


def agent(model: str = GPT) -> Agent:
    return Agent.objects.get(model_id=model)


def position(side: str, model: str = GPT) -> Position:
    return Position.objects.get(outcome__side=side, agent__model_id=model)


def store_half_of_settlement(position: Position) -> None:
    """Breaks the books: a settlement, and its position still open."""
    Settlement.objects.create(
        position=position, agent=position.agent, market=position.market, kind="lost", shares=position.shares, payout=0,
        cost_basis=position.cost_basis, realized_pnl=-position.cost_basis, settled_at=SUNDAY,
    )  # fmt: skip


# ── what is paid ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("winner", "yes_payout", "no_payout", "cash"), [("Yes", 6250, 0, "11875.00"), ("No", 0, 3125, "8750.00")]
)
def test_winner_is_paid_a_dollar_a_share_and_the_other_side_nothing(
    opened: Venue, winner: str, yes_payout: int, no_payout: int, cash: str
) -> None:
    """Both sides are held: 6,250 YES for 2,500 and 3,125 NO for 1,875."""
    opened.says(GPT, bet(RAIN, "YES", 2500, (RAIN, "NO", 1875)))
    decided(opened)
    opened.resolve(RAIN, winner)
    ran = run("check_resolutions", SUNDAY + DAY)
    assert [ran[key] for key in ("resolved", "cancelled", "positions_settled", "brier_rows")] == [1, 0, 2, 2]
    assert (market().status, market().winning_side) == ("resolved", winner.upper())
    assert [position(side).settlement.payout for side in ("YES", "NO")] == [yes_payout, no_payout]
    assert [position(side).realized_pnl for side in ("YES", "NO")] == [yes_payout - 2500, no_payout - 1875]
    assert agent().cash == Decimal(cash)


def test_named_outcome_wins_and_all_others_lose(opened: Venue) -> None:
    opened.says(GPT, bet(RACE, "bob", 300, (RACE, "Ann", 500), (RACE, "CY", 100)))
    decided(opened)
    opened.resolve(RACE, "Bob")
    run("check_resolutions", SUNDAY + DAY)
    kinds = dict(Settlement.objects.values_list("position__outcome__side", "kind"))
    assert kinds == {"Ann": "lost", "Bob": "won", "Cy": "lost"}
    assert agent().cash == Decimal("10100.00")


@pytest.mark.forged_record
def test_market_whose_books_are_broken_holds_back_no_other(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 500, (CUP, "Lakers", 550)))
    decided(opened)
    store_half_of_settlement(position("YES"))
    opened.resolve(RAIN, "Yes")
    opened.resolve(CUP, "Lakers")
    ran = run("check_resolutions", SUNDAY + DAY)
    assert (ran.code, ran["resolved"], ran["positions_settled"]) == (1, 1, 1)
    assert f"market {market().external_id} could not be settled" in ran.stderr
    assert (market().status, market(CUP).status) == ("closed", "resolved")
    assert agent().cash == Decimal("9950.00")


@pytest.mark.parametrize(
    ("cancelled", "status", "payout", "profit", "scores", "cash"),
    [(False, "settled", "937.50", "562.50", 1, "10625.00"), (True, "cancelled", "375.00", "0", 0, "10062.50")],
)
def test_sale_before_the_end_keeps_its_profit_and_the_rest_is_paid_or_refunded(
    opened: Venue, cancelled: bool, status: str, payout: str, profit: str, scores: int, cash: str
) -> None:
    """1,250 shares for 500; a quarter sold at 0.60 for 187.50 (cost 125); 937.5 shares are left."""
    opened.says(GPT, bet(RAIN, "YES", 500), sell(RAIN, 25))
    decided(opened)
    opened.move(RAIN, Yes="0.60", No="0.40")
    decided(opened, 2)
    opened.cancel(RAIN) if cancelled else opened.resolve(RAIN, "Yes")
    ran = run("check_resolutions", SUNDAY + 8 * DAY)
    assert (ran["cancelled"], ran["resolved"], ran["brier_rows"]) == (int(cancelled), int(not cancelled), scores)
    settlement = Settlement.objects.get()
    assert (settlement.shares, settlement.cost_basis) == (Decimal("937.5"), Decimal("375.00"))
    assert (settlement.payout, settlement.realized_pnl) == (Decimal(payout), Decimal(profit))
    assert (position("YES").status, position("YES").realized_pnl) == (status, Decimal("62.50") + Decimal(profit))
    assert (agent().cash, BrierScore.objects.count()) == (Decimal(cash), scores)


def test_bet_that_was_sold_is_scored_like_any_other(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 1250), sell(RAIN, 100))
    decided(opened)
    decided(opened, 2)
    opened.resolve(RAIN, "No")
    ran = run("check_resolutions", SUNDAY + 8 * DAY)
    assert (ran["positions_settled"], ran["brier_rows"]) == (0, 1)
    row = BrierScore.objects.get()
    assert (row.probability, row.outcome, row.score) == (0.5, False, 0.25)
    assert row.market_score == pytest.approx(0.16)


def test_settling_again_pays_nobody_twice(holding: Venue) -> None:
    holding.resolve(RAIN, "Yes")
    for _ in range(3):
        ran = run("check_resolutions", SUNDAY + DAY)
    assert (ran["resolved"], ran["positions_settled"], ran["brier_rows"]) == (0, 0, 0)
    assert JournalEntry.objects.filter(kind="payout").count() == Settlement.objects.count() == 1


def test_settlement_that_comes_second_with_what_it_read_before_pays_nothing(holding: Venue) -> None:
    """Both processes read the market as unsettled; the row's own status decides."""
    markets = [market(), market()]
    won = Resolution(markets[0].outcomes.get(side="YES"))
    assert settle_market(markets[0], won, at=SUNDAY + DAY) == 1
    assert settle_market(markets[1], won, at=SUNDAY + DAY) is None
    assert settle_market(markets[1], CANCELLATION, at=SUNDAY + DAY) is None
    assert Settlement.objects.get().payout == Decimal("1250.00")


def test_bet_that_commits_beside_the_settlement_of_its_market_is_paid_by_the_next_pass(
    opened: Venue,
) -> None:
    """On PostgreSQL the two transactions may not see each other."""
    opened.resolve(RAIN, "No")
    run("sync_markets", SUNDAY + DAY)
    assert run("check_resolutions", SUNDAY + DAY)["resolved"] == 1
    record_bet(agent(), market(), "YES", "500.00")
    record_bet(agent(GROK), market(), "NO", "600.00")
    chain_all()
    assert [run("check_resolutions", SUNDAY + 2 * DAY)["positions_settled"] for _ in range(2)] == [2, 0]
    assert (agent().cash, agent(GROK).cash) == (Decimal("9500.00"), Decimal("10400.00"))


@pytest.mark.forged_record
def test_late_position_whose_books_are_broken_holds_back_neither_others_nor_scores(opened: Venue) -> None:
    for question in (RAIN, CUP):
        opened.resolve(question, "No" if question == RAIN else "Lakers")
    run("sync_markets", SUNDAY + DAY)
    assert run("check_resolutions", SUNDAY + DAY)["resolved"] == 2
    record_bet(agent(), market(), "YES", "500.00")
    record_bet(agent(GROK), market(CUP), "Celtics", "600.00")
    store_half_of_settlement(position("YES"))
    ran = run("check_resolutions", SUNDAY + 2 * DAY)
    assert (ran.code, ran["positions_settled"], ran["brier_rows"]) == (1, 1, 2)
    assert f"market {market().external_id} could not be settled" in ran.stderr


def test_crash_between_payout_and_score_loses_no_score(holding: Venue) -> None:
    """The payout's process dies before it scores; any later pass finds what is missing."""
    holding.resolve(RAIN, "Yes")
    with clients.gamma() as gamma:
        check_resolutions(catalogues=[gamma], at=SUNDAY + DAY)
    assert not BrierScore.objects.exists()
    assert run("compute_scores", SUNDAY + 2 * DAY)["brier_rows"] == 1
    row = BrierScore.objects.get()
    assert (row.resolved_at, row.scored_at) == (SUNDAY + DAY, SUNDAY + 2 * DAY)
    assert run("check_resolutions", SUNDAY + 3 * DAY)["brier_rows"] == 0


# ── what ends a market ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("prices", "status"),
    [
        (("0.9995", "0.0005"), "disputed"),
        (("0.9995", "0.0005"), "resolved"),
        (("1", "0"), "disputed"),
        (("1", "0"), "proposed"),
        (("1", "0"), None),
        (("0", "0"), "resolved"),
        (("0.58", "0.42"), "resolved"),
        (("0.5", "0.5"), "proposed"),
        (("0.5", "0.5"), None),
        (("1", "1"), "resolved"),
        (("0.0000007842500548718540444181103088163532", "0.9999992157499451281459555818896911836468"), "resolved"),
    ],
)
def test_anything_but_the_documented_end_is_none(prices: tuple[str, str], status: str | None) -> None:
    """Nothing looks decisive by price alone."""
    closed = venue_market(closed=True, outcomePrices=json.dumps(prices), umaResolutionStatus=status)
    with Gamma(NOWHERE) as gamma:
        assert isinstance(gamma.resolution(closed), Unresolved)


def test_market_without_the_documented_end_waits(holding: Venue) -> None:
    holding.close(RAIN, "1", "0", status="disputed")
    ran = run("check_resolutions", SUNDAY + DAY)
    assert (ran.code, ran["resolved"], ran["cancelled"], ran["waiting"]) == (0, 0, 0, 1)
    assert (market().status, position("YES").status) == ("closed", "open")
    assert any("waits" in line for line in Run.objects.latest("pk").log_texts)


def test_price_close_to_one_on_an_open_market_is_no_end(holding: Venue) -> None:
    holding.move(RAIN, Yes="1", No="0")
    holding.row(RAIN)["umaResolutionStatus"] = "resolved"
    holding.winners[RAIN] = "Yes"
    ran = run("check_resolutions", SUNDAY + DAY)
    assert (ran["resolved"], market().status) == (0, "active")


def test_winner_is_found_by_token_when_outcomes_change_places(opened: Venue) -> None:
    opened.says(GPT, bet(CUP, "Lakers", 550))
    decided(opened)
    row = opened.row(CUP)
    row.update(outcomes='["celtics", "LAKERS"]', clobTokenIds=f'["{opened.tokens(CUP)[1]}", "{opened.tokens(CUP)[0]}"]')
    opened.close(CUP, "0", "1", status="resolved")
    run("check_resolutions", SUNDAY + DAY)
    assert market(CUP).winning_side == "Lakers"
    assert agent().cash == Decimal("10450.00")


def test_market_gone_from_its_venue_is_called_out_and_its_positions_stay(holding: Venue) -> None:
    holding.gone.add(holding.row(RAIN)["id"])
    for hour in (1, 2):
        assert run("check_resolutions", SUNDAY + hour * DAY).code == 0
    assert Alert.objects.get().kind == "market-gone"
    assert position("YES").status == "open"
    holding.gone.clear()
    run("check_resolutions", SUNDAY + 3 * DAY)
    assert Alert.objects.get().cleared_at == SUNDAY + 3 * DAY


# ── closed, not resolved ──────────────────────────────────────────────────────────────────────────


def test_closed_position_keeps_its_value_is_shown_as_awaiting_and_can_not_be_sold(opened: Venue) -> None:
    prompts: list[ModelRequest] = []

    def seen(prompt: ModelRequest) -> Any:
        prompts.append(prompt)
        return sell(RAIN, 100)(prompt)

    opened.says(GPT, bet(RAIN, "YES", 500), seen, seen, HOLD)
    decided(opened)
    opened.move(RAIN, Yes="0.52", No="0.48")
    run("sync_markets", SUNDAY + DAY)
    run("take_snapshots", SUNDAY + DAY)
    opened.close(RAIN, "0.9995", "0.0005", status="disputed")
    run("sync_markets", SUNDAY + 2 * DAY)
    run("take_snapshots", SUNDAY + 2 * DAY)
    assert Snapshot.objects.get(agent=agent(), taken_at=SUNDAY + 2 * DAY).positions_value == Decimal("650.00")
    run("sync_markets", SUNDAY + WEEK)
    ran = run("run_decisions", DECISION + WEEK)
    assert (ran.code, ran["failed"]) == (1, 1)
    position_row = prompts[0].positions[0]
    assert (position_row["price"], position_row["value"]) == ("0.520000", "650.00")
    assert prompts[0].portfolio["positions_value"] == "650.00"
    assert f"can not be sold: {position('YES').pk}\n" in prompts[0].user
    assert RAIN not in {row["question"] for row in prompts[0].markets}
    assert "is closed and awaits its resolution" in Decision.objects.get(agent=agent(), week=2).error
    assert position("YES").status == "open"


def test_market_closed_for_72_hours_raises_one_alarm_that_settling_clears(holding: Venue) -> None:
    holding.close(RAIN, "0.99", "0.01", status="disputed")
    run("check_resolutions", SUNDAY + DAY)
    alarms = Alert.objects.filter(kind="closed-unresolved")
    run("check_resolutions", SUNDAY + 4 * DAY - timedelta(seconds=1))
    assert not alarms.exists()
    for hour in range(3):
        run("check_resolutions", SUNDAY + 4 * DAY + timedelta(hours=hour))
    alarm = alarms.get()
    assert (alarm.raised_at, alarm.cleared_at) == (SUNDAY + 4 * DAY, None)
    assert RAIN in alarm.message
    holding.resolve(RAIN, "Yes")
    run("check_resolutions", SUNDAY + 5 * DAY)
    alarm.refresh_from_db()
    assert alarm.cleared_at == SUNDAY + 5 * DAY


def test_alarm_that_somebody_acknowledged_is_not_raised_anew(holding: Venue) -> None:
    holding.close(RAIN, "0.99", "0.01", status="disputed")
    run("check_resolutions", SUNDAY + DAY)
    run("check_resolutions", SUNDAY + 4 * DAY)
    acknowledge_alerts(Alert.objects.all(), at=SUNDAY + 4 * DAY)
    run("check_resolutions", SUNDAY + 4 * DAY + timedelta(hours=1))
    assert Alert.objects.count() == 1


def test_closed_market_that_nobody_holds_raises_no_alarm(opened: Venue) -> None:
    opened.close(RAIN, "0.99", "0.01")
    for day in (1, 5):
        run("sync_markets", SUNDAY + day * DAY)
        run("check_resolutions", SUNDAY + day * DAY)
    assert market().status == "closed"
    assert not Alert.objects.exists()


# ── when a cohort is over ─────────────────────────────────────────────────────────────────────────


def test_everybody_holds_in_week_one_and_the_cohort_stays(opened: Venue) -> None:
    """Without a position anywhere a cohort is not over before its fifth week is."""
    decided(opened)
    for at in (SUNDAY + timedelta(minutes=6), ENDS - timedelta(seconds=1)):
        run("check_resolutions", at)
        assert Cohort.objects.get().status == "active"
    assert run("check_resolutions", ENDS)["cohorts_completed"] == 1
    assert Cohort.objects.get().completed_at == ENDS


def test_resolution_pass_while_the_first_model_answers_completes_nothing(opened: Venue) -> None:
    """The first decision is claimed, nothing else has happened."""
    _claimed(week=1)
    run("check_resolutions", SUNDAY + timedelta(minutes=6))
    assert Cohort.objects.get().status == "active"


def test_model_still_answering_at_the_end_of_the_last_week_keeps_the_cohort_open(opened: Venue) -> None:
    claim = _claimed(week=5)
    assert run("check_resolutions", ENDS)["cohorts_completed"] == 0
    claim.finish(status="failed", error="too late")
    assert run("check_resolutions", ENDS + timedelta(hours=1))["cohorts_completed"] == 1


def test_open_position_keeps_the_cohort_open_beyond_its_weeks(holding: Venue) -> None:
    assert run("check_resolutions", ENDS + 30 * DAY)["cohorts_completed"] == 0
    holding.resolve(RAIN, "No")
    assert run("check_resolutions", ENDS + 31 * DAY)["cohorts_completed"] == 1


def test_fifty_fifty_refunds_and_the_cohort_completes(opened: Venue) -> None:
    """A market that nobody won does not keep a cohort open for ever."""
    opened.says(GPT, bet(RAIN, "YES", 500))
    opened.says(GROK, bet(RAIN, "NO", 600))
    decided(opened)
    opened.cancel(RAIN)
    ran = run("check_resolutions", ENDS)
    assert (ran["cancelled"], ran["positions_settled"], ran["cohorts_completed"]) == (1, 2, 1)
    assert {a.cash for a in Agent.objects.all()} == {Decimal("10000.00")}


def test_equal_thirds_are_cancelled_though_they_do_not_add_up_exactly(opened: Venue) -> None:
    opened.says(GPT, bet(RACE, "Bob", 500))
    decided(opened)
    opened.close(RACE, "0.333", "0.333", "0.333", status="resolved")
    assert run("check_resolutions", SUNDAY + DAY)["cancelled"] == 1


def test_last_position_settles_and_every_place_shows_the_money(opened: Venue, client: Client) -> None:
    """Board, pages, agent, journal and closing snapshot say the same amount."""
    money, pnl = Decimal("13000.00"), Decimal("3000.00")
    opened.says(GPT, bet(RAIN, "YES", 2000))
    decided(opened)
    run("take_snapshots", SUNDAY + TEN)
    opened.resolve(RAIN, "Yes")
    ran = run("check_resolutions", ENDS + timedelta(minutes=3))
    assert (ran["positions_settled"], ran["cohorts_completed"], ran["brier_rows"]) == (1, 1, 1)
    for methodology in ("", "v2"):
        first = Leaderboard.objects.get(methodology=methodology).entries[0]
        assert (first["family"], first["rank"]) == (agent().family.slug, 1)
        assert (Decimal(first["total_value"]), Decimal(first["pnl"])) == (money, pnl)
        assert first["return_percent"] == pytest.approx(30.0)
        assert (first["resolved_bets"], first["win_rate"], first["brier"]) == (1, 1.0, pytest.approx(0.04))
    assert "+30.00" in client.get("/trading/").content.decode()
    for page in ("/cohorts/1/", "/cohorts/1/gpt-5.2/", "/models/gpt-5.2/"):
        assert "$13,000.00" in client.get(page).content.decode(), page
    run("take_snapshots", ENDS + TEN)
    closing = Snapshot.objects.filter(agent=agent()).latest("taken_at")
    assert (closing.taken_at, closing.total_value, closing.pnl) == (ENDS + TEN, money, pnl)
    assert closing.cash == agent().cash == agent().journal.last().balance == money
    chart = client.get("/cohorts/1/gpt-5.2/").content.decode().partition("Data of this chart")[2]
    assert chart.index("$13,000.00") < chart.index("$10,000.00")  # the newest first


def test_agent_that_lost_all_but_small_change_is_bankrupt_for_good(opened: Venue) -> None:
    amounts, cash = [], Decimal(10_000)
    while cash >= 200:
        amounts.append((cash / 4).quantize(Decimal("0.01"), rounding="ROUND_DOWN"))
        cash -= amounts[-1]
    bets = [(RAIN, "YES", str(amount)) for amount in amounts]
    opened.says(GEMINI, bet(*bets[0], *bets[1:]))
    decided(opened)
    assert agent(GEMINI).status == "active"  # little cash, but a position that may win
    opened.resolve(RAIN, "No")
    run("check_resolutions", SUNDAY + DAY)
    assert (agent(GEMINI).status, agent(GEMINI).cash) == ("bankrupt", cash)
    decided(opened, 2)
    assert [prompt.model for prompt in opened.asked].count(GEMINI) == 1
    assert len(Leaderboard.objects.get(methodology="").entries) == 3


def _universe() -> Universe:
    """The week's universe, frozen while nobody has been asked yet."""
    rule = Methodology.objects.current().price_rule
    return freeze_universe(week_start=SUNDAY, methodology="v2", size=3, rule=rule, held_ids=(), at=SUNDAY, clob=None)


def _claimed(*, week: int) -> Claim[Decision]:
    identity = {"agent": agent(), "cohort": agent().cohort, "week": week}
    claim = claim_task(Decision, identity=identity, universe=_universe(), refused_retries=2, lease=timedelta(hours=1))
    assert claim is not None
    return claim
