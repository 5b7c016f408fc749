"""Answers of agents that the arena refuses, with its sentence: one table, run against the arena and against the kit."""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from arena_agent import Bet, Forecast, Question, Sell
from arena_agent.checks import check_forecast

RACE = Question("88", "Who wins?", "", True, ("Alpha", "Beta", "Other"), {"Alpha": 0.4, "Beta": 0.3, "Other": 0.3})
PANEL = Question("9", "Which happen?", "", False, ("rain", "wind", "WIND"))
LONG = "x" * 50

FORECASTS: dict[str, tuple[Question, Any, str]] = {
    # name: (question, probabilities and optionally a rationale, the sentence)
    "no object": (RACE, [0.5, 0.5], "forecasts[0].probabilities must be an object, not a list"),
    "a word": (RACE, "Alpha", 'forecasts[0].probabilities must be an object, not "Alpha"'),
    "nothing": (RACE, None, "forecasts[0].probabilities must be an object, not null"),
    "a truth value": (
        RACE,
        {"Alpha": True, "Beta": 0, "Other": 0},
        'forecasts[0].probabilities["Alpha"] must be a number, not true',
    ),
    "null": (RACE, {"Alpha": None}, 'forecasts[0].probabilities["Alpha"] must be a number, not null'),
    "a list for a number": (RACE, {"Alpha": [1]}, 'forecasts[0].probabilities["Alpha"] must be a number, not a list'),
    "prose": (
        RACE,
        {"Alpha": "likely"},
        'forecasts[0].probabilities["Alpha"] must be a plain number such as 0.4 or 40%, not "likely"',
    ),
    "a comma": (
        RACE,
        {"Alpha": "0,4"},
        'forecasts[0].probabilities["Alpha"] must be a plain number such as 0.4 or 40%, not "0,4"',
    ),
    "no number": (RACE, {"Alpha": float("nan"), "Beta": 0.5, "Other": 0.5}, "NaN is not a JSON number"),
    "infinity": (RACE, {"Alpha": float("inf"), "Beta": 0.5, "Other": 0.5}, "Infinity is not a JSON number"),
    "minus infinity": (RACE, {"Alpha": float("-inf")}, "-Infinity is not a JSON number"),
    "a missing option": (RACE, {"Alpha": 0.5, "Beta": 0.5}, 'question 88: "Other" has no probability'),
    "no options": (RACE, {}, 'question 88: "Alpha" has no probability'),
    "a strange option": (
        RACE,
        {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2, "Gamma": 0},
        'question 88: "Gamma" is none of its options',
    ),
    "a long option": (RACE, {LONG: 1}, f'question 88: "{"x" * 38}… is none of its options'),
    "one option twice": (RACE, {"Alpha": 0.5, "ALPHA": 0.5}, 'question 88: "Alpha" is named twice'),
    "two options with that name": (PANEL, {"rain": 0.5, "Wind": 0.5}, 'question 9: "Wind" may mean 2 of its options'),
    "negative": (RACE, {"Alpha": -0.1}, 'question 88: "Alpha" is given -0.1, which is outside [0, 1]'),
    "above one": (RACE, {"Alpha": 1.5}, 'question 88: "Alpha" is given 1.5, which is outside [0, 1]'),
    "a percentage without its sign": (RACE, {"Alpha": 40}, 'question 88: "Alpha" is given 40, which is outside [0, 1]'),
    "a percentage above 100": (RACE, {"Alpha": "140%"}, 'question 88: "Alpha" is given 1.40, which is outside [0, 1]'),
    "a tiny negative": (RACE, {"Alpha": -1e-7}, 'question 88: "Alpha" is given -1E-7, which is outside [0, 1]'),
    "a sum above": (
        RACE,
        {"Alpha": 0.5, "Beta": 0.5, "Other": 0.5},
        "question 88: the probabilities of its 3 options sum to 1.5, not 1",
    ),
    "a sum just above": (
        RACE,
        {"Alpha": 0.5, "Beta": 0.5, "Other": 0.0201},
        "question 88: the probabilities of its 3 options sum to 1.0201, not 1",
    ),
    "nought": (
        RACE,
        {"Alpha": 0, "Beta": 0, "Other": 0},
        "question 88: the probabilities of its 3 options sum to 0, not 1",
    ),
    "a rationale that is no text": (
        RACE,
        ({"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}, 7),
        "forecasts[0].rationale must be text, not 7",
    ),
}
TAKEN: dict[str, tuple[Question, Any, dict[str, float]]] = {
    # name: (question, probabilities, what is scored)
    "as it is": (RACE, {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}, {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}),
    "as percentages": (
        RACE,
        {"Alpha": "50%", "Beta": "30 %", "Other": "0.2"},
        {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2},
    ),
    "other case": (RACE, {"alpha": 1, " BETA ": 0, "Other": 0}, {"Alpha": 1.0, "Beta": 0.0, "Other": 0.0}),
    "normalised": (
        RACE,
        {"Alpha": 0.51, "Beta": 0.3, "Other": 0.21},
        {"Alpha": 0.51 / 1.02, "Beta": 0.3 / 1.02, "Other": 0.21 / 1.02},
    ),
    "thirds": (RACE, dict.fromkeys(RACE.options, 1 / 3), dict.fromkeys(RACE.options, 1 / 3)),
    "an order of its own": (RACE, {"Other": 0.2, "Beta": 0.3, "Alpha": 0.5}, {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}),
    "not exclusive": (PANEL, {"rain": 0.9, "wind": 0.8, "WIND": 0.7}, {"rain": 0.9, "wind": 0.8, "WIND": 0.7}),
    "at the edge": (
        RACE,
        {"Alpha": 0.5, "Beta": 0.5, "Other": 0.02},
        {"Alpha": 0.5 / 1.02, "Beta": 0.5 / 1.02, "Other": 0.02 / 1.02},
    ),
}

STRUCTURE: dict[str, tuple[list[Any], str]] = {
    # Decisions that the arena can not read: (instructions, the sentence).
    "bets and sales": ([Bet("1", "YES", 100), Sell("3")], 'sells must be empty when action is "BET"'),
    "too many bets": ([Bet("1", "YES", 100)] * 201, "bets must hold at most 200 instructions, not 201"),
    "too many sales": ([Sell("3")] * 201, "sells must hold at most 200 instructions, not 201"),
    "a market that is no id": ([Bet(1.5, "YES", 100)], "bets[0].market_id must be text or a whole number, not 1.5"),
    "an empty market": ([Bet(" ", "YES", 100)], "bets[0].market_id must not be empty"),
    "a side that is no text": ([Bet("1", 7, 100)], "bets[0].side must be text, not 7"),
    "an empty side": ([Bet("1", "", 100)], "bets[0].side must not be empty"),
    "an amount in words": (
        [Bet("1", "YES", "all of it")],
        'bets[0].amount must be a plain number such as 500 or 500.00, not "all of it"',
    ),
    "an ambiguous amount": (
        [Bet("1", "YES", "1,250")],
        'bets[0].amount must be a plain number such as 500 or 500.00, not "1,250"',
    ),
    "an amount that is a truth value": ([Bet("1", "YES", True)], "bets[0].amount must be a number, not true"),
    "a reason that is no text": ([Bet("1", "YES", 100, 7)], "bets[0].reason must be text, not 7"),
    "no amount": ([Bet("1", "YES", None)], "bets[0].amount must be a number, not null"),
    "an amount that is no number": ([Bet("1", "YES", float("nan"))], "NaN is not a JSON number"),
    "a percentage in words": (
        [Sell("3", "half")],
        'sells[0].percentage must be a plain number such as 50 or 33.5, not "half"',
    ),
    "a position that is no id": ([Sell(None)], "sells[0].position_id must be text or a whole number, not null"),
    "the second": ([Bet("1", "YES", 100), Bet("1", "YES", [])], "bets[1].amount must be a number, not a list"),
}

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


def kit_forecast(question: Question, answer: Any) -> Any:
    """The kit's check of a case."""
    return check_forecast(question, Forecast(*answer) if isinstance(answer, tuple) else answer)


def forecast_text(question: Question, answer: Any) -> str:
    """The case as the text of an answer."""
    probabilities, *rationale = answer if isinstance(answer, tuple) else (answer,)
    forecast = {"question_id": question.id, "probabilities": probabilities}
    return json.dumps({"forecasts": [forecast | ({"rationale": rationale[0]} if rationale else {})]})


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
