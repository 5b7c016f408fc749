"""The boards of the forecast protocol, of agents too, and the differences of conditions, with all intervals."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from arena_verifier.rows import Row, mismatches
from cohorts.conditions import Conditions
from cohorts.models import Methodology
from foundation.bulk import mappings_by, subset
from scoring.constants import FORECAST
from scoring.exports.tables.results import CONDITION_DIFFERENCES
from scoring.exports.verification.archive_reader import Archive
from scoring.services.agents_boards import FORECAST_FIGURES, forecast_agents_board
from scoring.services.condition_differences import paired_differences
from scoring.services.forecast_panels import ResolvedEntry, forecast_vector, resolved_entry, scored_options
from scoring.services.forecast_ranking import forecast_leaderboard

IDENTITY = ("reference", "external", "rank", "rank_low", "rank_high", "ranked_by", "n", "forecasts")
FIGURES = (
    "coverage", "brier", "brier_se", "brier_ci", "log", "spherical", "accuracy", "alpha", "average_return",
    "adjusted_brier",
)  # fmt: skip
METRICS = ("brier", "log", "spherical", "average_return", "alpha", "adjusted_brier")


class ForecastRecords:
    """Questions of an archive on the days they were asked, and the forecasts on them, as the metrics take them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.questions = archive.by("questions")
        self.options: dict[int, list[tuple[str, bool | None]]] = {}
        for row in archive.rows("question_options"):
            self.options.setdefault(row["question"], []).append((row["name"], row["happened"]))
        self.entries = archive.by("question_entries")
        self.releases = archive.by("releases")
        # Without the texts, which are most of a table.
        self.forecasts = {row["id"]: {**row, "rationale": None, "stated": None} for row in archive.rows("forecasts")}
        self.inputs: dict[tuple[str, str], tuple[list[ResolvedEntry], dict[str, str], dict[str, str]]] = {}
        self.leaderboards: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def entry(self, pk: int) -> ResolvedEntry:
        """An entry of a question set, without forecasts."""
        entry = self.entries[pk]
        question = self.questions[entry["question"]]
        closed = question["closed_at"]
        resolved = resolved_entry(
            pk,
            question["id"],
            self.options[question["id"]],
            entry["prices"],
            event_key=question["event_key"],
            category=question["category"],
            exclusive=question["exclusive"],
            closed_at=datetime.fromisoformat(closed) if closed else None,
        )
        frozen_at = self.archive.by("question_sets")[entry["question_set"]]["frozen_at"]
        batch = entry["question_set"], entry["batch"]
        return replace(resolved, batch=batch, frozen_at=datetime.fromisoformat(frozen_at).timestamp())

    def vector(self, forecast: Row) -> Any:
        names = [name for name, _ in scored_options(self.options[forecast["question"]])]
        return forecast_vector(forecast["probabilities"], names)

    def resolved(self, arm: str, methodology: str) -> list[ResolvedEntry]:
        """Entries of resolved questions in an arm, with the forecasts of all families."""
        batches = set()
        for batch in self.archive.by("question_batches").values():
            if batch["arm"] == arm:
                batches.add((batch["question_set"], batch["number"]))
        question_sets = self.archive.by("question_sets")
        by_day: dict[tuple[Any, int], ResolvedEntry] = {}
        for pk, row in self.entries.items():
            question_set, question = question_sets[row["question_set"]], self.questions[row["question"]]
            is_asked = (row["question_set"], row["batch"]) in batches
            is_counted = question["status"] == "resolved" and self.archive.counts_in(arm, row)
            if is_asked and is_counted and methodology in ("", question_set["methodology"]):
                by_day[question_set["day"], pk] = self.entry(pk)
        entries = {pk: entry for (_, pk), entry in sorted(by_day.items())}
        forecasts = []
        for forecast in self.forecasts.values():
            if forecast["arm"] == arm and forecast["entry"] in entries and not forecast.get("excluded"):
                forecasts.append(forecast)
        # Where two releases of a family answered the same batch, the newer one counts.
        forecasts.sort(key=lambda f: (self.releases[f["release"]]["effective_from"], f["release"], f["id"]))
        externals = {family["slug"] for family in self.archive.rows("families") if family["external"]}
        for forecast in forecasts:
            entry = entries[forecast["entry"]]
            of_entry = entry.external_forecasts if forecast["family"] in externals else entry.forecasts
            of_entry[forecast["family"]] = self.vector(forecast)
            entry.releases[forecast["family"]] = forecast["release"]
        return list(entries.values())

    def leaderboard(self, arm: str, methodology: str, category: str) -> list[dict[str, Any]]:
        """The rows of a leaderboard; methodologies with the same entries and families share it."""
        if (arm, methodology) not in self.inputs:
            families, externals = (self.families(arm, methodology, external=external) for external in (False, True))
            self.inputs[arm, methodology] = self.resolved(arm, methodology), families, externals
        resolved, families, externals = self.inputs[arm, methodology]
        entries = [entry for entry in resolved if category in ("", entry.category)]
        key = arm, tuple(entry.entry for entry in entries), tuple(families), tuple(externals)
        if key not in self.leaderboards:
            contents = forecast_leaderboard(entries, families, externals, metrics=METRICS, reported=False)
            self.leaderboards[key] = contents.entries
        return self.leaderboards[key]

    def families(self, arm: str, methodology: str, *, external: bool) -> dict[str, str]:
        """Display names of a leaderboard's families, by slug: all active ones, and those that were asked."""
        batches = {pk for pk, batch in self.archive.by("question_batches").items() if batch["arm"] == arm}
        participants = set()
        for elicitation in self.archive.by("elicitations").values():
            if elicitation["batch"] in batches and methodology in ("", elicitation["methodology"]):
                participants.add(elicitation["family"])
        names = {}
        for family in sorted(self.archive.rows("families"), key=itemgetter("id")):
            if family["external"] == external and (family["active"] or family["slug"] in participants):
                names[family["slug"]] = family["display_name"]
        return names


