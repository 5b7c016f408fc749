"""Copies the whole database into a file."""

from datetime import datetime
from pathlib import Path
from typing import Any

from arena_site.backups import BackupFailed, Refused, back_up
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Writes a copy of the database to --out, whole or not at all, while the arena goes on."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="an earlier copy is replaced")

    def records_run(self, options: dict[str, Any]) -> bool:
        # A run that is still going would be part of the copy, and never end there.
        return False

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        try:
            copy = back_up(options["out"])
        except Refused as reason:
            self.refuse(str(reason))
        except BackupFailed as reason:
            return Result({"file": None, "bytes": 0}, failures=[str(reason)])
        return Result({"file": str(copy.file), "bytes": copy.bytes, "database": copy.database, "sha256": copy.sha256})
