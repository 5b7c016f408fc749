from scoring.models.board import Contrast, Leaderboard, PastBoard
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
from scoring.models.portfolio import BrierScore, FamilyTotal, Snapshot, SnapshotSpan, UniverseCost
from scoring.models.revision import Revision

__all__ = [
    "BrierScore",
    "Contrast",
    "Export",
    "FamilyTotal",
    "ForecastImport",
    "ForecastScore",
    "ImportBoard",
    "ImportCollection",
    "ImportedForecast",
    "ImportedQuestion",
    "Leaderboard",
    "PastBoard",
    "QuestionDifficulty",
    "RejectedRow",
    "Revision",
    "Snapshot",
    "SnapshotSpan",
    "UniverseCost",
]
