"""REST views for external agents: the prompts of their open tasks, and the submission of answers.

The URL configuration sets the token authentication; without it `IsRegisteredAgent` refuses every request.
"""

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.receipts import IssuedReceiptSerializer
from agents.api.tasks import InstructionSerializer
from agents.models import Agent, Decision, Elicitation, Receipt, Registration, Submission, Task
from foundation.clock import ClockAhead, now, recording_now
from foundation.rest.bodies import check_body
from foundation.rest.filters import ID_SCHEMA, check_parameters
from foundation.rest.problems import BODY, PROBLEM_SCHEMA, Problem, Refused
from foundation.rest.viewsets import NegotiatedView, extend_schema, query_parameter
from markets.models import QuestionBatch, Universe

if TYPE_CHECKING:
    from agents.services.submission_targets import SubmissionTarget  # loads the gateway, which few processes need

KEY = "Idempotency-Key"
MAX_KEY_LENGTH = 255
PRINTABLE = r"^[!-~]([ -~]*[!-~])?$"
"""ASCII without spaces at its ends."""
MAX_BODY_BYTES = 1_000_000
RETRY_S = "30"


# --- rows ------------------------------------------------------------------------------------------------


class PromptSerializer(serializers.Serializer):
    """The prompt of a task, byte for byte as a model gets it, and the blocks of its user message."""

    frozen_at = serializers.DateTimeField()
    deadline = serializers.DateTimeField(help_text="Answers are accepted before it.")
    state = serializers.ChoiceField(
        ["open", "answered"], help_text="answered: an answer is in its envelope, and another one replaces it."
    )
    system_prompt = serializers.CharField(source="task.system_prompt")
    user_prompt = serializers.CharField(
        help_text="It ends with a note on the fault of the last answer, if there was one."
    )
    blocks = serializers.DictField(
        child=serializers.CharField(),
        help_text="The user message's blocks of JSON Lines by name, without the headings.",
    )


class OpenDecisionSerializer(PromptSerializer):
    agent = serializers.IntegerField(source="task.agent_id")
    universe = serializers.IntegerField(source="task.universe_id")
    cohort = serializers.IntegerField(source="task.cohort.number")
    week = serializers.IntegerField(source="task.week")


class OpenBatchSerializer(PromptSerializer):
    batch = serializers.IntegerField(source="task.batch_id")
    arm = serializers.CharField(source="task.batch.arm")


class OpenTasksSerializer(serializers.Serializer):
    now = serializers.DateTimeField()
    trading = OpenDecisionSerializer(many=True)
    forecast = OpenBatchSerializer(many=True)


class AcceptedForecastSerializer(serializers.Serializer):
    question = serializers.IntegerField()
    probabilities = serializers.DictField(child=serializers.FloatField())


class RefusedForecastSerializer(serializers.Serializer):
    question = serializers.IntegerField()
    reason = serializers.CharField()


class SubmissionResultSerializer(serializers.Serializer):
    """The result of an answer: a decision with its instructions, or accepted and refused forecasts."""

    submission = serializers.IntegerField()
    protocol = serializers.ChoiceField(choices=[Decision.PROTOCOL, Elicitation.PROTOCOL])
    decision = serializers.IntegerField(required=False)
    action = serializers.ChoiceField(choices=Decision.Action.choices, required=False)
    instructions = InstructionSerializer(many=True, required=False)
    receipt = IssuedReceiptSerializer(required=False, help_text="The signed receipt of the answer.")
    elicitation = serializers.IntegerField(required=False)
    forecasts = AcceptedForecastSerializer(many=True, required=False)
    refused = RefusedForecastSerializer(many=True, required=False)


BET = {
    "action": "BET",
    "bets": [{"market_id": "1204", "side": "YES", "amount": "500.00"}],
    "reasoning": "The price is stale.",
}
FORECAST = {
    "forecasts": [
        {"question_id": "88", "probabilities": {"Alpha": 0.5, "Beta": 0.3, "Other": 0.2}, "rationale": "Polls."}
    ]
}


def _problem(description: str, detail: str) -> OpenApiResponse:
    return OpenApiResponse(PROBLEM_SCHEMA, f"{description} Its detail, for example: {detail}")


