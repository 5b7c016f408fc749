"""Ranks the forecasters of a file: the command `forecast-rank` of the library. Needs no database and touches none."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from forecast_rank import Report, TooFewForecasts, cli
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = f"{cli.DESCRIPTION} No database is needed, and none is touched."
    requires_system_checks = []
    report: Report | None = None
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        cli.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with cli.quiet_end_of_pipe():
            super().handle(*args, **options)

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            self.report = cli.rank_files(
                options, self.progress, self.stderr.write if options["json"] else self.stdout.write
            )
        except cli.UsageError as error:
            self.refuse(str(error))
        except TooFewForecasts as error:
            return CommandResult({}, failures=[f"{cli.file_names(options)}: {error}"])
        return CommandResult(self.report.to_dict())

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        if not as_json and self.report:
            self.stdout.write(cli.terminal_text(self.report))
            result = replace(result, summary={})
        super()._report(result, as_json=as_json)
