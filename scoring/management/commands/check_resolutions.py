"""Settles markets that came to their end, and scores the bets on them."""

from datetime import datetime
from typing import Any

from agents.services.settlement import check_resolutions
from markets import clients
from markets.commands import ArenaCommand, Result
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Looks up every followed market, settles those that are final once, completes cohorts, scores."

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with clients.gamma() as gamma, clients.clob() as clob, self.progress("checking markets") as progress:
            report = check_resolutions(gamma=gamma, clob=clob, at=at, progress=progress)
        scores = compute_scores(at=at)
        summary = {
            "checked": report.checked,
            "resolved": report.resolved,
            "cancelled": report.cancelled,
            "positions_settled": report.positions_settled,
            "waiting": report.waiting,
            "cohorts_completed": report.cohorts_completed,
            "missed": report.missed,
            "brier_rows": scores.brier_rows,
        }
        return Result(summary, report.log, report.failures)
