"""Columns that an archive can not recompute, since the rows that they follow from are not in it."""

from collections.abc import Iterator
from dataclasses import dataclass

from scoring.exports.dictionary import RECOMPUTED
from scoring.exports.tables import TABLES
from scoring.exports.verification.archive_reader import Archive

BOARDS = (
    "leaderboard_trading", "leaderboard_forecast", "leaderboard_agents", "condition_differences", "after_costs",
    "published_boards",
)  # fmt: skip
OF_A_WINDOW = {
    "agents": "their journals, trades and scores begin before the window or go on after it",
    "brier_scores": "trades and markets outside the window",
    "forecast_scores": "forecasts outside the window",
    "journal": "entries before the window",
    "outcomes": "prices outside the window",
    "positions": "trades and settlements outside the window",
    "question_options": "markets that resolved outside the window",
    "receipts": "answers outside the window",
    "reversals": "settlements outside the window",
    "settlements": "trades outside the window",
    "snapshots": "journals and prices outside the window",
    **dict.fromkeys(BOARDS, "a window has no leaderboards"),
}
OF_A_COHORT = {
    "outcomes": "prices of outcomes that the cohort did not hold",
    "receipts": "answers that are of no agent of the cohort",
    **dict.fromkeys(BOARDS, "the archive of a cohort has no leaderboards"),
}
"""By table, the rows that are not in the archive."""


@dataclass(frozen=True, slots=True)
class Unproven:
    """Columns of a table that an archive states and can not prove."""

    table: str
    rows: int
    columns: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"not proven: {self.table}, {self.rows} rows: {', '.join(self.columns)} ({self.reason})"


def unproven(archive: Archive) -> Iterator[Unproven]:
    """The columns that can not be recomputed from this archive."""
    if not archive.is_window and (late := _before_a_reversal(archive)):
        yield Unproven("snapshots", late, ("brier", "resolved_bets"), "scores that a later reversal replaced")
    if archive.is_whole:
        return
    reasons = OF_A_WINDOW if archive.is_window else OF_A_COHORT
    for table in TABLES:
        columns = tuple(name for name in table.names if table.proof(name) == RECOMPUTED)
        if table.name in reasons and columns:
            yield Unproven(table.name, archive.row_count(table.name), columns, reasons[table.name])


def _before_a_reversal(archive: Archive) -> int:
    """The number of snapshots from before a reversal on a market that their agent has scores of."""
    reversed_at = {row["market"]: row["reversed_at"] for row in archive.rows("reversals")}
    last: dict[int, str] = {}
    for score in archive.rows("brier_scores"):
        if at := reversed_at.get(score["market"]):
            last[score["agent"]] = max(at, last.get(score["agent"], ""))
    return sum(row["taken_at"] < last.get(row["agent"], "") for row in archive.rows("snapshots")) if last else 0
