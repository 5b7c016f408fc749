"""Compares the line-up with the gateway's catalogue of models."""

from datetime import datetime
from typing import Any

from agents import clients
from agents.gateway import GatewayFailure
from agents.services.lineup_check import lineup_check
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Looks for newer models, changed prices and announced ends; proposes a line-up, which a person approves."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        summary: dict[str, Any] = {"models": 0, "skipped": 0, "findings": 0, "proposal": None, "new": False}
        try:
            with clients.gateway() as gateway:
                catalogue = gateway.models()
        except GatewayFailure as failure:
            return Result(summary, failures=[failure.reason])
        check = lineup_check(catalogue, at=at)
        summary |= {
            "models": check.models,
            "skipped": check.skipped,
            "findings": len(check.findings),
            "proposal": check.proposal and check.proposal.pk,
            "new": check.new,
        }
        return Result(summary, log=check.findings)
