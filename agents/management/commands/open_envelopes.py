"""`open_envelopes`: the effects of the answers whose seal has ended."""

from datetime import datetime
from typing import Any

from agents.services.envelopes import open_envelopes
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Opens the envelopes of answers whose seal has ended by --at: they trade, and their forecasts are recorded."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        report = open_envelopes(at=at)
        summary = {"opened": report.opened, "trades": report.trades, "forecasts": report.forecasts}
        return CommandResult(summary | {"failed": report.failed}, log=report.log, failures=report.failures)
