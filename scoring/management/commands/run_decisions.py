"""Asks every agent that is due for its weekly decision."""

from datetime import datetime
from typing import Any

from agents import clients as agents_clients
from agents.models import Family
from agents.services.decisions import run_decisions
from agents.services.estimate import estimate_run
from cohorts.models import Cohort
from markets import clients as markets_clients
from markets.commands import ArenaCommand, Result
from markets.services.universes import NoMarkets
from scoring.services.boards import refresh_boards


class Command(ArenaCommand):
    help = "Asks each agent of the active cohorts for the decision of the week that holds --at, exactly once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--cohort", type=int, metavar="N", help="only this cohort")
        parser.add_argument("--family", metavar="SLUG", help="only this family")
        parser.add_argument("--dry-run", action="store_true", help="ask nobody: say who would be asked and the cost")

    def records_run(self, options: dict[str, Any]) -> bool:
        return not options["dry_run"]

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        cohort = self._cohort(options["cohort"])
        family = self._family(options["family"])
        if options["dry_run"]:
            return self._dry_run(at, cohort, family)
        with (
            markets_clients.clob() as clob,
            agents_clients.gateway() as gateway,
            self.progress("deciding") as progress,
        ):
            report = run_decisions(
                at=at,
                asking=agents_clients.asking(gateway),
                clob=clob,
                cohort=cohort,
                family=family,
                progress=progress,
            )
        refresh_boards(at=at, afresh=False)
        summary = {
            "universe": report.universe,
            "asked": report.asked,
            "completed": report.completed,
            "fallback_holds": report.fallback_holds,
            "failed": report.failed,
            "missed": report.missed,
            "skipped": report.skipped,
            "trades": report.trades,
            "cost_usd": f"{report.cost_usd:.6f}",
        }
        return Result(summary, report.log, report.failures)

    def _dry_run(self, at: datetime, cohort: Cohort | None, family: str | None) -> Result:
        try:
            estimate = estimate_run(at=at, cohort=cohort, family=family)
        except NoMarkets as error:
            return Result(_nothing_asked(), failures=[str(error)])
        for agent in estimate.agents:
            self.stderr.write(f"would ask {agent.display_name} ({agent.model_id}) for cohort {agent.cohort.number}")
        summary = _nothing_asked() | {
            "asked": len(estimate.agents),
            "skipped": estimate.skipped,
            "cost_usd": f"{estimate.cost_usd:.6f}",
            "spent_usd": f"{estimate.spent_usd:.6f}",
        }
        return Result(summary)

    def _cohort(self, number: int | None) -> Cohort | None:
        if number is None:
            return None
        cohort = Cohort.objects.filter(number=number).first()
        if cohort is None:
            self.refuse(f"--cohort {number}: there is no such cohort")
        return cohort

    def _family(self, slug: str | None) -> str | None:
        if slug is not None and not Family.objects.filter(slug=slug).exists():
            known = ", ".join(Family.objects.values_list("slug", flat=True))
            self.refuse(f"--family {slug}: there is no such family; there are {known}")
        return slug


def _nothing_asked() -> dict[str, Any]:
    counts = dict.fromkeys(("asked", "completed", "fallback_holds", "failed", "missed", "skipped", "trades"), 0)
    return {"universe": None, **counts, "cost_usd": "0.000000", "dry_run": True}
