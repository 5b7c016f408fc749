"""Backs up the whole database to a file."""

from datetime import datetime
from pathlib import Path
from typing import Any

from arena_site.backups import BackupFailed, back_up
from markets.foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Writes a backup of the database to --out, whole or not at all, while the arena runs."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="an earlier copy is replaced")

    def records_run(self, options: dict[str, Any]) -> bool:
        # The run would be part of the backup, where it would never end.
        return False

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            return CommandResult(back_up(options["out"]))
        except BackupFailed as reason:
            return CommandResult({"file": None, "bytes": 0}, failures=[str(reason)])
