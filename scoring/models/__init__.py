from scoring.models.board import Leaderboard, LeaderboardHistory, StoredDisagreement
from scoring.models.export import Export
from scoring.models.forecast import ForecastScore, QuestionDifficulty
from scoring.models.imports import (
    ForecastImport,
    ImportBoard,
    ImportCollection,
    ImportedForecast,
    ImportedQuestion,
    RejectedRow,
)
from scoring.models.portfolio import BrierScore, FamilyTotal, Snapshot
