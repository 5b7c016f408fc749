"""Setting a single task right: asked again, or its dead claim taken off."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone

from agents.models import Decision, Elicitation, Task
from agents.services.claims import claim_release, retry_window_ends
from arena_site import jobs
from arena_site.desk.act import Act, Asked, Done, Preview, RowField, nothing, row_path, unchanged
from arena_site.desk.acts.runs import BY_HAND, no_worker


def task_state(task: Task) -> dict[str, Any]:
    task.refresh_from_db()
    return {"status": task.status, "error": task.error, "calls": task.calls.count(), "lease until": task.lease_until}


class DecisionForm(forms.Form):
    decision = RowField(
        Decision.objects.select_related("agent__cohort__methodology", "agent__family", "universe"), "decision"
    )


class RetryDecision(Act):
    name, title, confirm = "retry-decision", "Retry a decision", "Yes, ask again"
    about = "Asks one agent again that failed, at the prices the others saw."
    permission = "arena_site.run_jobs"
    usual_reason = BY_HAND
    form = DecisionForm

    def target(self, asked: Asked) -> str:
        return str(asked["decision"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["decision"])

    def state(self, asked: Asked) -> dict[str, Any]:
        return task_state(asked["decision"])

    def obstacle(self, decision: Decision, at: datetime) -> str:
        """Why it can not be asked again; nothing where it can."""
        if decision.agent.family.external:
            return "It is an external agent's: it submits by itself and is never asked."
        claimable = Decision.objects.claimable(timezone.now()).filter(pk=decision.pk)
        if not claimable.exists():
            live = decision.status == Decision.Status.CLAIMED and decision.lease_until is not None
            until = f", and its lease runs until {decision.lease_until:%H:%M:%S} UTC" if live else ""
            return f"It is {decision.status}{until}: there is nothing to retry."
        if decision.refusals > decision.methodology.refused_retries:
            return "Its answers were refused as often as the methodology lets it try."
        if decision.universe is None:
            return "No universe was frozen for it."
        ends = retry_window_ends(decision.universe, decision.methodology.retry_window)
        if at >= ends:
            return f"Its window ended on {ends:%d %B %Y, %H:%M} UTC."
        return ""

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        decision: Decision = asked["decision"]
        if why := self.obstacle(decision, at):
            return nothing(why)
        return Preview(
            f"{decision.agent.model_id} is asked again, for cohort {decision.agent.cohort.number}, week "
            f"{decision.week}, at the prices of the frozen universe.",
            [f"It failed with: {decision.error}"] if decision.error else [],
            no_worker(),
        )

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        decision: Decision = asked["decision"]
        path = row_path(decision)
        if why := self.obstacle(decision, at):
            return unchanged(f"Nothing was asked. {why}", path)
        if not jobs.ring("decision", decision.agent.cohort.number, decision.agent.family.slug):
            return unchanged("Nothing was rung: the same waits in the queue already.", path)
        return Done(f"Rung: a worker asks {decision.agent.model_id} again. {no_worker()}".strip(), path=path)


class ClaimForm(forms.Form):
    decision = RowField(Decision.objects.select_related("agent"), "decision", required=False)
    elicitation = RowField(
        Elicitation.objects.select_related("release", "sheet__question_set"), "elicitation", required=False
    )

    def clean(self) -> dict[str, Any]:
        asked: dict[str, Any] = super().clean() or self.cleaned_data
        if not self.errors and bool(asked.get("decision")) == bool(asked.get("elicitation")):
            raise forms.ValidationError("Name a decision or an elicitation.")
        return asked


class ReleaseClaim(Act):
    name, title, confirm = "release-claim", "Release a dead claim", "Yes, release it"
    about = "A task whose worker died counts as failed, to be retried."
    permission = "arena_site.run_jobs"
    usual_reason = "its worker is gone"
    form = ClaimForm

    def task(self, asked: Asked) -> Task:
        task: Task = asked["decision"] or asked["elicitation"]
        return task

    def target(self, asked: Asked) -> str:
        return str(self.task(asked))

    def target_path(self, asked: Asked) -> str:
        return row_path(self.task(asked))

    def state(self, asked: Asked) -> dict[str, Any]:
        return task_state(self.task(asked))

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        task, now = self.task(asked), timezone.now()
        if task.status != Task.Status.CLAIMED or task.lease_until is None:
            return nothing(f"It is {task.status}, not claimed: there is nothing to release.")
        if task.lease_until > now:
            return nothing(f"Its lease runs until {task.lease_until:%H:%M:%S} UTC: a worker may be at it.")
        return Preview(
            f"Its lease ended on {task.lease_until:%d %B %Y, %H:%M:%S} UTC. The claim is taken off, it counts as "
            "failed and can be retried; requests without an answer count as lost."
        )

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        task = self.task(asked)
        path = row_path(task)
        # Leases run on the real clock.
        if not claim_release(task, now=timezone.now(), why=f"its claim was released by {by}: {reason}"):
            return unchanged("Nothing was released: it is not claimed, or its lease still runs.", path)
        return Done("The claim is released; it can be retried.", path=path)
