"""Where external agents fetch what models are sent, and submit what models would answer."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException, PermissionDenied, ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api import InstructionRow
from agents.models import Agent, Decision, Elicitation, Registration, Submission
from agents.services.submissions import (
    Closed,
    DecisionOpening,
    KeyUsed,
    Opening,
    SheetOpening,
    TooLate,
    decision_opening,
    openings,
    sheet_opening,
    submission_make,
)
from arena_site.tokens import ByToken, Registered
from markets.clock import now
from markets.models import QuestionSheet, Universe
from markets.rest import PROBLEM, JsonAlways, check_parameters, query_parameter

KEY = "Idempotency-Key"
LONGEST_KEY = 255
LARGEST_BODY = 1_000_000


class Conflict(APIException):
    status_code = HTTPStatus.CONFLICT


class Gone(APIException):
    status_code = HTTPStatus.GONE


class TooLarge(APIException):
    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_detail = f"the answer is longer than {LARGEST_BODY:,} bytes"


# --- rows ------------------------------------------------------------------------------------------------


class PromptRow(serializers.Serializer):
    """What a model is sent, byte for byte, and the parts of it that differ from answer to answer."""

    frozen_at = serializers.DateTimeField()
    deadline = serializers.DateTimeField(help_text="An answer counts before it.")
    system_prompt = serializers.CharField()
    user_prompt = serializers.CharField(help_text="With a note on what was wrong with the last answer, if any was.")
    blocks = serializers.DictField(
        child=serializers.CharField(),
        help_text="The user message's blocks of JSON Lines by their names, without the headings.",
    )


class OpenDecisionRow(PromptRow):
    agent = serializers.IntegerField()
    universe = serializers.IntegerField()
    cohort = serializers.IntegerField()
    week = serializers.IntegerField()


class OpenSheetRow(PromptRow):
    sheet = serializers.IntegerField()
    arm = serializers.CharField()


class OpenRow(serializers.Serializer):
    now = serializers.DateTimeField()
    trading = OpenDecisionRow(many=True)
    forecast = OpenSheetRow(many=True)


class TakenForecastRow(serializers.Serializer):
    id = serializers.IntegerField()
    question = serializers.IntegerField()
    probabilities = serializers.DictField(child=serializers.FloatField())


class RefusedForecastRow(serializers.Serializer):
    question = serializers.IntegerField()
    reason = serializers.CharField()


class SubmittedRow(serializers.Serializer):
    """What came of an answer: a decision with its instructions and trades, or forecasts taken and refused."""

    submission = serializers.IntegerField()
    protocol = serializers.ChoiceField(choices=[Decision.PROTOCOL, Elicitation.PROTOCOL])
    decision = serializers.IntegerField(required=False)
    action = serializers.ChoiceField(choices=Decision.Action.choices, required=False)
    instructions = InstructionRow(many=True, required=False)
    trades = serializers.ListField(child=serializers.IntegerField(), required=False)
    elicitation = serializers.IntegerField(required=False)
    forecasts = TakenForecastRow(many=True, required=False)
    refused = RefusedForecastRow(many=True, required=False)


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
TAKEN = {
    "submission": 7,
    "protocol": "trading",
    "decision": 311,
    "action": "BET",
    "instructions": [{"call": 1, "sequence": 1, "kind": "BET", "payload": BET["bets"][0], "executed": True,  # type: ignore[index]
                      "reason": None}],
    "trades": [902],
}  # fmt: skip


def _problem(description: str, detail: str) -> OpenApiResponse:
    return OpenApiResponse(PROBLEM, description, examples=[OpenApiExample(description, value={"detail": detail})])


TOKEN_PROBLEMS = {
    401: _problem("No token, or one that is unknown or revoked.", "the token is unknown or revoked"),
    429: OpenApiResponse(PROBLEM, "Too many requests, or too many wrong tokens of this client."),
    500: OpenApiResponse(PROBLEM, "The server failed."),
}


# --- views -----------------------------------------------------------------------------------------------


class ForRegistered(GenericAPIView):
    """A door that opens to a token alone: no cookie is looked at, so that there is nothing to forge."""

    authentication_classes = (ByToken,)
    permission_classes = (Registered,)
    content_negotiation_class = JsonAlways
    pagination_class = None
    filter_backends = ()
    queryset = Submission.objects.none()

    def registration(self, request: Request) -> Registration:
        registration: Any = request.user
        assert isinstance(registration, Registration)
        return registration


class Openings(ForRegistered):
    """All that the token's agent may answer now, exactly as models are asked: prompts, ids and deadlines.

    It has an agent in each cohort since its registration, and the same sheets of questions as everybody. What is open
    is so for 15 minutes after its freeze.
    """

    serializer_class = OpenRow

    @extend_schema(
        responses={
            200: OpenRow,
            400: _problem("A parameter: it takes none.", "takes no parameters"),
            **TOKEN_PROBLEMS,
        }
    )
    def get(self, request: Request) -> Response:
        check_parameters(request, set())
        at = now()
        opened = openings(self.registration(request), at=at)
        body = {
            "now": at,
            "trading": [_decision_row(o) for o in opened if isinstance(o, DecisionOpening)],
            "forecast": [_sheet_row(o) for o in opened if isinstance(o, SheetOpening)],
        }
        return Response(OpenRow(body).data, headers={"Cache-Control": "no-store"})


class Submissions(ForRegistered):
    """Submits an answer, as a model would write it: a decision for an agent at a universe's prices, or a sheet's
    forecasts. It is read, checked and carried out as a model's is, at the same frozen prices.

    The same key with the same answer gives the same response again. An answer that can not be read, or of which
    nothing can be carried out, is a 422 with the reason, is kept, and may be followed by another under a new key until
    the deadline, as often as a model is asked again.
    """

    serializer_class = SubmittedRow

    @extend_schema(
        parameters=[
            query_parameter("agent", "Whose decision it is; with `universe`.", kind=int),
            query_parameter("universe", "At whose prices; with `agent`.", kind=int),
            query_parameter("sheet", "Which sheet it answers; alone.", kind=int),
            OpenApiParameter(
                KEY, {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY}, OpenApiParameter.HEADER,
                required=True, description="Of your choice, a new one for each new answer.",
            ),
        ],
        request={"application/json": {"type": "object", "additionalProperties": True}},
        examples=[
            OpenApiExample("A decision", value=BET, request_only=True),
            OpenApiExample("Forecasts", value=FORECAST, request_only=True),
            OpenApiExample("What came of a bet", value=TAKEN, response_only=True, status_codes=["201"]),
        ],
        responses={
            201: SubmittedRow,
            400: OpenApiResponse(PROBLEM, "No key, no body, or a bad parameter, named."),
            403: _problem("The token does not cover the protocol.", "this token does not cover the forecast protocol"),
            409: _problem(
                "Not open yet, answered already, out of tries, or the key came with another answer.",
                "week 2 of cohort 3 is completed already",
            ),
            410: _problem("The deadline is over.", "sheet 5 was to be answered before 2026-03-08T02:15:00Z"),
            413: _problem("The answer is too long.", str(TooLarge.default_detail)),
            422: _problem(
                "The answer is malformed, or nothing of it can be carried out.",
                'bets must not be empty when action is "BET" (2 more tries)',
            ),
            **TOKEN_PROBLEMS,
        },
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        registration = self.registration(request)
        key, body = _key(request), _body(request)
        opening = _opening(request, registration)
        try:
            made = submission_make(opening, registration=registration, key=key, body=body, at=now())
        except (KeyUsed, Closed) as error:
            raise (Gone if isinstance(error, TooLate) else Conflict)(str(error)) from error
        told = made.answer if made.status != HTTPStatus.CREATED else {"submission": made.pk, **made.answer}
        return Response(told, status=made.status)


def _opening(request: Request, registration: Registration) -> Opening[Any]:
    """What the parameters name. Raises what the client is to be told where they name nothing of its own."""
    check_parameters(request, {"agent", "universe", "sheet"})
    named = set(request.query_params)
    if named == {"sheet"}:
        _check_scope(registration, Elicitation.PROTOCOL)
        sheet = QuestionSheet.objects.select_related("question_set").filter(pk=_id(request, "sheet")).first()
        release = registration.family.release_at(sheet.question_set.frozen_at) if sheet is not None else None
        if sheet is None or release is None:
            raise ValidationError({"sheet": [f"no sheet has the id {request.query_params['sheet']}"]})
        return sheet_opening(release, sheet)
    if named != {"agent", "universe"}:
        raise ValidationError({"detail": "what is answered: give agent and universe, or sheet"})
    _check_scope(registration, Decision.PROTOCOL)
    agents = Agent.objects.filter(family=registration.family).select_related("cohort__methodology", "family")
    agent = agents.filter(pk=_id(request, "agent")).first()
    if agent is None:
        raise ValidationError({"agent": [f"no agent of yours has the id {request.query_params['agent']}"]})
    universe = Universe.objects.filter(pk=_id(request, "universe")).first()
    opening = decision_opening(agent, universe) if universe is not None else None
    if opening is None:
        raise ValidationError({"universe": [f"agent {agent.pk} decides at no universe {_id(request, 'universe')}"]})
    return opening


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
        raise ValidationError({KEY: ["is needed: a text of your choice, a new one for each new answer"]})
    if len(key) > LONGEST_KEY or not key.isprintable():
        raise ValidationError({KEY: [f"must be at most {LONGEST_KEY} printable characters"]})
    return key


def _body(request: Request) -> str:
    """The body as text. What is in it is judged like a model's answer, and kept whatever it is."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
        raise TooLarge
    try:
        body = bytes(request.body).decode()
    except UnicodeDecodeError:
        raise ValidationError({"detail": "the body is not UTF-8"}) from None
    if not body.strip():
        raise ValidationError({"detail": "the body is empty: it holds the answer, as a model would write it"})
    if "\0" in body:
        raise ValidationError({"detail": "the body holds a NUL character"})
    return body


def _decision_row(opening: DecisionOpening) -> dict[str, Any]:
    task, prompt = opening.task, opening.next_prompt
    assert task.universe is not None
    blocks = {
        "PORTFOLIO": prompt.portfolio,
        "POSITIONS": prompt.positions,
        "MARKETS": task.universe.market_block,
    }
    return {
        "agent": task.agent_id,
        "universe": task.universe_id,
        "cohort": task.cohort.number,
        "week": task.week,
        **_prompt_row(opening, blocks),
    }


def _sheet_row(opening: SheetOpening) -> dict[str, Any]:
    sheet = opening.task.sheet
    return {"sheet": sheet.pk, "arm": sheet.arm, **_prompt_row(opening, {"QUESTIONS": sheet.block})}


def _prompt_row(opening: Opening[Any], blocks: dict[str, str]) -> dict[str, Any]:
    prompt = opening.next_prompt
    return {
        "frozen_at": opening.frozen_at,
        "deadline": opening.deadline,
        "system_prompt": prompt.system,
        "user_prompt": prompt.user,
        "blocks": blocks,
    }
