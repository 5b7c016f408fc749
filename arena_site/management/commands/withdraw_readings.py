"""Withdraws what was read of venues at an instant ahead of the clock."""

from datetime import datetime
from typing import Any

from arena_site.operations.conditions import CONDITIONS_BY_KIND, refresh_condition
from arena_site.operations.record_clock import RECORD_AHEAD, FactsAhead, withdraw_readings
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Withdraws prices and readings of markets that are dated ahead of the clock; nothing where facts are, too."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            withdrawn = withdraw_readings()
        except FactsAhead as error:
            return CommandResult({"markets": 0, "prices": 0}, failures=[str(error)])
        refresh_condition(CONDITIONS_BY_KIND[RECORD_AHEAD], now=at)
        return CommandResult(withdrawn)
