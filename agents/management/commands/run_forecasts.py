"""`run_forecasts`: the daily forecasts of the active families."""

from datetime import datetime
from typing import Any

from agents import clients
from agents.models import Elicitation, Family
from agents.services.cost_estimate import estimate_forecasts, plan_costs
from agents.services.forecasts import ForecastReport, run_forecasts
from agents.services.run_settings import maintenance_line
from agents.services.spending import week_spending
from agents.services.task_alerts import refresh_task_alerts
from cohorts.weeks import week_start
from foundation.commands import ArenaCommand, CommandResult
from foundation.draining import drained
from markets.sources import registry


class Command(ArenaCommand):
    help = "Freezes the questions of the day of --at and asks each active family about them, exactly once."
    raises_alert = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--questions", type=int, metavar="N", help="choose at most N, if this run freezes the day's questions"
        )
        parser.add_argument("--family", metavar="SLUG", help="only this family")
        parser.add_argument("--minutes", type=float, metavar="N", help="ask nobody new after so many minutes")
        parser.add_argument("--dry-run", action="store_true", help="list the models to ask and the cost; ask none")

    def records_run(self, options: dict[str, Any]) -> bool:
        return not options["dry_run"]

    def covers_all(self, options: dict[str, Any]) -> bool:
        return options["family"] is None

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        questions = options["questions"]
        if questions is not None and questions < 1:
            self.refuse(f"--questions {questions}: must be at least 1")
        family = options["family"]
        if family is not None and not Family.objects.filter(slug=family).exists():
            self.refuse(f"--family {family}: there is no such family")
        if options["dry_run"]:
            return self._dry_run(at, questions, family)
        if reason := maintenance_line():  # before questions are frozen, which opens the window
            return CommandResult(ForecastReport().summary(), log=[reason])
        with (
            drained(),
            registry.clob().limit_total(registry.FREEZE_S) as clob,
            clients.gateway() as gateway,
            self.progress("forecasting") as progress,
        ):
            live, minutes = self.is_live(options), options["minutes"]
            settings = clients.call_settings(gateway, live=live, minutes=minutes)
            report = run_forecasts(
                at=at, settings=settings, clob=clob, questions=questions, family=family, progress=progress
            )
        refresh_task_alerts(at=at)
        return CommandResult(report.summary(), report.log, report.failures, alerted=report.failed)

    def _dry_run(self, at: datetime, questions: int | None, family: str | None) -> CommandResult:
        catalogue = clients.reachable_catalogue()
        estimate = estimate_forecasts(at=at, questions=questions, family=family, catalogue=catalogue)
        for requests in estimate.releases:
            self.stderr.write(f"would ask {requests}")
        summary = ForecastReport().summary() | {
            "dry_run": True,
            "questions": estimate.questions,
            "asked": sum(requests.requests for requests in estimate.releases),
            "searches": sum(requests.searches for requests in estimate.releases),
            "cost_usd": f"{estimate.cost_usd:.6f}",
            "evidence_usd": f"{estimate.evidence_usd:.6f}",
            "spent_usd": f"{week_spending(Elicitation.PROTOCOL, week_start(at)).spent:.6f}",
            "basis": estimate.basis,
        }
        return CommandResult(summary | plan_costs(at=at, catalogue=catalogue).summary())
