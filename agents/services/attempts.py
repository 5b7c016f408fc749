"""Attempts of external agents that led to no accepted answer, as the arena notes them."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from agents.models import Attempt, Decision, Elicitation, Family, Registration, Task
from agents.services.receipts import agent_version
from foundation.redaction import redact

MAX_REASON = 500
Place = dict[str, Any]
"""The agent and universe, or the batch, of a task."""


def note_attempt(
    place: Place, kind: str, *, registration: Registration, key: str, reason: str, at: datetime
) -> Attempt:
    """The attempt that the arena notes once under a key of its own."""
    fields = {**place, "kind": kind, "reason": clean_reason(reason), "noted_at": at}
    defaults = {"version": agent_version(registration, at), **fields}
    return Attempt.objects.get_or_create(registration=registration, key=key, defaults=defaults)[0]


def note_missed_tasks(*, at: datetime) -> int:
    """Notes each missed task of an external agent that could have been answered; returns how many were new."""
    missed, kind = Task.Status.MISSED, Attempt.Kind.MISSED
    of_decision = Attempt.objects.filter(kind=kind, agent=OuterRef("agent"), universe=OuterRef("universe"))
    decisions = Decision.objects.filter(~Exists(of_decision), status=missed, universe__isnull=False)
    of_batch = Attempt.objects.filter(kind=kind, batch=OuterRef("batch"), registration__family=OuterRef("family"))
    elicitations = Elicitation.objects.filter(~Exists(of_batch), status=missed, family__external=True)
    places: list[tuple[Family, datetime, Place]] = []
    for decision in decisions.filter(agent__family__external=True).select_related("universe", "agent__family"):
        universe: Any = decision.universe
        place = {"agent": decision.agent, "universe": universe}
        places.append((decision.agent.family, universe.frozen_at, place))
    for elicitation in elicitations.select_related("batch__question_set", "family"):
        place = {"batch": elicitation.batch}
        places.append((elicitation.family, elicitation.batch.question_set.frozen_at, place))
    count = 0
    for family, frozen_at, place in places:
        registration = family.registrations.filter(registered_at__lte=frozen_at).first()
        if registration is not None:
            note_attempt(place, kind, registration=registration, key=f"missed:{name_place(place)}", reason="", at=at)
            count += 1
    return count


def name_place(place: Place) -> str:
    """A task's name in receipts and keys: batch-5, agent-3-universe-7."""
    return "-".join(f"{name}-{row.pk}" for name, row in place.items())


def clean_reason(text: str) -> str:
    """A reason as it may be stored and shown."""
    return redact(text).strip()[:MAX_REASON]
