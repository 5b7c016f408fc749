"""Risk of the traders: drawdown, volatility, Sharpe ratio, return on locked capital, and stakes held to the end."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from statistics import fmean, stdev
from typing import Any, NamedTuple

from arena_verifier.rows import Row, Tables
from arena_verifier.trading_leaderboard import WEEK, cohort_results, weekly_returns

FULL = 100.0


def risk_by_family(tables: Tables) -> dict[str, Row]:
    """The figures of each family in cohorts that are not voided."""
    players, by_week, families = defaultdict(list), weekly_returns(tables), {}
    for agent in tables.by("agents").values():
        if not tables.by("cohorts", "number")[agent["cohort"]]["voided_at"]:
            players[agent["family"]].append(agent)
    agents = [agent for rows in players.values() for agent in rows]
    locked, stakes = locked_returns(tables, agents), resolved_stakes(tables, agents)
    for family, rows in players.items():
        returns_by_week, drawdowns = defaultdict(list), []
        for result in cohort_results(rows, by_week).values():
            drawdowns.append(worst_drawdown(result["weeks"]))
            for week, value in result["weeks"].items():
                returns_by_week[week].append(value)
        means = list(map(fmean, returns_by_week.values()))
        spread = stdev(means) if len(means) > 1 else None
        profits = stakes.get(family, [])
        families[family] = {
            "weeks": len(means), "worst_drawdown": max(drawdowns), "weekly_volatility": spread,
            "sharpe": fmean(means) / spread if spread else None,
            "return_on_locked_capital": locked.get(family),
            "resolved_stakes": len(profits), "held_profit": round(sum(profits), 2) if profits else None,
        }  # fmt: skip
    return families


def worst_drawdown(returns: Mapping[Any, float]) -> float:
    """The largest fall of a portfolio from the highest value before, in per cent of that, by its values on Sundays."""
    values = list(accumulate((returns[week] for week in sorted(returns)), initial=FULL))
    return max(FULL * (high - value) / high for value, high in zip(values, accumulate(values, max), strict=True))


class CapitalMove(NamedTuple):
    """Dollars at cost that a trade locks in a position, or frees where negative, until the position closes."""

    agent: int
    dollars: float
    executed_at: datetime
    closed_at: datetime | None


def returns_on_locked_capital(
    capital_moves: Iterable[CapitalMove], ends: Mapping[int, datetime], profits: Mapping[int, tuple[str, float]]
) -> dict[str, float]:
    """The profit of each family for a dollar that was locked in positions for a week, at cost, in per cent, by slug.

    `ends` are the ends of the agents' last weeks, and `profits` their families and dollars, by agent.
    """
    profit: dict[str, float] = defaultdict(float)
    locked: dict[str, float] = defaultdict(float)
    for family, dollars in profits.values():
        profit[family] += dollars
    for move in capital_moves:
        end = ends[move.agent] if move.closed_at is None else min(move.closed_at, ends[move.agent])
        locked[profits[move.agent][0]] += move.dollars * max((end - move.executed_at) / WEEK, 0)
    return {family: 100 * profit[family] / dollar_weeks for family, dollar_weeks in locked.items() if dollar_weeks > 0}


def locked_returns(tables: Tables, agents: list[Row]) -> dict[str, float]:
    """The returns on locked capital of agents, by family."""
    newest: dict[int, str] = {}
    for row in tables.rows("snapshots"):
        newest[row["agent"]] = max(row["taken_at"], newest.get(row["agent"], ""))
    ends, profits, capital_moves = {}, {}, []
    for agent in agents:
        cohort = tables.by("cohorts", "number")[agent["cohort"]]
        end = cohort["completed_at"] or newest.get(agent["id"]) or cohort["week_start"]
        ends[agent["id"]] = datetime.fromisoformat(end)
        profits[agent["id"]] = agent["family"], float(agent["pnl"])
    for _, trade in sorted(tables.by("trades").items()):
        if trade["agent"] in ends:
            closed_at = tables.by("positions")[trade["position"]]["closed_at"]
            capital_moves.append(
                CapitalMove(
                    trade["agent"],
                    float(trade["cost_basis"]) * (1 if trade["kind"] == "BUY" else -1),
                    datetime.fromisoformat(trade["executed_at"]),
                    closed_at and datetime.fromisoformat(closed_at),
                )
            )
    return returns_on_locked_capital(capital_moves, ends, profits)


def resolved_stakes(tables: Tables, agents: list[Row]) -> dict[str, list[float]]:
    """The profit of each purchase on a market with a winner, held to the end, by family."""
    families = {agent["id"]: agent["family"] for agent in agents}
    profits: dict[str, list[float]] = defaultdict(list)
    for row in tables.rows("brier_scores"):
        if row["agent"] in families:
            trade = tables.by("trades")[row["trade"]]
            payout = float(trade["shares"]) if row["outcome"] else 0.0
            profits[families[row["agent"]]].append(payout - float(trade["amount"]))
    return profits
