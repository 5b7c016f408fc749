"""Actions on tasks: the retry of failed ones, and the release of one whose worker died."""

from datetime import datetime
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from agents.letters import public_error, sealed
from agents.models import Decision, Elicitation, Task
from agents.services.claims import release_expired_claim
from agents.services.run_settings import is_paused
from arena_site import jobs
from arena_site.dashboard.action import (
    Action,
    ActionResult,
    ChoiceForm,
    FormData,
    Preview,
    RowChoiceField,
    RowIdsField,
    list_path,
    row_path,
)
from arena_site.dashboard.actions.runs import MANUAL, enqueued, worker_warning
from arena_site.middleware.sealed_reads import READ_SEALED
from cohorts.weeks import week_start
from foundation import clock

BOTH = "both"


def task_state(task: Task) -> dict[str, Any]:
    task.refresh_from_db()
    return {
        "status": task.status,
        "error": public_error(task),
        "calls": task.calls.count(),
        "lease until": task.lease_until,
    }


class RetryForm(forms.Form):
    """Failed tasks of either kind: those of this week to choose from, or those that a link names."""

    decision = RowIdsField(
        Decision.objects.select_related("agent__cohort__methodology", "agent__family", "universe"),
        label="Decisions", required=False,
    )  # fmt: skip
    elicitation = RowIdsField(
        Elicitation.objects.select_related("release", "family", "methodology", "batch__question_set"),
        label="Question batches", required=False,
    )  # fmt: skip

    kind = forms.ChoiceField(
        choices=[("decision", "decisions"), ("elicitation", "question batches"), (BOTH, "both")],
        required=False, widget=forms.HiddenInput, help_text="Every failed task of this kind in this week.",
    )  # fmt: skip

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        failed = Q(status=Task.Status.FAILED)
        for name, field in self.fields.items():
            if not isinstance(field, RowIdsField):
                continue
            tasks: Any = field.queryset
            linked_tasks = Q(pk__in=list(filter(RowIdsField.is_id, self._named(name))))
            field.queryset = tasks.filter(linked_tasks | failed & tasks.model.in_week(week_start(clock.now())))

    def _named(self, name: str) -> list[str]:
        """The ids that were posted, or that a link names."""
        return self.data.getlist(name) if isinstance(self.data, QueryDict) else []

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and (choice := data["kind"]):
            for kind in ("decision", "elicitation") if choice == BOTH else (choice,):
                field = self.fields[kind]
                assert isinstance(field, RowIdsField)
                assert field.queryset is not None
                data[kind] = field.queryset.filter(status=Task.Status.FAILED)
        if not self.errors and not (data["decision"] or data["elicitation"]):
            raise forms.ValidationError("Choose at least one.")
        return data


class RetryTasks(Action):
    """Enqueues each chosen decision by itself, and for question batches the day's forecasts."""

    name, title, confirm_label = "retry", "Retry failed decisions and forecasts", "Yes, retry"
    description = "Asks again the agents that failed, with the prices that the others saw."
    permission = "arena_site.run_jobs"
    default_reason = MANUAL
    form = RetryForm

    def tasks(self, data: FormData) -> list[Task]:
        return [*data["decision"], *data["elicitation"]]

    def target(self, data: FormData) -> str:
        return "; ".join(map(str, self.tasks(data)))

    def target_path(self, data: FormData) -> str:
        tasks = self.tasks(data)
        return row_path(tasks[0]) if len(tasks) == 1 else list_path(type(tasks[0]), preset="failed")

    def state(self, data: FormData) -> dict[str, Any]:
        return {str(task): task_state(task) for task in self.tasks(data)}

    def obstacle(self, data: FormData, at: datetime) -> str:
        obstacles = [_obstacle(task, at) for task in self.tasks(data)]
        return "" if "" in obstacles else " ".join(dict.fromkeys(obstacles))

    def effect(self, data: FormData, at: datetime) -> Preview:
        lines, number = [], 0
        for task in self.tasks(data):
            obstacle = _obstacle(task, at)
            number += not obstacle
            lines.append(
                f"{task}: {obstacle}" if obstacle else f"{task} is asked again. It failed with: {public_error(task)}"
            )
        summary = f"{number} of {len(lines)} are asked again, at the prices of the frozen universe."
        if data["elicitation"]:
            summary += " The question batches are asked with all of the day that have no answer."
        return Preview(summary, lines, worker_warning())

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        queued = 0
        for decision in data["decision"]:
            if not _obstacle(decision, at):
                queued += jobs.enqueue("decision", decision.agent.cohort.number, decision.agent.family.slug)
        if any(not _obstacle(elicitation, at) for elicitation in data["elicitation"]):
            queued += jobs.enqueue("forecasts")
        return enqueued(queued, "Queued. The answers will appear here.")


