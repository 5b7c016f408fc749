"""Proof of the money: trades by the rules at the frozen prices, journals, positions, settlements, and what it makes."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from statistics import fmean

from agents.models.ledger import marked_value, to_cents, to_microshares
from scoring.exports.proof.reading import Archive, Row, differing

ZERO = Decimal("0.00")
PERCENT = Decimal("0.0001")


def universes(archive: Archive) -> Iterator[str]:
    """The hash of each universe and each set of questions is that of its entries."""
    for universe, entries in archive.grouped("universe_entries", "universe").items():
        lines = []
        for entry in sorted(entries, key=lambda entry: entry["position"]):
            market = archive.markets[entry["market"]]
            about = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*about, sorted(map(list, entry["prices"].items()))], ensure_ascii=True))
        if _digest(lines) != archive.universes[universe]["sha256"]:
            yield f"universes: universe {universe} has another hash than its entries make"
    hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
    sets = archive.by_id("question_sets")
    for number, entries in archive.grouped("question_entries", "question_set").items():
        lines = [
            json.dumps([e["position"], hashes[e["question"]], e["reason"], e["prices"]], sort_keys=True)
            for e in sorted(entries, key=lambda entry: entry["position"])
        ]
        if _digest(lines) != sets[number]["sha256"]:
            yield f"question_sets: set {number} has another hash than its entries make"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def trades(archive: Archive) -> Iterator[str]:
    """Each trade is at its universe's price, and its shares, money and confidence follow from it."""
    prices = {(row["universe"], row["market"]): row["prices"] for row in archive.rows("universe_entries")}
    before = {
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
        yield from differing(row, trade, _by_the_rules(archive, trade, before.get(pk)))


def _by_the_rules(archive: Archive, trade: Row, cash: Decimal | None) -> Row:
    """What follows from a trade's price, and from its amount or its shares."""
    if trade["kind"] == "SELL":
        amount = to_cents(trade["shares"] * trade["price"])
        return {
            "amount": amount,
            "realized_pnl": amount - trade["cost_basis"],
            "implied_confidence": None,
        }
    due = {
        "shares": to_microshares(trade["amount"] / trade["price"]),
        "cost_basis": trade["amount"],
        "realized_pnl": ZERO,
    }
    if cash:
        largest = cash * Decimal(archive.rules_of(trade["agent"])["maximum_bet_fraction"])
        due["implied_confidence"] = min(float(trade["amount"] / largest), 1.0)
    return due


def journals(archive: Archive) -> Iterator[str]:
    """Balances follow from amounts, amounts from what caused them, cash from the last balance."""
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
            made_good = reversals.pop((agent, entry["sequence"]), None)
            cause, owner = (made_good["payout"] - made_good["taken_back"] if made_good else None), agent
            if made_good is None:
                yield f"{row} has no cause"
                cause = ZERO
        else:
            cause, owner = Decimal(archive.rules_of(agent)["starting_balance"]), agent
            if entry["sequence"] != 1:
                yield f"{row} has no cause"
        if owner != agent:
            yield f"{row} books what belongs to agent {owner}"
        balances[agent] += cause
        yield from differing(row, entry, {"amount": cause, "balance": balances[agent]})
    for kind, rows in (("trade", archive.trades), ("settlement", settlements)):
        for pk in rows:
            if (kind, pk) not in booked:
                yield f"journal: {kind} {pk} is not in it"
    for made_good in reversals.values():
        yield f"journal: reversal {made_good['id']} is not in it"
    for pk, owned in archive.agents.items():
        if owned["cash"] != balances[pk]:
            yield f"agents: agent {pk} states cash {owned['cash']}, its journal makes {balances[pk]}"


def positions(archive: Archive) -> Iterator[str]:
    """What each position holds is what its trades and its settlement leave, and settlements are the markets' ends."""
    if archive.is_window:
        return
    of_position: dict[int, list[Row]] = defaultdict(list)
    for trade in archive.trades.values():
        of_position[trade["position"]].append(trade)
    settlements = archive.by_id("settlements", "position")
    reversals = archive.grouped("reversals", "position")
    for position in archive.rows("positions"):
        row = f"positions: position {position['id']}"
        shares = cost = realized = ZERO
        for trade in of_position[position["id"]]:
            sign = 1 if trade["kind"] == "BUY" else -1
            shares, cost = shares + sign * trade["shares"], cost + sign * trade["cost_basis"]
            realized += trade["realized_pnl"]
            if trade["outcome"] != position["outcome"] or trade["agent"] != position["agent"]:
                yield f"{row} is of another outcome or agent than trade {trade['id']}"
        settlement = settlements.pop(position["id"], None)
        if settlement is not None:
            made_good = sorted(reversals.get(position["id"], []), key=lambda reversal: reversal["sequence"])
            yield from _settlement(archive, settlement, position, shares, cost, made_good)
            realized += settlement["realized_pnl"]
            realized += sum((reversal["payout"] - reversal["taken_back"] for reversal in made_good), ZERO)
            shares = cost = ZERO
        if (position["status"] in ("settled", "cancelled")) != (settlement is not None):
            yield f"{row} is {position['status']}, with {'no' if settlement is None else 'a'} settlement"
        yield from differing(row, position, {"shares": shares, "cost_basis": cost, "realized_pnl": realized})
    for pk in settlements:
        yield f"settlements: one of position {pk}, which is not in the archive"


def _settlement(
    archive: Archive, settlement: Row, position: Row, shares: Decimal, cost: Decimal, reversals: list[Row]
) -> Iterator[str]:
    """The last of a settlement and its reversals is the market's end; each paid what its own end is worth."""
    market = archive.markets[settlement["market"]]
    won = market["winning_outcome"] == position["outcome"]
    stands = "refunded" if market["status"] == "cancelled" else "won" if won else "lost"
    payouts = {"won": to_cents(shares), "lost": ZERO, "refunded": cost}
    paid = settlement["payout"]
    for place, reversal in enumerate(reversals, start=1):
        kind = stands if reversal is reversals[-1] else reversal["kind"]
        made_good = {"sequence": place, "kind": kind, "taken_back": paid, "payout": payouts.get(kind)}
        yield from differing(f"reversals: reversal {reversal['id']}", reversal, made_good)
        paid = reversal["payout"]
    kind = settlement["kind"] if reversals else stands
    payout = payouts.get(kind, ZERO)
    due = {"kind": kind, "shares": shares, "cost_basis": cost, "payout": payout, "realized_pnl": payout - cost}
    row = f"settlements: settlement {settlement['id']}"
    if market["status"] not in ("resolved", "cancelled"):
        yield f"{row}: its market is {market['status']}"
    yield from differing(row, settlement, due)


def agents(archive: Archive) -> Iterator[str]:
    """Values, profits and records of agents are those of their positions and scores."""
    if archive.is_window:
        return
    held: dict[int, Decimal] = defaultdict(lambda: ZERO)
    for position in archive.rows("positions"):
        if position["status"] == "open":
            price = archive.outcomes[position["outcome"]]["price"]
            held[position["agent"]] += marked_value(position["shares"], position["cost_basis"], price)
    scores = archive.grouped("brier_scores", "agent")
    for pk, agent in archive.agents.items():
        total = agent["cash"] + held[pk]
        opening = Decimal(archive.rules_of(pk)["starting_balance"])
        bets = scores.get(pk, [])
        due = {
            "starting_balance": opening,
            "positions_value": held[pk],
            "total_value": total,
            "pnl": total - opening,
            "return_percent": float((total - opening) / opening * 100),
            "brier": fmean(bet["score"] for bet in bets) if bets else None,
            "resolved_bets": len(bets),
            "win_rate": sum(bet["outcome"] for bet in bets) / len(bets) if bets else None,
        }
        yield from differing(f"agents: agent {pk}", agent, due)


def snapshots(archive: Archive) -> Iterator[str]:
    """The figures of each snapshot add up. Its prices are those of its time, of which old ones are rolled up."""
    opening: Mapping[int, Decimal] = {pk: Decimal(archive.rules_of(pk)["starting_balance"]) for pk in archive.agents}
    for snapshot in archive.rows("snapshots"):
        total = snapshot["cash"] + snapshot["positions_value"]
        profit = total - opening[snapshot["agent"]]
        due = {
            "total_value": total,
            "pnl": profit,
            "pnl_percent": (profit / opening[snapshot["agent"]] * 100).quantize(PERCENT),
        }
        yield from differing(f"snapshots: agent {snapshot['agent']} at {snapshot['taken_at']}", snapshot, due)
