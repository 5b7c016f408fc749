"""Lets go of detail that is old."""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django_q.models import Failure

from markets.commands import ArenaCommand, Result
from scoring.services.retention import RUNS, prune


class Command(ArenaCommand):
    help = "Rolls up old snapshots and prices, forgets old runs. What results rest on is kept for ever."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with self.progress("pruning"):
            pruned = prune(at=at)
            # django-q bounds what succeeded, not what failed.
            tasks, _ = Failure.objects.filter(stopped__lt=at - RUNS).delete()
        return Result({**asdict(pruned), "tasks": tasks})
