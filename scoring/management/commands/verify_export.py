"""Proves an archive from its files alone. Needs no database and touches none."""

from datetime import datetime
from pathlib import Path
from typing import Any

from markets.commands import ArenaCommand, Result
from scoring.exports.proof.verdict import verdict_on


class Command(ArenaCommand):
    help = (
        "Checks an archive, a folder or its zip file: every hash, both chains, every prompt; and recomputes cash, "
        "positions, values, scores, returns and both boards from its rows. Names what disagrees (exit 1 if anything)."
    )
    requires_system_checks = []

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("archive", type=Path, metavar="DIR", help="the archive, or its zip file")

    def records_run(self, options: dict[str, Any]) -> bool:
        return False

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with self.progress("verifying") as progress:
            try:
                verdict = verdict_on(options["archive"], progress)
            except FileNotFoundError:
                self.refuse(f"{options['archive']}: there is no such archive")
        for violation in verdict.violations:
            self.stdout.write(violation)
        summary = {
            "files": verdict.files,
            "rows": verdict.rows,
            "chain_links": verdict.links,
            "checks": verdict.checks,
            "boards": verdict.whole,
            "violations": len(verdict.violations),
        }
        return Result(summary, failed=bool(verdict.violations))