def _obstacle(task: Task, at: datetime) -> str:
    """Why a task can not be retried, empty if it can."""
    if not type(task).objects.claimable(timezone.now()).filter(pk=task.pk).exists():
        live = task.status == Task.Status.CLAIMED and task.lease_until is not None
        until = f", and its lease runs until {task.lease_until:%H:%M:%S} UTC" if live else ""
        return f"It is {task.status}{until}: there is nothing to retry."
    if isinstance(task, Elicitation):
        family, ends = task.family, task.window_ends_at
    else:
        assert isinstance(task, Decision)
        if task.refusals > task.methodology.refused_retries:
            return "Its answers were refused as often as the methodology allows."
        if task.universe is None:
            return "No universe was frozen for it."
        family, ends = task.agent.family, task.universe.frozen_at + task.methodology.retry_window
    if family.external:
        return "It is an external agent's: such agents submit by themselves."
    if at >= ends:
        return f"Its window ended on {ends:%d %B %Y, %H:%M} UTC."
    return "It is paused: resume the model or the protocol first." if is_paused(task.PROTOCOL, family.pk) else ""


DECISIONS = Decision.objects.select_related("agent__cohort", "agent__family")
ELICITATIONS = Elicitation.objects.select_related("release", "family", "batch__question_set").defer("batch__block")


class TaskForm(ChoiceForm):
    """A task of either kind, out of a list."""

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and bool(data.get("decision")) == bool(data.get("elicitation")):
            raise forms.ValidationError("Choose either a decision or a question batch.")
        return data


def interrupted_tasks(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Claimed tasks whose lease has ended, the newest first."""
    return rows.filter(status=Task.Status.CLAIMED, lease_until__lte=timezone.now()).order_by("-pk")


def sealed_tasks(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Tasks whose letters are sealed, the newest first."""
    return rows.filter(sealed(rows.model)).order_by("-pk")


class InterruptedForm(TaskForm):
    decision = RowChoiceField(DECISIONS, "decision", interrupted_tasks, required=False)
    elicitation = RowChoiceField(ELICITATIONS, "question batch", interrupted_tasks, required=False)


class SealedForm(TaskForm):
    decision = RowChoiceField(DECISIONS, "decision", sealed_tasks, required=False)
    elicitation = RowChoiceField(ELICITATIONS, "question batch", sealed_tasks, required=False)


class TaskAction(Action):
    """Base of the actions on one task."""

    permission = "arena_site.run_jobs"

    def row(self, data: FormData) -> Task:
        task: Task = data["decision"] or data["elicitation"]
        return task


class ReadSealedAnswer(TaskAction):
    name, title, confirm_label = READ_SEALED, "Read a sealed answer", "Yes, show it to me"
    description = "Shows you the answer to a task before external agents have finished it. The audit log says so."
    form = SealedForm

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview("Its page will show you the whole answer. Nobody else sees more than before.")

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        return ActionResult("The page shows the sealed answer to you alone.")


class ReleaseClaim(TaskAction):
    name, title, confirm_label = "release-claim", "Release an interrupted task", "Yes, release it"
    description = "Marks a task whose worker died as failed, so that it can be retried."
    default_reason = "its worker is gone"
    form = InterruptedForm

    def state(self, data: FormData) -> dict[str, Any]:
        return task_state(self.row(data))

    def obstacle(self, data: FormData, at: datetime) -> str:
        task = self.row(data)
        if task.status != Task.Status.CLAIMED or task.lease_until is None:
            return f"It is {task.status}, not claimed: there is nothing to release."
        if task.lease_until > timezone.now():  # leases run on the real clock
            return f"Its lease runs until {task.lease_until:%H:%M:%S} UTC: a worker may still hold it."
        return ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(
            f"Its lease ended on {self.row(data).lease_until:%d %B %Y, %H:%M:%S} UTC. It will count as failed and can "
            "be retried; its requests without an answer count as lost."
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        reason = f"its claim was released by {by}: {reason}"
        if not release_expired_claim(self.row(data), now=timezone.now(), reason=reason):
            return None
        return ActionResult("The claim is released; the task can be retried.")
