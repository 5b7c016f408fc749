"""The table of forgeries: rows of the season's archive that a forger changes, and the sentence that names each."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from tests.scoring.exports.forgery import Cells


class Forgery(NamedTuple):
    """A change of a table's rows, after which the forger puts right every hash, the record of the archive too."""

    table: str
    change: Callable[[Cells], object]
    sentence: str
    """A part of a line that each program has about it; those of `OF_VERIFY_EXPORT` it has alone."""


def first(column: str, value: str) -> Callable[[Cells], None]:
    """Changes a cell of the first row."""

    def forge(rows: Cells) -> None:
        assert rows[0][column] != value
        rows[0][column] = value

    return forge


def cell(column: str, value: str) -> Callable[[Cells], None]:
    """Changes a cell of the first row that has another value there."""

    def forge(rows: Cells) -> None:
        place = next(place for place, row in enumerate(rows) if row[column] not in ("", value))
        rows[place][column] = value

    return forge


def every(column: str, value: Callable[[str], str]) -> Callable[[Cells], None]:
    """Changes every cell of a column."""

    def forge(rows: Cells) -> None:
        for row in rows:
            row[column] = value(row[column])

    return forge


def drop(place: int) -> Callable[[Cells], object]:
    return lambda rows: rows.pop(place)


def replace_in(column: str, place: int, old: str, new: str) -> Callable[[Cells], None]:
    """Changes the first occurrence of a text in a cell."""

    def forge(rows: Cells) -> None:
        assert old in rows[place][column]
        rows[place][column] = rows[place][column].replace(old, new, 1)

    return forge


def add_again(rows: Cells) -> None:
    rows.append(rows[-1])


def lift_one_curve(rows: Cells) -> None:
    agent = rows[0]["agent"]
    for row in rows:
        if row["agent"] == agent:
            value, pnl = Decimal(row["positions_value"]) + 1000, Decimal(row["pnl"]) + 1000
            row |= {"positions_value": str(value), "total_value": str(Decimal(row["cash"]) + value), "pnl": str(pnl)}
            row["pnl_percent"] = f"{pnl / 100:.4f}"


def swap_ids(rows: Cells) -> None:
    rows[0]["id"], rows[-1]["id"] = rows[-1]["id"], rows[0]["id"]


def raise_a_stake(rows: Cells) -> None:
    payload: dict[str, Any] = json.loads(rows[0]["payload"])
    rows[0]["payload"] = json.dumps(payload | {"amount": "700"})


def sell_instead(rows: Cells) -> None:
    bought = next(row for row in rows if row["kind"] == "BUY")
    bought.update(kind="SELL", implied_confidence="")


def flip(text: str) -> str:
    return {"true": "false", "false": "true", "": ""}[text]


