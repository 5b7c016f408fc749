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
        outcome, decision = archive.outcomes[trade["outcome"]], archive.decisions[trade["decision"]]
        follows = {"side": outcome["side"], "market": outcome["market"]}
        follows |= {"agent": decision["agent"], "executed_at": decision["decided_at"]}
        yield from mismatches(row, trade, follows)
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
    """Entries follow from trades, settlements and reversals, balances from amounts, cash from the last balance."""
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
            bought = trade["kind"] == "BUY"
            cause, owner = trade["amount"] * (-1 if bought else 1), trade["agent"]
            kind, occurred = "buy" if bought else "sell", trade["executed_at"]
            booked.add(("trade", entry["trade"]))
        elif entry["settlement"] is not None:
            settlement = settlements[entry["settlement"]]
            cause, owner = settlement["payout"], settlement["agent"]
            kind = "refund" if settlement["kind"] == "refunded" else "payout"
            occurred = settlement["settled_at"]
            booked.add(("settlement", entry["settlement"]))
        elif entry["kind"] == "reversal":
            reversal = reversals.pop((agent, entry["sequence"]), None)
            owner, kind, cause, occurred = agent, "reversal", ZERO, entry["occurred_at"]
            if reversal is None:
                yield f"{row} has no cause"
            else:
                cause, occurred = reversal["payout"] - reversal["previous_payout"], reversal["reversed_at"]
        else:
            cause, owner = Decimal(archive.rules_of(agent)["starting_balance"]), agent
            kind, occurred = "deposit", archive.cohorts[archive.agents[agent]["cohort"]]["started_at"]
            if entry["sequence"] != 1:
                yield f"{row} has no cause"
        if owner != agent:
            yield f"{row} has a cause that belongs to agent {owner}"
        balances[agent] += cause
        follows = {"kind": kind, "amount": cause, "balance": balances[agent], "occurred_at": occurred}
        yield from mismatches(row, entry, follows)
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
        own = trades.pop(position["id"], [])
        status, opened, closed = "open", own[0]["executed_at"] if own else None, None
        for trade in own:
            sign = 1 if trade["kind"] == "BUY" else -1
            shares, cost = shares + sign * trade["shares"], cost + sign * trade["cost_basis"]
            realized += trade["realized_pnl"]
            status, closed = ("open", None) if shares else ("closed", trade["executed_at"])
            if trade["outcome"] != position["outcome"] or trade["agent"] != position["agent"]:
                yield f"{row} is of another outcome or agent than its trade {trade['id']}"
        settlement = settlements.pop(position["id"], None)
        if settlement is not None:
            corrections = sorted(reversals.pop(position["id"], []), key=lambda reversal: reversal["sequence"])
            yield from _settlement(archive, settlement, position, shares, cost, corrections)
            realized += settlement["realized_pnl"]
            realized += sum((reversal["payout"] - reversal["previous_payout"] for reversal in corrections), ZERO)
            shares = cost = ZERO
            status = "cancelled" if (corrections or [settlement])[-1]["kind"] == "refunded" else "settled"
            closed = settlement["settled_at"]
        follows = {"shares": shares, "cost_basis": cost, "realized_pnl": realized, "status": status}
        follows |= {"market": archive.outcomes[position["outcome"]]["market"], "opened_at": opened, "closed_at": closed}
        yield from mismatches(row, position, follows)
    for name, rest in (("settlements", settlements), ("trades", trades), ("reversals", reversals)):
        for pk in rest:
            yield f"{name}: of position {pk}, which is not in the archive"


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
        computed |= {name: position[name] for name in ("agent", "market")}
        yield from mismatches(f"reversals: reversal {reversal['id']}", reversal, computed)
        paid = reversal["payout"]
    kind = settlement["kind"] if reversals else result
    payout = payouts.get(kind, ZERO)
    computed = {"kind": kind, "shares": shares, "cost_basis": cost, "payout": payout, "realized_pnl": payout - cost}
    computed |= {name: position[name] for name in ("agent", "market")}
    row = f"settlements: settlement {settlement['id']}"
    if market["status"] not in ("resolved", "cancelled"):
        yield f"{row}: its market is {market['status']}"
    yield from mismatches(row, settlement, computed)
