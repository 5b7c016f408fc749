"""Backs up the whole database to a file."""

from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.utils import timezone

from arena_site.operations.backups import BackupFailed, back_up, back_up_and_rotate
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = (
        "Writes a checked backup of the database, whole or not at all, while the arena runs: to --out, else into "
        "ARENA_BACKUP_DIR, of which the newest ARENA_BACKUPS_KEPT stay."
    )
    raises_alert = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", type=Path, metavar="FILE", help="an earlier copy is replaced")

    def records_run(self, options: dict[str, Any]) -> bool:
        return options["out"] is None

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            if options["out"] is not None:
                return CommandResult(back_up(options["out"]))
            folder, number = settings.ARENA_BACKUP_DIR, settings.ARENA_BACKUPS_KEPT
            return CommandResult(back_up_and_rotate(folder, number=number, at=timezone.now()))
        except BackupFailed as reason:
            return CommandResult({"file": None, "bytes": 0}, failures=[str(reason)])
