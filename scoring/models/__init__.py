from scoring.models.export import Export
from scoring.models.forecast import ForecastScore, QuestionDifficulty
from scoring.models.imports import (
    ForecastImport,
    ImportCollection,
    ImportedForecast,
    ImportedQuestion,
    ImportLeaderboard,
    RejectedRow,
)
from scoring.models.leaderboard import Leaderboard, LeaderboardHistory
from scoring.models.portfolio import BrierScore, FamilyTotal, Snapshot
