"""The conversation with a model about one task: prompt, answer, retry notes, until the task ends. For any protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agents.models import ModelCall, Task
from agents.models.task import RetryPolicy
from agents.prompts import Prompt
from agents.services.claims import Claim
from agents.services.model_calls import CallSettings, NoAnswer, request_answer
from agents.services.request_parameters import token_budget

T = TypeVar("T", bound=Task)


@dataclass(frozen=True, slots=True)
class Conversation(Generic[T]):
    """The steps that a protocol defines.

    `prompt` takes a retry note, `execute_answer` a call whose answer was parsed, `give_up` the reason why there is no
    usable answer; the latter two end the task. `is_answered` says of cut answers whether they leave nothing to ask.
    """

    prompt: Callable[[str], Prompt]
    execute_answer: Callable[[ModelCall], T]
    give_up: Callable[[str], T]
    is_answered: Callable[[], bool] = lambda: False


def converse(claim: Claim[T], conversation: Conversation[T], *, settings: CallSettings) -> T:
    """The task, completed or failed for now. Continues after the calls on record. Raises ClaimLost."""
    calls, call = valid_calls(claim.task), None
    try:
        while (task := end_task(calls, claim, conversation)) is None:
            max_tokens = token_budget(claim.task, calls)
            if call is not None and call.result == call.Result.CUT and call.parameters["max_tokens"] == max_tokens:
                raise NoAnswer(call.error)
            prompt, attempt = next_prompt(calls, claim.task, conversation.prompt)
            call = request_answer(settings, claim, prompt, attempt, max_tokens=max_tokens)
            calls.append(call)
    except NoAnswer as reason:
        return claim.finish(status=Task.Status.FAILED, error=str(reason))
    return task


def end_task(calls: list[ModelCall], claim: Claim[T], conversation: Conversation[T]) -> T | None:
    """Ends the task if its last call allows that; None if the model has to be asked (again)."""
    last = calls[-1] if calls else None
    if last is not None and last.result == ModelCall.Result.ANSWERED:
        return conversation.execute_answer(last)
    if last is not None and last.result == ModelCall.Result.CUT and conversation.is_answered():
        return conversation.execute_answer(last)
    if last is not None and last.result == ModelCall.Result.DECLINED:
        return conversation.give_up(last.error)
    malformed = _consecutive_malformed(calls)
    if malformed > claim.task.retry_policy.malformed:
        last_error = next(call.error for call in reversed(calls) if call.result == ModelCall.Result.MALFORMED)
        return conversation.give_up(f"malformed {malformed} times, at last: {last_error}")
    return None


def next_prompt(calls: list[ModelCall], task: Task, prompt: Callable[[str], Prompt]) -> tuple[Prompt, int]:
    """The prompt for the next answer, with a note on the fault of the last one, and the number of the attempt."""
    faulty = [call for call in calls if call.result in (ModelCall.Result.MALFORMED, ModelCall.Result.REFUSED)]
    attempt = len(faulty) + sum(call.result == ModelCall.Result.CUT for call in calls) + 1
    return prompt(_retry_note(faulty[-1], task.retry_policy) if faulty else ""), attempt


def malformed_tries_left(task: Task) -> int:
    """The number of further answers that may be malformed before the task is given up."""
    return max(0, task.retry_policy.malformed + 1 - _consecutive_malformed(valid_calls(task)))


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


def _retry_note(call: ModelCall, policy: RetryPolicy) -> str:
    note = policy.malformed_note if call.result == ModelCall.Result.MALFORMED else policy.refused_note
    # Each line is marked as a quotation: the error may repeat the answer, which must not break the prompt's frame.
    reason = "\n".join(f"> {line}" for line in call.error.splitlines())
    return note.format(reason=reason, reasons=reason)
