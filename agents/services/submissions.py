"""Answers that external agents submit: to the very prompts that models get, through the same mechanism.

An agent that is not ours could wait for news while the frozen prices stand still: its answer counts for a quarter of
an hour after the freeze alone. One transaction holds the claim, the call, what it led to and what the agent is told,
so that whoever got no answer may send the same again, and nothing is ever done twice.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any, Generic, TypeVar

from django.db import transaction
from django.db.models import F

from agents.models import (
    Agent,
    Decision,
    Elicitation,
    Instruction,
    ModelCall,
    RefusedForecast,
    Registration,
    Release,
    Submission,
    Task,
)
from agents.models.agent import EXTERNAL_WINDOW
from agents.prompts import Prompt
from agents.services import decisions, forecasts
from agents.services.asking import hear
from agents.services.claims import Claim, task_claim
from agents.services.conversation import Conversation, concluded, heard, malformed_tries_left, what_next
from cohorts.models import Methodology
from cohorts.weeks import week_start
from markets.models import QuestionSheet, Run, Universe

LEASE = timedelta(seconds=30)
"""Nobody is waited for while the claim is held."""
RUN = "submission"

T = TypeVar("T", bound=Task)


class Closed(Exception):
    """Nothing can be submitted to it: not yet, or no more. The message says why."""


class TooLate(Closed):
    """The deadline is over."""


class KeyUsed(Exception):
    """The key came with another answer before."""


@dataclass(frozen=True)
class Opening(ABC, Generic[T]):
    """A task of an external agent, claimed or not, as it may be answered from its freeze to its deadline."""

    task: T
    frozen_at: datetime

    @property
    def deadline(self) -> datetime:
        return self.frozen_at + EXTERNAL_WINDOW

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is, in a sentence."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What its row is unique by."""

    @property
    @abstractmethod
    def details(self) -> dict[str, Any]:
        """What else a new row of it holds."""

    @abstractmethod
    def prompt(self, note: str = "") -> Prompt:
        """What a model would be sent."""

    @abstractmethod
    def conversation(self, claim: Claim[T], at: datetime) -> Conversation[T]: ...

    @abstractmethod
    def outcome(self, task: T, call: ModelCall) -> dict[str, Any]:
        """What came of an answer that counts."""

    @property
    def next_prompt(self) -> Prompt:
        """The prompt with a note on what was wrong with the last answer, if any was."""
        return what_next(heard(self.task), self.task, self.prompt)[0]

    def check(self, at: datetime) -> None:
        """Raises Closed, saying why, unless it may be answered at `at`."""
        if at < self.frozen_at:
            raise Closed(f"{self.name} does not open before {self.frozen_at:%Y-%m-%dT%H:%M:%SZ}")
        if self.task.status in (Task.Status.COMPLETED, Task.Status.MISSED):
            raise Closed(f"{self.name} is {self.task.status} already")
        if at >= self.deadline:
            raise TooLate(f"{self.name} was to be answered before {self.deadline:%Y-%m-%dT%H:%M:%SZ}")
        if self.task.refusals > self.task.methodology.refused_retries:
            raise Closed(f"{self.name} was answered {self.task.refusals} times with nothing that could be carried out")


@dataclass(frozen=True)
class DecisionOpening(Opening[Decision]):
    @property
    def name(self) -> str:
        return f"week {self.task.week} of cohort {self.task.cohort.number}"

    @property
    def identity(self) -> dict[str, Any]:
        return {"agent": self.task.agent, "cohort": self.task.cohort, "week": self.task.week}

    @property
    def details(self) -> dict[str, Any]:
        return {"universe": self.task.universe}

    def prompt(self, note: str = "") -> Prompt:
        return decisions.prompt_of(self.task, note)

    def conversation(self, claim: Claim[Decision], at: datetime) -> Conversation[Decision]:
        return decisions.conversation(claim, at)

    def check(self, at: datetime) -> None:
        super().check(at)
        agent = self.task.agent
        if agent.status == Agent.Status.BANKRUPT:
            raise Closed(f"{agent} is bankrupt")
        if decisions.ahead_of([agent], at):
            raise Closed(f"the ledger of {agent} is already past {at:%Y-%m-%dT%H:%M:%SZ}")

    def outcome(self, task: Decision, call: ModelCall) -> dict[str, Any]:
        asked = Instruction.objects.filter(call=call).order_by("sequence")
        columns = ("sequence", "kind", "payload", "executed")
        return {
            "protocol": Decision.PROTOCOL,
            "decision": task.pk,
            "action": task.action,
            "instructions": [
                {"call": call.sequence, **{name: getattr(row, name) for name in columns}, "reason": row.reason or None}
                for row in asked
            ],
            "trades": list(task.trades.order_by("sequence").values_list("pk", flat=True)),
        }


@dataclass(frozen=True)
class SheetOpening(Opening[Elicitation]):
    @property
    def name(self) -> str:
        return f"sheet {self.task.sheet_id}"

    @property
    def identity(self) -> dict[str, Any]:
        return {"sheet": self.task.sheet, "release": self.task.release}

    @property
    def details(self) -> dict[str, Any]:
        return {"methodology": self.task.methodology, "family_id": self.task.family_id}

    def prompt(self, note: str = "") -> Prompt:
        return forecasts.prompt_of(self.task, note)

    def conversation(self, claim: Claim[Elicitation], at: datetime) -> Conversation[Elicitation]:
        return forecasts.conversation(claim, at)

    def outcome(self, task: Elicitation, call: ModelCall) -> dict[str, Any]:
        refused = RefusedForecast.objects.filter(call=call).select_related("entry").order_by("entry__position")
        taken = task.forecasts.order_by("entry__position").values("pk", "question", "probabilities")
        return {
            "protocol": Elicitation.PROTOCOL,
            "elicitation": task.pk,
            "forecasts": [
                {"id": row["pk"], "question": row["question"], "probabilities": row["probabilities"]} for row in taken
            ],
            "refused": [{"question": row.entry.question_id, "reason": row.reason} for row in refused],
        }