def check_forecast_leaderboards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and ranks of each arm, methodology and category follow from forecasts."""
    if not archive.is_whole:
        return
    records = ForecastRecords(archive)
    key = itemgetter("arm", "methodology", "category")
    rows = sorted(archive.rows("leaderboard_forecast"), key=key)
    missing = {(batch["arm"], "", "") for batch in archive.by("question_batches").values()}
    for (arm, methodology, category), leaderboard in groupby(rows, key=key):
        missing.discard((arm, methodology, category))
        expected_rows = records.leaderboard(arm, methodology, category)
        computed = {}
        for row in expected_rows:
            computed[row["forecaster"]] = subset(row, (*IDENTITY, *FIGURES))
        archived = mappings_by("forecaster", leaderboard)
        name = f"leaderboard_forecast: {arm} {methodology or 'all'} {category}".strip()
        if archived.keys() != computed.keys():
            yield f"{name} lists {sorted(archived)}, asked families and references are {sorted(computed)}"
            continue
        for forecaster, figures in computed.items():
            yield from mismatches(f"{name}, {forecaster}", archived[forecaster], figures)
            published = subset(archived[forecaster], ("rank", *FIGURES))
            yield from mismatches(f"{name}, figures of {forecaster}", archived[forecaster]["figures"], published)
    for arm, *_ in sorted(missing):
        yield f"leaderboard_forecast: the leaderboard of arm {arm} is missing"


AGENT_FIGURES = ("rank_low", "rank_high", "score", "score_ci", *FORECAST_FIGURES)


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
                yield from mismatches(name, archived, subset(entry, AGENT_FIGURES))


PAIR_KEY = ("family", "condition_a", "condition_b")


def check_condition_differences(archive: Archive) -> Iterator[str]:
    """Differences, intervals and p follow from forecasts, and every pair is there."""
    if not archive.is_whole:
        return
    methodologies = []
    for row in archive.methodologies():
        published_at = datetime.fromisoformat(row["published_at"]) if row["published_at"] else None
        methodologies.append(Methodology(version=row["version"], published_at=published_at, forecast=row["forecast"]))
    conditions, records = Conditions(methodologies), ForecastRecords(archive)
    arms = {batch["arm"] for batch in archive.by("question_batches").values()}
    computed = {}
    for comparison in paired_differences({arm: records.resolved(arm, "") for arm in sorted(arms)}, conditions):
        computed[comparison.family, comparison.condition_a, comparison.condition_b] = comparison
    for archived in archive.rows(CONDITION_DIFFERENCES.name):
        key = tuple(archived[name] for name in PAIR_KEY)
        difference = computed.pop(key, None)
        if difference is None:
            yield f"condition_differences: {' '.join(key)} has no common forecasts"
            continue
        figures = {name: getattr(difference, name) for name in CONDITION_DIFFERENCES.names}
        yield from mismatches(f"condition_differences: {' '.join(key)}", archived, figures)
    for key in computed:
        yield f"condition_differences: {' '.join(key)} is missing"
