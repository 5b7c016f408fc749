"""Submissions of external agents: answers to the models' own prompts, executed by the same services.

An external agent could wait for news while the frozen prices stand still: its answer counts only within the window of
its track, and only for tasks that were frozen while it was registered, since it could have read others' answers to
earlier ones. The claim, the call, its effects and our response are written in one transaction, so that a client without
a response can send the same request again.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from http import HTTPStatus
from typing import Any, ClassVar, Generic, TypeVar

from django.db import transaction
from django.db.models import F

from agents.gateway.completions import Completion
from agents.models import (
    Agent,
    Attempt,
    Decision,
    Elicitation,
    Family,
    Instruction,
    ModelCall,
    RefusedForecast,
    Registration,
    Release,
    Submission,
    Task,
)
from agents.models.task import PromptParts
from agents.services.attempts import Place, name_place, note_attempt
from agents.services.claims import Claim, claim_task
from agents.services.conversation import Conversation, end_task, malformed_tries_left, next_prompt, valid_calls
from agents.services.decisions import DecisionConversation, agents_with_later_entries
from agents.services.forecasts import ElicitationConversation
from agents.services.model_calls import AnswerReading, read_answer, store_submitted_answer, submitted_completion
from agents.services.receipts import issue_receipt
from cohorts.models import Methodology
from cohorts.weeks import LONGEST_OPEN_WINDOW, week_start
from foundation.locks import lock_rows
from foundation.models import Run
from foundation.redaction import redact
from markets.models import QuestionBatch, Universe

LEASE = timedelta(seconds=30)
"""The claim spans one transaction and no network call."""
RUN_KIND = "submission"

AnyTask = TypeVar("AnyTask", bound=Task)


class SubmissionRefused(Exception):
    """The task takes no answer, not yet or no more; the message says why."""


class DeadlinePassed(SubmissionRefused):
    """The deadline of the task has passed."""


class KeyReused(Exception):
    """The idempotency key belongs to a submission with another answer."""


@dataclass(frozen=True)
class SubmissionTarget(ABC, Generic[AnyTask]):
    """A task, stored or not, that an external agent may answer between its freeze and its deadline."""

    task: AnyTask
    frozen_at: datetime
    name: str
    """The task's name in messages."""
    identity: dict[str, Any]
    """The unique fields of the task."""
    defaults: dict[str, Any]
    """The other fields of a new task."""

    conversation: ClassVar[Conversation[Any]]

    @property
    @abstractmethod
    def family(self) -> Family:
        """The external agent whose task it is."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """The rows that name the task: agent and universe, or the batch."""

    @property
    def deadline(self) -> datetime:
        methodology = self.task.methodology
        return self.frozen_at + self.family.answer_window(methodology, methodology.retry_window)

    @abstractmethod
    def result(self, task: AnyTask, call: ModelCall) -> dict[str, Any]:
        """The response to a valid answer."""

    @property
    @abstractmethod
    def blocks(self) -> dict[str, str]:
        """The blocks of JSON Lines in the user message, by name."""

    @cached_property
    def next_prompt(self) -> PromptParts:
        """The prompt for the next answer, with a note on the fault of the last one."""
        return next_prompt(valid_calls(self.task), self.task, self.conversation)[0]

    @property
    def user_prompt(self) -> str:
        return self.task.user_prompt(self.next_prompt)

    def refusal(self, at: datetime) -> SubmissionRefused | None:
        """The reason why the task takes no answer at `at`; None if it does."""
        if at < self.frozen_at:
            return SubmissionRefused(f"{self.name} does not open before {self.frozen_at:%Y-%m-%dT%H:%M:%SZ}")
        if self.task.status in (Task.Status.COMPLETED, Task.Status.MISSED):
            return SubmissionRefused(f"{self.name} is {self.task.status} already")
        if at >= self.deadline:
            return DeadlinePassed(f"{self.name} was to be answered before {self.deadline:%Y-%m-%dT%H:%M:%SZ}")
        if not self.family.registrations.live(self.frozen_at).covering(self.task.PROTOCOL).exists():
            return SubmissionRefused(f"{self.name} was frozen before {self.family} was registered for it")
        if self.task.refusals > self.task.methodology.refused_retries:
            return SubmissionRefused(
                f"{self.name} was answered {self.task.refusals} times with nothing that could be carried out"
            )
        return None


@dataclass(frozen=True)
class DecisionTarget(SubmissionTarget[Decision]):
    conversation = DecisionConversation()

    @property
    def family(self) -> Family:
        return self.task.agent.family

    @property
    def place(self) -> Place:
        return {"agent": self.task.agent, "universe": self.task.universe}

    @property
    def blocks(self) -> dict[str, str]:
        markets = self.task.universe.market_block if self.task.universe else ""
        parts = self.next_prompt
        return {"PORTFOLIO": parts.portfolio_block, "POSITIONS": parts.positions_block, "MARKETS": markets}

    def refusal(self, at: datetime) -> SubmissionRefused | None:
        agent = self.task.agent
        if refusal := super().refusal(at):
            return refusal
        if agent.status == Agent.Status.BANKRUPT:
            return SubmissionRefused(f"{agent} is bankrupt")
        if agents_with_later_entries([agent], at):
            return SubmissionRefused(f"the ledger of {agent} is already past {at:%Y-%m-%dT%H:%M:%SZ}")
        return None

    def result(self, task: Decision, call: ModelCall) -> dict[str, Any]:
        columns = ("sequence", "kind", "payload", "executed", "reason")
        rows = Instruction.objects.filter(call=call).order_by("sequence").values(*columns)
        return {
            "protocol": Decision.PROTOCOL,
            "decision": task.pk,
            "action": task.action,
            "instructions": [{"call": call.sequence} | row | {"reason": row["reason"] or None} for row in rows],
            "trades": list(task.trades.order_by("sequence").values_list("pk", flat=True)),
        }


@dataclass(frozen=True)
class BatchTarget(SubmissionTarget[Elicitation]):
    conversation = ElicitationConversation()

    @property
    def family(self) -> Family:
        return self.task.release.family

    @property
    def place(self) -> Place:
        return {"batch": self.task.batch}

    @property
    def blocks(self) -> dict[str, str]:
        return self.task.batch.blocks

    def result(self, task: Elicitation, call: ModelCall) -> dict[str, Any]:
        refused = RefusedForecast.objects.filter(call=call).order_by("entry__position")
        return {
            "protocol": Elicitation.PROTOCOL,
            "elicitation": task.pk,
            "forecasts": list(task.forecasts.order_by("entry__position").values("id", "question", "probabilities")),
            "refused": list(refused.values("reason", question=F("entry__question"))),
        }


def open_targets(registration: Registration, *, at: datetime) -> list[SubmissionTarget[Any]]:
    """The tasks that the agent may answer at `at`, of the protocols that its registration covers."""
    return [target for target in _current_targets(registration, at) if target.refusal(at) is None]


def decision_target(agent: Agent, universe: Universe) -> DecisionTarget | None:
    """The decision of an external agent at a universe's prices; None if it makes none there."""
    cohort, week = agent.cohort, agent.cohort.decision_week(universe.week_start)
    if universe.methodology != cohort.methodology.version or not cohort.is_deciding(universe.week_start):
        return None
    stored = Decision.objects.filter(agent=agent, cohort=cohort, week=week).first()
    identity = {"agent": agent, "cohort": cohort, "week": week}
    task = stored or Decision(**identity, universe=universe)
    name = f"week {week} of cohort {cohort.number}"
    return DecisionTarget(task, universe.frozen_at, name, identity, {"universe": task.universe})


