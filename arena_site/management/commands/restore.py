"""Restores a backup of the database."""

from datetime import datetime
from pathlib import Path
from typing import Any

from arena_site.operations.backups import BackupFailed, restore
from arena_site.operations.health import readiness
from cohorts.models import Cohort
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Restores the backup FILE, whole or not at all. Stop the web server and the workers first."
    requires_system_checks: list[str] = []
    leaves_run = False  # it would start in one database and end in another

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--force", action="store_true", help="replace a database that holds cohorts")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            summary = restore(options["file"], force=options["force"])
        except BackupFailed as reason:
            return CommandResult({"file": str(options["file"]), "cohorts": None}, failures=[str(reason)])
        return CommandResult(summary | {"cohorts": Cohort.objects.count(), "migrations": readiness()["migrations"]})
