"""Scores, portfolios over time, leaderboards, imported forecasts and exports."""

from scoring.models.boards import AgentsBoard, Leaderboard, LeaderboardSelection, QuestionDifficulty
from scoring.models.imports import (
    FORECASTER_LENGTH,
    OPTION_LENGTH,
    QUESTION_LENGTH,
    Export,
    ForecastImport,
    ImportCollection,
    ImportedForecast,
    ImportedQuestion,
    ImportLeaderboard,
    RejectedRow,
)
from scoring.models.scores import BrierScore, FamilyTotal, ForecastScore, SealableTimedQuerySet, Snapshot
