"""The conversation with a model about one task: prompt, answer, retry notes, until the task ends. For any protocol."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Generic, TypeVar

from agents.account_errors import RELEASE_REFUSED
from agents.gateway.completions import FailureScope
from agents.models import ModelCall, Task
from agents.models.task import PromptParts
from agents.services.claims import Claim
from agents.services.model_calls import CallSettings, NoAnswer, request_answer, token_budget

AnyTask = TypeVar("AnyTask", bound=Task)
PREFIXES = {
    FailureScope.ACCOUNT: "the account was refused, not the model: ",
    FailureScope.RELEASE: RELEASE_REFUSED,
}
"""How the reason of every task begins that was due while the gateway refused the account, or its release."""


class Conversation(ABC, Generic[AnyTask]):
    """The steps that a protocol defines."""

    @abstractmethod
    def prompt(self, task: AnyTask, retry_note: str = "") -> PromptParts:
        """The task's prompt as it is now."""

    @abstractmethod
    def record_answer(self, claim: Claim[AnyTask], call: ModelCall, at: datetime) -> AnyTask:
        """Ends the task by a call whose answer was parsed."""

    @abstractmethod
    def give_up(self, claim: Claim[AnyTask], reason: str, at: datetime) -> AnyTask:
        """Ends the task for want of a usable answer."""

    def is_answered(self, task: AnyTask) -> bool:
        """True if answers that were cut leave nothing to ask."""
        return False


def converse(
    claim: Claim[AnyTask], conversation: Conversation[AnyTask], *, at: datetime, settings: CallSettings
) -> tuple[AnyTask, FailureScope]:
    """The task, completed or failed for now, and whom a failure concerns. Continues after the calls on record.

    Raises ClaimLost.
    """
    calls, call = valid_calls(claim.task), None
    try:
        while (task := end_task(calls, claim, conversation, settings.write_time(at))) is None:
            max_tokens = token_budget(claim.task, calls)
            if call is not None and call.result == call.Result.CUT and call.parameters["max_tokens"] == max_tokens:
                raise NoAnswer(call.error)
            prompt, attempt = next_prompt(calls, claim.task, conversation)
            call = request_answer(settings, claim, prompt, attempt, max_tokens=max_tokens)
            calls.append(call)
    except NoAnswer as reason:
        error = f"{PREFIXES.get(reason.scope, '')}{reason}"
        return claim.finish(status=Task.Status.FAILED, error=error), reason.scope
    return task, FailureScope.REQUEST


def end_task(
    calls: list[ModelCall], claim: Claim[AnyTask], conversation: Conversation[AnyTask], at: datetime
) -> AnyTask | None:
    """Ends the task if its last call allows that; None if the model has to be asked (again)."""
    result = calls[-1].result if calls else None
    if result == ModelCall.Result.ANSWERED or (result == ModelCall.Result.CUT and conversation.is_answered(claim.task)):
        return conversation.record_answer(claim, calls[-1], at)
    if result == ModelCall.Result.DECLINED:
        return conversation.give_up(claim, calls[-1].error, at)
    malformed = _consecutive_malformed(calls)
    if malformed > claim.task.methodology.malformed_retries:
        last_error = next(call.error for call in reversed(calls) if call.result == ModelCall.Result.MALFORMED)
        return conversation.give_up(claim, f"malformed {malformed} times, at last: {last_error}", at)
    return None


def next_prompt(calls: list[ModelCall], task: AnyTask, conversation: Conversation[AnyTask]) -> tuple[PromptParts, int]:
    """The prompt for the next answer, with a note on the fault of the last one, and the number of the attempt."""
    faulty = [call for call in calls if call.result in (ModelCall.Result.MALFORMED, ModelCall.Result.REFUSED)]
    attempt = len(faulty) + sum(call.result == ModelCall.Result.CUT for call in calls) + 1
    return conversation.prompt(task, _retry_note(faulty[-1], task) if faulty else ""), attempt


def malformed_tries_left(task: Task) -> int:
    """The number of further answers that may be malformed before the task is given up."""
    return max(0, task.methodology.malformed_retries + 1 - _consecutive_malformed(valid_calls(task)))


def valid_calls(task: Task) -> list[ModelCall]:
    """The task's calls, oldest first, without those answered after their claim was lost."""
    return list(task.calls.filter(late=False)) if task.pk else []


def _consecutive_malformed(calls: list[ModelCall]) -> int:
    """The number of malformed answers since the last well-formed one; failed requests do not count."""
    count = 0
    for call in calls:
        if call.result == ModelCall.Result.MALFORMED:
            count += 1
        elif call.result == ModelCall.Result.REFUSED:
            count = 0
    return count


def _retry_note(call: ModelCall, task: Task) -> str:
    malformed = call.result == ModelCall.Result.MALFORMED
    note = task.rules.malformed_note if malformed else task.rules.refused_note
    # Each line is marked as a quotation: the error may repeat the answer, which must not break the prompt's frame.
    reason = "\n".join(f"> {line}" for line in call.error.splitlines())
    return note.format(reason=reason, reasons=reason)
