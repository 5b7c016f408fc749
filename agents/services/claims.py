"""Claiming a task: who holds a live token may ask the model and write the result; nobody else."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Generic, TypeVar, cast

from django.db import IntegrityError, transaction
from django.db.models import Exists
from django.utils import timezone

from agents.models import ModelCall, Task
from agents.services.chain import chain_append
from markets.models import Universe

T = TypeVar("T", bound=Task)


class ClaimLost(Exception):
    """Another worker took the task over; what this one still learns is recorded and executes nothing."""


@dataclass(frozen=True, slots=True)
class Claim(Generic[T]):
    """A live hold on a task. Leases run on the real clock, never on the instant of the run.

    `spent` holds what each answer heard under it cost, in US dollars, those that came too late included.
    """

    task: T
    token: uuid.UUID
    lease: timedelta
    spent: list[Decimal] = field(default_factory=list)

    def renew(self) -> None:
        """Extends the lease. Raises ClaimLost if the task is no longer ours."""
        self._write(lease_until=timezone.now() + self.lease)

    def finish(self, **fields: object) -> T:
        """Writes the task's result, gives up the claim, and returns it as it now stands.

        What is completed joins its chain in the same transaction. Raises ClaimLost if it is no longer ours.
        """
        with transaction.atomic():
            self._write(claim_token=None, lease_until=None, **fields)
            if self.task.status == Task.Status.COMPLETED:
                chain_append(self.task)
        return self.task

    def _write(self, **fields: object) -> None:
        """Writes to the row and to `task`, if it is still ours: nobody else may write to what we hold."""
        held = type(self.task).objects.filter(pk=self.task.pk, claim_token=self.token, status=Task.Status.CLAIMED)
        if not held.update(**fields):
            raise ClaimLost(f"{self.task._meta.verbose_name} {self.task.pk} was taken over by another worker")
        for name, value in fields.items():
            setattr(self.task, name, value)


def task_claim(
    model: type[T],
    *,
    identity: dict[str, Any],
    refused_retries: int,
    lease: timedelta,
    began: datetime | None = None,
    **details: Any,
) -> Claim[T] | None:
    """Claims the task of `model` that `identity` names, made with `details` if it is new.

    None where it is final, claimed elsewhere, or out of tries. One that failed since `began` (on the real clock) is
    left alone: a run beside this one has just tried it, and overlapping runs must not use up its tries, or knock at a
    gateway that is down, once each.
    """
    now, token = timezone.now(), uuid.uuid4()
    held = {"status": Task.Status.CLAIMED, "claim_token": token, "lease_until": now + lease, **details}
    try:
        with transaction.atomic():
            task = cast(T, model.objects.create(**identity, **held))
    except IntegrityError:
        task = cast(T, model.objects.get(**identity))
        just_tried = task.calls.filter(sent_at__gt=began or now)
        claimed = (
            model.objects.claimable(now)
            .filter(pk=task.pk, refusals__lte=refused_retries)
            .exclude(Exists(just_tried), status=Task.Status.FAILED)
            .update(error="", **held)
        )
        if not claimed:
            return None
        task.refresh_from_db()
        # Whoever asked before us is dead or a zombie: its unanswered calls are lost, its answers still count.
        task.calls.filter(result=ModelCall.Result.SENT).update(
            result=ModelCall.Result.LOST, error="the worker was gone before the answer came"
        )
    return Claim(task, token, lease)


def claim_release(task: Task, *, now: datetime, why: str) -> bool:
    """Takes a claim off a task whose lease is over, so that it counts as failed; False where it lives or is none.

    Nothing that a worker may still be doing is touched: while its lease runs, the claim stays.
    """
    with transaction.atomic():
        dead = type(task).objects.filter(pk=task.pk, status=Task.Status.CLAIMED, lease_until__lte=now)
        if not dead.update(status=Task.Status.FAILED, claim_token=None, lease_until=None, error=why):
            return False
        task.calls.filter(result=ModelCall.Result.SENT).update(
            result=ModelCall.Result.LOST, error="the worker was gone before the answer came"
        )
    return True


def retry_window_ends(universe: Universe, retry_window: timedelta) -> datetime:
    return universe.frozen_at + retry_window
