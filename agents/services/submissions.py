"""Submissions of external agents: answers to the models' own prompts, executed by the same services.

An external agent could wait for news while the frozen prices stand still: its answer counts only within the window of
its track, and only for tasks that were frozen while it was registered, since it could have read others' answers to
earlier ones. The claim, the call, its effects and our response are written in one transaction, so that a client without
a response can send the same request again.
"""

import hashlib
import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from django.db import transaction

from agents.gateway.completions import Completion
from agents.models import (
    Attempt,
    Envelope,
    ModelCall,
    Registration,
    Submission,
    Task,
)
from agents.services.attempts import name_place, note_attempt
from agents.services.claims import AnsweredClaim, Claim, claim_task
from agents.services.conversation import end_task, malformed_tries_left, next_prompt, valid_calls
from agents.services.envelopes import store_envelope
from agents.services.model_calls import AnswerReading, read_answer, store_submitted_answer, submitted_completion
from agents.services.receipts import issue_receipt
from agents.services.submission_targets import SubmissionRefused, SubmissionTarget
from foundation.locks import lock_rows
from foundation.models import Run
from foundation.redaction import redact

LEASE = timedelta(seconds=30)
"""The claim spans one transaction and no network call."""
RUN_KIND = "submission"


class AnswerRefused(Exception):
    """Nothing of an answer could be read or carried out; the answer that it would replace stands."""


class KeyReused(Exception):
    """The idempotency key belongs to a submission with another answer."""


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
        stored_task = type(target.task).objects.filter(**target.identity).first()  # as it is behind the lock
        target = replace(target, task=stored_task or target.task)
        if refusal := target.refusal(at):
            raise refusal
        if target.task.status == Task.Status.ANSWERED:
            task, call = _replace_answer(target, completion, reading, at)
        else:
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


def note_refused_replacement(
    target: SubmissionTarget[Any], *, registration: Registration, key: str, reason: str, at: datetime
) -> None:
    """Notes an answer that would have replaced an accepted one, and of which nothing could be carried out."""
    kind = Attempt.Kind.REFUSED
    note_attempt(target.place, kind, registration=registration, key=f"refused:{key}"[:255], reason=reason, at=at)


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


def _replace_answer(
    target: SubmissionTarget[Any], completion: Completion, reading: AnswerReading, at: datetime
) -> tuple[Task, ModelCall]:
    """Puts an answer in the place of the sealed one, whose envelope stays on record. Raises AnswerRefused.

    Only an answer that can be carried out is stored: until then the earlier one stands.
    """
    task = target.task
    if reading.result != ModelCall.Result.ANSWERED:
        raise AnswerRefused(f"{reading.error} (the earlier answer stands)")
    number = task.calls.count() + 1
    verdict, reasons = target.judge(ModelCall(parsed=reading.parsed, sequence=number))
    if reasons:
        raise AnswerRefused(f"nothing of it could be carried out: {'; '.join(reasons)} (the earlier answer stands)")
    earlier = task.envelopes.get(state=Envelope.State.SEALED)
    if not Envelope.objects.filter(pk=earlier.pk, state=Envelope.State.SEALED).update(state=Envelope.State.REPLACED):
        raise SubmissionRefused(f"{target.name} is opened already")
    ModelCall.objects.filter(pk=earlier.call_id).update(result=ModelCall.Result.REPLACED)
    parts, attempt = next_prompt(valid_calls(task), task, target.conversation)
    claim: AnsweredClaim[Any] = AnsweredClaim(task, uuid.uuid4(), LEASE)
    call = store_submitted_answer(claim, parts, attempt, completion, reading)
    store_envelope(task, call, verdict, at)
    return task, call


def _response(target: SubmissionTarget[Any], task: Task, call: ModelCall) -> tuple[HTTPStatus, dict[str, Any]]:
    has_ended, error = task.status in (Task.Status.COMPLETED, Task.Status.ANSWERED), task.error
    if has_ended and call.result == ModelCall.Result.ANSWERED:
        return HTTPStatus.CREATED, target.result(task, call)
    if has_ended:
        consequence = "no try is left, and it counts as if nothing had been said"
        error = error or Envelope.objects.get(call=call).verdict["error"]
    elif call.result == ModelCall.Result.REFUSED:
        consequence = _tries(task.methodology.refused_retries + 1 - task.refusals)
        error = f"{error.partition(':')[0]}: {'; '.join(call.error.splitlines())}"
    else:
        consequence = _tries(malformed_tries_left(task))
    return HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": f"{error} ({consequence})"}


def _tries(number: int) -> str:
    return "no try is left" if number <= 0 else "one more try" if number == 1 else f"{number} more tries"
