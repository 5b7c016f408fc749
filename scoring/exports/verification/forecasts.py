"""Scores of forecasts, and the leaderboards of the forecast protocol."""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby, islice
from typing import Any

from scoring.exports.verification.archive_reader import Archive, Row, mismatches
from scoring.services.forecast_leaderboards import forecast_leaderboard
from scoring.services.forecast_panels import ResolvedEntry, forecast_vector, resolved_entry, scored_options
from scoring.services.forecast_scores import BATCH, forecast_figures

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
        self.questions = archive.by_id("questions")
        self.options: dict[int, list[tuple[str, bool | None]]] = {}
        for row in archive.rows("question_options"):
            self.options.setdefault(row["question"], []).append((row["name"], row["happened"]))
        self.entries = archive.by_id("question_entries")
        self.releases = archive.by_id("releases")
        # Without the texts, which are most of a table.
        self.forecasts = {row["id"]: {**row, "rationale": None, "stated": None} for row in archive.rows("forecasts")}
        self.inputs: dict[tuple[str, str], tuple[list[ResolvedEntry], dict[str, str], dict[str, str]]] = {}
        self.leaderboards: dict[tuple[Any, ...], list[dict[str, Any]]] = {}

    def entry(self, pk: int) -> ResolvedEntry:
        """An entry of a question set, without forecasts."""
        entry = self.entries[pk]
        question = self.questions[entry["question"]]
        closed = question["closed_at"]
        return resolved_entry(
            pk,
            question["id"],
            self.options[question["id"]],
            entry["prices"],
            **{name: question[name] for name in ("event_key", "category", "exclusive")},
            closed_at=datetime.fromisoformat(closed) if closed else None,
        )

    def vector(self, forecast: Row) -> Any:
        scored = scored_options(self.options[forecast["question"]])
        return forecast_vector(forecast["probabilities"], [name for name, _ in scored])

    def resolved(self, arm: str, methodology: str) -> list[ResolvedEntry]:
        """Entries of resolved questions in an arm, with the forecasts of all families."""
        batches = {(s["question_set"], s["number"]) for s in self.archive.question_batches.values() if s["arm"] == arm}
        chosen = [
            entry
            for entry in self.entries.values()
            if (entry["question_set"], entry["batch"]) in batches
            and self.questions[entry["question"]]["status"] == "resolved"
            and methodology in ("", self.archive.question_sets[entry["question_set"]]["methodology"])
        ]
        chosen.sort(key=lambda entry: (self.archive.question_sets[entry["question_set"]]["day"], entry["id"]))
        entries = {entry["id"]: self.entry(entry["id"]) for entry in chosen}
        forecasts = [f for f in self.forecasts.values() if f["arm"] == arm and f["entry"] in entries]
        # Where two releases of a family answered the same batch, the newer one counts.
        forecasts.sort(key=lambda f: (self.releases[f["release"]]["effective_from"], f["release"], f["id"]))
        for forecast in forecasts:
            entry = entries[forecast["entry"]]
            of_entry = entry.external_forecasts if forecast["family"] in self.archive.externals else entry.forecasts
            of_entry[forecast["family"]] = self.vector(forecast)
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
        batches = {pk for pk, batch in self.archive.question_batches.items() if batch["arm"] == arm}
        asked = {
            elicitation["family"]
            for elicitation in self.archive.elicitations.values()
            if elicitation["batch"] in batches and methodology in ("", elicitation["methodology"])
        }
        families = sorted(self.archive.rows("families"), key=lambda family: family["id"])
        members = (f for f in families if f["external"] == external and (f["active"] or f["slug"] in asked))
        return {family["slug"]: family["display_name"] for family in members}


def check_forecast_scores(archive: Archive) -> Iterator[str]:
    """Each forecast on a resolved question has the scores that follow from its probabilities, and no other has one."""
    records = ForecastRecords(archive)
    scores = {row["forecast"]: row for row in archive.rows("forecast_scores")}
    for pk, forecast in records.forecasts.items():
        resolved = records.questions[forecast["question"]]["status"] == "resolved"
        if resolved != (pk in scores) and not archive.is_window:
            yield f"forecast_scores: forecast {pk} has {'none' if resolved else 'one'}, against its question's status"
        yield from _check_origin(records, forecast)
    remaining = iter(scores.items())
    while batch := list(islice(remaining, BATCH)):
        forecasts = [records.forecasts[pk] for pk, _ in batch]
        figures = forecast_figures([(records.entry(row["entry"]), records.vector(row)) for row in forecasts])
        for (pk, score), forecast, computed in zip(batch, forecasts, figures, strict=True):
            resolved_at = records.questions[forecast["question"]]["resolved_at"]
            yield from mismatches(f"forecast_scores: of forecast {pk}", score, computed | {"resolved_at": resolved_at})


def _check_origin(records: ForecastRecords, forecast: Row) -> Iterator[str]:
    """A forecast agrees with its elicitation, and with the question of its entry."""
    elicitation = records.archive.elicitations.get(forecast["elicitation"])
    if elicitation is None:
        return
    names = ("family", "release", "methodology", "made_at")
    if [forecast[name] for name in names] != [elicitation[name] for name in names]:
        yield f"forecasts: forecast {forecast['id']} differs from its elicitation {elicitation['id']}"
    if records.entries[forecast["entry"]]["question"] != forecast["question"]:
        yield f"forecasts: forecast {forecast['id']} is on another question than its entry"
    if records.archive.question_batches[elicitation["batch"]]["arm"] != forecast["arm"]:
        yield f"forecasts: forecast {forecast['id']} is of another arm than its elicitation"


def check_forecast_leaderboards(archive: Archive) -> Iterator[str]:
    """Scores, intervals and ranks of each arm, methodology and category follow from forecasts."""
    if not archive.is_whole:
        return
    records = ForecastRecords(archive)
    key = ("arm", "methodology", "category")
    rows = sorted(archive.rows("leaderboard_forecast"), key=lambda row: [row[name] for name in key])
    missing = {(batch["arm"], "", "") for batch in archive.question_batches.values()}
    for (arm, methodology, category), leaderboard in groupby(rows, key=lambda row: tuple(row[name] for name in key)):
        missing.discard((arm, methodology, category))
        due = records.leaderboard(arm, methodology, category)
        computed = {row["forecaster"]: {name: row[name] for name in (*IDENTITY, *FIGURES)} for row in due}
        stated = {row["forecaster"]: row for row in leaderboard}
        name = f"leaderboard_forecast: {arm} {methodology or 'all'} {category}".strip()
        if stated.keys() != computed.keys():
            yield f"{name} lists {sorted(stated)}, asked families and references are {sorted(computed)}"
            continue
        for forecaster, figures in computed.items():
            yield from mismatches(f"{name}, {forecaster}", stated[forecaster], figures)
            published = {figure: stated[forecaster][figure] for figure in ("rank", *FIGURES)}
            yield from mismatches(f"{name}, figures of {forecaster}", stated[forecaster]["figures"], published)
    for arm, *_ in sorted(missing):
        yield f"leaderboard_forecast: the leaderboard of arm {arm} is missing"
