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
        before = at - timedelta(microseconds=1)
        midnight = before.replace(hour=0, minute=0, second=0, microsecond=0)
        sunday = midnight - timedelta(days=(midnight.weekday() + 1) % 7) + WEEK
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


def check_trading_leaderboard(tables: Tables, violations: Violations) -> None:
    """Means over cohorts, ranks and their ranges, scores pooled over bets, intervals and costs, by methodology."""
    externals = {row["slug"] for row in tables.rows("families") if row["external"]}
    cohorts, bets = tables.by("cohorts", "number"), tables.grouped("brier_scores", "agent")
    cost: dict[int, Decimal] = defaultdict(Decimal)
    for call in tables.rows("calls"):
        if call["decision"] is not None:
            cost[tables.by("decisions")[call["decision"]]["agent"]] += call["cost_usd"]
    board = {(row["methodology"], row["family"]): row for row in tables.rows("leaderboard_trading")}
    by_week, markets, after_costs = weekly_returns(tables), tables.by("markets"), tables.by("after_costs", "agent")
    for version in ["", *sorted({cohort["methodology"] for cohort in cohorts.values()})]:
        players: dict[str, list[Row]] = defaultdict(list)
        spent: dict[str, Decimal] = defaultdict(Decimal)  # in voided cohorts too, which count for nothing else
        for agent in tables.by("agents").values():
            cohort = cohorts[agent["cohort"]]
            if version in ("", cohort["methodology"]):
                spent[agent["family"]] += cost[agent["id"]]
                if not cohort["voided_at"]:
                    players[agent["family"]].append(agent)
        mean: dict[str, float] = {}
        weeks: dict[str, Any] = {}
        results: dict[str, dict[int, Row]] = {}
        for family, agents in players.items():
            results[family] = cohort_results(agents, by_week)
            mean[family] = fmean(result["return_percent"] for result in results[family].values())
            weeks[family] = {cohort: result["weeks"] for cohort, result in results[family].items()}
        ranges = rank_ranges({family: weeks[family] for family in players if family not in externals})
        for family, agents in players.items():
            row = board.pop((version, family), None)
            if row is None:
                violations.append(f"leaderboard_trading: {family} is missing in {version or 'all'}")
                continue
            rank = 1 + sum(mean[rival] > mean[family] for rival in mean if rival not in externals)
            low, high = ranges.get(family, (None, None))
            error, half = return_error(weeks[family])
            cohort_rows = list(results[family].values())
            returns, scores = [result["return_percent"] for result in cohort_rows], []
            for agent in agents:
                scores += bets.get(agent["id"], [])
            figures = {
                "rank": None if family in externals else rank, "cohorts": len(returns), "return_percent": mean[family],
                "return_se_cohorts": stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else None,
                "return_se": error, "rank_low": low, "rank_high": high,
                "return_ci": None if half is None else [max(mean[family] - half, TOTAL_LOSS), mean[family] + half],
                "total_value": cents(sum(result["total_value"] for result in cohort_rows) / len(returns)),
                "pnl": cents(sum(result["pnl"] for result in cohort_rows)),
                "cost_usd": spent[family].quantize(MICROSHARE, ROUND_HALF_EVEN),
            }  # fmt: skip
            figures |= family_after_costs(replicates_of(agents, after_costs))
            figures |= bet_figures(scores, [event_of(markets[bet["market"]]) for bet in scores])
            violations.extend(mismatches(f"leaderboard_trading: {version or 'all'}, {family}", row, figures))
    violations.extend(f"leaderboard_trading: {' '.join(key)} did not play" for key in board)


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


def bet_figures(scores: list[Row], events: list[Any]) -> Row:
    """Scores pooled over bets, and their intervals over events."""
    values, outcomes = [bet["score"] for bet in scores], [bet["outcome"] for bet in scores]
    brier = fmean(values) if scores else None
    market = fmean(bet["market_score"] for bet in scores) if scores else None
    return {
        "brier": brier, "brier_ci": bounded_interval(values, events),
        "bss_random": None if brier is None else 1 - brier / 0.25,
        "bss_market": 1 - brier / market if market and brier is not None else None,
        "win_rate": sum(outcomes) / len(scores) if scores else None,
        "win_rate_ci": bounded_interval(outcomes, events),
        "resolved_bets": len(scores), "resolved_events": len(set(events)),
    }  # fmt: skip


def event_of(market: Row) -> Any:
    """The event of a market, or the market itself: bets on one event are not independent."""
    return (market["source"], market["event_id"]) if market["event_id"] else market["id"]
