"""`run_decisions`: the weekly decisions of the agents.

Its end is a signal, so that the leaderboards, which this app does not know, are right without a second command.
"""

from datetime import datetime
from typing import Any

from agents import clients
from agents.apps import decisions_recorded
from agents.models import Family
from agents.services.cost_estimate import estimate_run, plan_costs
from agents.services.decisions import DecisionReport, run_decisions
from agents.services.run_settings import maintenance_line
from agents.services.task_alerts import refresh_task_alerts
from cohorts.models import Cohort
from foundation.commands import ArenaCommand, CommandResult
from foundation.draining import drained
from markets.services.universes import NoMarkets
from markets.sources import registry


class Command(ArenaCommand):
    help = "Asks each agent of the active cohorts for its decision of the week of --at, exactly once."
    raises_alert = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--cohort", type=int, metavar="N", help="only this cohort")
        parser.add_argument("--family", metavar="SLUG", help="only this family")
        parser.add_argument("--minutes", type=float, metavar="N", help="ask nobody new after so many minutes")
        parser.add_argument("--dry-run", action="store_true", help="list the agents to ask and the cost; ask none")

    def records_run(self, options: dict[str, Any]) -> bool:
        return not options["dry_run"]

    def covers_all(self, options: dict[str, Any]) -> bool:
        return options["cohort"] is None and options["family"] is None

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        cohort, family = self._cohort(options["cohort"]), self._family(options["family"])
        if options["dry_run"]:
            return self._dry_run(at, cohort, family)
        if reason := maintenance_line():  # before prices are frozen, which opens the window
            return CommandResult(DecisionReport().summary(), log=[reason])
        with (
            drained(),
            registry.clob().limit_total(registry.FREEZE_S) as clob,
            clients.gateway() as gateway,
            self.progress("deciding") as progress,
        ):
            live, minutes = self.is_live(options), options["minutes"]
            settings = clients.call_settings(gateway, live=live, minutes=minutes)
            report = run_decisions(at=at, settings=settings, clob=clob, cohort=cohort, family=family, progress=progress)
        refresh_task_alerts(at=at)
        decisions_recorded.send(Command, at=at)
        return CommandResult(report.summary(), report.log, report.failures, alerted=report.failed)

    def _dry_run(self, at: datetime, cohort: Cohort | None, family: str | None) -> CommandResult:
        catalogue = clients.reachable_catalogue()
        costs = plan_costs(at=at, catalogue=catalogue).summary()
        zeros = DecisionReport().summary() | {"dry_run": True} | costs
        try:
            estimate = estimate_run(at=at, cohort=cohort, family=family, catalogue=catalogue)
        except NoMarkets as error:
            return CommandResult(zeros, failures=[str(error)])
        for decision in estimate.decisions:
            self.stderr.write(f"would ask {decision}")
        summary = zeros | {
            "asked": len(estimate.decisions),
            "skipped": estimate.skipped,
            "cost_usd": f"{estimate.cost_usd:.6f}",
            "spent_usd": f"{estimate.spent_usd:.6f}",
        }
        return CommandResult(summary)

    def _cohort(self, number: int | None) -> Cohort | None:
        if number is None:
            return None
        cohort = Cohort.objects.filter(number=number).first()
        if cohort is None:
            self.refuse(f"--cohort {number}: there is no such cohort")
        return cohort

    def _family(self, slug: str | None) -> str | None:
        if slug is not None and not Family.objects.filter(slug=slug).exists():
            slugs = ", ".join(Family.objects.values_list("slug", flat=True))
            self.refuse(f"--family {slug}: there is no such family; the families are {slugs}")
        return slug
