"""Actions on a single task: a retry, and the release of an expired claim."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from agents.models import Decision, Elicitation, Task
from agents.services.claims import release_expired_claim
from arena_site.dashboard.action import Action, ActionResult, FormData, Preview, RowIdField, row_path
from arena_site.dashboard.actions.runs import MANUAL, enqueue, worker_warning


def task_state(task: Task) -> dict[str, Any]:
    task.refresh_from_db()
    return {"status": task.status, "error": task.error, "calls": task.calls.count(), "lease until": task.lease_until}


class DecisionForm(forms.Form):
    decision = RowIdField(
        Decision.objects.select_related("agent__cohort__methodology", "agent__family", "universe"), "decision"
    )


class RetryDecision(Action):
    name, title, confirm_label = "retry-decision", "Retry a decision", "Yes, retry"
    description = "Asks an agent that failed again, with the prices that the others saw."
    permission = "arena_site.run_jobs"
    default_reason = MANUAL
    form, row_field = DecisionForm, "decision"

    def state(self, data: FormData) -> dict[str, Any]:
        return task_state(data["decision"])

    def obstacle(self, data: FormData, at: datetime) -> str:
        decision: Decision = data["decision"]
        if decision.agent.family.external:
            return "It is an external agent's: such agents submit by themselves."
        claimable = Decision.objects.claimable(timezone.now()).filter(pk=decision.pk)
        if not claimable.exists():
            live = decision.status == Decision.Status.CLAIMED and decision.lease_until is not None
            until = f", and its lease runs until {decision.lease_until:%H:%M:%S} UTC" if live else ""
            return f"It is {decision.status}{until}: there is nothing to retry."
        if decision.refusals > decision.methodology.refused_retries:
            return "Its answers were refused as often as the methodology allows."
        if decision.universe is None:
            return "No universe was frozen for it."
        ends = decision.universe.frozen_at + decision.methodology.retry_window
        return f"Its window ended on {ends:%d %B %Y, %H:%M} UTC." if at >= ends else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        decision: Decision = data["decision"]
        return Preview(
            f"{decision.agent.model_id} is asked again, for cohort {decision.agent.cohort.number}, week "
            f"{decision.week}, at the prices of the frozen universe.",
            [f"It failed with: {decision.error}"] if decision.error else [],
            worker_warning(),
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        agent = data["decision"].agent
        message = f"Queued: a worker asks {agent.model_id} again."
        return enqueue("decision", agent.cohort.number, agent.family.slug, message=message)


class ClaimForm(forms.Form):
    decision = RowIdField(Decision.objects.select_related("agent"), "decision", required=False)
    elicitation = RowIdField(
        Elicitation.objects.select_related("release", "batch__question_set"), "elicitation", required=False
    )

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and bool(data.get("decision")) == bool(data.get("elicitation")):
            raise forms.ValidationError("Name either a decision or an elicitation.")
        return data


class ReleaseClaim(Action):
    name, title, confirm_label = "release-claim", "Release an expired claim", "Yes, release it"
    description = "Marks a task whose worker died as failed, so that it can be retried."
    permission = "arena_site.run_jobs"
    default_reason = "its worker is gone"
    form = ClaimForm

    def task(self, data: FormData) -> Task:
        task: Task = data["decision"] or data["elicitation"]
        return task

    def target(self, data: FormData) -> str:
        return str(self.task(data))

    def target_path(self, data: FormData) -> str:
        return row_path(self.task(data))

    def state(self, data: FormData) -> dict[str, Any]:
        return task_state(self.task(data))

    def obstacle(self, data: FormData, at: datetime) -> str:
        task = self.task(data)
        if task.status != Task.Status.CLAIMED or task.lease_until is None:
            return f"It is {task.status}, not claimed: there is nothing to release."
        if task.lease_until > timezone.now():  # leases run on the real clock
            return f"Its lease runs until {task.lease_until:%H:%M:%S} UTC: a worker may still hold it."
        return ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(
            f"Its lease ended on {self.task(data).lease_until:%d %B %Y, %H:%M:%S} UTC. It will count as failed and can "
            "be retried; its requests without an answer count as lost."
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        reason = f"its claim was released by {by}: {reason}"
        if not release_expired_claim(self.task(data), now=timezone.now(), reason=reason):
            return None
        return ActionResult("The claim is released; the task can be retried.")
