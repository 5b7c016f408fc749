"""Errors of the API as problem details (RFC 9457), in one form for every fault and whatever the client accepts."""

from collections.abc import Mapping
from http import HTTPStatus
from itertools import chain
from typing import Any

from django.http import JsonResponse
from rest_framework.exceptions import APIException, ErrorDetail, ValidationError
from rest_framework.views import exception_handler

PROBLEM_TYPE = "application/problem+json"
NO_TYPE = "about:blank"
"""The `type` of problems that their status describes (RFC 9457, section 4.2.1)."""
BODY = "body"
"""The name in `errors` of what is wrong with a request's body as a whole."""
Errors = dict[str, list[str]]


class Refused(APIException):
    """A refusal with a status of its own."""

    def __init__(self, status: HTTPStatus, detail: str) -> None:
        super().__init__(detail)
        self.status_code = status


class Problem(JsonResponse):
    """A response with problem details: `type`, `title`, `status`, `detail`, and `errors` by field where given."""

    def __init__(
        self, status: int, detail: str, *, errors: Errors | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        body: dict[str, Any] = {
            "type": NO_TYPE,
            "title": HTTPStatus(status).phrase,
            "status": int(status),
            "detail": detail,
        }
        if errors is not None:
            body["errors"] = errors
        super().__init__(body, status=status, content_type=PROBLEM_TYPE, headers=headers)


def invalid_request(errors: Errors) -> Problem:
    """The 400 that names each wrong parameter or field; its detail is their sentences."""
    detail = "; ".join(f"{name}: {' '.join(sentences)}" for name, sentences in errors.items())
    return Problem(HTTPStatus.BAD_REQUEST, detail, errors=errors)


def problem_details(error: Exception, context: dict[str, Any]) -> Problem | None:
    """The framework's exception handler; None for a fault of ours, which `handler500` answers."""
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, ValidationError):
        problem = invalid_request(_errors(error.detail))
    elif response.status_code == HTTPStatus.BAD_REQUEST:
        problem = invalid_request({BODY: [str(response.data["detail"])]})
    else:
        problem = Problem(response.status_code, str(response.data["detail"]))
    for name in ("WWW-Authenticate", "Retry-After"):
        if name in response:
            problem[name] = response[name]
    return problem


def _errors(detail: Any) -> Errors:
    """Sentences by field."""
    if not isinstance(detail, dict):
        return {BODY: _sentences(detail)}
    return {BODY if name == "non_field_errors" else str(name): _sentences(part) for name, part in detail.items()}


def _sentences(detail: Any) -> list[str]:
    """The sentences about a field, those about its elements among them."""
    if isinstance(detail, ErrorDetail):
        return [str(detail)]
    details = detail.values() if isinstance(detail, dict) else detail
    return list(chain.from_iterable(map(_sentences, details)))


PROBLEM_SCHEMA = {
    "type": "object",
    "description": "Problem details by RFC 9457.",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {
            "type": "string",
            "format": "uri-reference",
            "maxLength": 200,
            "description": "`about:blank`: the status says it all.",
            "examples": [NO_TYPE],
        },
        "title": {
            "type": "string",
            "maxLength": 100,
            "description": "The status in words.",
            "examples": ["Bad Request"],
        },
        "status": {
            "type": "integer",
            "minimum": 400,
            "maximum": 599,
            "description": "The HTTP status.",
            "examples": [400],
        },
        "detail": {
            "type": "string",
            "maxLength": 100_000,
            "description": "What is wrong, in a sentence.",
            "examples": ["page_size: 0 is no whole number from 1 to 500"],
        },
        "errors": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "With a 400: each wrong parameter or field, with its sentences.",
            "examples": [{"page_size": ["0 is no whole number from 1 to 500"]}],
        },
    },
}
