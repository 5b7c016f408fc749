"""What was not answered within its window: recorded as missed, once and for ever."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from agents.models import Agent, Decision, Elicitation, Registration
from agents.models.agent import EXTERNAL_WINDOW
from cohorts.models import Cohort, Methodology
from cohorts.weeks import WEEK
from markets.models import QuestionSheet, Universe
from markets.models.question import day_of

NOT_SUBMITTED = "nothing was submitted in time"
DAY = timedelta(days=1)


def record_missed(cohorts: Iterable[Cohort], *, at: datetime, family: str | None = None) -> int:
    """Marks every decision of `cohorts` that can no longer be made at `at`; returns how many."""
    return sum(_record(cohort, at, family) for cohort in cohorts)


def record_unsubmitted(*, at: datetime) -> int:
    """Marks the sheets that external agents left unanswered until their deadline; returns how many.

    Those of yesterday and today: whoever was registered when a sheet was frozen had it to answer.
    """
    over = QuestionSheet.objects.filter(
        question_set__day__gte=day_of(at) - DAY, question_set__frozen_at__lte=at - EXTERNAL_WINDOW
    )
    missed = [task for sheet in over.select_related("question_set") for task in _unsubmitted(sheet)]
    Elicitation.objects.bulk_create(missed, ignore_conflicts=True)
    return len(missed)


def _unsubmitted(sheet: QuestionSheet) -> Iterator[Elicitation]:
    asked = sheet.question_set
    known = set(sheet.elicitations.values_list("family", flat=True))
    registered = Registration.objects.live(asked.frozen_at).covering(Elicitation.PROTOCOL)
    for registration in registered.exclude(family__in=known).select_related("family"):
        release = registration.family.release_at(asked.frozen_at)
        if release is not None:
            yield Elicitation(
                sheet=sheet,
                methodology=Methodology.objects.get(version=asked.methodology),
                release=release,
                family_id=release.family_id,
                status=Elicitation.Status.MISSED,
                error=NOT_SUBMITTED,
            )


def _record(cohort: Cohort, at: datetime, family: str | None) -> int:
    agents = Agent.objects.filter(cohort=cohort, status=Agent.Status.ACTIVE)
    if family:
        agents = agents.filter(family__slug=family)
    windows = (
        (False, cohort.methodology.retry_window, "never asked within the window"),
        (True, EXTERNAL_WINDOW, NOT_SUBMITTED),
    )
    weeks = _weeks_so_far(cohort, at)
    return sum(
        _record_those(cohort, agents.filter(family__external=external), _weeks_over(weeks, at, window), why)
        for external, window, why in windows
    )


def _record_those(cohort: Cohort, agents: QuerySet[Agent], over: dict[int, Universe | None], why: str) -> int:
    ids = list(agents.values_list("pk", flat=True)) if over else []
    if not ids:
        return 0
    decided = Decision.objects.filter(agent__in=ids, week__in=over)
    unsuccessful = Decision.objects.claimable(timezone.now()).filter(agent__in=ids, week__in=over)
    missed = unsuccessful.update(status=Decision.Status.MISSED, claim_token=None, lease_until=None)
    known = set(decided.values_list("agent_id", "week"))
    never_asked = [
        Decision(
            agent_id=agent,
            cohort=cohort,
            week=week,
            universe=universe,
            status=Decision.Status.MISSED,
            error=why,
        )
        for week, universe in over.items()
        for agent in ids
        if (agent, week) not in known
    ]
    Decision.objects.bulk_create(never_asked, ignore_conflicts=True)
    return missed + len(never_asked)


def _weeks_so_far(cohort: Cohort, at: datetime) -> list[tuple[int, datetime, Universe | None]]:
    """The cohort's decision weeks that have begun by `at`: their number, start, and universe if one was frozen."""
    methodology = cohort.methodology
    asked_so_far = min(cohort.decision_week(at), methodology.decision_weeks)
    starts = {cohort.week_start + (week - 1) * WEEK: week for week in range(1, asked_so_far + 1)}
    frozen = Universe.objects.filter(methodology=methodology.version, week_start__in=starts).defer("market_block")
    universes = {universe.week_start: universe for universe in frozen}
    return [(week, start, universes.get(start)) for start, week in starts.items()]


def _weeks_over(
    weeks: Iterable[tuple[int, datetime, Universe | None]], at: datetime, window: timedelta
) -> dict[int, Universe | None]:
    """Of these weeks those whose window has passed by `at`, with their universes."""
    return {
        week: universe
        for week, start, universe in weeks
        if at >= (universe.frozen_at + window if universe else start + WEEK)
    }
