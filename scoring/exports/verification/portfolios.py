"""Portfolio values of agents, now and in snapshots."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from statistics import fmean

from agents.models.ledger import marked_value
from scoring.exports.verification.archive_reader import Archive, mismatches

ZERO = Decimal("0.00")
PERCENT = Decimal("0.0001")


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
