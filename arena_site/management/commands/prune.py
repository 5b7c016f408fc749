"""Deletes old detail."""

from datetime import datetime
from typing import Any

from django_q.models import Failure

from foundation.commands import ArenaCommand, CommandResult
from scoring.services.retention import RUNS, prune


class Command(ArenaCommand):
    help = "Rolls up old snapshots and prices and deletes old runs. Data behind results is retained."
    raises_alert = True
    can_wait = True

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with self.progress("pruning"):
            pruned = prune(at=at)
            # django-q bounds what succeeded, not what failed.
            tasks, _ = Failure.objects.filter(stopped__lt=at - RUNS).delete()
        return CommandResult({**pruned, "tasks": tasks})
