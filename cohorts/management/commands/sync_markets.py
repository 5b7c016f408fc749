"""Syncs the markets of all sources.

The command is in `cohorts` because the methodologies decide how many markets a sync needs and the price rule.
"""

from datetime import datetime
from typing import Any

from cohorts.services import sync_markets_in_play
from markets.foundation.commands import ArenaCommand, CommandResult
from markets.sources import registry as clients


class Command(ArenaCommand):
    help = "Reads the catalogue of each source, looks up tracked markets and records prices."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with (
            clients.open_catalogues() as catalogues,
            clients.clob() as clob,
            self.progress("syncing markets") as progress,
        ):
            report = sync_markets_in_play(catalogues=catalogues, clob=clob, at=at, progress=progress)
        counts = ("seen", "created", "updated", "skipped", "closed", "replay")
        return CommandResult({name: getattr(report, name) for name in counts}, report.log, report.failures)
