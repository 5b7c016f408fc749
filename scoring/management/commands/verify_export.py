"""Verifies an archive from its files alone, without a database."""

from datetime import datetime
from pathlib import Path
from typing import Any

from forecast_rank.files.archives import ArchiveTooLarge
from foundation.commands import ArenaCommand, CommandResult
from scoring.exports.verification.verifier import verify_archive

PARTIAL = 3
"""The exit code of a partial archive that is sound as far as it goes."""


class Command(ArenaCommand):
    help = (
        "Checks the hashes, hash chains and prompts of an archive (a folder or its zip file), and recomputes cash, "
        "positions, values, scores, returns and both leaderboards from its rows. Prints each violation; exit code 1 if "
        "there are any, 3 for a partial archive (window, cohort) that is sound as far as it goes. Prints what such an "
        "archive can not prove."
    )
    requires_system_checks = []
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("archive", type=Path, metavar="DIR", help="the archive, or its zip file")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with self.progress("verifying") as progress:
            try:
                report = verify_archive(options["archive"], progress)
            except FileNotFoundError:
                self.refuse(f"{options['archive']}: there is no such archive")
            except ArchiveTooLarge as error:
                self.refuse(str(error))
        for line in (*report.violations, *map(str, report.unproven)):
            self.stdout.write(line)
        if report.partial:
            self.stdout.write("partial: that no further row belongs to the selection is as the arena states it")
        return CommandResult(report.summary(), failed=bool(report.violations), code=PARTIAL if report.partial else 0)
