"""`start_cohort`: the cohort of a week."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.management import CommandError

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.services.catalogue_check import check_lineup
from agents.services.cohort_start import NoEligibleFamilies, start_cohort
from agents.services.envelopes import open_envelopes
from agents.services.release_check import UnusableLineUp, approval_lines, renew_lineup
from cohorts.models import Cohort, Methodology
from cohorts.services import is_left_to_a_person
from cohorts.weeks import week_start
from foundation.commands import BAD_USAGE, ArenaCommand, CommandResult

LATE_START = "No schedule starts this week's cohort any more. Once it is approved: uv run manage.py arena --now"
LATE_DECISIONS = "No schedule asks for this week's decisions any more: uv run manage.py run_decisions"
STARTED = "This week's cohort exists, with its line-up. For the next one: uv run manage.py approve_lineup --current"


class Command(ArenaCommand):
    help = (
        "Starts the cohort of the week of --at, with one agent per family of the line-up in force, once every release "
        "is found in the gateway's catalogue."
    )
    raises_alert = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--current", action="store_true", help="first approve the shipped line-up of each maker's flagship"
        )

        parser.add_argument(
            "--methodology", metavar="V", help="the methodology's version; without it the newest published one"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        opening, result = open_envelopes(at=at), self._start(at, options)
        return replace(result, failures=[*opening.failures, *result.failures])

    def _start(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        summary: dict[str, Any] = {"cohort": None, "created": False, "agents": 0}
        methodology = _methodology(options["methodology"])
        automatic = settings.ARENA_LINEUP == "auto"
        catalogue = None
        try:
            if not Cohort.objects.filter(week_start=week_start(at)).exists():
                catalogue = clients.model_catalogue()
                if options["current"]:
                    renew_lineup(catalogue, current=True, week=week_start(at), by="start_cohort --current", at=at)
            start = start_cohort(at=at, catalogue=catalogue, replace=automatic, methodology=methodology)
        except GatewayFailure as failure:
            unchecked = "no cohort starts with a line-up that could not be checked; run it again later"
            return CommandResult(summary, failures=[f"{failure.reason}: {unchecked}"])
        except NoEligibleFamilies as error:
            return CommandResult(summary, failures=[str(error)])
        except UnusableLineUp as error:
            summary["lineup"] = [fault.as_row() for fault in error.unusable]
            if catalogue is None:
                lines = [*map(str, error.unusable), "Approve a line-up without them on the dashboard."]
                return CommandResult(summary, failures=lines)
            check_lineup(catalogue, at=at)  # alerts, and a proposal for the dashboard
            lines = approval_lines(error.unusable, current=error.current)
            if is_left_to_a_person(at):
                lines.append(LATE_START)
            return CommandResult(summary, failures=lines, alerted=len(lines))
        if options["current"] and not start.created:
            self.stderr.write(STARTED)
        if start.created and is_left_to_a_person(at):
            self.stderr.write(LATE_DECISIONS)
        summary = {"cohort": start.cohort.number, "created": start.created, "agents": start.agents}
        if automatic:
            summary["replaced"] = [change.as_row() for change in start.replaced]
        return CommandResult(summary, log=[f"cohort {start.cohort.number}, week of {start.cohort.week_start:%Y-%m-%d}"])


def _methodology(version: str | None) -> Methodology | None:
    """The methodology of a version; None for the newest published one. Raises CommandError for an unknown version."""
    if version is None:
        return None
    try:
        return Methodology.objects.get(version=version)
    except Methodology.DoesNotExist:
        versions = ", ".join(Methodology.objects.values_list("version", flat=True))
        message = f"--methodology: there is no {version!r}; the versions are {versions}"
        raise CommandError(message, returncode=BAD_USAGE) from None
