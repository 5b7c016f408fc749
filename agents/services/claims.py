"""Claims on tasks: only the holder of a live lease may ask the model and write the result."""

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar, cast

from django.db import IntegrityError, transaction
from django.db.models import Exists, QuerySet
from django.utils import timezone

from agents.models import ModelCall, Task
from agents.services.chain import append_to_chain
from foundation.models import Run
from foundation.process_names import has_ended, process_name

AnyTask = TypeVar("AnyTask", bound=Task)


class ClaimLost(Exception):
    """The claim is lost: another worker has taken or ended the task. A late answer is stored, but not executed."""


@dataclass(frozen=True, slots=True)
class Claim(Generic[AnyTask]):
    """A lease on a task. Leases run on the real clock, never on the instant of the run.

    `spent` holds the cost in US dollars of each answer received under the claim, late ones included; `booked` those
    that are not billed yet.
    """

    task: AnyTask
    lease_id: uuid.UUID
    lease: timedelta
    spent: list[Decimal] = field(default_factory=list)
    booked: list[Decimal] = field(default_factory=list)

    def is_live(self) -> bool:
        """True until the lease ends, as far as is known without the database."""
        return self.task.lease_until is not None and timezone.now() < self.task.lease_until

    def renew(self) -> None:
        """Extends the lease. Raises ClaimLost."""
        self._update(lease_until=timezone.now() + self.lease)

    def finish(self, **fields: object) -> AnyTask:
        """Writes the task's result, ends the claim, and returns the task. Raises ClaimLost.

        A completed task joins its chain in the same transaction.
        """
        with transaction.atomic():
            self._update(lease_id=None, lease_until=None, **fields)
            if self.task.status == Task.Status.COMPLETED:
                append_to_chain(self.task)
        return self.task

    def refuse(self, call: ModelCall, reasons: Sequence[str], summary: str, at: datetime) -> AnyTask:
        """The task, failed because nothing of a well-formed answer could be carried out. Raises ClaimLost.

        The reasons quote the answer: under the seal they stay with the call, since run logs and alerts tell the error.
        """
        call.result, call.error = ModelCall.Result.REFUSED, "\n".join(reasons)
        call.save(update_fields=["result", "error"])
        error = summary if self.task.is_sealed_at(at) else f"{summary}: {'; '.join(reasons)}"
        return self.finish(status=Task.Status.FAILED, refusals=self.task.refusals + 1, error=error)

    def _update(self, **fields: object) -> None:
        """Updates the row and `task`, on condition that the claim is still ours."""
        claimed = type(self.task).objects.filter(pk=self.task.pk, lease_id=self.lease_id, status=Task.Status.CLAIMED)
        if not claimed.update(**fields):
            raise ClaimLost(f"{self.task._meta.verbose_name} {self.task.pk} was taken over by another worker")
        for name, value in fields.items():
            setattr(self.task, name, value)


@dataclass(frozen=True, slots=True)
class AnsweredClaim(Claim[AnyTask]):
    """The hold on an answered task while another answer replaces its own; in one transaction, without a lease."""

    def is_live(self) -> bool:
        return True

    def renew(self) -> None:
        """Raises ClaimLost if the answer was opened meanwhile."""
        if not type(self.task).objects.filter(pk=self.task.pk, status=Task.Status.ANSWERED).exists():
            raise ClaimLost(f"{self.task._meta.verbose_name} {self.task.pk} is answered no more")


def claim_task(
    model: type[AnyTask],
    *,
    identity: dict[str, Any],
    refused_retries: int,
    lease: timedelta,
    run_started: datetime | None = None,
    **defaults: Any,
) -> Claim[AnyTask] | None:
    """A claim on the task of `model` with the unique fields `identity`; it gets `defaults` as well.

    None if the task is final, claimed by a live worker, or out of tries; and if it failed since `run_started` (on the
    real clock): a concurrent run has just tried it, and together they would use up its tries too fast.
    """
    now, lease_id = timezone.now(), uuid.uuid4()
    fields = {"status": Task.Status.CLAIMED, "lease_id": lease_id, "lease_until": now + lease, **defaults}
    # Looked up first: an insert that is refused would use up an id on PostgreSQL, which tells of an earlier try.
    task = cast(AnyTask | None, model.objects.filter(**identity).first())
    is_new = task is None
    if task is None:
        try:
            with transaction.atomic():
                task = cast(AnyTask, model.objects.create(**identity, **fields))
        except IntegrityError:
            task, is_new = cast(AnyTask, model.objects.get(**identity)), False
    if not is_new:
        recent_calls = task.calls.filter(sent_at__gt=run_started or now)
        claimed = (
            model.objects.claimable(now)
            .filter(pk=task.pk, refusals__lte=refused_retries)
            .exclude(Exists(recent_calls), status=Task.Status.FAILED)
            .update(error="", **fields)
        )
        if not claimed:
            return None
        task.refresh_from_db()
        _mark_unanswered_calls_lost(task)
    return Claim(task, lease_id, lease)


def fail_task(model: type[AnyTask], *, identity: dict[str, Any], error: str, **defaults: Any) -> None:
    """Marks the task with these unique fields failed without asking for it, unless it is final or claimed."""
    try:
        with transaction.atomic():
            model.objects.create(**identity, **defaults, status=Task.Status.FAILED, error=error)
    except IntegrityError:
        model.objects.filter(**identity, status=Task.Status.FAILED).update(error=error)


def release_expired_claim(task: Task, *, now: datetime, reason: str) -> bool:
    """Marks a task failed whose lease has expired; False if the lease is live or there is none."""
    with transaction.atomic():
        expired = type(task).objects.filter(pk=task.pk, status=Task.Status.CLAIMED, lease_until__lte=now)
        if not expired.update(status=Task.Status.FAILED, lease_id=None, lease_until=None, error=reason):
            return False
        _mark_unanswered_calls_lost(task)
    return True


def end_leases_of_killed_runs(*claims: QuerySet[Any], command: str, lease: timedelta) -> None:
    """Frees these claims of the command's killed runs, if no process of this machine can hold one any more.

    Of a process of another machine nothing is known: its claims end with their leases.
    """
    now, this_process = timezone.now(), process_name(os.getpid())
    unfinished = Run.objects.filter(kind=command, status__in=(Run.Status.RUNNING, Run.Status.LOST))
    recent = unfinished.exclude(process=this_process).exclude(finished_at__lt=now - lease)
    processes = list(recent.values_list("process", flat=True))
    if not processes or not all(map(has_ended, processes)):
        return
    for rows in claims:
        rows.filter(lease_until__gt=now).update(lease_until=now)


def _mark_unanswered_calls_lost(task: Task) -> None:
    """Marks calls of a dead worker as lost. Should it be alive after all, its answers are still stored."""
    task.calls.filter(result=ModelCall.Result.SENT).update(
        result=ModelCall.Result.LOST, error="the worker was gone before the answer came"
    )
