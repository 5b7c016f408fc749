"""Questions of an archive on the days they were asked, and the forecasts on them, as the metrics take them."""

from dataclasses import replace
from datetime import datetime
from operator import itemgetter

from arena_verifier.forecast_leaderboards import AnsweredEntry, answered_entries
from arena_verifier.rows import Row, Tables
from arena_verifier.scores import QuestionRecords
from scoring.selectors.forecast_panels import ResolvedEntry, Vector, resolved_entry


class ArchivedForecasts:
    """The resolved questions of an archive by arm, with the forecasts on them that count."""

    def __init__(self, tables: Tables) -> None:
        self.tables, self.questions = tables, QuestionRecords(tables)
        self.families = sorted(tables.rows("families"), key=itemgetter("id"))
        self.externals = {family["slug"] for family in self.families if family["external"]}

    def entry(self, row: Row) -> ResolvedEntry:
        """An entry of a question set, without forecasts."""
        question = self.questions.questions[row["question"]]
        options = [(option["name"], option["happened"]) for option in self.questions.options[question["id"]]]
        closed_at = question["closed_at"]
        entry = resolved_entry(
            row["id"],
            question["id"],
            options,
            row["prices"],
            event_key=question["event_key"],
            category=question["category"],
            exclusive=question["exclusive"],
            closed_at=datetime.fromisoformat(closed_at) if closed_at else None,
        )
        frozen_at = self.tables.by("question_sets")[row["question_set"]]["frozen_at"]
        batch = row["question_set"], row["batch"]
        return replace(entry, batch=batch, frozen_at=datetime.fromisoformat(frozen_at).timestamp())

    def resolved(self, arm: str, methodology: str = "") -> list[ResolvedEntry]:
        """Entries of resolved questions in an arm by the day they were asked, with the forecasts of all families."""
        question_sets = self.tables.by("question_sets")
        by_day: dict[tuple[str, int], AnsweredEntry] = {}
        for answered in answered_entries(self.tables, self.questions, arm):
            question_set = question_sets[answered.entry["question_set"]]
            if methodology in ("", question_set["methodology"]):
                by_day[question_set["day"], answered.entry["id"]] = answered
        return [self._with_forecasts(by_day[key]) for key in sorted(by_day)]

    def _with_forecasts(self, answered: AnsweredEntry) -> ResolvedEntry:
        forecasts: dict[str, Vector] = {}
        external_forecasts: dict[str, Vector] = {}
        for slug, vector in answered.vectors.items():
            of_kind = external_forecasts if slug in self.externals else forecasts
            of_kind[slug] = vector
        entry = self.entry(answered.entry)
        return replace(
            entry, forecasts=forecasts, external_forecasts=external_forecasts, releases=dict(answered.releases)
        )

    def family_names(self, arm: str, methodology: str = "", *, external: bool = False) -> dict[str, str]:
        """Display names of a leaderboard's families, by slug: all active ones, and those that were asked."""
        batches = {pk for pk, batch in self.tables.by("question_batches").items() if batch["arm"] == arm}
        participants = set()
        for task in self.tables.by("elicitations").values():
            if task["batch"] in batches and methodology in ("", task["methodology"]):
                participants.add(task["family"])
        names = {}
        for family in self.families:
            if family["external"] == external and (family["active"] or family["slug"] in participants):
                names[family["slug"]] = family["display_name"]
        return names

    def arms(self) -> list[str]:
        return sorted({batch["arm"] for batch in self.tables.by("question_batches").values()})
