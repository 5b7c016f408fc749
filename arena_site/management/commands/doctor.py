"""`doctor`: what keeps the arena from running, with one remedy each."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from arena_site.operations.diagnosis import Diagnosis
from foundation.commands import ArenaCommand, CommandResult, table_text


class Command(ArenaCommand):
    help = "Checks settings, database, clock, venues, gateway and line-up; buys and changes nothing without an option."
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--test-search",
            action="store_true",
            help="ask each model, once, whether it takes an answer's schema beside a search tool; costs money",
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        items = list(Diagnosis(at, tests_search=options["test_search"]).items())
        failed = sum(not item.ok for item in items)
        summary = {"checks": len(items), "failed": failed, "items": list(map(asdict, items))}
        return CommandResult(summary, failed=failed > 0)

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        if not as_json:
            from rich.table import Table

            table = Table("", "check", "found", "remedy", box=None, pad_edge=False)
            for item in result.summary.pop("items"):
                mark = "✗" if not item["ok"] else "!" if item["remedy"] else "✓"
                table.add_row(mark, item["name"], item["detail"], item["remedy"])
            self.stdout.write(table_text(table))
        super()._report(result, as_json=as_json)
