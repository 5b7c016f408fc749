"""The trading leaderboard."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from forecast_rank.metrics.sample_mean import t_interval

from agents.models.ledger import to_cents
from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.services.trading_leaderboards import BetScore, rank_ranges, score_fields


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
        leaderboard = stated.pop(methodology, {})
        name = f"leaderboard_trading: {methodology or 'all'}"
        if leaderboard.keys() != agents.keys():
            yield f"{name} lists {sorted(leaderboard)}, families in play are {sorted(agents)}"
            continue
        computed = {family: _entry(archive, own, scores) for family, own in agents.items()}
        for family, figures in computed.items():
            figures["cost_usd"] = costs[methodology, family].quantize(Decimal("0.000001"))
            figures |= dict.fromkeys(("rank", "rank_low", "rank_high"))
        ranked = {family: own for family, own in agents.items() if family not in externals}
        # In the order of the arena's own computation: the bootstrap resamples are shared.
        returns = [{agent["cohort"]: agent["return_percent"] for agent in own} for own in ranked.values()]
        for family, (low, high) in zip(ranked, rank_ranges(returns), strict=True):
            higher = sum(computed[other]["return_percent"] > computed[family]["return_percent"] for other in ranked)
            computed[family] |= {"rank": 1 + higher, "rank_low": int(low), "rank_high": int(high)}
        for family, figures in computed.items():
            yield from mismatches(f"{name}, {family}", leaderboard[family], figures)
    for methodology in stated:
        yield f"leaderboard_trading: {methodology} is not the methodology of any cohort"


def _entry(archive: Archive, agents: list[Row], scores: dict[int, list[Row]]) -> Row:
    returns = t_interval([agent["return_percent"] for agent in agents])
    rows = sorted((row for agent in agents for row in scores.get(agent["id"], [])), key=lambda row: row["trade"])
    pooled = score_fields(
        [
            BetScore(row["score"], row["market_score"], row["outcome"], _event(archive.markets[row["market"]]))
            for row in rows
        ]
    )
    return {
        "cohorts": len(agents),
        "total_value": to_cents(sum((a["total_value"] for a in agents), Decimal(0)) / len(agents)),
        "pnl": sum((a["pnl"] for a in agents), Decimal(0)),
        "return_percent": returns.value,
        "return_se": returns.standard_error,
        "return_ci": returns.interval,
        **pooled,
    }


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
