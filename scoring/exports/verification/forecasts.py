"""The boards of the forecast protocol, of agents too, and the differences of conditions, with all intervals."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from arena_verifier.forecast_leaderboards import forecasts_by_entry
from arena_verifier.rows import Row, mismatches
from cohorts.conditions import Conditions
from cohorts.models import Methodology
from foundation.bulk import mappings_by, subset
from scoring.constants import FORECAST
from scoring.exports.archived_forecasts import ArchivedForecasts
from scoring.exports.tables.results import FORECAST_LEADERBOARD
from scoring.exports.verification.archive_reader import Archive
from scoring.exports.verification.rows import check_computed
from scoring.selectors.forecast_panels import ResolvedEntry, of_category
from scoring.services.agents_boards import FORECAST_FIGURES, forecast_agents_board
from scoring.services.condition_differences import paired_differences
from scoring.services.forecast_ranking import AVERAGED, forecast_leaderboard
from scoring.services.trading_leaderboards import LeaderboardContents

IDENTITY = ("reference", "external", "rank", "rank_low", "rank_high", "ranked_by", "n", "forecasts")
KEY = ("arm", "methodology", "category", "forecaster")
FIGURES = tuple(name for name in FORECAST_LEADERBOARD.names if name not in (*KEY, *IDENTITY, "figures"))
METRICS = tuple(name for name in AVERAGED if name != "calibration")
"""The metrics behind the figures of an archive; it has no column of calibration."""
AGENT_FIGURES = ("rank_low", "rank_high", "score", "score_ci", *FORECAST_FIGURES)


class ComputedLeaderboards:
    """The leaderboards that follow from an archive's forecasts; those with the same entries and families share one."""

    def __init__(self, records: ArchivedForecasts) -> None:
        self.records = records
        self._resolved: dict[tuple[str, str], list[ResolvedEntry]] = {}
        self._contents: dict[tuple[Any, ...], LeaderboardContents] = {}

    def contents(self, arm: str, methodology: str, category: str) -> LeaderboardContents:
        if (arm, methodology) not in self._resolved:
            self._resolved[arm, methodology] = self.records.resolved(arm, methodology)
        entries = of_category(self._resolved[arm, methodology], category)
        families = self.records.family_names(arm, methodology)
        externals = self.records.family_names(arm, methodology, external=True)
        key = arm, tuple(entry.entry for entry in entries), tuple(families), tuple(externals)
        if key not in self._contents:
            self._contents[key] = forecast_leaderboard(entries, families, externals, metrics=METRICS)
        return self._contents[key]


def computed_leaderboards(archive: Archive) -> ComputedLeaderboards:
    """The leaderboards of an archive, computed once for all checks."""
    leaderboards: ComputedLeaderboards | None = archive.cache.get(ComputedLeaderboards)
    if leaderboards is None:
        leaderboards = archive.cache[ComputedLeaderboards] = ComputedLeaderboards(ArchivedForecasts(archive))
    return leaderboards


def check_forecast_leaderboards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and ranks of each arm, methodology and category follow from forecasts."""
    if not archive.is_whole:
        return
    leaderboards = computed_leaderboards(archive)
    key = itemgetter("arm", "methodology", "category")
    rows = sorted(archive.rows("leaderboard_forecast"), key=key)
    missing = set(leaderboards.records.arms())
    for (arm, methodology, category), leaderboard in groupby(rows, key=key):
        if not methodology and not category:
            missing.discard(arm)
        computed = mappings_by("forecaster", leaderboards.contents(arm, methodology, category).entries)
        archived = mappings_by("forecaster", leaderboard)
        name = f"leaderboard_forecast: {arm} {methodology or 'all'} {category}".strip()
        if archived.keys() != computed.keys():
            yield f"{name} lists {sorted(archived)}, asked families and references are {sorted(computed)}"
            continue
        for forecaster, row in computed.items():
            yield from mismatches(f"{name}, {forecaster}", archived[forecaster], subset(row, (*IDENTITY, *FIGURES)))
            published = subset(archived[forecaster], ("rank", *FIGURES))
            yield from mismatches(f"{name}, figures of {forecaster}", archived[forecaster]["figures"], published)
    for arm in sorted(missing):
        yield f"leaderboard_forecast: the leaderboard of arm {arm} is missing"


def check_agents_boards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and rank ranges by track follow from forecasts."""
    if not archive.is_whole:
        return
    boards: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in archive.rows("leaderboard_agents"):
        if row["protocol"] == FORECAST:
            boards[row["track"]][row["forecaster"]] = row
    records, board_arm = ArchivedForecasts(archive), archive.board_condition()
    resolved, models = records.resolved(board_arm), records.family_names(board_arm)
    first: dict[str, int] = {}
    for (entry, arm), forecasts in sorted(forecasts_by_entry(archive).items()):
        for forecast in forecasts if arm == board_arm else ():
            first.setdefault(forecast["family"], entry)
    tracks = {family["slug"]: family["track"] for family in records.families}
    externals = records.family_names(board_arm, external=True)
    for track, board in boards.items():
        agents = {slug: name for slug, name in externals.items() if tracks[slug] == track}
        for row in forecast_agents_board(resolved, models, agents, first, {}, {}).entries:
            if archived := board.get(row["forecaster"]):
                name = f"leaderboard_agents: {track} {FORECAST}, {row['forecaster']}"
                yield from mismatches(name, archived, subset(row, AGENT_FIGURES))


def check_condition_differences(archive: Archive) -> Iterator[str]:
    """Differences, intervals and p follow from forecasts, and every pair is there."""
    if not archive.is_whole:
        return
    methodologies = []
    for row in archive.methodologies():
        published_at = datetime.fromisoformat(row["published_at"]) if row["published_at"] else None
        methodologies.append(Methodology(version=row["version"], published_at=published_at, forecast=row["forecast"]))
    records = ArchivedForecasts(archive)
    by_arm = {arm: records.resolved(arm) for arm in records.arms()}
    differences = paired_differences(by_arm, Conditions(methodologies))
    yield from check_computed(archive, "condition_differences", map(asdict, differences), "has no common forecasts")
