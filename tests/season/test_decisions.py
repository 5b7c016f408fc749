"""A decision run through its command: who is asked, what executes, what is kept."""

from datetime import timedelta
from decimal import Decimal

import pytest

from agents.models import Agent, Decision, Instruction, ModelCall, Position, Trade
from markets.models import Market, Universe
from scoring.models import Leaderboard
from tests.answers import CLAUDE, GEMINI, GPT, GROK, HOLD, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Failure, ModelAnswer

pytestmark = pytest.mark.slow

WEEK = timedelta(weeks=1)
RAIN, CUP = "Will it rain?", "Lakers or Celtics?"


def open_season(venue: Venue) -> None:
    """Two markets synced and cohort 1 of four models started, Sunday midnight."""
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    line_up(GPT, GEMINI, GROK, CLAUDE)
    venue.start_first_cohort()


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def agent(model: str) -> Agent:
    return Agent.objects.get(model_id=model)


def decision(model: str, week: int = 1) -> Decision:
    return Decision.objects.get(agent__model_id=model, week=week)


def decide_weeks(count: int) -> None:
    for week in range(count):
        run("sync_markets", SUNDAY + week * WEEK)
        run("run_decisions", DECISION + week * WEEK)


def test_all_seven_are_asked_once_and_hold(venue: Venue) -> None:
    venue.market(RAIN)
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY).summary == {"cohort": 1, "created": True, "agents": 7}
    ran = run("run_decisions", DECISION)
    assert ran.code == 0
    assert (ran["asked"], ran["completed"], ran["failed"], ran["fallback_holds"], ran["trades"]) == (7, 7, 0, 0, 0)
    again = run("run_decisions", DECISION)
    assert (again["asked"], again["skipped"]) == (0, 7)
    assert len(venue.asked) == 7


def test_run_refreshes_the_trading_leaderboard(opened: Venue) -> None:
    assert not Leaderboard.objects.exists()
    run("run_decisions", DECISION, family="grok-4")
    board = Leaderboard.objects.get(methodology="")
    assert board.computed_at == DECISION
    assert [entry["cost_usd"] for entry in board.entries if entry["family"] == "grok-4"] == ["0.001000"]


def test_bets_execute_in_order_at_frozen_prices_and_lower_the_next_limit(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "yes", 2500, (RAIN, "NO", "$1,875.00"), (CUP, "lakers", 1500)))
    ran = run("run_decisions", DECISION)
    assert (ran["completed"], ran["trades"]) == (4, 2)
    first, second = Trade.objects.filter(agent=agent(GPT)).order_by("sequence")
    assert (first.side, first.price, first.shares, first.amount) == (
        "YES",
        Decimal("0.40"),
        Decimal(6250),
        Decimal(2500),
    )
    assert (second.side, second.price, second.shares) == ("NO", Decimal("0.60"), Decimal(3125))
    assert first.implied_confidence == second.implied_confidence == 1.0
    assert agent(GPT).cash == Decimal("5625.00")
    rejected = Instruction.objects.get(executed=False)
    assert rejected.reason.startswith("bets[2].amount: 1500 is above the maximum of 1406.25")
    assert decision(GPT).status == Decision.Status.COMPLETED


def test_named_outcome_is_bought_at_its_own_price(opened: Venue) -> None:
    opened.says(GPT, bet(CUP, "celtics", 900))
    run("run_decisions", DECISION)
    trade = Trade.objects.get()
    assert (trade.side, trade.price, trade.shares) == ("Celtics", Decimal("0.45"), Decimal(2000))


