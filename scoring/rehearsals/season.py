"""A span of the past, played instant by instant by the services of live weeks."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http import HTTPStatus
from itertools import starmap
from operator import attrgetter
from typing import Any, NamedTuple

from django.db import transaction

from agents.models import Decision, Elicitation, Forecast, Position, Registration
from agents.services.cohort_start import enrol_agent
from agents.services.resolutions import Resolution
from agents.services.settlement import complete_cohorts, settle_markets
from agents.services.submission_targets import BatchTarget, SubmissionTarget, open_targets
from agents.services.submissions import record_submission
from cohorts.models import Cohort, Methodology
from markets.models import Market, Outcome, Universe
from markets.services.cache_versions import Scope, renew_versions
from markets.services.question_resolution import resolve_questions
from markets.services.universes import add_held_markets
from markets.sources.polymarket import Clob
from scoring.exports.sound_archives import instant
from scoring.rehearsals.past import Timeline
from scoring.rehearsals.players import AgentFailure, LateAnswer, Player
from scoring.services.forecast_scores import score_forecasts
from scoring.services.scores import score_trades
from scoring.services.snapshots import take_snapshots

REASONS_SHOWN = 20
NOWHERE = "http://127.0.0.1:9"
"""Asked for nothing, since every instant is a replay."""


@dataclass(slots=True)
class RehearsalReport:
    """The counts of a rehearsal, and the first reasons for which a task has no answer."""

    decisions: int = 0
    forecasts: int = 0
    unanswered: int = 0
    late: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)


class Step(NamedTuple):
    """A job at an instant, and what it is about."""

    perform: Callable[[datetime, Any], None]
    at: datetime
    subject: Any = None


@dataclass(slots=True)
class Rehearsal:
    """One agent's way through a timeline; the database holds its past, in the state of its start."""

    timeline: Timeline
    player: Player
    registration: Registration
    seconds: float
    """The time that the agent has for a task."""
    report: RehearsalReport = field(default_factory=RehearsalReport)

    def play(self, progress: Callable[[int, int, str], None]) -> RehearsalReport:
        steps = self._steps()
        for index, step in enumerate(steps):
            progress(index, len(steps), f"{step.at:%Y-%m-%d %H:%M}")
            step.perform(step.at, step.subject)
        score_trades(at=self.timeline.end)
        score_forecasts(at=self.timeline.end)
        self.report.decisions = Decision.objects.filter(status=Decision.Status.COMPLETED).count()
        self.report.forecasts = Forecast.objects.count()
        return self.report

    def _steps(self) -> list[Step]:
        """The steps by their instants; those of one instant in the order of the jobs of a live week."""
        timeline = self.timeline
        steps = list(starmap(partial(Step, self._close), timeline.closings.items()))
        steps += starmap(partial(Step, self._settle), timeline.resolutions.items())
        if self.player.trades:
            for row in timeline.cohorts:
                steps.append(Step(self._start_cohort, instant(row["started_at"]), row))
            steps += map(partial(Step, self._take_snapshots), timeline.snapshots)
            for universe in timeline.universes:
                steps.append(Step(self._decide, universe.frozen_at, universe))
        if self.player.forecasts:
            frozen = set(map(attrgetter("frozen_at"), timeline.question_sets))
            steps += map(partial(Step, self._ask), frozen)
        return sorted(steps, key=attrgetter("at"))  # stable: jobs are listed in the order of a live week

    def _close(self, at: datetime, markets: list[int]) -> None:
        Market.objects.filter(pk__in=markets).update(status=Market.Status.CLOSED, closed_at=at)
        resolve_questions(at=at)

    def _settle(self, at: datetime, winners: dict[int, int | None]) -> None:
        outcomes = Outcome.objects.in_bulk([winner for winner in winners.values() if winner is not None])
        resolutions = {}
        for market in Market.objects.filter(pk__in=winners):
            winner = winners[market.pk]
            resolutions[market] = Resolution(None if winner is None else outcomes[winner])
        settle_markets(resolutions, at=at)
        complete_cohorts(at=at)
        resolve_questions(at=at)
        score_trades(at=at)

    def _start_cohort(self, at: datetime, row: dict[str, Any]) -> None:
        methodology = Methodology.objects.get(version=row["methodology"])
        release = self.registration.family.release_at(at)
        assert release is not None
        week_start = instant(row["week_start"])
        with transaction.atomic():
            cohort = Cohort.objects.create(
                number=row["number"], week_start=week_start, methodology=methodology, started_at=at
            )
            enrol_agent(cohort, release, at=at)
            renew_versions(Scope.COMPETITION)

    def _take_snapshots(self, at: datetime, _: None) -> None:
        take_snapshots(at=at, clob=Clob(NOWHERE))

    def _decide(self, at: datetime, universe: Universe) -> None:
        add_held_markets(universe, Position.objects.open().values_list("market_id", flat=True).distinct(), at=at)
        self._ask(at, universe)

    def _ask(self, at: datetime, universe: Universe | None) -> None:
        """Asks for the decisions at a universe's prices, or for the forecasts of the batches frozen now."""
        kind = Elicitation if universe is None else Decision
        for target in open_targets(self.registration, at=at):
            if target.frozen_at == at and isinstance(target.task, kind):
                self._ask_until_answered(target, at)

    def _ask_until_answered(self, target: SubmissionTarget[Any], at: datetime) -> None:
        """Hands a task to the agent, again after a refused answer for as long as a live task is open."""
        name, tries = target.name, 0
        current: SubmissionTarget[Any] | None = target
        while current is not None:
            tries += 1
            try:
                body = self.player.answer(task_message(current), self.seconds)
            except AgentFailure as error:
                self.report.unanswered += 1
                self.report.late += isinstance(error, LateAnswer)
                self._tell(f"{name}: {error}")
                return
            key = f"{name} {tries}"
            submission = record_submission(current, registration=self.registration, key=key, body=body, at=at)
            if submission.status == HTTPStatus.CREATED:
                return
            self.report.refused += 1
            self._tell(f"{name}: {submission.response['detail']}")
            current = next((t for t in open_targets(self.registration, at=at) if t.name == name), None)

    def _tell(self, reason: str) -> None:
        if len(self.report.reasons) < REASONS_SHOWN:
            self.report.reasons.append(reason[:500])


def task_message(target: SubmissionTarget[Any]) -> dict[str, Any]:
    """The task as the agent's process or URL is handed it, with the words of the API."""
    names = ("batch",) if isinstance(target, BatchTarget) else ("agent", "universe")
    return {
        "task": "-".join(f"{name}-{getattr(target.task, f'{name}_id')}" for name in names),
        "frozen_at": target.frozen_at.isoformat(),
        "blocks": target.blocks,
        "system_prompt": target.task.system_prompt,
        "user_prompt": target.user_prompt,
    }
