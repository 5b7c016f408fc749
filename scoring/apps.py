from datetime import datetime
from typing import Any

from django.apps import AppConfig

from agents.signals import decisions_recorded


class ScoringConfig(AppConfig):
    name = "scoring"
    verbose_name = "Scores, snapshots and leaderboards"

    def ready(self) -> None:
        decisions_recorded.connect(_refresh_boards, dispatch_uid="refresh the trading leaderboards")


def _refresh_boards(sender: object, *, at: datetime, **_: Any) -> None:
    # Imported here because it loads NumPy and the metrics.
    from scoring.services.boards import refresh_boards

    refresh_boards(at=at, afresh=False)
