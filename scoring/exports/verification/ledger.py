"""Checks of trades, journals and positions: each figure is recomputed from the rows that it follows from."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from agents.models.ledger import to_cents, to_microshares
from scoring.exports.verification.archive_reader import Archive, Row, mismatches

ZERO = Decimal("0.00")


def check_trades(archive: Archive) -> Iterator[str]:
    """Each trade has its universe's price, from which its shares, amounts and confidence follow."""
    prices = {(row["universe"], row["market"]): row["prices"] for row in archive.rows("universe_entries")}
    cash_before = {
        row["trade"]: row["balance"] - row["amount"] for row in archive.rows("journal") if row["trade"] is not None
    }
    for pk, trade in archive.trades.items():
        row = f"trades: trade {pk}"
        universe = archive.decisions[trade["decision"]]["universe"]
        frozen = prices.get((universe, trade["market"]), {}).get(trade["side"])
        if frozen is None or Decimal(frozen) != trade["price"]:
            yield f"{row} is at {trade['price']:f}, its universe's price is {frozen}"
        if trade["side"] != archive.outcomes[trade["outcome"]]["side"]:
            yield f"{row} names side {trade['side']}, its outcome is {archive.outcomes[trade['outcome']]['side']}"
        yield from mismatches(row, trade, _computed(archive, trade, cash_before.get(pk)))


def _computed(archive: Archive, trade: Row, cash: Decimal | None) -> Row:
    """The figures that follow from a trade's price, and from its amount (purchases) or shares (sales)."""
    if trade["kind"] == "SELL":
        amount = to_cents(trade["shares"] * trade["price"])
        return {"amount": amount, "realized_pnl": amount - trade["cost_basis"], "implied_confidence": None}
    computed = {
        "shares": to_microshares(trade["amount"] / trade["price"]),
        "cost_basis": trade["amount"],
        "realized_pnl": ZERO,
    }
    if cash:
        largest = cash * Decimal(archive.rules_of(trade["agent"])["maximum_bet_fraction"])
        computed["implied_confidence"] = min(float(trade["amount"] / largest), 1.0)
    return computed


def check_journals(archive: Archive) -> Iterator[str]:
    """Amounts follow from trades, settlements and reversals, balances from amounts, cash from the last balance."""
    if archive.is_window:
        return
    settlements = archive.by_id("settlements")
    balances: dict[int, Decimal] = defaultdict(lambda: ZERO)
    length: dict[int, int] = defaultdict(int)
    booked: set[tuple[str, int]] = set()
    reversals = {(row["agent"], row["journal_sequence"]): row for row in archive.rows("reversals")}
    for entry in archive.rows("journal"):
        agent = entry["agent"]
        length[agent] += 1
        row = f"journal: no. {entry['sequence']} of agent {agent}"
        if entry["sequence"] != length[agent]:
            yield f"{row} should be no. {length[agent]}"
        if entry["trade"] is not None:
            trade = archive.trades[entry["trade"]]
            cause = trade["amount"] * (-1 if trade["kind"] == "BUY" else 1)
            owner = trade["agent"]
            booked.add(("trade", entry["trade"]))
        elif entry["settlement"] is not None:
            cause, owner = settlements[entry["settlement"]]["payout"], settlements[entry["settlement"]]["agent"]
            booked.add(("settlement", entry["settlement"]))
        elif entry["kind"] == "reversal":
            reversal = reversals.pop((agent, entry["sequence"]), None)
            cause, owner = (reversal["payout"] - reversal["previous_payout"] if reversal else None), agent
            if reversal is None:
                yield f"{row} has no cause"
                cause = ZERO
        else:
            cause, owner = Decimal(archive.rules_of(agent)["starting_balance"]), agent
            if entry["sequence"] != 1:
                yield f"{row} has no cause"
        if owner != agent:
            yield f"{row} has a cause that belongs to agent {owner}"
        balances[agent] += cause
        yield from mismatches(row, entry, {"amount": cause, "balance": balances[agent]})
    for kind, rows in (("trade", archive.trades), ("settlement", settlements)):
        for pk in rows:
            if (kind, pk) not in booked:
                yield f"journal: {kind} {pk} is not in it"
    for reversal in reversals.values():
        yield f"journal: reversal {reversal['id']} is not in it"
    for pk, owned in archive.agents.items():
        if owned["cash"] != balances[pk]:
            yield f"agents: agent {pk} states cash {owned['cash']}, its journal ends at {balances[pk]}"


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
