"""Verification of snapshots: profit and cash follow from the journal."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from agents.models import JournalEntry
from scoring.models import Snapshot

Account = tuple[list[datetime], list[Decimal]]
"""The times of an agent's journal entries, and the balances after them."""
PERCENT = Decimal("0.0001")


def verify_snapshots() -> Iterator[str]:
    """A line for each snapshot whose cash the agent did not have then, or whose profit is not what its total makes."""
    accounts: dict[int, Account] = defaultdict(lambda: ([], []))
    entries = JournalEntry.objects.order_by("agent", "sequence").values_list("agent", "occurred_at", "balance")
    for agent, at, balance in entries.iterator():
        times, balances = accounts[agent]
        times.append(at)
        balances.append(balance)
    columns = ("pk", "agent", "taken_at", "cash", "total_value", "pnl", "pnl_percent")
    opening = "agent__cohort__methodology__starting_balance"
    for pk, agent, at, cash, total, pnl, percent, start in (
        Snapshot.objects.order_by("pk").values_list(*columns, opening).iterator()
    ):
        times, balances = accounts[agent]
        # An entry of the very instant may have come before the snapshot or after it.
        if cash not in balances[max(bisect_left(times, at) - 1, 0) : bisect_right(times, at)]:
            yield f"snapshot {pk} of agent {agent} at {at:%Y-%m-%d %H:%M} has cash {cash}, its journal another"
        due = total - start
        if (pnl, percent) != (due, (due / start * 100).quantize(PERCENT)):
            yield f"snapshot {pk} of agent {agent} at {at:%Y-%m-%d %H:%M} has a P/L of {pnl} ({percent} %), not {due}"
