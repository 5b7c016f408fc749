"""`take_snapshots`: every active agent's portfolio on the ten-minute grid."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from foundation.commands import ArenaCommand, CommandResult
from markets.sources import registry as clients
from scoring.services.snapshots import take_snapshots

PRICES_S = 240
"""How long prices may take in all; what has none by then keeps its last price."""


class Command(ArenaCommand):
    help = "Marks what is held and takes a snapshot of every active agent at --at, taken down to the grid."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with clients.clob().limit_total(PRICES_S) as clob, self.progress("taking snapshots"):
            report = take_snapshots(at=at, clob=clob)
        summary = asdict(report)
        log, failures, alerted = summary.pop("log"), summary.pop("failures"), summary.pop("alerted")
        return CommandResult(summary, log, failures, alerted=alerted)