def openings(registration: Registration, *, at: datetime) -> list[Opening[Any]]:
    """All that the agent may answer at `at`, of the protocols that its registration covers."""
    return [opening for opening in _all(registration, at) if _is_open(opening, at)]


def decision_opening(agent: Agent, universe: Universe) -> DecisionOpening | None:
    """The decision of an external agent at a universe's prices; None where it has none to make there."""
    cohort, week = agent.cohort, agent.cohort.decision_week(universe.week_start)
    if universe.methodology != cohort.methodology.version or not cohort.is_deciding(universe.week_start):
        return None
    known = Decision.objects.filter(agent=agent, cohort=cohort, week=week).first()
    task = known or Decision(agent=agent, cohort=cohort, week=week, universe=universe)
    return DecisionOpening(task, universe.frozen_at)


def sheet_opening(release: Release, sheet: QuestionSheet) -> SheetOpening:
    """A sheet of questions as it is put to an external agent's release."""
    known = Elicitation.objects.filter(sheet=sheet, release=release).first()
    methodology = Methodology.objects.get(version=sheet.question_set.methodology)
    new = Elicitation(sheet=sheet, release=release, methodology=methodology, family_id=release.family_id)
    return SheetOpening(known or new, sheet.question_set.frozen_at)


def _all(registration: Registration, at: datetime) -> Iterator[Opening[Any]]:
    family = registration.family
    if registration.covers(Decision.PROTOCOL):
        universes = list(Universe.objects.filter(week_start=week_start(at)))
        playing = Agent.objects.playing().filter(family=family).order_by("cohort__number")
        for agent in playing.select_related("cohort__methodology", "family"):
            yield from filter(None, (decision_opening(agent, universe) for universe in universes))
    release = family.release_at(at)
    if registration.covers(Elicitation.PROTOCOL) and release is not None:
        frozen = QuestionSheet.objects.filter(
            question_set__frozen_at__gt=at - EXTERNAL_WINDOW, question_set__frozen_at__lte=at
        )
        for sheet in frozen.select_related("question_set").order_by("question_set", "number", "arm"):
            yield sheet_opening(release, sheet)


def _is_open(opening: Opening[Any], at: datetime) -> bool:
    try:
        opening.check(at)
    except Closed:
        return False
    return True


def submission_make(
    opening: Opening[Any], *, registration: Registration, key: str, body: str, at: datetime
) -> Submission:
    """The submission under this key: the one on record, else made now and carried out as a model's answer would be.

    Raises KeyUsed where the key stands for another answer, Closed or TooLate where none can be taken; then nothing is
    recorded, and the key is free.
    """
    of = sorted((name, value.pk if hasattr(value, "pk") else value) for name, value in opening.identity.items())
    request = hashlib.sha256(f"{of}\0{body}".encode()).hexdigest()
    with transaction.atomic():
        # One at a time: a write locks the row on PostgreSQL and the database on SQLite.
        Registration.objects.filter(pk=registration.pk).update(last_used_at=F("last_used_at"))
        known = Submission.objects.filter(registration=registration, key=key).first()
        if known is not None:
            if known.request_sha256 != request:
                raise KeyUsed("this Idempotency-Key came with another answer before")
            return known
        opening.check(at)
        return _judged(opening, registration, key, request, body, at)


def _judged(
    opening: Opening[Any], registration: Registration, key: str, request: str, body: str, at: datetime
) -> Submission:
    claim: Claim[Any] | None = task_claim(
        type(opening.task),
        identity=opening.identity,
        refused_retries=opening.task.methodology.refused_retries,
        lease=LEASE,
        **opening.details,
    )
    if claim is None:
        raise Closed(f"{opening.name} takes no answer now")
    call = hear(claim, *what_next(heard(claim.task), claim.task, opening.prompt), body)
    task = concluded(heard(claim.task), claim, opening.conversation(claim, at))
    if task is None:
        task = claim.finish(status=Task.Status.FAILED, error=call.error)
    call.refresh_from_db()
    status, answer = _told(opening, task, call)
    submission = Submission.objects.create(
        registration=registration, key=key, request_sha256=request, call=call, status=status, answer=answer,
        received_at=at,
    )  # fmt: skip
    said = {"family": registration.family.slug, "status": int(status)} | {"what": opening.name}
    Run(kind=RUN, at=at, summary=said).finish(failed=False)
    return submission


def _told(opening: Opening[Any], task: Any, call: ModelCall) -> tuple[HTTPStatus, dict[str, Any]]:
    if task.status == Task.Status.COMPLETED and call.result == ModelCall.Result.ANSWERED:
        return HTTPStatus.CREATED, opening.outcome(task, call)
    if task.status == Task.Status.COMPLETED:
        return _refusal(task.error, "no try is left, and it counts as if nothing had been said")
    if call.result == ModelCall.Result.REFUSED:
        return _refusal(task.error, _tries(task.methodology.refused_retries + 1 - task.refusals))
    return _refusal(task.error, _tries(malformed_tries_left(task)))


def _refusal(why: str, what_is_left: str) -> tuple[HTTPStatus, dict[str, Any]]:
    return HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": f"{why} ({what_is_left})"}


def _tries(left: int) -> str:
    return "no try is left" if left <= 0 else "one more try" if left == 1 else f"{left} more tries"
