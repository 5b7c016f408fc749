"""The rows of an archive: everything, one cohort, or the events in a window of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from agents.models import Decision, Elicitation, Envelope, Forecast, Position, Receipt, Trade
from foundation.json_lines import instant_text
from markets.models import QuestionEntry, QuestionSet, Universe
from scoring.exports.dictionary import ArchiveTable
from scoring.exports.tables import TABLES_BY_NAME


@dataclass(frozen=True, slots=True)
class ExportSelection:
    """Everything, or narrowed to a cohort (by number), a half-open window [start, end), or both."""

    cohort: int | None = None
    start: datetime | None = None
    end: datetime | None = None

    @property
    def is_whole(self) -> bool:
        return self.cohort is None and not self.is_window

    @property
    def is_window(self) -> bool:
        return self.start is not None or self.end is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "cohort": self.cohort,
            "from": self.start and instant_text(self.start),
            "to": self.end and instant_text(self.end),
        }

    def before(self, instant: datetime | None) -> ExportSelection:
        """The part of the selection before an instant; all of it if that is None."""
        if instant is None or (self.end is not None and self.end <= instant):
            return self
        return replace(self, end=instant)

    def within(self, time_field: str) -> Q:
        """A filter for rows whose time is in the window; matches all rows if there is no window."""
        condition = Q()
        if self.start is not None:
            condition &= Q(**{f"{time_field}__gte": self.start})
        if self.end is not None:
            condition &= Q(**{f"{time_field}__lt": self.end})
        return condition

    def _in_cohort(self, number_field: str) -> Q:
        return Q() if self.cohort is None else Q(**{number_field: self.cohort})

    def _of_run(self, completed_at: str, frozen_at: str) -> Q:
        """A filter for tasks by the time of their run, or of the freeze if they failed."""
        failed = Q(**{completed_at: None}) & self.within(frozen_at)
        return self.within(completed_at) | failed if self.is_window else Q()

    def rows(self, table: ArchiveTable) -> QuerySet[Any]:
        """The selected rows of a table's model, in the table's order."""
        rows: QuerySet[Any] = table.model.objects.order_by(*table.order)
        if table.name == "books":
            rows = rows.filter(outcome__in=Trade.objects.order_by().values("outcome"))
        return rows if self.is_whole else rows.filter(self._filter(table.name))

    def _filter(self, name: str) -> Q:
        if name in EVENT_TABLES:
            return self.within(EVENT_TABLES[name]) & self._in_cohort("agent__cohort__number")
        filters: dict[str, Callable[[], Q]] = {
            "cohorts": lambda: self._in_cohort("number"),
            "agents": lambda: self._in_cohort("cohort__number"),
            "families": Q,
            "releases": Q,
            "agent_versions": Q,
            "chain": Q,
            "envelopes": self._of_tasks,
            "published_boards": lambda: Q(pk__in=()),
            "signing_keys": Q,
            "receipts": self._receipts,
            "attempts": lambda: self.within("noted_at") & self._in_cohort("agent__cohort__number"),
            "decisions": lambda: Q(pk__in=self.decisions().values("pk")),
            "calls": self._of_tasks,
            "instructions": lambda: Q(call__decision__in=self.decisions().values("pk")),
            "positions": lambda: Q(pk__in=self.positions().values("pk")),
            "universes": lambda: Q(pk__in=self.universes().values("pk")),
            "universe_entries": lambda: Q(universe__in=self.universes().values("pk")),
            "books": lambda: Q(universe__in=self.universes().values("pk")),
            "markets": self._markets,
            "outcomes": lambda: self._markets("market__"),
            # Of the outcomes that the cohort held; of all if there is no cohort.
            "prices": lambda: (
                self.within("observed_at")
                & (Q() if self.cohort is None else Q(outcome__in=self.positions().values("outcome")))
            ),
            "question_sets": lambda: Q(pk__in=self.question_sets().values("pk")),
            "question_entries": lambda: Q(question_set__in=self.question_sets().values("pk")),
            "evidence": lambda: Q(entry__question_set__in=self.question_sets().values("pk")),
            "question_batches": lambda: Q(question_set__in=self.question_sets().values("pk")),
            "questions": lambda: Q(pk__in=self._entries().values("question")),
            "question_options": lambda: Q(question__in=self._entries().values("question")),
            "elicitations": lambda: Q(pk__in=self.elicitations().values("pk")),
            "forecasts": lambda: Q(pk__in=self.forecasts().values("pk")),
            "refused_forecasts": lambda: Q(call__elicitation__in=self.elicitations().values("pk")),
            "forecast_scores": lambda: Q(forecast__in=self.forecasts().values("pk")) & self.within("resolved_at"),
        }
        return filters[name]()

    def _of_tasks(self) -> Q:
        """Rows of selected decisions and elicitations."""
        return Q(decision__in=self.decisions().values("pk")) | Q(elicitation__in=self.elicitations().values("pk"))

    def _receipts(self) -> Q:
        """The whole register up to the first receipt after the window: like a chain, it has no gaps."""
        later = Receipt.objects.filter(received_at__gte=self.end) if self.end else Receipt.objects.none()
        first = later.order_by("sequence").values_list("sequence", flat=True).first()
        return Q() if first is None else Q(sequence__lt=first)

    def decisions(self) -> QuerySet[Decision]:
        """Decisions of the cohort; in a window by the time of their run, or of the freeze if they failed."""
        run = self._of_run("decided_at", "universe__frozen_at") & ~Q(pk__in=self._opened_later("decision"))
        return Decision.objects.filter(self._in_cohort("cohort__number"), run).order_by()

    def _opened_later(self, kind: str) -> QuerySet[Any]:
        """The tasks of the window whose answers took effect after it."""
        later = Envelope.objects.filter(opened_at__gte=self.end) if self.end else Envelope.objects.none()
        return later.filter(**{f"{kind}__isnull": False}).order_by().values(kind)

    def positions(self) -> QuerySet[Position]:
        """Positions of the cohort; of a window those that were open at some time in it."""
        positions = Position.objects.filter(self._in_cohort("agent__cohort__number")).order_by()
        if self.end is not None:
            positions = positions.filter(opened_at__lt=self.end)
        if self.start is not None:
            positions = positions.filter(Q(closed_at=None) | Q(closed_at__gte=self.start))
        return positions

    def universes(self) -> QuerySet[Universe]:
        """Universes of selected decisions, and those frozen in the window."""
        decided_on = Q(pk__in=self.decisions().exclude(universe=None).values("universe"))
        return Universe.objects.order_by().filter(
            decided_on | self.within("frozen_at") if self.is_window else decided_on
        )

    def question_sets(self) -> QuerySet[QuestionSet]:
        """Question sets of the cohort's universes; of a window those that were frozen, answered or scored in it."""
        sets = QuestionSet.objects.order_by()
        if self.cohort is not None:
            return sets.filter(universe__in=self.universes().values("pk"))
        answered = Forecast.objects.filter(self.within("made_at") | self.within("score__resolved_at")).order_by()
        return sets.filter(self.within("frozen_at") | Q(pk__in=answered.values("entry__question_set")))

    def elicitations(self) -> QuerySet[Elicitation]:
        """Elicitations of the question sets; in a window by the time of their run, or of the freeze if they failed."""
        run = self._of_run("made_at", "batch__question_set__frozen_at") & ~Q(pk__in=self._opened_later("elicitation"))
        return Elicitation.objects.filter(run, batch__question_set__in=self.question_sets().values("pk")).order_by()

    def forecasts(self) -> QuerySet[Forecast]:
        """Forecasts of selected elicitations, and those whose scores are selected."""
        scored = Q(pk__in=Forecast.objects.filter(self.within("score__resolved_at")).order_by().values("pk"))
        on_elicitations = Q(elicitation__in=self.elicitations().values("pk"))
        return Forecast.objects.order_by().filter(
            on_elicitations | scored if self.is_window and self.cohort is None else on_elicitations
        )

    def _entries(self) -> QuerySet[QuestionEntry]:
        return QuestionEntry.objects.filter(question_set__in=self.question_sets().values("pk")).order_by()

    def _markets(self, prefix: str = "") -> Q:
        """Markets that a selected row refers to."""
        of_options = self._entries().filter(question__options__outcome__isnull=False)
        referenced = Q(**{f"{prefix}pk__in": of_options.values("question__options__outcome__market")})
        for name in TABLES_WITH_MARKETS:
            rows = self.rows(TABLES_BY_NAME[name]).order_by()
            referenced |= Q(**{f"{prefix}pk__in": rows.values("market")})
        return referenced


EVENT_TABLES = {
    "trades": "executed_at",
    "settlements": "settled_at",
    "reversals": "reversed_at",
    "journal": "occurred_at",
    "snapshots": "taken_at",
    "brier_scores": "resolved_at",
}
"""The time of a row, in the tables of events that concern one agent."""
TABLES_WITH_MARKETS = ("positions", "universe_entries", "trades", "settlements", "reversals", "brier_scores")