def test_a_side_is_named_exactly_or_by_a_casefold_that_only_one_has(venue: Venue) -> None:
    venue.market("Goals?", {"Over": "0.40", "OVER": "0.30", "ısik": "0.20", "Draw": "0.10"})
    venue.start_first_cohort()
    sides = ("OVER", "over", "ISIK", "dRAW", "D raw")
    venue.says(GPT, bet("Goals?", sides[0], 100, *(("Goals?", side, 100) for side in sides[1:])))
    run("run_decisions", DECISION)
    assert [trade.side for trade in Trade.objects.order_by("sequence")] == ["OVER", "Draw"]
    assert [wish.executed for wish in Instruction.objects.order_by("sequence")] == [True, False, False, True, False]


def test_prompt_is_the_same_for_all_but_for_portfolio_and_positions(opened: Venue) -> None:
    run("run_decisions", DECISION)
    users = {prompt.user for prompt in opened.asked}
    systems = {prompt.body["messages"][0]["content"] for prompt in opened.asked}
    assert len(users) == len(systems) == 1
    assert all(prompt.body["temperature"] == 0 for prompt in opened.asked)
    assert len({prompt.headers["Idempotency-Key"] for prompt in opened.asked}) == 4


def test_prompt_blocks_read_as_the_contract_says(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 500))
    run("run_decisions", DECISION)
    opened.move(RAIN, Yes="0.43", No="0.57")
    run("sync_markets", SUNDAY + WEEK)
    run("run_decisions", DECISION + WEEK)
    prompt = next(p for p in reversed(opened.asked) if p.model == GPT)
    assert prompt.portfolio == {
        "cash": "9500.00",
        "max_bet": "2375.00",
        "positions_value": "537.50",
        "total_value": "10037.50",
        "pnl": "37.50",
        "week": 2,
        "date": "2026-03-15",
    }
    market, position = Market.objects.get(question=RAIN), Position.objects.get()
    assert prompt.block("POSITIONS") == [
        ["position_id", "market_id", "question", "side", "shares", "entry_price", "price", "value", "pnl"],
        [str(position.pk), str(market.pk), RAIN, "YES", "1250.000000", "0.400000", "0.430000", "537.50", "37.50"],
    ]
    assert prompt.block("MARKETS")[:2] == [
        ["market_id", "question", "category", "prices", "volume_usd", "closes"],
        [str(market.pk), RAIN, "", {"YES": 0.43, "NO": 0.57}, 999999, "2026-06-30"],
    ]


def test_stored_prompt_is_what_was_sent_byte_for_byte(opened: Venue) -> None:
    opened.says(GPT, "not json", bet(RAIN, "YES", 500))
    run("run_decisions", DECISION)
    prompts = [prompt for prompt in opened.asked if prompt.model == GPT]
    calls = list(decision(GPT).calls.all())
    assert len(calls) == len(prompts) == 2
    for call, prompt in zip(calls, prompts, strict=True):
        assert [call.system_prompt, call.user_prompt] == [m["content"] for m in prompt.body["messages"]]
        assert call.prompt_sha256 == ModelCall.fingerprint(call.system_prompt, call.user_prompt)


def test_malformed_answer_is_asked_again_with_the_reason_and_both_are_paid(opened: Venue) -> None:
    opened.says(GPT, '{"action": "BET", "bets": []}', bet(RAIN, "YES", 500))
    ran = run("run_decisions", DECISION)
    assert ran["completed"] == 4
    assert Decimal(ran["cost_usd"]) == Decimal("0.005")
    second = [p for p in opened.asked if p.model == GPT][1]
    assert "bets must not be empty" in second.user
    assert [call.result for call in decision(GPT).calls.all()] == ["malformed", "answered"]
    assert not decision(GPT).fallback


def test_answer_by_another_model_is_a_failure_and_a_dated_id_is_not(opened: Venue) -> None:
    opened.says(GPT, ModelAnswer('{"action": "HOLD"}', returned_model="x-ai/grok-4"))
    opened.says(CLAUDE, ModelAnswer('{"action": "HOLD"}', returned_model="anthropic/claude-4.5-opus-20251124"))
    run("run_decisions", DECISION)
    assert decision(GPT).status == "failed"
    assert "answered by x-ai/grok-4" in decision(GPT).error
    assert decision(CLAUDE).status == "completed"


