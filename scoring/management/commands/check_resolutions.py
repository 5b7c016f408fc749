"""`check_resolutions`: settlement of resolved markets, then the scores of the bets and forecasts on them.

It lives in scoring, the lowest app that knows both settlement and scores.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db.models import Max

from agents.services.settlement import check_resolutions
from foundation.commands import ArenaCommand, CommandResult
from markets.models import Market
from markets.services.prices import is_replay
from markets.services.question_resolution import resolve_questions
from markets.sources import registry as clients
from scoring.services.scores import compute_scores

VENUES_S = 20 * 60
"""How long the venues may take in all."""


class Command(ArenaCommand):
    help = "Looks up every market with bets or questions, settles resolved ones, completes cohorts, computes scores."
    raises_alert = True

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--skip-leaderboards",
            action="store_true",
            help="leave the leaderboards of the forecast protocol to compute_scores",
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        with clients.open_catalogues(VENUES_S) as catalogues, self.progress("checking markets") as progress:
            report = check_resolutions(catalogues=catalogues, at=at, progress=progress)
        questions = 0
        if not is_replay(at):
            questions = resolve_questions(at=at)
            # A slow pass dates settlements after the snapshots that were taken meanwhile; they are scored all the same.
            settled = Market.objects.filter(resolved_at__gt=at).aggregate(at=Max("resolved_at"))
            at = settled["at"] or at
        scores = compute_scores(at=at, refit=False, forecast_leaderboards=not options["skip_leaderboards"])
        summary = asdict(report)
        log, failures = summary.pop("log"), summary.pop("failures")
        summary |= {
            "questions_resolved": questions,
            "brier_rows": scores.brier_rows,
            "forecasts_scored": scores.forecasts_scored,
        }
        return CommandResult(summary, log, failures)
