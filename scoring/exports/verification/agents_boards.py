"""The boards of external agents who forecast, with all intervals."""

from collections import defaultdict
from collections.abc import Iterator

from arena_verifier.rows import Row, mismatches
from scoring.constants import FORECAST
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.forecasts import ForecastRecords
from scoring.services.agents_boards import FORECAST_FIGURES, forecast_agents_board

FIGURES = ("rank_low", "rank_high", "score", "score_ci", *FORECAST_FIGURES)


def check_agents_boards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and rank ranges by track follow from forecasts."""
    if not archive.is_whole:
        return
    boards: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in archive.rows("leaderboard_agents"):
        if row["protocol"] == FORECAST:
            boards[row["track"]][row["forecaster"]] = row
    records, arm = ForecastRecords(archive), archive.board_condition()
    resolved = records.resolved(arm, "")
    models = records.families(arm, "", external=False)
    first: dict[str, int] = {}
    for forecast in records.forecasts.values():
        if forecast["arm"] == arm and not forecast.get("excluded"):
            first[forecast["family"]] = min(forecast["entry"], first.get(forecast["family"], forecast["entry"]))
    tracks = {family["slug"]: family["track"] for family in archive.rows("families")}
    externals = records.families(arm, "", external=True)
    for track, board in boards.items():
        agents = {slug: name for slug, name in externals.items() if tracks[slug] == track}
        for entry in forecast_agents_board(resolved, models, agents, first, {}, {}).entries:
            if archived := board.get(entry["forecaster"]):
                name = f"leaderboard_agents: {track} {FORECAST}, {entry['forecaster']}"
                yield from mismatches(name, archived, {column: entry[column] for column in FIGURES})
