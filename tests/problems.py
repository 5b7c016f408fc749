"""Problem details of the API (RFC 9457), as a client reads them."""

from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"


def problem(response: Any, status: int) -> dict[str, Any]:
    """The body of a response with this status, which must be a problem's."""
    assert (response.status_code, response["Content-Type"]) == (status, MEDIA_TYPE)
    body: dict[str, Any] = response.json()
    assert set(body) - {"errors"} == {"type", "title", "status", "detail"}
    assert (body["type"], body["title"], body["status"]) == ("about:blank", HTTPStatus(status).phrase, status)
    assert isinstance(body["detail"], str)
    assert body["detail"]
    return body


def errors(response: Any) -> dict[str, list[str]]:
    """The sentences of a 400 by the parameter or field that they are about."""
    messages: dict[str, list[str]] = problem(response, 400)["errors"]
    assert messages
    assert all(isinstance(sentence, str) for sentences in messages.values() for sentence in sentences)
    return messages
