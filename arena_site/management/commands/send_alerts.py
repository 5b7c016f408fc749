"""Sends open alerts by mail and webhook."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from arena_site.operations.notices import send_notices
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Sends each open alert once by mail (ARENA_ALERT_EMAIL) and webhook (ARENA_ALERT_WEBHOOK), where set."

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        # Tries and pauses run on the real clock, whatever instant the run is for.
        number, failures = send_notices(now=timezone.now())
        return CommandResult({"sent": number, "failed": len(failures)}, failures=failures)
