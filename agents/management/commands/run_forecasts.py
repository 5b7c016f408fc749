"""Asks every active family for its probabilities on the day's questions."""

from datetime import datetime
from typing import Any

from agents import clients as agents_clients
from agents.services.forecasts import run_forecasts
from markets import clients as markets_clients
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Freezes the questions of the day that holds --at and asks each active family about them, exactly once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--questions", type=int, metavar="N", help="choose at most N, where the day's questions are frozen now"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        if options["questions"] is not None and options["questions"] < 1:
            self.refuse(f"--questions {options['questions']}: must be at least 1")
        with (
            markets_clients.clob() as clob,
            agents_clients.gateway() as gateway,
            self.progress("forecasting") as progress,
        ):
            report = run_forecasts(
                at=at,
                asking=agents_clients.asking(gateway),
                clob=clob,
                questions=options["questions"],
                progress=progress,
            )
        summary = {
            "questions": report.questions,
            "asked": report.asked,
            "completed": report.completed,
            "recorded": report.recorded,
            "refused": report.refused,
            "declined": report.declined,
            "failed": report.failed,
            "missed": report.missed,
            "skipped": report.skipped,
            "cost_usd": f"{report.cost_usd:.6f}",
        }
        return Result(summary, report.log, report.failures)
