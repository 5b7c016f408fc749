"""What goes into an archive: everything, one cohort, or what happened in a window of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.apps import apps
from django.db.models import Q, QuerySet

from agents.models import Decision, Elicitation, Forecast, Position, Reversal, Settlement, Trade
from agents.records import instant_text
from markets.models import QuestionEntry, QuestionSet, Universe, UniverseEntry
from scoring.exports.dictionary import Table
from scoring.models import BrierScore


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything, unless a cohort's number or a half-open window [start, end) narrows it."""

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

    def within(self, time: str) -> Q:
        """Rows whose time lies in the window; all where there is none."""
        inside = Q()
        if self.start is not None:
            inside &= Q(**{f"{time}__gte": self.start})
        if self.end is not None:
            inside &= Q(**{f"{time}__lt": self.end})
        return inside

    def rows(self, table: Table) -> QuerySet[Any]:
        """The rows of a table's model that are selected, in the table's order."""
        model: Any = apps.get_model(table.model)
        rows = model.objects.filter(**table.where).order_by(*table.order)
        return rows if self.is_whole else rows.filter(self._chosen(table.name))

    def _chosen(self, name: str) -> Q:
        if name in EVENTS:
            time, cohort = EVENTS[name]
            of_cohort = Q() if self.cohort is None else Q(**{cohort: self.cohort})
            return self.within(time) & of_cohort
        return {
            "cohorts": lambda: Q() if self.cohort is None else Q(number=self.cohort),
            "agents": lambda: Q() if self.cohort is None else Q(cohort__number=self.cohort),
            "families": Q,
            "releases": Q,
            "chain": Q,
            "decisions": lambda: Q(pk__in=self.decisions().values("pk")),
            "calls": lambda: (
                Q(decision__in=self.decisions().values("pk")) | Q(elicitation__in=self.elicitations().values("pk"))
            ),
            "instructions": lambda: Q(call__decision__in=self.decisions().values("pk")),
            "positions": lambda: Q(pk__in=self.positions().values("pk")),
            "universes": lambda: Q(pk__in=self.universes().values("pk")),
            "universe_entries": lambda: Q(universe__in=self.universes().values("pk")),
            "markets": self._markets,
            "outcomes": lambda: self._markets("market__"),
            "prices": lambda: self.within("observed_at") & self._held_outcomes(),
            "question_sets": lambda: Q(pk__in=self.question_sets().values("pk")),
            "question_entries": lambda: Q(question_set__in=self.question_sets().values("pk")),
            "question_sheets": lambda: Q(question_set__in=self.question_sets().values("pk")),
            "questions": lambda: Q(pk__in=self._entries().values("question")),
            "question_options": lambda: Q(question__in=self._entries().values("question")),
            "elicitations": lambda: Q(pk__in=self.elicitations().values("pk")),
            "forecasts": lambda: Q(pk__in=self.forecasts().values("pk")),
            "refused_forecasts": lambda: Q(call__elicitation__in=self.elicitations().values("pk")),
            "forecast_scores": self._forecast_scores,
        }[name]()

    def decisions(self) -> QuerySet[Decision]:
        """A cohort's decisions; those of a window by the instant of their run, or of their universe if they failed."""
        decisions: QuerySet[Decision] = Decision.objects.order_by()
        if self.cohort is not None:
            decisions = decisions.filter(cohort__number=self.cohort)
        undecided = Q(decided_at=None) & self.within("universe__frozen_at")
        return decisions.filter(self.within("decided_at") | undecided) if self.is_window else decisions

    def positions(self) -> QuerySet[Position]:
        """A cohort's positions; those held at some time of a window."""
        positions = Position.objects.order_by()
        if self.cohort is not None:
            positions = positions.filter(agent__cohort__number=self.cohort)
        if self.end is not None:
            positions = positions.filter(opened_at__lt=self.end)
        if self.start is not None:
            positions = positions.filter(Q(closed_at=None) | Q(closed_at__gte=self.start))
        return positions

    def universes(self) -> QuerySet[Universe]:
        """Those that selected decisions saw, and those frozen in a window."""
        chosen = Q(pk__in=self.decisions().exclude(universe=None).values("universe"))
        return Universe.objects.order_by().filter(chosen | self.within("frozen_at") if self.is_window else chosen)

    def question_sets(self) -> QuerySet[QuestionSet]:
        """Those at a cohort's own universes; those frozen or answered in a window, or scored in it."""
        sets = QuestionSet.objects.order_by()
        if self.cohort is not None:
            return sets.filter(universe__in=self.universes().values("pk"))
        answered = Forecast.objects.filter(self.within("made_at") | self.within("score__resolved_at")).order_by()
        return sets.filter(self.within("frozen_at") | Q(pk__in=answered.values("entry__question_set")))

    def elicitations(self) -> QuerySet[Elicitation]:
        """A cohort's own families at its universes; those of a window by the instant of their run."""
        tasks: QuerySet[Elicitation] = Elicitation.objects.order_by()
        if self.is_whole:
            return tasks
        tasks = tasks.filter(sheet__question_set__in=self.question_sets().values("pk"))
        unmade = Q(made_at=None) & self.within("sheet__question_set__frozen_at")
        return tasks.filter(self.within("made_at") | unmade) if self.is_window else tasks

    def forecasts(self) -> QuerySet[Forecast]:
        """Those of selected elicitations, and those whose scores are selected."""
        scored = Q(pk__in=Forecast.objects.filter(self.within("score__resolved_at")).order_by().values("pk"))
        own = Q(elicitation__in=self.elicitations().values("pk"))
        return Forecast.objects.order_by().filter(own | scored if self.is_window and self.cohort is None else own)

    def _forecast_scores(self) -> Q:
        own = Q(forecast__in=self.forecasts().values("pk"))
        return own & self.within("resolved_at")

    def _entries(self) -> QuerySet[QuestionEntry]:
        return QuestionEntry.objects.filter(question_set__in=self.question_sets().values("pk")).order_by()

    def _markets(self, prefix: str = "") -> Q:
        """Every market that a selected row speaks of."""
        named = Q(**{f"{prefix}pk__in": self.positions().values("market")})
        for rows in (
            UniverseEntry.objects.filter(universe__in=self.universes().values("pk")),
            *(model.objects.filter(self._chosen(name)) for name, model in OF_MARKETS.items()),
        ):
            named |= Q(**{f"{prefix}pk__in": rows.order_by().values("market")})
        asked = self._entries().values("question__options__outcome__market")
        return named | Q(**{f"{prefix}pk__in": asked.exclude(question__options__outcome=None)})

    def _held_outcomes(self) -> Q:
        """Of a cohort, prices of what it held; of a window, all."""
        return Q() if self.cohort is None else Q(outcome__in=self.positions().values("outcome"))


EVENTS = {
    "trades": ("executed_at", "agent__cohort__number"),
    "settlements": ("settled_at", "agent__cohort__number"),
    "reversals": ("reversed_at", "agent__cohort__number"),
    "journal": ("occurred_at", "agent__cohort__number"),
    "snapshots": ("taken_at", "agent__cohort__number"),
    "brier_scores": ("resolved_at", "agent__cohort__number"),
}
"""Tables of what happened at an instant to an agent: the time that places a row, and where its cohort is."""
OF_MARKETS: dict[str, Any] = {
    "trades": Trade,
    "settlements": Settlement,
    "reversals": Reversal,
    "brier_scores": BrierScore,
}
