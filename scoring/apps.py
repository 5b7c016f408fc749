from datetime import datetime
from typing import Any

from django.apps import AppConfig

from agents.apps import decisions_recorded


class ScoringConfig(AppConfig):
    name = "scoring"
    verbose_name = "Scores, snapshots and leaderboards"

    def ready(self) -> None:
        decisions_recorded.connect(_refresh_leaderboards, dispatch_uid="refresh the trading leaderboards")


def _refresh_leaderboards(sender: object, *, at: datetime, **_: Any) -> None:
    # Imported here because it loads NumPy and the metrics.
    from scoring.services.trading_leaderboards import refresh_trading_leaderboards

    refresh_trading_leaderboards(at=at)
