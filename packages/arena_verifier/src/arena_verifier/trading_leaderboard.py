"""The trading leaderboard: means over cohorts, ranks and their ranges, and the scores of bets."""

import math
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal
from statistics import fmean, stdev
from typing import Any

from arena_verifier.intervals import bounded_interval, rank_ranges, return_error
from arena_verifier.order_books import family_after_costs
from arena_verifier.rows import MICROSHARE, ZERO, Row, Tables, Violations, cents, mismatches

WEEK = timedelta(weeks=1)
TOTAL_LOSS = -100.0
"""In per cent: no portfolio loses more, and no interval says so."""


def weekly_returns(tables: Tables) -> dict[int, dict[datetime, float]]:
    """Each agent's return by week, in per cent: changes of its value from Sunday to Sunday, the last up to now."""
    marks: dict[int, dict[datetime, tuple[datetime, Decimal]]] = defaultdict(dict)
    newest: dict[int, datetime] = {}
    for row in tables.rows("snapshots"):
        pk, at = row["agent"], datetime.fromisoformat(row["taken_at"])
        sunday = week_end(at)
        marks[pk][sunday] = max(marks[pk].get(sunday, (at, ZERO)), (at, row["total_value"]))
        newest[pk] = max(newest.get(pk, at), at)
    returns: dict[int, dict[datetime, float]] = {}
    for pk, agent in tables.by("agents").items():
        cohort = tables.by("cohorts", "number")[agent["cohort"]]
        week, completed = datetime.fromisoformat(cohort["week_start"]), cohort["completed_at"]
        end = datetime.fromisoformat(completed) if completed else newest.get(pk, week)
        value, returns[pk] = agent["starting_balance"], {}
        while week + WEEK < end:
            after = marks[pk][week + WEEK][1] if week + WEEK in marks[pk] else value
            returns[pk][week] = float((after - value) / agent["starting_balance"] * 100)
            week, value = week + WEEK, after
        returns[pk][week] = float((agent["total_value"] - value) / agent["starting_balance"] * 100)
    return returns


def week_end(at: datetime) -> datetime:
    """The Sunday, 00:00, at which the week of an instant ends; a Sunday's 00:00 is the end of its week."""
    before = at - timedelta(microseconds=1)
    midnight = before.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=(midnight.weekday() + 1) % 7) + WEEK


def check_trading_leaderboard(tables: Tables, violations: Violations) -> None:
    """Means over cohorts, ranks and their ranges, scores pooled over bets, intervals and costs, by methodology."""
    board = {(row["methodology"], row["family"]): row for row in tables.rows("leaderboard_trading")}
    versions = {cohort["methodology"] for cohort in tables.by("cohorts", "number").values()}
    costs, by_week, bets = agent_costs(tables), weekly_returns(tables), tables.grouped("brier_scores", "agent")
    for version in ["", *sorted(versions)]:
        spent, players = families_of(tables, version, costs)
        for family, figures in trading_figures(tables, players, by_week, bets).items():
            row = board.pop((version, family), None)
            if row is None:
                violations.append(f"leaderboard_trading: {family} is missing in {version or 'all'}")
                continue
            figures["cost_usd"] = spent[family].quantize(MICROSHARE, ROUND_HALF_EVEN)
            violations.extend(mismatches(f"leaderboard_trading: {version or 'all'}, {family}", row, figures))
    violations.extend(f"leaderboard_trading: {' '.join(key)} did not play" for key in board)


def agent_costs(tables: Tables) -> dict[int, Decimal]:
    """The cost of each agent's decisions."""
    costs: dict[int, Decimal] = defaultdict(Decimal)
    for call in tables.rows("calls"):
        if call["decision"] is not None:
            costs[tables.by("decisions")[call["decision"]]["agent"]] += call["cost_usd"]
    return costs


def families_of(
    tables: Tables, version: str, costs: dict[int, Decimal]
) -> tuple[dict[str, Decimal], dict[str, list[Row]]]:
    """The costs and the agents of each family under a methodology, or all; of voided cohorts the costs alone."""
    spent: dict[str, Decimal] = defaultdict(Decimal)
    players: dict[str, list[Row]] = defaultdict(list)
    for agent in tables.by("agents").values():
        cohort = tables.by("cohorts", "number")[agent["cohort"]]
        if version in ("", cohort["methodology"]):
            spent[agent["family"]] += costs[agent["id"]]
            if not cohort["voided_at"]:
                players[agent["family"]].append(agent)
    return spent, players


