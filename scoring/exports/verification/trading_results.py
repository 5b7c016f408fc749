"""Portfolio values of agents now, Brier scores of their purchases, and the trading leaderboard."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from statistics import fmean

from forecast_rank.metrics.brier import brier_score

from agents.models import Family
from agents.models.ledger import marked_value
from cohorts.weeks import GRID, WEEK, week_start
from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.services.trading_leaderboards import BetScore, CohortResult, ranked_contents, score_fields
from scoring.valuations import ZERO, Valuation
from scoring.weekly_returns import split_return, tracked_until

AMOUNTS = ("cash", "positions_value", "starting_balance")


def check_agents(archive: Archive) -> Iterator[str]:
    """Values and profits of agents follow from cash and positions, their records from bet scores."""
    if archive.is_window:
        return
    positions_value: dict[int, Decimal] = defaultdict(lambda: ZERO)
    for position in archive.rows("positions"):
        if position["status"] == "open":
            price = archive.outcomes[position["outcome"]]["price"]
            positions_value[position["agent"]] += marked_value(position["shares"], position["cost_basis"], price)
    scores, releases = archive.grouped("brier_scores", "agent"), archive.by_id("releases")
    for pk, agent in archive.agents.items():
        worth = Valuation(agent["cash"], positions_value[pk], Decimal(archive.rules_of(pk)["starting_balance"]))
        bets = scores.get(pk, [])
        release = releases.get(agent["release"], {})
        computed = {
            "family": release.get("family"),
            "model_id": release.get("model_id"),
            "starting_balance": worth.starting_balance,
            "positions_value": worth.positions_value,
            "total_value": worth.total,
            "pnl": worth.pnl,
            "return_percent": worth.return_percent,
            "brier": fmean(bet["score"] for bet in bets) if bets else None,
            "resolved_bets": len(bets),
            "win_rate": sum(bet["outcome"] for bet in bets) / len(bets) if bets else None,
        }
        yield from mismatches(f"agents: agent {pk}", agent, computed)


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
            "resolved_at": market["resolved_at"],
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
    families = {
        row["slug"]: Family(pk=row["id"], **{name: row[name] for name in ("slug", "display_name", "external")})
        for row in archive.rows("families")
    }
    costs, scores = _costs(archive, families), archive.grouped("brier_scores", "agent")
    weeks = _weekly_returns(archive)
    agents = sorted(archive.agents.values(), key=lambda agent: agent["cohort"])
    for methodology in ["", *sorted({row["methodology"] for row in archive.cohorts.values()})]:
        results: dict[Family, dict[int, CohortResult]] = defaultdict(dict)
        bets: dict[int, list[Row]] = defaultdict(list)
        for agent in agents:
            cohort = archive.cohorts[agent["cohort"]]
            if methodology in ("", cohort["methodology"]) and not cohort["voided_at"]:
                family = families[agent["family"]]
                value = Valuation(*(agent[name] for name in AMOUNTS))
                results[family][agent["cohort"]] = CohortResult(value, weeks[agent["id"]])
                bets[family.pk] += scores.get(agent["id"], [])
        scored = {family.pk: _score_fields(archive, bets[family.pk]) for family in results}
        computed = {row["family"]: row for row in ranked_contents(results, scored, costs[methodology]).entries}
        leaderboard = stated.pop(methodology, {})
        name = f"leaderboard_trading: {methodology or 'all'}"
        if leaderboard.keys() != computed.keys():
            yield f"{name} lists {sorted(leaderboard)}, families in play are {sorted(computed)}"
            continue
        for slug, row in leaderboard.items():
            figures = {column: computed[slug][column] for column in row if column != "methodology"}
            figures |= {column: Decimal(figures[column]) for column in ("total_value", "pnl", "cost_usd")}
            yield from mismatches(f"{name}, {slug}", row, figures)
    for methodology in stated:
        yield f"leaderboard_trading: {methodology} is not the methodology of any cohort"


def _weekly_returns(archive: Archive) -> dict[int, dict[str, float]]:
    """The weekly returns of each agent, by its snapshots."""
    marks: dict[int, dict[datetime, tuple[datetime, Decimal]]] = defaultdict(dict)
    for row in archive.rows("snapshots"):
        taken_at, own = datetime.fromisoformat(row["taken_at"]), marks[row["agent"]]
        sunday = week_start(taken_at - GRID) + WEEK
        own[sunday] = max(own.get(sunday, (taken_at, ZERO)), (taken_at, row["total_value"]))
    weeks = {}
    for pk, agent in archive.agents.items():
        cohort, own = archive.cohorts[agent["cohort"]], marks[pk]
        start = datetime.fromisoformat(cohort["week_start"])
        completed = cohort["completed_at"] and datetime.fromisoformat(cohort["completed_at"])
        end = tracked_until(start, completed, max((taken_at for taken_at, _ in own.values()), default=None))
        values = {sunday: total for sunday, (_, total) in own.items()}
        weeks[pk] = split_return(start, end, values.get, agent["total_value"], Decimal(agent["starting_balance"]))
    return weeks


def _score_fields(archive: Archive, scores: list[Row]) -> Row:
    return score_fields(
        [
            BetScore(row["score"], row["market_score"], row["outcome"], _event(archive.markets[row["market"]]))
            for row in sorted(scores, key=lambda row: row["trade"])
        ]
    )


def _event(market: Row) -> str:
    return f"{market['source']}:{market['event_id']}" if market["event_id"] else f"market:{market['id']}"


def _costs(archive: Archive, families: dict[str, Family]) -> dict[str, dict[int, Decimal]]:
    costs: dict[str, dict[int, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    for call in archive.rows("calls"):
        if call["decision"] is not None:
            agent = archive.agents[archive.decisions[call["decision"]]["agent"]]
            for methodology in ("", archive.cohorts[agent["cohort"]]["methodology"]):
                costs[methodology][families[agent["family"]].pk] += call["cost_usd"]
    return costs