TASK_PARAMETERS = [
    query_parameter("agent", "The agent that decides; with `universe`.", kind=ID_SCHEMA),
    query_parameter("universe", "The universe of its decision; with `agent`.", kind=ID_SCHEMA),
    query_parameter("batch", "The batch of questions that it answers; alone.", kind=ID_SCHEMA),
    OpenApiParameter(
        KEY, {"type": "string", "maxLength": MAX_KEY_LENGTH, "pattern": PRINTABLE}, OpenApiParameter.HEADER,
        required=True, description="A text of your choice, a new one for each answer.",
    ),
]  # fmt: skip
TOKEN_PROBLEMS = {
    401: _problem("The token is missing, unknown or revoked.", "the token is unknown or revoked"),
    429: OpenApiResponse(PROBLEM_SCHEMA, "Too many requests, or too many wrong tokens from this client."),
}
BODY_PROBLEMS = {
    403: _problem("The token does not cover the protocol.", "this token does not cover the forecast protocol"),
    411: OpenApiResponse(PROBLEM_SCHEMA, "The body's length is not stated."),
    413: OpenApiResponse(PROBLEM_SCHEMA, "The answer is too long."),
    415: OpenApiResponse(PROBLEM_SCHEMA, "Not JSON, or with a Content-Encoding."),
    **TOKEN_PROBLEMS,
}


# --- views -----------------------------------------------------------------------------------------------


class IsRegisteredAgent(BasePermission):
    """Permission for external agents with an active registration."""

    message = "a token is required"

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, Registration)


class ExternalAgentView(NegotiatedView, GenericAPIView):
    """Base of the views for external agents. They accept a token and no cookie, so CSRF does not apply."""

    permission_classes = (IsRegisteredAgent,)
    pagination_class = None
    filter_backends = ()
    queryset = Submission.objects.none()


class OpenTasks(ExternalAgentView):
    """The tasks that the token's agent may answer now, with prompts, ids and deadlines.

    The agent takes part in each cohort that starts after its registration and gets the same batches of questions as
    every family, but for those of conditions with a tool: the gateway offers it to models alone. A task is open for 15
    minutes after its prices are frozen, on the open track until the `open_window` of the methodology (12 hours).
    """

    serializer_class = OpenTasksSerializer

    @extend_schema(
        responses={
            200: OpenTasksSerializer,
            400: OpenApiResponse(PROBLEM_SCHEMA, "It takes no parameters."),
            **TOKEN_PROBLEMS,
        },
    )
    def get(self, request: Request) -> Response:
        from agents.services.submission_targets import BatchTarget, DecisionTarget, open_targets

        check_parameters(request, set())
        targets = open_targets(cast(Registration, request.user), at=now())
        body = {
            "now": now(),
            "trading": [target for target in targets if isinstance(target, DecisionTarget)],
            "forecast": [target for target in targets if isinstance(target, BatchTarget)],
        }
        return Response(OpenTasksSerializer(body).data, headers={"Cache-Control": "no-store"})


class KeyedView(ExternalAgentView):
    """Base of the views that store what an agent sends, once by its key."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuses a request without its key before the token is looked at, so that it costs the client no failure."""
        if request.method == "POST":
            _key(request)
        super().initial(request, *args, **kwargs)


class Submissions(KeyedView):
    """Submits an answer in the models' format: a decision for an agent and a universe, or a batch's forecasts.

    It is parsed, checked and executed like a model's answer, at the same frozen prices. The same key with the same
    answer gives the same response again. An answer that is malformed or of which nothing can be executed is stored and
    gets a 422 with the reason; until the deadline, as many further answers under new keys are accepted as a model
    would be asked for. An accepted answer waits in an envelope until the seal ends, and until the deadline another one
    under a new key replaces it: the last one counts, and each has its receipt.
    """

    serializer_class = SubmissionResultSerializer

    @extend_schema(
        parameters=TASK_PARAMETERS,
        request={"application/json": {"type": "object", "additionalProperties": True}},
        examples=[
            OpenApiExample("A decision", value=BET, request_only=True),
            OpenApiExample("Forecasts", value=FORECAST, request_only=True),
        ],
        responses={
            201: SubmissionResultSerializer,
            400: OpenApiResponse(PROBLEM_SCHEMA, "The key or the body is missing, or a parameter is invalid."),
            409: _problem(
                "Not open yet, already answered, out of tries, or the key was used for another answer.",
                "week 2 of cohort 3 is completed already",
            ),
            410: _problem("The deadline has passed.", "batch 5 was to be answered before 2026-03-08T02:15:00.000000Z"),
            503: _problem("No receipt can be signed now: send it again.", "the settings lack the signing key"),
            422: _problem(
                "The answer is malformed, or none of it can be executed.",
                'bets must not be empty when action is "BET" (2 more tries)',
            ),
            **BODY_PROBLEMS,
        },
    )  # fmt: skip
    def post(self, request: Request) -> Response | Problem:
        from agents.services.signing_keys import SigningKeyMismatch
        from agents.services.submission_targets import DeadlinePassed, SubmissionRefused
        from agents.services.submissions import (
            AnswerRefused,
            KeyReused,
            note_late_answer,
            note_refused_replacement,
            record_submission,
        )

        registration = cast(Registration, request.user)
        key, body = _key(request), _body(request)
        target = _parse_target(request, registration)
        try:
            at = recording_now()
        except ClockAhead as error:
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": RETRY_S})
        try:
            submission = record_submission(target, registration=registration, key=key, body=body, at=at)
        except SigningKeyMismatch as error:
            return Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error), headers={"Retry-After": RETRY_S})
        except AnswerRefused as refusal:
            note_refused_replacement(target, registration=registration, key=key, reason=str(refusal), at=at)
            return Problem(HTTPStatus.UNPROCESSABLE_ENTITY, str(refusal))
        except (KeyReused, SubmissionRefused) as error:
            if at >= target.deadline and target.task.status not in (Task.Status.ANSWERED, Task.Status.COMPLETED):
                note_late_answer(target, registration=registration, at=at)
            status = HTTPStatus.GONE if isinstance(error, DeadlinePassed) else HTTPStatus.CONFLICT
            raise Refused(status, str(error)) from error
        if submission.status != HTTPStatus.CREATED:
            return Problem(submission.status, submission.response["detail"])
        receipt = Receipt.objects.filter(submission=submission).first()  # an answer from before the register has none
        receipts = {} if receipt is None else {"receipt": receipt.as_json()}
        return Response({"submission": submission.pk} | submission.response | receipts, status=submission.status)