def batch_target(release: Release, batch: QuestionBatch) -> BatchTarget:
    """The elicitation of an external agent's release for a batch of questions."""
    identity = {"batch": batch, "release": release, "sample": 1}
    methodology = Methodology.objects.get(version=batch.question_set.methodology)
    defaults = {"methodology": methodology, "family_id": release.family_id}
    task = Elicitation.objects.filter(**identity).first() or Elicitation(**identity, **defaults)
    return BatchTarget(task, batch.question_set.frozen_at, f"batch {batch.pk}", identity, defaults)


def _current_targets(registration: Registration, at: datetime) -> Iterator[SubmissionTarget[Any]]:
    family = registration.family
    if registration.covers(Decision.PROTOCOL):
        universes = list(Universe.objects.filter(week_start=week_start(at)))
        agents = Agent.objects.playing().filter(family=family).order_by("cohort__number")
        for agent in agents.select_related("cohort__methodology", "family"):
            yield from filter(None, (decision_target(agent, universe) for universe in universes))
    release = family.release_at(at)
    if registration.covers(Elicitation.PROTOCOL) and release is not None:
        batches = QuestionBatch.objects.filter(
            question_set__frozen_at__gt=at - LONGEST_OPEN_WINDOW, question_set__frozen_at__lte=at
        )
        for batch in batches.select_related("question_set").order_by("question_set", "number", "arm"):
            target = batch_target(release, batch)
            if target.task.is_open_to_agents:
                yield target


