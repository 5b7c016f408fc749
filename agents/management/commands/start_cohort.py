"""`start_cohort`: the cohort of a week."""

from datetime import datetime
from typing import Any

from agents.services.cohort_start import NoEligibleFamilies, start_cohort
from markets.foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Starts the cohort of the week of --at, with one agent per family of the line-up in force."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            started = start_cohort(at=at)
        except NoEligibleFamilies as error:
            return CommandResult({"cohort": None, "created": False, "agents": 0}, failures=[str(error)])
        return CommandResult(
            {"cohort": started.cohort.number, "created": started.created, "agents": started.agents},
            log=[f"cohort {started.cohort.number}, week of {started.cohort.week_start:%Y-%m-%d}"],
        )