def _parse_target(request: Request, registration: Registration) -> "SubmissionTarget[Any]":
    """The task that the query parameters name. Raises a ValidationError or PermissionDenied for the client."""
    from agents.services.submission_targets import batch_target, decision_target

    check_parameters(request, {"agent", "universe", "batch"})
    names = set(request.query_params)
    if names == {"batch"}:
        _check_scope(registration, Elicitation.PROTOCOL)
        batch = QuestionBatch.objects.select_related("question_set").filter(pk=_id(request, "batch")).first()
        release = registration.family.release_at(batch.question_set.frozen_at) if batch is not None else None
        if batch is None or release is None:
            raise ValidationError({"batch": [f"no batch has the id {request.query_params['batch']}"]})
        prompt = batch_target(release, batch)
        if not prompt.task.is_open_to_agents:
            raise ValidationError({"batch": [f"batch {batch.pk} is for models that are offered a search tool"]})
        return prompt
    if names != {"agent", "universe"}:
        reason = ["name the task: give agent and universe, or batch"]
        raise ValidationError(dict.fromkeys(sorted(names ^ {"agent", "universe"}), reason))
    _check_scope(registration, Decision.PROTOCOL)
    agents = Agent.objects.filter(family=registration.family).select_related("cohort__methodology", "family")
    agent = agents.filter(pk=_id(request, "agent")).first()
    if agent is None:
        raise ValidationError({"agent": [f"no agent of yours has the id {request.query_params['agent']}"]})
    universe = Universe.objects.filter(pk=_id(request, "universe")).first()
    target = decision_target(agent, universe) if universe is not None else None
    if target is None:
        raise ValidationError(
            {"universe": [f"agent {agent.pk} has no decision at universe {_id(request, 'universe')}"]}
        )
    return target


def _check_scope(registration: Registration, protocol: str) -> None:
    if not registration.covers(protocol):
        raise PermissionDenied(f"this token does not cover the {protocol} protocol")


def _id(request: Request, name: str) -> int:
    text = request.query_params[name]
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise ValidationError({name: [f"{text} is no id"]})
    return int(text)


def _key(request: Request) -> str:
    key = request.headers.get(KEY, "").strip()
    if not key:
        raise ValidationError({KEY: ["is required: a text of your choice, a new one for each answer"]})
    if len(key) > MAX_KEY_LENGTH or not (key.isascii() and key.isprintable()):
        raise ValidationError({KEY: [f"must be at most {MAX_KEY_LENGTH} printable ASCII characters"]})
    return key


def _body(request: Request) -> str:
    """The body as text; its content is parsed later, like a model's answer."""
    check_body(request, MAX_BODY_BYTES)
    try:
        body = bytes(request.body).decode()
    except UnicodeDecodeError:
        raise ValidationError({BODY: ["is not UTF-8"]}) from None
    if not body.strip():
        raise ValidationError({BODY: ["is empty; it must hold the answer in the models' format"]})
    if "\0" in body:
        raise ValidationError({BODY: ["holds a NUL character"]})
    return body