def test_answer_with_no_executable_instruction_is_quoted_back_twice_at_most(opened: Venue) -> None:
    nonsense = {"action": "BET", "bets": [{"market_id": "424242", "side": "YES", "amount": 500}]}
    opened.says(GPT, *[nonsense] * 9)
    for hour in range(5):
        run("run_decisions", DECISION + timedelta(hours=hour))
    tries = [prompt for prompt in opened.asked if prompt.model == GPT]
    assert len(tries) == 3
    assert "'424242' is not in the list of markets" not in tries[0].user
    assert "'424242' is not in the list of markets" in tries[1].user
    assert decision(GPT).status == "failed"
    run("run_decisions", DECISION + timedelta(hours=24))
    assert decision(GPT).status == "missed"


def test_refused_answer_may_be_mended_in_a_later_run(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "MAYBE", 500), bet(RAIN, "YES", 500))
    assert run("run_decisions", DECISION)["failed"] == 1
    assert run("run_decisions", DECISION + timedelta(hours=1))["trades"] == 1
    assert decision(GPT).status == "completed"


def test_retry_trades_at_what_the_others_saw(opened: Venue) -> None:
    opened.says(GPT, Failure(503), bet(RAIN, "YES", 500))
    run("run_decisions", DECISION)
    opened.move(RAIN, Yes="0.80", No="0.20")
    run("sync_markets", DECISION + timedelta(hours=2))
    run("run_decisions", DECISION + timedelta(hours=3))
    assert Trade.objects.get().price == Decimal("0.40")
    assert Universe.objects.count() == 1


def test_window_over_is_missed_for_ever(opened: Venue) -> None:
    opened.says(GPT, Failure(503), HOLD)
    run("run_decisions", DECISION)
    ran = run("run_decisions", DECISION + timedelta(hours=24))
    assert (ran.code, ran["asked"], ran["missed"]) == (0, 0, 1)
    assert decision(GPT).status == "missed"
    assert run("run_decisions", DECISION + timedelta(hours=25))["asked"] == 0


def test_selling_half_then_all_leaves_no_dust(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", "333.33"), sell(RAIN, 33.3), sell(RAIN, 100))
    decide_weeks(3)
    position = Position.objects.get()
    assert (position.status, position.shares, position.cost_basis) == ("closed", 0, 0)
    assert sum(t.cost_basis for t in Trade.objects.filter(kind="SELL")) == Decimal("333.33")


def test_a_bet_after_a_full_close_opens_a_new_position(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 500), sell(RAIN, 100), bet(RAIN, "YES", 700))
    decide_weeks(3)
    assert list(Position.objects.order_by("pk").values_list("status", flat=True)) == ["closed", "open"]


def test_second_bet_on_same_side_averages_in(opened: Venue) -> None:
    opened.says(GPT, bet(RAIN, "YES", 400, (RAIN, "YES", 600)))
    run("run_decisions", DECISION)
    position = Position.objects.get()
    assert (position.shares, position.cost_basis, position.entry_price) == (
        Decimal(2500),
        Decimal(1000),
        Decimal("0.400000"),
    )


def test_spend_cap_counts_every_call_and_stops_cleanly(opened: Venue, settings: object) -> None:
    settings.ARENA_SPEND_LIMIT_USD = Decimal("0.0035")  # type: ignore[attr-defined]
    opened.says(GPT, "malformed", HOLD)
    ran = run("run_decisions", DECISION)
    assert len(opened.asked) == 4
    assert (ran.code, ran["completed"], ran["failed"]) == (1, 3, 1)
    assert "spend cap reached" in ran.stderr


