"""Settles markets that came to their end, and scores the bets on them."""

from datetime import datetime
from typing import Any

from agents.services.settlement import check_resolutions
from markets import clients
from markets.commands import ArenaCommand, Result
from markets.services.endings import questions_resolve
from markets.services.marks import is_replay
from scoring.services.past_boards import FEW, past_boards_keep
from scoring.services.scores import compute_scores


class Command(ArenaCommand):
    help = "Looks up every followed or asked market, settles those that are final once, completes cohorts, scores."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--leave-boards", action="store_true", help="leave the boards of the forecast protocol to compute_scores"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        with clients.catalogues() as catalogues, clients.clob() as clob, self.progress("checking markets") as progress:
            report = check_resolutions(catalogues=catalogues, clob=clob, at=at, progress=progress)
        questions = 0 if is_replay(at) else questions_resolve(at=at)
        scores = compute_scores(at=at, afresh=False, forecast_boards=not options["leave_boards"])
        if not options["leave_boards"]:
            past_boards_keep(most=FEW)
        summary = {
            "checked": report.checked,
            "resolved": report.resolved,
            "cancelled": report.cancelled,
            "positions_settled": report.positions_settled,
            "waiting": report.waiting,
            "cohorts_completed": report.cohorts_completed,
            "missed": report.missed,
            "questions_resolved": questions,
            "brier_rows": scores.brier_rows,
            "forecasts_scored": scores.forecasts_scored,
        }
        return Result(summary, report.log, report.failures)
