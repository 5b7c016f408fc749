"""Claiming a decision: who holds a live token may ask the model and write the result; nobody else."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists
from django.utils import timezone

from agents.models import Agent, Decision, ModelCall
from markets.models import Universe


class ClaimLost(Exception):
    """Another worker took the decision over; what this one still learns is recorded and executes nothing."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A live hold on a decision. Leases run on the real clock, never on the instant of the run."""

    decision: Decision
    token: uuid.UUID
    lease: timedelta

    @property
    def about(self) -> dict[str, int | str]:
        """What a log line says of it."""
        agent = self.decision.agent
        return {
            "cohort": agent.cohort.number,
            "agent": agent.pk,
            "family": agent.family.slug,
            "decision": self.decision.pk,
            "week": self.decision.week,
        }

    def renew(self) -> None:
        """Extends the lease. Raises ClaimLost if the decision is no longer ours."""
        held = Decision.objects.filter(pk=self.decision.pk, claim_token=self.token, status=Decision.Status.CLAIMED)
        if not held.update(lease_until=timezone.now() + self.lease):
            raise ClaimLost(f"decision {self.decision.pk} was taken over by another worker")

    def finish(self, **fields: object) -> None:
        """Writes the decision's result and gives up the claim. Raises ClaimLost if it is no longer ours."""
        held = Decision.objects.filter(pk=self.decision.pk, claim_token=self.token, status=Decision.Status.CLAIMED)
        if not held.update(claim_token=None, lease_until=None, **fields):
            raise ClaimLost(f"decision {self.decision.pk} was taken over by another worker")


def decision_claim(
    agent: Agent,
    *,
    week: int,
    universe: Universe,
    refused_retries: int,
    lease: timedelta,
    began: datetime | None = None,
) -> Claim | None:
    """Claims the decision of `agent` for `week`; None where it is final, claimed elsewhere, or out of tries.

    One that failed since `began` (on the real clock) is left alone: a run beside this one has just tried it, and
    overlapping runs must not use up its tries, or knock at a gateway that is down, once each.
    """
    now, token = timezone.now(), uuid.uuid4()
    held = {"status": Decision.Status.CLAIMED, "claim_token": token, "lease_until": now + lease}
    try:
        with transaction.atomic():
            decision = Decision.objects.create(
                agent=agent, cohort_id=agent.cohort_id, week=week, universe=universe, **held
            )
    except IntegrityError:
        decision = Decision.objects.get(agent=agent, cohort_id=agent.cohort_id, week=week)
        just_tried = decision.calls.filter(decision__status=Decision.Status.FAILED, sent_at__gt=began or now)
        claimed = (
            Decision.objects.claimable(now)
            .filter(pk=decision.pk, refusals__lte=refused_retries)
            .exclude(Exists(just_tried))
            .update(universe=universe, error="", **held)
        )
        if not claimed:
            return None
        decision.refresh_from_db()
        # Whoever asked before us is dead or a zombie: its unanswered calls are lost, its answers still count.
        decision.calls.filter(result=ModelCall.Result.SENT).update(
            result=ModelCall.Result.LOST, error="the worker was gone before the answer came"
        )
    return Claim(decision, token, lease)


def retry_window_ends(universe: Universe, retry_window: timedelta) -> datetime:
    return universe.frozen_at + retry_window
