"""Scores, portfolios over time, and leaderboards."""

from scoring.models.boards import (
    AgentsBoard,
    Leaderboard,
    LeaderboardSelection,
    PublishedBoard,
    QuestionDifficulty,
)
from scoring.models.scores import BrierScore, FamilyTotal, ForecastScore, Snapshot