def record_submission(
    target: SubmissionTarget[Any], *, registration: Registration, key: str, body: str, at: datetime
) -> Submission:
    """The submission with this key: the stored one, or a new one whose answer is executed now.

    Secrets in it are redacted before anything reads it: what is parsed, stored and hashed is the same text. Raises
    KeyReused, SubmissionRefused or DeadlinePassed; nothing is recorded then and the key stays free.
    """
    body = redact(body)
    identity = sorted((name, value.pk if hasattr(value, "pk") else value) for name, value in target.identity.items())
    request_sha256 = hashlib.sha256(f"{identity}\0{body}".encode()).hexdigest()
    # Before the transaction, since others wait for it on SQLite.
    completion = submitted_completion(target.task, body)
    reading = read_answer(target.task, completion)
    with transaction.atomic():
        lock_rows(Registration.objects.filter(pk=registration.pk))  # one submission at a time
        # Submissions under earlier tokens count too: a response may be lost just before the token is changed.
        same_key = Submission.objects.filter(registration__family=registration.family_id, key=key)
        if (stored := same_key.filter(request_sha256=request_sha256).first()) is not None:
            return stored
        if same_key.filter(registration=registration).exists():
            raise KeyReused("this Idempotency-Key came with another answer before")
        if refusal := target.refusal(at):
            raise refusal
        task, call = _execute_submission(target, completion, reading, at)
        status, response = _response(target, task, call)
        submission = Submission.objects.create(
            registration=registration,
            key=key,
            request_sha256=request_sha256,
            call=call,
            status=status,
            response=response,
            received_at=at,
        )
        summary = {"family": registration.family.slug, "status": int(status), "task": target.name}
        Run(kind=RUN_KIND, at=at, summary=summary).finish(failed=False)
        if status == HTTPStatus.CREATED:
            issue_receipt(submission, task=name_place(target.place), answer=body, at=at)
        else:
            note_attempt(
                target.place,
                Attempt.Kind.REFUSED,
                registration=registration,
                key=f"refused:call-{call.pk}",
                reason=response["detail"],
                at=at,
            )
        return submission


def note_late_answer(target: SubmissionTarget[Any], *, registration: Registration, at: datetime) -> None:
    """Notes the first answer to a task that came after its deadline."""
    late = f"it came {at - target.deadline} after the deadline"
    key = f"late:{name_place(target.place)}"
    note_attempt(target.place, Attempt.Kind.LATE, registration=registration, key=key, reason=late, at=at)


def _execute_submission(
    target: SubmissionTarget[Any], completion: Completion, reading: AnswerReading, at: datetime
) -> tuple[Task, ModelCall]:
    """Stores the answer as a call of the task and goes as far as that call allows."""
    claim: Claim[Any] | None = claim_task(
        type(target.task),
        identity=target.identity,
        refused_retries=target.task.methodology.refused_retries,
        lease=LEASE,
        **target.defaults,
    )
    if claim is None:
        raise SubmissionRefused(f"{target.name} takes no answer now")
    parts, attempt = next_prompt(valid_calls(claim.task), claim.task, target.conversation)
    call = store_submitted_answer(claim, parts, attempt, completion, reading)
    task = end_task(valid_calls(claim.task), claim, target.conversation, at)
    if task is None:
        task = claim.finish(status=Task.Status.FAILED, error=call.error)
    call.refresh_from_db()
    return task, call


def _response(target: SubmissionTarget[Any], task: Task, call: ModelCall) -> tuple[HTTPStatus, dict[str, Any]]:
    if task.status == Task.Status.COMPLETED and call.result == ModelCall.Result.ANSWERED:
        return HTTPStatus.CREATED, target.result(task, call)
    if task.status == Task.Status.COMPLETED:
        consequence = "no try is left, and it counts as if nothing had been said"
    elif call.result == ModelCall.Result.REFUSED:
        consequence = _tries(task.methodology.refused_retries + 1 - task.refusals)
    else:
        consequence = _tries(malformed_tries_left(task))
    return HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": f"{task.error} ({consequence})"}


def _tries(number: int) -> str:
    return "no try is left" if number <= 0 else "one more try" if number == 1 else f"{number} more tries"