def trading_figures(
    tables: Tables,
    players: dict[str, list[Row]],
    by_week: dict[int, dict[datetime, float]],
    bets: dict[int, list[Row]],
) -> dict[str, Row]:
    """The figures of families by their agents: returns over cohorts, scores over bets, ranks among the models."""
    families, after_costs = tables.by("families", "slug"), tables.by("after_costs", "agent")
    rows, weeks = {}, {}
    for family, agents in players.items():
        results = cohort_results(agents, by_week)
        weeks[family] = {cohort: result["weeks"] for cohort, result in results.items()}
        rows[family] = return_figures(list(results.values()), weeks[family])
        rows[family] |= family_after_costs(replicates_of(agents, after_costs))
        rows[family] |= bet_figures(tables, agents, bets)
    models = [family for family in players if not families[family]["external"]]
    ranges = rank_ranges({family: weeks[family] for family in models})
    for family, row in rows.items():
        row["rank"], (row["rank_low"], row["rank_high"]) = None, ranges.get(family, (None, None))
        if family in ranges:
            row["rank"] = 1 + sum(rows[rival]["return_percent"] > row["return_percent"] for rival in models)
    return rows


def return_figures(results: list[Row], weeks: dict[int, dict[datetime, float]]) -> Row:
    """A family's return over its cohorts, with its errors, its interval and the value behind it."""
    returns = [result["return_percent"] for result in results]
    mean, (error, half) = fmean(returns), return_error(weeks)
    return {
        "cohorts": len(returns), "return_percent": mean, "return_se": error,
        "return_se_cohorts": stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else None,
        "return_ci": None if half is None else [max(mean - half, TOTAL_LOSS), mean + half],
        "total_value": cents(sum(result["total_value"] for result in results) / len(returns)),
        "pnl": cents(sum(result["pnl"] for result in results)),
    }  # fmt: skip


def replicates_of(agents: list[Row], after_costs: dict[int, Row]) -> list[list[Row]]:
    """The returns of a family's agents before and after costs, by cohort."""
    cohorts = defaultdict(list)
    for agent in agents:
        cohorts[agent["cohort"]].append({"return_percent": agent["return_percent"], **after_costs[agent["id"]]})
    return list(cohorts.values())


def cohort_results(agents: list[Row], by_week: dict[int, dict[datetime, float]]) -> dict[int, Row]:
    """A family's value and returns by cohort: the means of its replicates there."""
    replicates: dict[int, list[Row]] = defaultdict(list)
    for agent in agents:
        replicates[agent["cohort"]].append(agent)
    results = {}
    for cohort, rows in replicates.items():
        weeks = [by_week[agent["id"]] for agent in rows]
        results[cohort] = {
            "return_percent": fmean(agent["return_percent"] for agent in rows),
            "total_value": sum(agent["total_value"] for agent in rows) / len(rows),
            "pnl": sum(agent["pnl"] for agent in rows) / len(rows),
            "weeks": {week: fmean(returns[week] for returns in weeks) for week in weeks[0]},
        }
    return results


def bet_figures(tables: Tables, agents: list[Row], bets: dict[int, list[Row]]) -> Row:
    """The scores of agents' bets, pooled, and their intervals over events."""
    values, outcomes, market_values, events = [], [], [], []
    for agent in agents:
        for bet in bets.get(agent["id"], ()):
            values.append(bet["score"])
            outcomes.append(bet["outcome"])
            market_values.append(bet["market_score"])
            events.append(event_of(tables.by("markets")[bet["market"]]))
    brier = fmean(values) if values else None
    market = fmean(market_values) if values else None
    return {
        "brier": brier, "brier_ci": bounded_interval(values, events),
        "bss_random": None if brier is None else 1 - brier / 0.25,
        "bss_market": 1 - brier / market if market and brier is not None else None,
        "win_rate": fmean(outcomes) if values else None,
        "win_rate_ci": bounded_interval(outcomes, events),
        "resolved_bets": len(values), "resolved_events": len(set(events)),
    }  # fmt: skip


def event_of(market: Row) -> Any:
    """The event of a market, or the market itself: bets on one event are not independent."""
    return (market["source"], market["event_id"]) if market["event_id"] else market["id"]
