"""Brings the catalogue of markets up to an instant."""

from datetime import datetime
from typing import Any

from cohorts.services import catalogue_sync
from markets import clients
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Walks the catalogue of each source, refreshes every market that is followed or asked about, records prices."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with clients.catalogues() as catalogues, clients.clob() as clob, self.progress("syncing markets") as progress:
            report = catalogue_sync(catalogues=catalogues, clob=clob, at=at, progress=progress)
        summary = {
            "seen": report.seen,
            "created": report.created,
            "updated": report.updated,
            "skipped": report.skipped,
            "closed": report.closed,
            "replay": report.replay,
        }
        return Result(summary, report.log, report.failures)
