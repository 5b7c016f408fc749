"""The trading leaderboard."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal
from statistics import fmean
from typing import Any

import numpy as np
from forecast_rank.metrics.brier import RANDOM_BRIER, skill_score
from forecast_rank.metrics.resampled_ranks import rank_range
from forecast_rank.metrics.sample_mean import cluster_interval, t_interval
from forecast_rank.metrics.uncertainty import bootstrap_means, resample_counts, table_sums

from agents.models.ledger import to_cents
from scoring.exports.verification.archive_reader import Archive, Row, mismatches


def check_trading_leaderboard(archive: Archive) -> Iterator[str]:
    """Every figure of the trading leaderboard follows from agents, bet scores and calls."""
    if not archive.is_whole:
        return
    stated: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in archive.rows("leaderboard_trading"):
        stated[row["methodology"]][row["family"]] = row
    externals = {family["slug"] for family in archive.rows("families") if family["external"]}
    methodologies = {row["methodology"] for row in archive.cohorts.values()}
    costs = _costs(archive)
    scores = archive.grouped("brier_scores", "agent")
    for methodology in ["", *sorted(methodologies)]:
        agents: dict[str, list[Row]] = defaultdict(list)
        for agent in sorted(archive.agents.values(), key=lambda agent: agent["cohort"]):
            if methodology in ("", archive.cohorts[agent["cohort"]]["methodology"]):
                agents[agent["family"]].append(agent)
        board = stated.pop(methodology, {})
        name = f"leaderboard_trading: {methodology or 'all'}"
        if board.keys() != agents.keys():
            yield f"{name} lists {sorted(board)}, families in play are {sorted(agents)}"
            continue
        computed = {family: _entry(archive, own, scores) for family, own in agents.items()}
        for family, figures in computed.items():
            figures["cost_usd"] = costs[methodology, family].quantize(Decimal("0.000001"))
            figures |= dict.fromkeys(("rank", "rank_low", "rank_high"))
        ranked = {family: own for family, own in agents.items() if family not in externals}
        # In the order of the arena's own computation: the bootstrap resamples are shared.
        for family, (low, high) in zip(ranked, _rank_ranges(list(ranked.values())), strict=True):
            higher = sum(computed[other]["return_percent"] > computed[family]["return_percent"] for other in ranked)
            computed[family] |= {"rank": 1 + higher, "rank_low": int(low), "rank_high": int(high)}
        for family, figures in computed.items():
            yield from mismatches(f"{name}, {family}", board[family], figures)
    for methodology in stated:
        yield f"leaderboard_trading: {methodology} is not the methodology of any cohort"


def _entry(archive: Archive, agents: list[Row], scores: dict[int, list[Row]]) -> Row:
    returns = t_interval([agent["return_percent"] for agent in agents])
    rows = sorted((row for agent in agents for row in scores.get(agent["id"], [])), key=lambda row: row["trade"])
    values = [row["score"] for row in rows]
    pooled: Row = dict.fromkeys(("brier", "brier_ci", "bss_random", "bss_market", "win_rate"))
    if values:
        brier = fmean(values)
        pooled = {
            "brier": brier,
            "brier_ci": _as_list(cluster_interval(values, [_event(archive.markets[row["market"]]) for row in rows])),
            "bss_random": skill_score(brier, RANDOM_BRIER),
            "bss_market": skill_score(brier, fmean(row["market_score"] for row in rows)),
            "win_rate": sum(row["outcome"] for row in rows) / len(rows),
        }
    return {
        "cohorts": len(agents),
        "total_value": to_cents(sum((a["total_value"] for a in agents), Decimal(0)) / len(agents)),
        "pnl": sum((a["pnl"] for a in agents), Decimal(0)),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": _as_list(returns.interval),
        **pooled,
        "resolved_bets": len(values),
    }


def _as_list(interval: Any) -> list[float] | None:
    return None if interval is None else list(interval)


def _event(market: Row) -> str:
    return f"{market['source']}:{market['event_id']}" if market["event_id"] else f"market:{market['id']}"


def _costs(archive: Archive) -> dict[tuple[str, str], Decimal]:
    costs: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for call in archive.rows("calls"):
        if call["decision"] is not None:
            agent = archive.agents[archive.decisions[call["decision"]]["agent"]]
            for methodology in ("", archive.cohorts[agent["cohort"]]["methodology"]):
                costs[methodology, agent["family"]] += call["cost_usd"]
    return costs


def _rank_ranges(families: list[list[Row]]) -> Any:
    cohorts = sorted({agent["cohort"] for agents in families for agent in agents})
    returns = np.full((len(families), len(cohorts)), np.nan)
    for row, agents in enumerate(families):
        for agent in agents:
            returns[row, cohorts.index(agent["cohort"])] = agent["return_percent"]
    sums = table_sums(returns)
    draws = bootstrap_means(sums, resample_counts(sums.sums.shape[1]))
    return rank_range(draws, sums.means, lower_is_better=False)
