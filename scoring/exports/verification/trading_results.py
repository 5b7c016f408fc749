"""Portfolio values of agents now and in snapshots, Brier scores of their purchases, and the trading leaderboard."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from statistics import fmean

from forecast_rank.metrics.brier import brier_score
from forecast_rank.metrics.sample_mean import t_interval

from agents.models.ledger import marked_value, to_cents
from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.services.trading_leaderboards import BetScore, rank_ranges, score_fields

ZERO, PERCENT = Decimal("0.00"), Decimal("0.0001")


def check_agents(archive: Archive) -> Iterator[str]:
    """Values and profits of agents follow from cash and positions, their records from bet scores."""
    if archive.is_window:
        return
    positions_value: dict[int, Decimal] = defaultdict(lambda: ZERO)
    for position in archive.rows("positions"):
        if position["status"] == "open":
            price = archive.outcomes[position["outcome"]]["price"]
            positions_value[position["agent"]] += marked_value(position["shares"], position["cost_basis"], price)
    scores = archive.grouped("brier_scores", "agent")
    for pk, agent in archive.agents.items():
        total = agent["cash"] + positions_value[pk]
        opening = Decimal(archive.rules_of(pk)["starting_balance"])
        bets = scores.get(pk, [])
        computed = {
            "starting_balance": opening,
            "positions_value": positions_value[pk],
            "total_value": total,
            "pnl": total - opening,
            "return_percent": float((total - opening) / opening * 100),
            "brier": fmean(bet["score"] for bet in bets) if bets else None,
            "resolved_bets": len(bets),
            "win_rate": sum(bet["outcome"] for bet in bets) / len(bets) if bets else None,
        }
        yield from mismatches(f"agents: agent {pk}", agent, computed)


def check_snapshots(archive: Archive) -> Iterator[str]:
    """The figures of each snapshot add up. The prices behind its value are not checked: old ones are thinned out."""
    opening: Mapping[int, Decimal] = {pk: Decimal(archive.rules_of(pk)["starting_balance"]) for pk in archive.agents}
    for snapshot in archive.rows("snapshots"):
        total = snapshot["cash"] + snapshot["positions_value"]
        profit = total - opening[snapshot["agent"]]
        computed = {
            "total_value": total,
            "pnl": profit,
            "pnl_percent": (profit / opening[snapshot["agent"]] * 100).quantize(PERCENT),
        }
        yield from mismatches(f"snapshots: agent {snapshot['agent']} at {snapshot['taken_at']}", snapshot, computed)


def check_bet_scores(archive: Archive) -> Iterator[str]:
    """Each purchase on a market with a winner has its Brier score, and no other trade has one."""
    scored = set()
    for score in archive.rows("brier_scores"):
        row = f"brier_scores: of trade {score['trade']}"
        if score["trade"] in scored:
            yield f"{row}: there are two"
        scored.add(score["trade"])
        trade, market = archive.trades.get(score["trade"]), archive.markets[score["market"]]
        if trade is None:
            if not archive.is_window:
                yield f"{row}: the trade is not in the archive"
            continue
        won, price = trade["outcome"] == market["winning_outcome"], float(trade["price"])
        if market["status"] != "resolved" or trade["kind"] != "BUY" or trade["market"] != score["market"]:
            yield f"{row}: a {trade['kind']} on market {trade['market']}; market {market['id']} is {market['status']}"
            continue
        confidence = trade["implied_confidence"]
        computed = {
            "agent": trade["agent"],
            "probability": confidence,
            "outcome": won,
            "score": float(brier_score(confidence, won)),
            "market_probability": price,
            "market_score": float(brier_score(price, won)),
        }
        yield from mismatches(row, score, computed)
    if archive.is_window:
        return
    for pk, trade in archive.trades.items():
        if trade["kind"] == "BUY" and archive.markets[trade["market"]]["status"] == "resolved" and pk not in scored:
            yield f"brier_scores: trade {pk} has none, although its market is resolved"


def check_trading_leaderboard(archive: Archive) -> Iterator[str]:
    """Every figure of the trading leaderboard follows from agents, bet scores and calls."""
    if not archive.is_whole:
        return
    stated: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in archive.rows("leaderboard_trading"):
        stated[row["methodology"]][row["family"]] = row
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
        ranked = {family: own for family, own in agents.items() if family not in archive.externals}
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
