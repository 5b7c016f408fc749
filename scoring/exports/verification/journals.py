"""Journals: every change of cash and its cause."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from scoring.exports.verification.archive_reader import Archive, mismatches

ZERO = Decimal("0.00")


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
