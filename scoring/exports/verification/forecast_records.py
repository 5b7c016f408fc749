"""Questions and forecasts of an archive, put together for the metrics."""

from datetime import datetime
from typing import Any

import numpy as np

from scoring.exports.verification.archive_reader import Archive, Row
from scoring.services.forecast_panels import FamilyForecast, ResolvedEntry, resolved_entry


class ForecastRecords:
    """Questions of an archive on the days they were asked, and the forecasts on them, as the metrics take them."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.questions = archive.by_id("questions")
        self.options: dict[int, list[tuple[str, bool | None]]] = {}
        for row in archive.rows("question_options"):
            self.options.setdefault(row["question"], []).append((row["name"], row["happened"]))
        self.entries = archive.by_id("question_entries")
        self.sets = archive.by_id("question_sets")
        self.batches = archive.by_id("question_batches")
        self.elicitations = archive.by_id("elicitations")
        self.releases = archive.by_id("releases")
        self.externals = {family["slug"] for family in archive.rows("families") if family["external"]}
        self.forecasts: dict[int, Row] = {}
        for row in archive.rows("forecasts"):
            self.forecasts[row["id"]] = {**row, "rationale": None, "stated": None}

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
            event=question["event_key"],
            category=question["category"],
            exclusive=question["exclusive"],
            closed_at=datetime.fromisoformat(closed) if closed else None,
        )

    def vector(self, forecast: Row) -> Any:
        names = [name for name, _ in self.options[forecast["question"]]]
        return np.array([forecast["probabilities"][name] for name in names], dtype=np.float64)

    def resolved(self, arm: str, methodology: str) -> list[ResolvedEntry]:
        """Entries of resolved questions in an arm, with the forecasts of all families."""
        batches = {(s["question_set"], s["number"]) for s in self.batches.values() if s["arm"] == arm}
        chosen = [
            entry
            for entry in self.entries.values()
            if (entry["question_set"], entry["batch"]) in batches
            and self.questions[entry["question"]]["status"] == "resolved"
            and methodology in ("", self.sets[entry["question_set"]]["methodology"])
        ]
        chosen.sort(key=lambda entry: (self.sets[entry["question_set"]]["day"], entry["id"]))
        entries = {entry["id"]: self.entry(entry["id"]) for entry in chosen}
        forecasts = [f for f in self.forecasts.values() if f["arm"] == arm and f["entry"] in entries]
        # Where two releases of a family answered the same batch, the newer one counts.
        forecasts.sort(key=lambda f: (self.releases[f["release"]]["effective_from"], f["release"], f["id"]))
        for forecast in forecasts:
            entry = entries[forecast["entry"]]
            of_entry = entry.external_forecasts if forecast["family"] in self.externals else entry.forecasts
            of_entry[forecast["family"]] = FamilyForecast(forecast["id"], self.vector(forecast))
        return list(entries.values())

    def families(self, arm: str, methodology: str, *, external: bool = False) -> list[str]:
        """Families of a leaderboard, by id: all active ones, and those that were asked."""
        batches = {pk for pk, batch in self.batches.items() if batch["arm"] == arm}
        asked = {
            elicitation["family"]
            for elicitation in self.elicitations.values()
            if elicitation["batch"] in batches and methodology in ("", elicitation["methodology"])
        }
        families = sorted(self.archive.rows("families"), key=lambda family: family["id"])
        families = [family for family in families if family["external"] == external]
        return [family["slug"] for family in families if family["active"] or family["slug"] in asked]
