"""What the arena would refuse is refused by the kit in the same words, and what it takes is scored as it is there.

The kit reads answers by the arena's own reader (`tests/arena_verifier`): here are the objects of Python that it is
given, and the limits of instructions, which each side applies to rows of its own.
"""

import json
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from django.test import Client

from agents.models import Agent
from agents.services.registrations import register_external_agent
from arena_agent import Bet, Forecast, Market, Portfolio, Position, Question, Sell
from arena_agent.blocks import read_markets, read_portfolio
from arena_agent.checks import (
    CheckedQuestion,
    Refusal,
    check_decision,
    check_forecast,
    forecast_as_read,
    read_instructions,
)
from arena_verifier.answer_texts import Malformed
from markets.models import Market as StoredMarket
from markets.models import Universe
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue
from tests.shared_rows import shared_rows_at_venue

RICH = Decimal("10000.00")
RACE = Question("88", "Who wins?", "", True, ("Alpha", "Beta"))
PLACE = "forecasts[0]"


def checked_forecast(answer: Any) -> CheckedQuestion:
    return check_forecast(RACE, {PLACE: forecast_as_read(RACE, answer, PLACE)})


REFUSED: dict[str, tuple[Any, str]] = {
    # what `forecast` returns: the sentence
    "nothing": (None, "forecasts[0].probabilities must be an object, not null"),
    "a truth value": ({"Alpha": True}, 'forecasts[0].probabilities["Alpha"] must be a number, not true'),
    "no number": ({"Alpha": float("nan")}, "NaN is not a JSON number"),
    "infinity": ({"Alpha": np.float32("inf")}, "Infinity is not a JSON number"),
    "minus infinity": ({"Alpha": float("-inf")}, "-Infinity is not a JSON number"),
    "an object": ({"Alpha": object()}, "forecasts[0] can not be sent as JSON: it holds an object of the type object"),
    "a set": ({"Alpha"}, "forecasts[0] can not be sent as JSON: it holds an object of the type set"),
    "a tiny negative": ({"Alpha": -1e-7}, 'question 88: "Alpha" is given -1E-7, which is outside [0, 1]'),
    "a sum above": (
        {"Alpha": 0.5, "Beta": 0.7},
        "question 88: the probabilities of its 2 options sum to 1.2, not 1",
    ),
    "a rationale that is no text": (
        Forecast({"Alpha": 0.5, "Beta": 0.5}, 7),  # type: ignore[arg-type]
        "forecasts[0].rationale must be text, not 7",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_forecast_has_the_arenas_sentence(name: str) -> None:
    answer, sentence = REFUSED[name]
    with pytest.raises((Malformed, Refusal)) as refused:
        checked_forecast(answer)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("probabilities", "scored"),
    [
        ({"Alpha": 0.25, "Beta": 0.75}, [0.25, 0.75]),
        ({"alpha": "25%", " BETA ": 0.75}, [0.25, 0.75]),
        ({"Beta": Decimal("0.75"), "Alpha": Fraction(1, 4)}, [0.25, 0.75]),
        ({"Alpha": np.float32(0.25), "Beta": np.float64(0.75)}, [0.25, 0.75]),
        (MappingProxyType({"Alpha": np.int64(1), "Beta": 0}), [1.0, 0.0]),
        ({"Alpha": 0.51, "Beta": 0.51}, [0.5, 0.5]),
    ],
)
def test_taken_forecast_is_scored_as_the_arena_scores_it(probabilities: Any, scored: list[float]) -> None:
    checked = checked_forecast(probabilities)
    assert [checked.probabilities[option] for option in RACE.options] == scored
    body = json.loads(json.dumps(checked.body), parse_float=Decimal)
    assert check_forecast(RACE, {PLACE: body}).probabilities == checked.probabilities


STRUCTURE: dict[str, tuple[Any, str]] = {
    # what `trade` returns, and the arena could not read: the sentence
    "no list": (7, "trade must return a list of Bet and Sell, not 7"),
    "another object": ([object()], "trade: item 0 must be a Bet or a Sell, not an object of the type object"),
    "bets and sales": ([Bet("1", "YES", 100), Sell("3")], 'sells must be empty when action is "BET"'),
    "too many sales": ([Sell("3")] * 201, "sells must hold at most 200 instructions, not 201"),
    "a reason that is no text": ([Bet("1", "YES", 100, 7)], "bets[0].reason must be text, not 7"),  # type: ignore[arg-type]
    "an amount that is no number": ([Bet("1", "YES", float("nan"))], "NaN is not a JSON number"),
    "an amount of many digits": (
        [Bet("1", "YES", Decimal("1e2000"))],
        'bets[0].amount must be a plain number such as 500 or 500.00, not "1E+2000"',
    ),
    "the second": ([Bet("1", "YES", 100), Bet("1", "YES", [])], "bets[1].amount must be a number, not a list"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_unreadable_decision_has_the_arenas_sentence(name: str) -> None:
    instructions, sentence = STRUCTURE[name]
    with pytest.raises(Malformed) as refused:
        read_instructions(instructions)
    assert str(refused.value) == sentence


INSTRUCTIONS: dict[str, tuple[list[Any], str]] = {
    # Instructions on the market "RAIN" (YES, NO) that the arena rejects, with a cash of 10,000 and no position.
    "another market": ([Bet("99", "YES", 100)], "bets[0].market_id: '99' is not in the list of markets"),
    "a market in words": ([Bet("rain", "YES", 100)], "bets[0].market_id: 'rain' is not in the list of markets"),
    "another side": (
        [Bet("RAIN", "MAYBE", 100)],
        "bets[0].side: 'MAYBE' is no side of market RAIN; its sides are YES, NO",
    ),
    "negative": ([Bet("RAIN", "YES", -5)], "bets[0].amount: -5 is negative"),
    "nought": ([Bet("RAIN", "YES", 0)], "bets[0].amount: 0 is below the minimum of 50.00"),
    "too little": ([Bet("RAIN", "YES", "49.999")], "bets[0].amount: 49.999 is below the minimum of 50.00"),
    "too much": (
        [Bet("RAIN", "YES", "2500.01")],
        "bets[0].amount: 2500.01 is above the maximum of 2500.00 (25 % of the cash of 10000.00 at that moment)",
    ),
    "far too much": (
        [Bet("RAIN", "YES", Decimal(10**12))],
        "bets[0].amount: 1000000000000 is above the maximum of 2500.00 (25 % of the cash of 10000.00 at that moment)",
    ),
    "no position": ([Sell("7")], "sells[0].position_id: '7' is none of your open positions"),
    "a position in words": ([Sell("mine")], "sells[0].position_id: 'mine' is none of your open positions"),
}


def decision_text(instructions: list[Any], ids: Mapping[str, str] | None = None) -> str:
    """The case as the text of an answer, markets named by `ids`."""
    bets, sells = [], []
    for item in instructions:
        if isinstance(item, Bet):
            amount = str(item.amount) if isinstance(item.amount, Decimal) else item.amount
            market = (ids or {}).get(item.market, item.market)
            bets.append({"market_id": market, "side": item.side, "reason": item.reason, "amount": amount})
        else:
            sells.append({"position_id": item.position, "percentage": item.percentage})
    return json.dumps({"action": "BET" if bets else "SELL" if sells else "HOLD", "bets": bets, "sells": sells})


def freeze(venue: Venue) -> str:
    """A week with one market and a visitor. Returns the visitor's token."""
    token = register_external_agent(name="Visitor", protocol="trading", at=SUNDAY - timedelta(days=1)).token
    venue.market("Will it rain?")
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY)["agents"] == 8
    assert run("run_decisions", DECISION).code == 0
    return token


frozen = shared_rows_at_venue(freeze)


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_rejected_instruction_has_the_same_sentence_here_and_there(
    client: Client, frozen: tuple[Venue, str], venue: Venue, settings: Any, name: str
) -> None:
    settings.ARENA_CLOCK = DECISION + timedelta(minutes=5)
    market = str(StoredMarket.objects.get().pk)
    instructions, sentence = INSTRUCTIONS[name]
    sentence = sentence.replace("RAIN", market)
    headers = {"Authorization": f"Bearer {frozen[1]}", "Idempotency-Key": "1"}
    (task,) = client.get("/api/v1/submissions/open/", headers=headers).json()["trading"]
    kit_sentences = [
        Bet(market if instruction.market == "RAIN" else instruction.market, instruction.side, instruction.amount)
        if isinstance(instruction, Bet)
        else instruction
        for instruction in instructions
    ]
    with pytest.raises(Refusal) as refused:
        check_decision(read_instructions(kit_sentences), read_portfolio(task["blocks"]), read_markets(task["blocks"]))
    assert str(refused.value) == sentence
    agent = Agent.objects.get(family__slug="visitor").pk
    path = f"/api/v1/submissions/?agent={agent}&universe={Universe.objects.get().pk}"
    body = decision_text(instructions, {"RAIN": market})
    answer = client.post(path, body, content_type="application/json", headers=headers)
    assert answer.status_code == 422
    assert f"{sentence} (2 more tries)" in answer.json()["detail"]


def test_second_bet_is_measured_by_the_cash_that_the_first_leaves() -> None:
    portfolio = Portfolio(RICH, Decimal(2500), (), Decimal(0), RICH, Decimal(0), 1, "2026-03-08")
    market = Market("1", "?", "", {"YES": 0.4, "NO": 0.6})
    decision, reasons = check_decision(
        read_instructions([Bet(market, "yes", 2500), Bet(market, "NO", 1876)]), portfolio, [market]
    )
    assert [bet["amount"] for bet in decision["bets"]] == ["2500"]
    assert reasons == [
        "bets[1].amount: 1876 is above the maximum of 1875.00 (25 % of the cash of 7500.00 at that moment)"
    ]
    assert check_decision(read_instructions([]), portfolio, [market]) == ({"action": "HOLD"}, [])
    with pytest.raises(Refusal, match="none of your open positions"):
        check_decision(read_instructions([Sell("1")]), portfolio, [market])


def test_sale_is_measured_by_the_shares_that_the_first_leaves() -> None:
    position = Position("7", "1", "?", "YES", Decimal(10), None, None, Decimal(4), Decimal(0))
    portfolio = Portfolio(RICH, Decimal(2500), (position,), Decimal(4), RICH, Decimal(0), 1, "2026-03-08")
    decision, reasons = check_decision(read_instructions([Sell("07", 50), Sell(position), Sell(7)]), portfolio, [])
    assert decision["sells"] == [{"position_id": "07", "percentage": "50"}, {"position_id": "7", "percentage": "100"}]
    assert reasons == ["sells[2].position_id: '7' is none of your open positions"]
