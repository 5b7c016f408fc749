"""Scoring bets on markets that resolved, and refreshing the boards that show it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agents.models import Trade
from markets.failpoints import reached
from markets.models import Market
from scoring.metrics.brier import brier_score
from scoring.models import BrierScore, ForecastScore
from scoring.services.boards import refresh_boards
from scoring.services.forecast_boards import refresh_forecast_boards
from scoring.services.forecast_scores import score_forecasts


@dataclass(slots=True)
class ScoreReport:
    brier_rows: int = 0
    forecasts_scored: int = 0
    leaderboards: int = 0
    log: list[str] = field(default_factory=list)


def compute_scores(*, at: datetime, afresh: bool = True, forecast_boards: bool = True) -> ScoreReport:
    """Scores every purchase and forecast on what resolved by `at` that has no score yet, then recomputes the boards.

    What it needs is on record, so a crash between a payout and its score loses nothing: the next call finds it. Unless
    `afresh`, what takes long of the forecast boards is left to the next call; without `forecast_boards`, all of them.
    """
    report = ScoreReport(brier_rows=score_trades(at=at), forecasts_scored=score_forecasts(at=at))
    reached("scores.scored")
    report.leaderboards = refresh_boards(at=at)
    if forecast_boards:
        report.leaderboards += refresh_forecast_boards(at=at, afresh=afresh)
    reached("scores.ranked")
    return report


def scores_forget(market: Market, questions: Sequence[int]) -> int:
    """Takes away what was scored by an end that was reversed, to be scored anew; returns how many rows."""
    bets, _ = BrierScore.objects.filter(market=market).delete()
    forecasts, _ = ForecastScore.objects.filter(forecast__question__in=questions).delete()
    return bets + forecasts


def score_trades(*, at: datetime) -> int:
    """One Brier row for each purchase, sold since or not, on a market that resolved with a winner."""
    trades = list(
        Trade.objects.filter(
            kind=Trade.Kind.BUY,
            market__status=Market.Status.RESOLVED,
            market__resolved_at__lte=at,
            brier_score=None,
        ).select_related("market")
    )
    if not trades:
        return 0
    confidence = [trade.implied_confidence or 0.0 for trade in trades]
    price = [float(trade.price) for trade in trades]
    won = [trade.outcome_id == trade.market.winning_outcome_id for trade in trades]
    scores = brier_score(confidence, won)
    market_scores = brier_score(price, won)
    BrierScore.objects.bulk_create(
        [
            BrierScore(
                trade=trade,
                agent_id=trade.agent_id,
                market_id=trade.market_id,
                probability=confidence[i],
                outcome=won[i],
                score=float(scores[i]),
                market_probability=price[i],
                market_score=float(market_scores[i]),
                resolved_at=trade.market.resolved_at or at,
                scored_at=at,
            )
            for i, trade in enumerate(trades)
        ],
        ignore_conflicts=True,
        batch_size=500,
    )
    return len(trades)