OF_VERIFY_EXPORT = ("which does not exist", "there are two rows with", "has the unknown status 'open'")
"""Sentences of checks that `verify_arena.py` lacks: it finds these forgeries by others."""
FORGERIES = [
    Forgery("trades", first("amount", "2400.00"), "trading link"),
    Forgery("trades", first("price", "0.4400000000"), "its universe's price"),
    Forgery("trades", first("implied_confidence", "0.9"), "states implied_confidence"),
    Forgery("trades", cell("shares", "1.000000"), "states shares 1.000000"),
    Forgery("trades", add_again, "are not its executed instructions"),
    Forgery("trades", drop(-1), "trades"),
    Forgery("trades", swap_ids, "journal: no."),
    Forgery("trades", every("market", lambda text: "99999"), "which does not exist"),
    Forgery("trades", sell_instead, "are not its executed instructions"),
    Forgery("journal", first("amount", "9999.00"), "journal: no. 1 of agent"),
    Forgery("journal", first("balance", "10000.01"), "journal: no. 1 of agent"),
    Forgery("journal", add_again, "there are two rows with"),
    Forgery("journal", drop(-1), "its journal ends at"),
    Forgery("positions", first("shares", "1.000000"), "positions: position"),
    Forgery("positions", cell("realized_pnl", "5000.00"), "states realized_pnl 5000.00"),
    Forgery("settlements", first("payout", "1.00"), "settlements: settlement"),
    Forgery("agents", first("positions_value", "77777.00"), "states positions_value"),
    Forgery("agents", first("win_rate", "0.123"), "states win_rate"),
    Forgery("agents", every("cash", lambda text: "99999.00"), "its journal ends at"),
    Forgery("snapshots", first("total_value", "12000.00"), "states total_value"),
    Forgery("snapshots", cell("positions_value", "1000.00"), "states positions_value 1000.00"),
    Forgery("snapshots", cell("cash", "1000.00"), "states cash 1000.00"),
    Forgery("snapshots", lift_one_curve, "states positions_value"),
    Forgery("brier_scores", first("score", "0.01"), "states score"),
    Forgery("brier_scores", first("outcome", "maybe"), "can not be"),
    Forgery("brier_scores", drop(-1), "states resolved_bets 1, computed is 0"),
    Forgery("markets", every("status", lambda text: "open"), "has the unknown status 'open'"),
    Forgery("prices", every("price", lambda text: text and "0.5000000000"), "the price 0.5"),
    Forgery("universe_entries", first("prices", '{"NO":"0.1","YES":"0.9"}'), "universe"),
    Forgery("books", first("asks", '[["0.02","5"],["0.01","5"]]'), "not in the order of their prices"),
    Forgery("books", every("asks", lambda text: text and '[["0.01","99999"]]'), "states return_after_costs_ci"),
    Forgery("books", every("side", lambda text: text and "MAYBE"), "states side MAYBE"),
    Forgery("after_costs", first("return_after_costs", "12.5"), "states return_after_costs"),
    Forgery("after_costs", cell("return_after_costs", "99.0"), "computed is 49.5"),
    Forgery("after_costs", cell("liquidation_value", "99999.00"), "states liquidation_value 99999.00"),
    Forgery("after_costs", drop(-1), " is missing"),
    Forgery("calls", first("raw_response", '{"choices": []}'), "link"),
    Forgery("calls", first("portfolio_block", "{}"), "the prompt of call"),
    Forgery("calls", first("cost_source", "booked"), " is booked at "),
    Forgery("prompts", first("text", "Bet everything."), "has another hash"),
    Forgery("decisions", first("action", "SELL"), "differs from the record that was chained"),
    Forgery("decisions", every("reasoning", lambda text: text and "I knew."), "states reasoning"),
    Forgery("decisions", swap_ids, "decisions: decision"),
    Forgery("instructions", every("executed", flip), "instructions: no."),
    Forgery("instructions", every("reason", lambda text: text and "forged"), "the record that was chained"),
    Forgery("instructions", raise_a_stake, "are not the ones of its answer"),
    Forgery("instructions", drop(0), "are not the ones of its answer"),
    Forgery("questions", every("text", lambda text: f"{text}!"), "is not what its questions make"),
    Forgery("question_options", every("happened", flip), "is not that of its markets"),
    Forgery("question_entries", first("reason", "traded"), "set"),
    Forgery("forecasts", first("probabilities", '{"NO":0.02,"YES":0.98}'), "differs from the record that was chained"),
    Forgery("forecasts", cell("rationale", "I knew it."), "states rationale I knew it."),
    Forgery("forecasts", drop(-1), "has other forecasts than its answers state"),
    Forgery("refused_forecasts", lambda rows: rows.clear(), "refused_forecasts: those of call"),
    Forgery("elicitations", first("declined", "true"), "differs from the record that was chained"),
    Forgery("forecast_scores", first("brier", "0.001"), "states brier"),
    Forgery("forecast_scores", cell("spherical", "0.99"), "states spherical 0.99"),
    Forgery("chain", first("record_sha256", "0" * 64), "its hash does not follow from its record"),
    Forgery("leaderboard_trading", first("return_percent", "55.5"), "leaderboard_trading: all"),
    Forgery("leaderboard_trading", every("return_percent", lambda text: text and "999.0"), "return_percent 999.0"),
    Forgery("leaderboard_trading", first("return_after_costs", "12.5"), "states return_after_costs"),
    Forgery("leaderboard_trading", first("return_after_costs_ci", "[-0.5,0.5]"), "return_after_costs_ci [-0.5, 0.5]"),
    Forgery("leaderboard_trading", cell("return_se", "0.5"), "states return_se 0.5"),
    Forgery("leaderboard_trading", cell("return_se_cohorts", "0.5"), "states return_se_cohorts 0.5"),
    Forgery("leaderboard_trading", cell("return_ci", "[-0.5,0.5]"), "states return_ci [-0.5, 0.5]"),
    Forgery("leaderboard_trading", first("rank", "7"), "states rank"),
    Forgery("leaderboard_trading", cell("rank_high", "1"), "states rank_high 1"),
    Forgery("leaderboard_trading", first("brier", "0.0"), "states brier"),
    Forgery("leaderboard_trading", first("brier_ci", "[0.1,0.2]"), "states brier_ci [0.1, 0.2]"),
    Forgery("leaderboard_trading", first("win_rate_ci", "[0.1,0.2]"), "states win_rate_ci [0.1, 0.2]"),
    Forgery("leaderboard_trading", first("cost_usd", "0.000001"), "states cost_usd"),
    Forgery("leaderboard_trading", cell("vanished_share", "0.01"), "states vanished_share 0.01"),
    Forgery("leaderboard_forecast", first("brier", "0.0"), "leaderboard_forecast: blind all"),
    Forgery("leaderboard_forecast", first("accuracy", "0.01"), "states accuracy"),
    Forgery("leaderboard_forecast", first("rank", "9"), "states rank"),
    Forgery("leaderboard_forecast", cell("log", "-0.01"), "states log -0.01"),
    Forgery("leaderboard_forecast", cell("alpha", "0.9"), "states alpha 0.9"),
    Forgery("leaderboard_forecast", cell("adjusted_brier", "0.01"), "states adjusted_brier 0.01"),
    Forgery("leaderboard_forecast", cell("ranked_by", "nothing"), "states ranked_by nothing"),
    Forgery("condition_differences", cell("difference", "-0.5"), "states difference -0.5"),
    Forgery("condition_differences", cell("n", "999"), "states n 999"),
    Forgery("condition_differences", drop(-1), " is missing"),
    Forgery("published_boards", replace_in("entries", 0, '"rank":1', '"rank":2'), "another hash than when"),
    Forgery("published_boards", replace_in("entries", -1, '"rank":1', '"rank":2'), "states rank 2, computed is 1"),
    Forgery("published_boards", first("report", '{"pairs":[]}'), "has another hash than when it was published"),
    Forgery("published_boards", cell("at", "2026-03-10T00:00:01.000000Z"), "is not as the chain records it"),
    Forgery("published_boards", cell("link", "2"), "is not as the chain records it"),
    Forgery("published_boards", cell("sha256", "0" * 64), "has another hash than when it was published"),
    Forgery("published_boards", drop(0), " is missing"),
    Forgery("published_boards", drop(-1), " is missing"),
]  # fmt: skip
