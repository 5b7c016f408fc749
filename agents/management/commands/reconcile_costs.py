"""`reconcile_costs`: the true costs of calls that are booked at their worst case."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from agents import clients
from agents.apps import decisions_recorded
from agents.services.credit_alerts import refresh_credit_alert
from agents.services.reconciliation import reconcile_costs
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Asks the gateway what the calls cost whose bill never came, and replaces their booked worst case."
    raises_alert = True
    can_wait = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with clients.gateway() as gateway:
            result = reconcile_costs(gateway, now=timezone.now())
            credits_left = refresh_credit_alert(gateway, now=timezone.now())
        if result.corrected:
            decisions_recorded.send(Command, at=at)
        summary: dict[str, Any] = {"checked": result.checked, "corrected": result.corrected}
        if credits_left is not None:
            summary["credits_left_usd"] = f"{credits_left:.2f}"
        return CommandResult(summary, log=result.log, failures=result.failures)
