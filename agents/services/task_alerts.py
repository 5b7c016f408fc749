"""Alerts about tasks without an answer or a question: one a day, whatever its number of models, cohorts and batches.

A decision belongs to its week's Sunday, an elicitation to the day of its questions: a gateway that fails on a Sunday
fails both, which is one concern. A task leaves its alert when it is answered.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from agents.account_errors import RELEASE_REFUSED
from agents.models import Decision, Elicitation, Task
from cohorts.weeks import WEEK, week_start
from foundation.models import Alert, AlertItem
from foundation.services.alerts import clear_others, raise_alert
from markets.models import QuestionSet
from markets.models.question import day_of

FAILED, MISSED, LEFT_OUT = "tasks-failed", "tasks-missed", "conditions-left-out"
MISSED_WITHIN = timedelta(days=14)
"""Older tasks that were missed raise no alert any more."""
MOST_WEEKS = 10
"""More decision weeks than a cohort has."""
NOUNS = ((Decision, "decision", "decisions"), (Elicitation, "forecast batch", "forecast batches"))


def refresh_task_alerts(*, at: datetime) -> None:
    """Raises and clears the alerts about failed and missed tasks, as they are now."""
    days = {day_of(at), week_start(at)}
    open_alerts = Alert.objects.open().filter(kind=FAILED).values_list("subject", flat=True)
    days |= {datetime.fromisoformat(f"{day}T00:00:00Z") for day in open_alerts}
    for day in sorted(days):
        _refresh_failed(day, at)
    _refresh_left_out(at)
    _raise_missed(at)


def _refresh_failed(day: datetime, at: datetime) -> None:
    tasks = [
        *_decisions(status=Task.Status.FAILED, universe__week_start=day),
        *_elicitations(status=Task.Status.FAILED, batch__question_set__day=day),
    ]
    failed = [
        task for task in tasks if not task.error.startswith(RELEASE_REFUSED)
    ]  # of which its release's alert tells
    subject, items = f"{day:%Y-%m-%d}", _items(failed)
    clear_others(FAILED, items, subject=subject, at=at)
    if not failed:
        return
    message = _message(failed, day, "failed")
    raise_alert(
        kind=FAILED,
        subject=subject,
        items=items,
        message=message,
        at=at,
        path=_path(failed),
        remedy="Remove the cause that the message names (402: add credit at the gateway; spend cap: run "
        "reconcile_costs, or raise the limit on the dashboard). Every run within 24 hours of the freeze asks again; "
        "Retry on the dashboard asks at once.",
        repeated=True,
    )
    Alert.objects.open().filter(kind=FAILED, subject=subject).exclude(message=message).update(message=message)


def _refresh_left_out(at: datetime) -> None:
    """Raises the alert about conditions that are not asked on the newest day of questions, and clears others."""
    newest = QuestionSet.objects.order_by("-day", "part").first()
    reasons = newest.left_out if newest else {}
    clear_others(LEFT_OUT, reasons, at=at)
    if newest and reasons:
        names = " and ".join(sorted(reasons))
        raise_alert(
            kind=LEFT_OUT,
            subject=f"{newest.day:%Y-%m-%d}",
            items={name: f"the condition {name}" for name in reasons},
            message=f"Not asked on {newest.day.day} {newest.day:%B %Y}: {names}. {next(iter(reasons.values()))}",
            at=at,
            path=f"/admin/markets/questionset/{newest.pk}/change/",
            remedy="Run doctor, which asks the source of evidence once. The next day on which they are asked resolves "
            "this; the other conditions go on.",
            urgent=False,
        )


def _raise_missed(at: datetime) -> None:
    """Raises an alert for each day with tasks that were newly missed; it names those of its day that nobody closed."""
    since = at - MISSED_WITHIN
    items = dict(AlertItem.objects.filter(kind=MISSED).order_by("pk").values_list("subject", "cleared_at"))
    oldest = since - MOST_WEEKS * WEEK
    missed: list[Decision | Elicitation] = [
        *_decisions(status=Task.Status.MISSED, cohort__week_start__range=(oldest, at)),
        *_elicitations(status=Task.Status.MISSED, batch__question_set__day__range=(since, at)),
    ]
    tasks_by_day: dict[datetime, list[Decision | Elicitation]] = defaultdict(list)
    for task in missed:
        if since <= _day(task) <= at and items.get(_key(task)) is None:
            tasks_by_day[_day(task)].append(task)
    for day, tasks in sorted(tasks_by_day.items()):
        if all(_key(task) in items for task in tasks):
            continue
        raise_alert(
            kind=MISSED,
            subject=f"{day:%Y-%m-%d}",
            items=_items(tasks),
            message=_message(tasks, day, "were missed"),
            at=at,
            path=_path(tasks),
            remedy="Their window is over: they are not asked again. Acknowledge the alert once the cause is removed.",
            urgent=False,
            repeated=True,
        )


def _decisions(**fields: object) -> Iterable[Decision]:
    tasks = Decision.objects.filter(agent__family__external=False, **fields).order_by("pk")
    return tasks.select_related("agent__cohort", "cohort")


def _elicitations(**fields: object) -> Iterable[Elicitation]:
    tasks = Elicitation.objects.filter(family__external=False, **fields).order_by("pk")
    return tasks.select_related("release", "batch__question_set").defer("batch__block")


def _day(task: Decision | Elicitation) -> datetime:
    if isinstance(task, Decision):  # one that was never asked has no universe
        return task.cohort.week_start + (task.week - 1) * WEEK
    return task.batch.question_set.day


def _key(task: Task) -> str:
    return f"{task._meta.model_name} {task.pk}"


def _items(tasks: Iterable[Task]) -> dict[str, str]:
    """The tasks' names by key."""
    return {_key(task): _name(task) for task in tasks}


def _name(task: Task) -> str:
    if isinstance(task, Decision):
        return f"{task.agent.display_name}, cohort {task.agent.cohort.number}"
    return str(task)


def _message(tasks: Sequence[Task], day: datetime, verb: str) -> str:
    """How many of each protocol, and the most frequent reason."""
    counts = Counter(map(type, tasks))
    parts = []
    for model, singular, plural in NOUNS:
        if counts[model]:
            parts.append(f"{counts[model]} {singular if counts[model] == 1 else plural}")
    reasons = Counter(task.error.partition("\n")[0] for task in tasks if task.error)
    reason = f": {reasons.most_common(1)[0][0]}" if reasons else ""
    return f"{' and '.join(parts)} of {day.day} {day:%B %Y} {verb}{reason}"


def _path(tasks: Sequence[Task]) -> str:
    """The admin's list of them; of the decisions, where there are both."""
    model = "decision" if any(isinstance(task, Decision) for task in tasks) else "elicitation"
    return f"/admin/agents/{model}/?status__exact={tasks[0].status}"
