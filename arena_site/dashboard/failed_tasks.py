"""The week's tasks: how many are in each state, and those that failed, with the action against it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Q

from agents.models import Decision, Elicitation, Task
from arena_site.dashboard.action import action_path, list_path, row_path
from cohorts.weeks import week_start

TASKS_SHOWN = 6
Status = Task.Status


@dataclass(frozen=True, slots=True)
class StatusCount:
    """The number of a week's tasks in a state, and their list."""

    status: str
    number: int
    path: str


class FailedTask:
    """A decision or elicitation of the week that failed, was missed or whose claim expired."""

    def __init__(self, task: Any) -> None:
        is_expired = task.status == Status.CLAIMED
        if isinstance(task, Decision):
            self.name = f"{task.agent.display_name}, cohort {task.agent.cohort.number}"
        else:
            self.name = f"{task.release.display_name}, {task.batch}"
        self.path, self.action, self.action_path = row_path(task), "", ""
        self.status = "interrupted" if is_expired else task.status
        self.error = task.error.partition("\n")[0] or ("its worker died" if is_expired else "")
        key = {task._meta.model_name: task.pk}
        if is_expired:
            self.action, self.action_path = "Release", action_path("release-claim", **key)
        elif task.status == Status.FAILED:
            self.action, self.action_path = "Retry", action_path("retry", **key)


class WeekTasks:
    """A protocol's tasks of a week."""

    def __init__(self, name: str, title: str, tasks: Any, now: datetime) -> None:
        model = tasks.model
        expired = Count("pk", filter=Q(status=Status.CLAIMED, lease_until__lte=now))
        rows = list(tasks.order_by().values_list("status").annotate(n=Count("pk"), expired=expired))
        self.name, self.title = name, title
        self.kind, self.protocol = str(model._meta.model_name), model.PROTOCOL
        self.counts, self.expired = [], 0
        for status, number, expired_number in sorted(rows):
            self.counts.append(StatusCount(status, number, list_path(model, preset="week", status__exact=status)))
            self.expired += expired_number
        self.expired_path = list_path(
            model, preset="week", status__exact=Status.CLAIMED, lease_until__lte=now.isoformat()
        )
        failed = tasks.filter(Q(status=Status.MISSED) | Q(pk__in=tasks.claimable(now).values("pk"))).order_by("-pk")
        self.failed = list(map(FailedTask, _with_names(failed)[:TASKS_SHOWN]))
        self.retry_path = action_path("retry", kind=self.kind)
        errors = tasks.filter(status=Status.FAILED).order_by().values_list("error").annotate(Count("pk"))
        self.errors, self.failed_count = [], 0
        """The errors of the failed tasks, each with the number of them."""
        for error, number in errors:
            self.errors.append((error.partition("\n")[0], number))
            self.failed_count += number


def _with_names(tasks: Any) -> Any:
    if tasks.model is Decision:
        return tasks.select_related("agent__cohort")
    return tasks.select_related("release", "batch__question_set").defer("batch__block")


def week_tasks(at: datetime, now: datetime) -> list[WeekTasks]:
    """The tasks of both protocols in the week of `at`."""
    return [
        WeekTasks("decision", "Decisions", Decision.objects.filter(Decision.in_week(week_start(at))), now),
        WeekTasks(
            "question batch", "Question batches", Elicitation.objects.filter(Elicitation.in_week(week_start(at))), now
        ),
    ]
