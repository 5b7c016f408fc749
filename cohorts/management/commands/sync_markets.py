"""Syncs the markets of all sources.

The command is in `cohorts` because the methodologies decide how many markets a sync needs and the price rule.
"""

from datetime import datetime
from typing import Any

from cohorts.services import sync_markets_in_play
from foundation.commands import ArenaCommand, CommandResult
from markets.sources import registry as clients

COUNTS = ("seen", "created", "updated", "skipped", "closed", "over")
VENUES_S = 210
"""How long the venues may take in all: with the storing, less than the five minutes between two syncs."""


class Command(ArenaCommand):
    help = "Reads the catalogue of each source, looks up tracked markets and records prices."
    raises_alert = True
    runs_alone = dict.fromkeys(COUNTS, 0) | {"replay": False}

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with (
            clients.open_catalogues(VENUES_S) as catalogues,
            clients.clob().limit_total(VENUES_S) as clob,
            self.progress("syncing markets") as progress,
        ):
            report = sync_markets_in_play(catalogues=catalogues, clob=clob, at=at, progress=progress)
        summary = {name: getattr(report, name) for name in COUNTS} | {"replay": report.replay}
        return CommandResult(summary, report.log, report.failures, alerted=report.alerted)
