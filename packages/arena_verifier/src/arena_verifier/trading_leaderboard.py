"""The trading leaderboard: means over cohorts, ranks and their ranges, and the scores of bets."""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_EVEN, Decimal
from statistics import fmean, stdev
from typing import Any, NamedTuple

from arena_verifier.intervals import bounded_interval, rank_ranges, return_error, return_interval
from arena_verifier.order_books import account_value, costed_accounts, family_after_costs
from arena_verifier.portfolios import PriceHistory
from arena_verifier.rows import MICROSHARE, ZERO, Row, Tables, Violations, cents, mismatches
from arena_verifier.weeks import agent_spans, instant_text, split_return, weekly_returns


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
    rows, weeks = {}, family_weeks(players, by_week)
    for family, agents in players.items():
        rows[family] = return_figures(agents, weeks[family])
        costed = ({**row, **after_costs[row["id"]], "weeks": weeks_after_costs(tables, row)} for row in agents)
        rows[family] |= family_after_costs(costed)
        rows[family] |= bet_figures(scored_bets(tables, agents, bets))
    models = [family for family in players if not families[family]["external"]]
    ranges = rank_ranges({family: weeks[family] for family in models})
    for family, row in rows.items():
        row["rank"], (row["rank_low"], row["rank_high"]) = None, ranges.get(family, (None, None))
        if family in ranges:
            row["rank"] = 1 + sum(rows[rival]["return_percent"] > row["return_percent"] for rival in models)
    return rows


def weeks_after_costs(tables: Tables, agent: Row) -> dict[datetime, float]:
    """An agent's return after costs by week, as its return at midpoints is split; none where a book is missing."""
    account = costed_accounts(tables)[agent["id"]]
    if account.without_book:
        return {}
    if PriceHistory not in tables.cache:
        tables.cache[PriceHistory] = PriceHistory(tables)
    history, values = tables.cache[PriceHistory], {}
    for sunday, then in account.sundays.items():
        prices = {holding.outcome: history.at(holding.outcome, sunday, 0)[0] for holding in then.holdings.values()}
        values[sunday] = account_value(then, prices)
    last = {holding.outcome: tables.by("outcomes")[holding.outcome]["price"] for holding in account.holdings.values()}
    (start, end), opening = agent_spans(tables)[agent["id"]], Decimal(tables.rules_of(agent["id"])["starting_balance"])
    value = account_value(account, last)
    return split_return(start, end, lambda sunday: values.get(instant_text(sunday)), value, opening)


def family_weeks(
    players: dict[str, list[Row]], by_week: dict[int, dict[datetime, float]]
) -> dict[str, dict[int, dict[datetime, float]]]:
    """The weekly returns of families in each cohort, by their agents."""
    weeks = {}
    for family, agents in players.items():
        weeks[family] = {agent["cohort"]: by_week[agent["id"]] for agent in agents}
    return weeks


def return_figures(results: Sequence[Row], weeks: Mapping[Any, Mapping[Any, float]]) -> Row:
    """A family's return over its cohorts in per cent, with its errors, its interval and the value behind it."""
    returns = [result["return_percent"] for result in results]
    mean, (error, half) = fmean(returns), return_error(weeks)
    return {
        "cohorts": len(returns),
        "total_value": cents(sum((result["total_value"] for result in results), ZERO) / len(returns)),
        "pnl": cents(sum((result["pnl"] for result in results), ZERO)),
        "return_percent": mean, "return_se": error,
        "return_se_cohorts": stdev(returns) / math.sqrt(len(returns)) if len(returns) > 1 else None,
        "return_ci": return_interval(mean, half),
    }  # fmt: skip


class BetScore(NamedTuple):
    """A bet's Brier score, the market's, whether its side won, and its event, the cluster of the intervals."""

    score: float
    market_score: float
    outcome: bool
    event: Hashable


def scored_bets(tables: Tables, agents: list[Row], bets: dict[int, list[Row]]) -> list[BetScore]:
    """The scored bets of agents, by the rows of their scores."""
    markets, found = tables.by("markets"), []
    for bet in (bet for agent in agents for bet in bets.get(agent["id"], ())):
        found.append(BetScore(bet["score"], bet["market_score"], bet["outcome"], event_of(markets[bet["market"]])))
    return found


def bet_figures(bets: Sequence[BetScore]) -> Row:
    """The scores of bets, pooled, and their intervals over events; None without a bet."""
    scores, won, events = ([getattr(bet, name) for bet in bets] for name in ("score", "outcome", "event"))
    brier = fmean(scores) if bets else None
    market = fmean(bet.market_score for bet in bets) if bets else None
    return {
        "brier": brier, "brier_ci": bounded_interval(scores, events),
        "bss_random": None if brier is None else 1 - brier / 0.25,
        "bss_market": 1 - brier / market if market and brier is not None else None,
        "win_rate": fmean(won) if bets else None,
        "win_rate_ci": bounded_interval(won, events),
        "resolved_bets": len(bets), "resolved_events": len(set(events)),
    }  # fmt: skip


def event_of(market: Row) -> Any:
    """The event of a market, or the market itself: bets on one event are not independent."""
    return (market["source"], market["event_id"]) if market["event_id"] else market["id"]
