"""The tasks that an external agent may answer: their prompts, their deadlines, and the verdicts on answers."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from agents.models import (
    Agent,
    Decision,
    Elicitation,
    Envelope,
    Family,
    ModelCall,
    Registration,
    Release,
    Task,
)
from agents.models.forecast import read_forecasts
from agents.models.task import PromptParts
from agents.services.attempts import Place
from agents.services.conversation import Conversation, next_prompt, valid_calls
from agents.services.decisions import DecisionConversation
from agents.services.forecasts import ElicitationConversation
from agents.services.ledger import lock_agent
from agents.services.verdicts import DecisionVerdict, ForecastVerdict
from arena_verifier.decisions import Answer
from cohorts.models import Methodology
from cohorts.weeks import LONGEST_OPEN_WINDOW, week_start
from markets.models import QuestionBatch, Universe

MAX_ANSWERS = 20
"""Accepted answers to one task, each of which replaces the one before."""

AnyTask = TypeVar("AnyTask", bound=Task)


class SubmissionRefused(Exception):
    """The task takes no answer, not yet or no more; the message says why."""


class DeadlinePassed(SubmissionRefused):
    """The deadline of the task has passed."""


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

    @abstractmethod
    def judge(self, call: ModelCall) -> tuple[dict[str, Any], list[str]]:
        """The verdict on a call that is not stored yet, and if nothing of it can be carried out the reasons."""

    @property
    @abstractmethod
    def blocks(self) -> dict[str, str]:
        """The blocks of JSON Lines in the user message, by name."""

    @property
    def state(self) -> str:
        """Whether an answer is in its envelope already."""
        return "answered" if self.task.status == Task.Status.ANSWERED else "open"

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
            return DeadlinePassed(f"{self.name} was to be answered before {self.deadline:%Y-%m-%dT%H:%M:%S.%fZ}")
        if not self.family.registrations.live(self.frozen_at).covering(self.task.PROTOCOL).exists():
            return SubmissionRefused(f"{self.name} was frozen before {self.family} was registered for it")
        if self.task.status == Task.Status.ANSWERED and (refusal := self._refusal_to_replace()):
            return refusal
        if self.task.refusals > self.task.methodology.refused_retries:
            return SubmissionRefused(
                f"{self.name} was answered {self.task.refusals} times with nothing that could be carried out"
            )
        return None

    def _refusal_to_replace(self) -> SubmissionRefused | None:
        """The reason why the sealed answer can not be replaced; None if it can."""
        envelope = self.task.envelopes.get(state=Envelope.State.SEALED)
        if envelope.call.result != ModelCall.Result.ANSWERED:
            return SubmissionRefused(f"{self.name} is given up: no try is left")
        if envelope.number >= MAX_ANSWERS:
            return SubmissionRefused(f"{self.name} was answered {MAX_ANSWERS} times, and no more answers are taken")
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
        return None

    def result(self, task: Decision, call: ModelCall) -> dict[str, Any]:
        columns = ("sequence", "kind", "payload", "executed", "reason")
        envelope = Envelope.objects.filter(call=call).first()
        if envelope is None:
            action, rows = task.action, list(call.instructions.order_by("sequence").values(*columns))
        else:
            action, rows = envelope.verdict["action"], envelope.verdict["instructions"]
        instructions = []
        for row in rows:
            stated = {name: row[name] for name in columns}
            instructions.append({"call": call.sequence} | stated | {"reason": row["reason"] or None})
        return {"protocol": Decision.PROTOCOL, "decision": task.pk, "action": action, "instructions": instructions}

    def judge(self, call: ModelCall) -> tuple[dict[str, Any], list[str]]:
        universe = self.task.universe
        assert universe is not None
        agent = lock_agent(self.task.agent_id)
        verdict = DecisionVerdict.judged(Answer.from_json(call.parsed), agent=agent, universe=universe)
        return verdict.as_json(), verdict.refusals


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
        verdict = self._verdict(call)
        return {
            "protocol": Elicitation.PROTOCOL,
            "elicitation": task.pk,
            "forecasts": [
                {"question": row.entry.question_id, "probabilities": row.forecast.probabilities}
                for row in verdict.valid
            ],
            "refused": [{"question": row.entry.question_id, "reason": row.forecast.reason} for row in verdict.refused],
        }

    def judge(self, call: ModelCall) -> tuple[dict[str, Any], list[str]]:
        verdict = self._verdict(call)
        return verdict.as_json(), verdict.refusals

    def _verdict(self, call: ModelCall) -> ForecastVerdict:
        entries = list(self.task.batch.entries.prefetch_related("question__options"))
        return ForecastVerdict(rows=read_forecasts([call], entries))


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
