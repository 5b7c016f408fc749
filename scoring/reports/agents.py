"""The board of external agents."""

from scoring.reports.columns import Column
from scoring.reports.forecasts import SKILL

AGENTS_COLUMNS = (
    Column("forecaster", "text", "A family's slug, market or uniform.", null=False),
    Column("family", "text", "The family's slug; null for a baseline."),
    Column("display_name", "text", "Its name on pages.", null=False),
    Column("external", "boolean", "An agent of the track; models and baselines are never ranked here.", null=False),
    Column("reference", "boolean", "A baseline: market or uniform.", null=False),
    Column(
        "rank",
        "integer",
        "Among the agents with enough answers: 25 resolved questions or 4 decisions, and half of those asked. Null for "
        "others.",
    ),
    Column("rank_low", "integer", "Best rank within the 95 % range."),
    Column("rank_high", "integer", "Worst rank within the 95 % range."),
    Column("score", "number", "Forecasts: the adjusted Brier score. Trading: the mean return in per cent."),
    Column("score_ci", "interval", "95 % interval of the score."),
    Column(
        "ranked_by", "text", "Forecasts: adjusted_brier, or alpha where the ranked agents answered different questions."
    ),
    Column(
        "price_distance", "number", "Mean distance of the probabilities to the market's, over options and forecasts."
    ),
    Column(
        "repeats_price",
        "boolean",
        "True if it only repeats the price: alpha surely within 0.005 of 0, a distance below 0.02.",
    ),
    Column("answered", "integer", "Resolved questions answered; completed decisions. Null for models that trade."),
    Column("asked", "integer", "Resolved questions, or decisions, that were asked since the agent's first answer."),
    Column("coverage", "number", "answered / asked."),
    Column("failed", "integer", "Tasks that were answered with nothing that could be carried out."),
    Column("missed", "integer", "Tasks without an answer in time."),
    Column("refused", "integer", "Answers that were refused."),
    Column("late", "integer", "Tasks to which an answer came after the deadline."),
    Column("brier", "number", "Brier score: mean over options, lower is better."),
    Column("brier_ci", "interval", "95 % interval of the Brier score over events."),
    SKILL,
    Column("alpha", "number", "The market's Brier score less the forecaster's, on the same questions."),
    Column("alpha_ci", "interval", "95 % interval of alpha over events."),
    Column("cohorts", "integer", "Cohorts played."),
    Column("total_value", "dollars", "Mean total value over cohorts, in dollars."),
    Column("pnl", "dollars", "Profit, summed over cohorts, in dollars."),
    Column("win_rate", "number", "Share of resolved purchases that won."),
    Column("resolved_bets", "integer", "Purchases on markets that resolved with a winner."),
)
"""The board of a track and a protocol."""
