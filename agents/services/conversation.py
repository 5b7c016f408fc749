"""A conversation with a model about a task: asked until there is an answer that counts, whatever the protocol."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from agents.models import ModelCall, Task
from agents.models.task import Retries
from agents.prompts import Prompt
from agents.services.asking import Asking, Unanswered, ask
from agents.services.claims import Claim

T = TypeVar("T", bound=Task)


@dataclass(frozen=True, slots=True)
class Conversation(Generic[T]):
    """What a protocol brings to it: the prompt after a note on what was wrong, what is done with an answer that can
    be read, and what is recorded when the model declines or can not be understood."""

    prompt: Callable[[str], Prompt]
    carry_out: Callable[[ModelCall], T]
    give_up: Callable[[str], T]


def converse(claim: Claim[T], conversation: Conversation[T], *, asking: Asking) -> T:
    """The task at its end, or failed for now. Raises ClaimLost if it is no longer ours."""
    try:
        return _converse(claim, conversation, asking)
    except Unanswered as reason:
        return claim.finish(status=Task.Status.FAILED, error=str(reason))


def _converse(claim: Claim[T], conversation: Conversation[T], asking: Asking) -> T:
    """Goes on from whatever calls are stored already."""
    calls = heard(claim.task)
    while (task := concluded(calls, claim, conversation)) is None:
        # A request in between that the gateway failed is on record as well, and changes nothing of what is due.
        calls.append(ask(asking, claim, *what_next(calls, claim.task, conversation.prompt)))
    return task


def concluded(calls: list[ModelCall], claim: Claim[T], conversation: Conversation[T]) -> T | None:
    """The task at its end, or failed for now, by the calls that are stored; None where another answer is due."""
    last = calls[-1] if calls else None
    if last is not None and last.result == ModelCall.Result.ANSWERED:
        return conversation.carry_out(last)
    if last is not None and last.result == ModelCall.Result.DECLINED:
        return conversation.give_up(last.error)
    malformed = _malformed_in_a_row(calls)
    if malformed > claim.task.retries.malformed:
        return conversation.give_up(f"malformed {malformed} times, at last: {_last_reason(calls)}")
    return None


def what_next(calls: list[ModelCall], task: Task, prompt: Callable[[str], Prompt]) -> tuple[Prompt, int]:
    """The prompt for the next answer, with a note on what was wrong with the last one, and which attempt it is."""
    judged = _judged(calls)
    return prompt(_retry_note(judged, task.retries)), len(judged) + 1


def malformed_tries_left(task: Task) -> int:
    """How many more answers may be malformed before the task is given up."""
    return max(0, task.retries.malformed + 1 - _malformed_in_a_row(heard(task)))


def heard(task: Task) -> list[ModelCall]:
    """The calls that count, oldest first; none of a task that is not stored."""
    return list(task.calls.filter(late=False)) if task.pk else []


def _judged(calls: list[ModelCall]) -> list[ModelCall]:
    """Calls whose answer was heard and did not do."""
    return [call for call in calls if call.result in (ModelCall.Result.MALFORMED, ModelCall.Result.REFUSED)]


def _malformed_in_a_row(calls: list[ModelCall]) -> int:
    """Malformed answers since the last well-formed one; a failed transport in between changes nothing."""
    count = 0
    for call in calls:
        if call.result == ModelCall.Result.MALFORMED:
            count += 1
        elif call.result == ModelCall.Result.REFUSED:
            count = 0
    return count


def _retry_note(judged: list[ModelCall], retries: Retries) -> str:
    if not judged:
        return ""
    last = judged[-1]
    note = retries.malformed_note if last.result == ModelCall.Result.MALFORMED else retries.refused_note
    reason = _quoted(last.error)
    return note.format(reason=reason, reasons=reason)


def _quoted(reason: str) -> str:
    """A reason with every line marked as quotation, so that an echoed answer can not pose as the frame."""
    return "\n".join(f"> {line}" for line in reason.splitlines())


def _last_reason(calls: list[ModelCall]) -> str:
    return next(call.error for call in reversed(calls) if call.result == ModelCall.Result.MALFORMED)
