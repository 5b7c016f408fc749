"""Positions, their settlements, and reversals of settlements."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from agents.models.ledger import to_cents
from scoring.exports.verification.archive_reader import Archive, Row, mismatches

ZERO = Decimal("0.00")


def check_positions(archive: Archive) -> Iterator[str]:
    """Holdings follow from trades and settlements, settlements from the outcomes of markets."""
    if archive.is_window:
        return
    trades: dict[int, list[Row]] = defaultdict(list)
    for trade in archive.trades.values():
        trades[trade["position"]].append(trade)
    settlements = archive.by_id("settlements", "position")
    reversals = archive.grouped("reversals", "position")
    for position in archive.rows("positions"):
        row = f"positions: position {position['id']}"
        shares = cost = realized = ZERO
        for trade in trades[position["id"]]:
            sign = 1 if trade["kind"] == "BUY" else -1
            shares, cost = shares + sign * trade["shares"], cost + sign * trade["cost_basis"]
            realized += trade["realized_pnl"]
            if trade["outcome"] != position["outcome"] or trade["agent"] != position["agent"]:
                yield f"{row} is of another outcome or agent than its trade {trade['id']}"
        settlement = settlements.pop(position["id"], None)
        if settlement is not None:
            corrections = sorted(reversals.get(position["id"], []), key=lambda reversal: reversal["sequence"])
            yield from _settlement(archive, settlement, position, shares, cost, corrections)
            realized += settlement["realized_pnl"]
            realized += sum((reversal["payout"] - reversal["previous_payout"] for reversal in corrections), ZERO)
            shares = cost = ZERO
        if (position["status"] in ("settled", "cancelled")) != (settlement is not None):
            yield f"{row} is {position['status']}, with {'no' if settlement is None else 'a'} settlement"
        yield from mismatches(row, position, {"shares": shares, "cost_basis": cost, "realized_pnl": realized})
    for pk in settlements:
        yield f"settlements: one of position {pk}, which is not in the archive"


def _settlement(
    archive: Archive, settlement: Row, position: Row, shares: Decimal, cost: Decimal, reversals: list[Row]
) -> Iterator[str]:
    """A settlement or the last of its reversals has the market's result; each payout follows from its own result."""
    market = archive.markets[settlement["market"]]
    won = market["winning_outcome"] == position["outcome"]
    result = "refunded" if market["status"] == "cancelled" else "won" if won else "lost"
    payouts = {"won": to_cents(shares), "lost": ZERO, "refunded": cost}
    paid = settlement["payout"]
    for place, reversal in enumerate(reversals, start=1):
        kind = result if reversal is reversals[-1] else reversal["kind"]
        computed = {"sequence": place, "kind": kind, "previous_payout": paid, "payout": payouts.get(kind)}
        yield from mismatches(f"reversals: reversal {reversal['id']}", reversal, computed)
        paid = reversal["payout"]
    kind = settlement["kind"] if reversals else result
    payout = payouts.get(kind, ZERO)
    computed = {"kind": kind, "shares": shares, "cost_basis": cost, "payout": payout, "realized_pnl": payout - cost}
    row = f"settlements: settlement {settlement['id']}"
    if market["status"] not in ("resolved", "cancelled"):
        yield f"{row}: its market is {market['status']}"
    yield from mismatches(row, settlement, computed)
