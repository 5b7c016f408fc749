"""`check_lineup`: a check of the line-up against the gateway's catalogue of models."""

from datetime import datetime
from typing import Any

from django.conf import settings

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.services.catalogue_check import check_lineup
from agents.services.release_check import approval_lines
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Proposes a line-up for newer models, changed prices and announced expirations; an operator approves it."
    raises_alert = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        summary: dict[str, Any] = {"models": 0, "skipped": 0, "findings": 0, "proposal": None, "new": False}
        try:
            catalogue = clients.model_catalogue()
        except GatewayFailure as failure:
            return CommandResult(summary, failures=[failure.reason])
        if catalogue is None:
            return CommandResult(summary, log=["ARENA_LINEUP=unchecked: nothing is compared"])
        check = check_lineup(catalogue, at=at)
        summary |= {
            "models": len(catalogue.models),
            "skipped": catalogue.skipped,
            "findings": len(check.findings),
            "proposal": check.proposal and check.proposal.pk,
            "new": check.new,
            "lineup": [fault.as_row() for fault in check.unusable],
        }
        # With ARENA_LINEUP=auto the cohort's start takes the successors by itself.
        failures = approval_lines(check.unusable, automatic=settings.ARENA_LINEUP == "auto")
        return CommandResult(summary, log=check.findings, failures=failures, alerted=len(failures))
