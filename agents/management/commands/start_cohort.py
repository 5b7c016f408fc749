"""Starts the cohort of a week."""

from datetime import datetime
from typing import Any

from agents.services.enrolment import NobodyToEnrol, cohort_start
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Starts the cohort of the week that holds --at, with one agent per family of the line-up in force."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        try:
            started = cohort_start(at=at)
        except NobodyToEnrol as error:
            return Result({"cohort": None, "created": False, "agents": 0}, failures=[str(error)])
        return Result(
            {"cohort": started.cohort.number, "created": started.created, "agents": started.agents},
            log=[f"cohort {started.cohort.number}, week of {started.cohort.week_start:%Y-%m-%d}"],
        )