def test_cost_is_tokens_times_the_frozen_price_where_the_gateway_names_none(opened: Venue) -> None:
    opened.says(
        GPT, ModelAnswer('{"action": "HOLD"}', usage={"prompt_tokens": 1_000_000, "completion_tokens": 100_000})
    )
    run("run_decisions", DECISION)
    assert decision(GPT).calls.get().cost_usd == Decimal("1.75") + Decimal("1.4")


def test_cohort_and_family_narrow_a_run_but_share_its_universe(opened: Venue) -> None:
    ran = run("run_decisions", DECISION, cohort=1, family="gpt-5.1")
    assert (ran["asked"], ran["completed"]) == (1, 1)
    second_run = run("run_decisions", DECISION + timedelta(minutes=10))
    assert (second_run["universe"], second_run["asked"], second_run["skipped"]) == (ran["universe"], 3, 1)


@pytest.mark.parametrize(("option", "value"), [("cohort", 99), ("family", "gpt-9")])
def test_unknown_cohort_or_family_is_bad_usage(opened: Venue, option: str, value: object) -> None:
    ran = run("run_decisions", DECISION, **{option: value})
    assert ran.code == 2
    assert str(value) in ran.stderr
    assert not opened.asked


def test_dry_run_prices_and_changes_nothing(opened: Venue) -> None:
    ran = run("run_decisions", DECISION, dry_run=True)
    assert (ran.code, ran["asked"], ran["completed"]) == (0, 4, 0)
    assert Decimal(ran["cost_usd"]) > 0
    assert not opened.asked
    assert not Universe.objects.exists()
    assert not Decision.objects.exists()


def test_without_markets_a_run_fails_in_one_line(venue: Venue) -> None:
    run("start_cohort", SUNDAY)
    ran = run("run_decisions", DECISION)
    assert ran.code == 1
    assert ran.stderr.strip() == "no open market has usable prices: run sync_markets first"
    assert not Decision.objects.exists()


def test_cohort_is_asked_in_five_weeks_only(opened: Venue) -> None:
    for week in (4, 5):  # the fifth and the sixth
        run("sync_markets", SUNDAY + week * WEEK)
        run("run_decisions", DECISION + week * WEEK)
        assert len(opened.asked) == 4


def test_starting_twice_yields_the_one_cohort_of_the_week(opened: Venue) -> None:
    again = run("start_cohort", SUNDAY + timedelta(days=6, hours=23))
    assert again.summary == {"cohort": 1, "created": False, "agents": 4}
    assert run("start_cohort", SUNDAY + WEEK).summary["cohort"] == 2


def test_bankrupt_agent_costs_no_call(opened: Venue) -> None:
    Agent.objects.filter(model_id=GROK).update(status=Agent.Status.BANKRUPT)
    assert run("run_decisions", DECISION)["asked"] == 3
    assert GROK not in {prompt.model for prompt in opened.asked}


def test_with_less_than_200_no_bet_is_legal_and_the_prompt_says_so(opened: Venue) -> None:
    all_in = [(RAIN, "YES", amount) for amount in _quarters(Decimal(10_000), floor=Decimal(200))]
    opened.says(GEMINI, bet(*all_in[0], *all_in[1:]), bet(RAIN, "YES", 50))
    run("run_decisions", DECISION)
    run("sync_markets", SUNDAY + WEEK)
    run("run_decisions", DECISION + WEEK)
    prompt: ModelRequest = [p for p in opened.asked if p.model == GEMINI][1]
    assert Decimal(prompt.portfolio["cash"]) < 200
    assert prompt.portfolio["max_bet"] == "0.00"
    assert "no bet is legal" in decision(GEMINI, week=2).error


def _quarters(cash: Decimal, *, floor: Decimal) -> list[str]:
    """Maximum bets until no further one is legal."""
    amounts = []
    while cash >= floor:
        amount = (cash / 4).quantize(Decimal("0.01"), rounding="ROUND_DOWN")
        amounts.append(str(amount))
        cash -= amount
    return amounts
