"""Missed tasks: decisions and elicitations without an answer at the end of their window."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import Count, Q
from django.utils import timezone

from agents.models import Agent, Decision, Elicitation, Family, Registration, Task
from agents.models.family import EXTERNAL_WINDOW
from agents.services.attempts import note_missed_tasks
from cohorts.models import Cohort, Methodology
from cohorts.weeks import WEEK
from foundation.bulk import create_missing, rows_by
from markets.models import QuestionBatch, Universe
from markets.models.question import day_of

NEVER_ASKED = "never asked within the window"
NOT_SUBMITTED = "nothing was submitted in time"
DAY = timedelta(days=1)
MISSED = {"status": Task.Status.MISSED, "lease_id": None, "lease_until": None}


def record_missed_decisions(cohorts: Iterable[Cohort], *, at: datetime, family: str | None = None) -> int:
    """Marks every decision of `cohorts` whose window has ended by `at` as missed; returns their number."""
    missed = sum(_record_cohort(cohort, at, family) for cohort in _unfinished_cohorts(cohorts, at))
    note_missed_tasks(at=at)
    return missed


def record_missed_elicitations(*, at: datetime) -> int:
    """Marks failed elicitations whose window has ended by `at` as missed; returns their number."""
    claimable = Elicitation.objects.claimable(timezone.now())
    tasks = claimable.select_related("batch__question_set", "methodology", "family")
    expired = [task.pk for task in tasks if at >= task.window_ends_at]
    return claimable.filter(pk__in=expired).update(**MISSED)


def record_unsubmitted_elicitations(*, at: datetime) -> int:
    """Records a missed elicitation for each batch of yesterday and today without an external agent's answer.

    An agent had to answer the batches that were frozen while it was registered.
    """
    batches = QuestionBatch.objects.filter(
        question_set__day__gte=day_of(at) - DAY, question_set__frozen_at__lte=at - EXTERNAL_WINDOW
    )
    missed: list[Elicitation] = []
    for batch in batches.select_related("question_set"):
        missed += _unsubmitted_elicitations(batch, at)
    created = create_missing(missed, "batch", "release", "sample")
    note_missed_tasks(at=at)
    return created


def _unsubmitted_elicitations(batch: QuestionBatch, at: datetime) -> Iterator[Elicitation]:
    questions = batch.question_set
    answered = set(batch.elicitations.values_list("family", flat=True))
    registrations = Registration.objects.live(questions.frozen_at).covering(Elicitation.PROTOCOL)
    for registration in registrations.exclude(family__in=answered).select_related("family"):
        release = registration.family.release_at(questions.frozen_at)
        if release is None:
            continue
        task = Elicitation(
            batch=batch,
            methodology=Methodology.objects.get(version=questions.methodology),
            release=release,
            family=registration.family,
            status=Elicitation.Status.MISSED,
            error=NOT_SUBMITTED,
        )
        if task.is_open_to_agents and at >= task.window_ends_at:
            yield task


def _unfinished_cohorts(cohorts: Iterable[Cohort], at: datetime) -> Iterator[Cohort]:
    """The cohorts in which an active agent has fewer final decisions than weeks have begun."""
    candidates = list(cohorts)
    final = Q(decisions__in=Decision.objects.final().values("pk"))
    agents = Agent.objects.filter(cohort__in=candidates, status=Agent.Status.ACTIVE).order_by()
    fewest: dict[int, int] = {}
    for cohort, number in agents.annotate(final=Count("decisions", filter=final)).values_list("cohort", "final"):
        fewest[cohort] = min(number, fewest.get(cohort, number))
    for candidate in candidates:
        weeks = candidate.weeks_begun(at)
        if fewest.get(candidate.pk, weeks) < weeks:
            yield candidate


def _record_cohort(cohort: Cohort, at: datetime, family: str | None) -> int:
    agents = Agent.objects.filter(cohort=cohort, status=Agent.Status.ACTIVE).select_related("family")
    methodology, weeks = cohort.methodology, _weeks_so_far(cohort, at).items()
    past: dict[tuple[int, int], Decision] = {}
    for agent in agents.filter(family__slug=family) if family else agents:
        for week, (start, universe) in weeks:
            if at >= _decision_ends_at(agent.family, methodology, start, universe):
                past[agent.pk, week] = _missed_decision(agent, universe, week)
    decisions = Decision.objects.filter(cohort=cohort)
    claimable = decisions.claimable(timezone.now())
    failed = [pk for pk, *key in claimable.values_list("pk", "agent", "week") if tuple(key) in past]
    missed = claimable.filter(pk__in=failed).update(**MISSED)
    unrecorded = past.keys() - set(decisions.values_list("agent", "week"))
    rows = [past[key] for key in sorted(unrecorded)]
    return missed + create_missing(rows, "agent", "cohort", "week")


def _decision_ends_at(family: Family, methodology: Methodology, start: datetime, universe: Universe | None) -> datetime:
    if universe is None:
        return start + WEEK
    return universe.frozen_at + family.answer_window(methodology, methodology.retry_window)


def _missed_decision(agent: Agent, universe: Universe | None, week: int) -> Decision:
    return Decision(
        agent=agent,
        cohort_id=agent.cohort_id,
        week=week,
        universe=universe,
        status=Decision.Status.MISSED,
        error=NOT_SUBMITTED if agent.family.external else NEVER_ASKED,
    )


def _weeks_so_far(cohort: Cohort, at: datetime) -> dict[int, tuple[datetime, Universe | None]]:
    """The cohort's decision weeks that have begun by `at`: start, and universe if one was frozen."""
    methodology = cohort.methodology
    starts = {week: cohort.week_start + (week - 1) * WEEK for week in range(1, cohort.weeks_begun(at) + 1)}
    frozen = Universe.objects.filter(methodology=methodology.version, week_start__in=starts.values())
    universes = rows_by("week_start", frozen.defer("market_block"))
    return {week: (start, universes.get(start)) for week, start in starts.items()}
