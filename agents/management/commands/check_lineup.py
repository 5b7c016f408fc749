"""`check_lineup`: a check of the line-up against the gateway's catalogue of models."""

from datetime import datetime
from typing import Any

from agents import clients
from agents.gateway import GatewayFailure
from agents.services.catalogue_check import check_lineup
from markets.foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Proposes a line-up for newer models, changed prices and announced expirations; an operator approves it."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        summary: dict[str, Any] = {"models": 0, "skipped": 0, "findings": 0, "proposal": None, "new": False}
        try:
            with clients.gateway() as gateway:
                catalogue = gateway.models()
        except GatewayFailure as failure:
            return CommandResult(summary, failures=[failure.reason])
        check = check_lineup(catalogue, at=at)
        summary |= {
            "models": check.models,
            "skipped": check.skipped,
            "findings": len(check.findings),
            "proposal": check.proposal and check.proposal.pk,
            "new": check.new,
        }
        return CommandResult(summary, log=check.findings)
