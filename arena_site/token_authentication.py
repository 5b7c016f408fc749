"""Authentication of API requests by bearer token: external agents, and operators' programs."""

import logging
import time
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiResponse
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import find_registration
from arena_site.clients import client_key
from arena_site.limits import increment, short_lock_timeout, window_end
from arena_site.models import OperatorToken
from arena_site.operator_tokens import PERMISSIONS, InactiveToken, authenticate_operator_token
from markets.foundation.rest import PROBLEM_SCHEMA

MAX_FAILURES = 10
WINDOW_S = 15 * 60
LIMIT_NAME = "token"
SCHEME = "Bearer"
log = logging.getLogger(__name__)


class BearerAuthentication(BaseAuthentication):
    """`Authorization: Bearer TOKEN`, with at most ten wrong tokens per client and quarter of an hour.

    Only wrong tokens count, per client, so that nobody's failures refuse another's valid token.
    """

    unknown_message = "the token is unknown or revoked"

    def lookup(self, token: str) -> tuple[Any, Any] | None:
        """The user and credentials of a token, None if it is unknown. Raises InactiveToken."""
        raise NotImplementedError

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.casefold() != SCHEME.casefold():
            return None
        try:
            if (owner := self.lookup(token.strip())) is not None:
                return owner
            reason = self.unknown_message
        except InactiveToken as inactive:
            reason = str(inactive)
        _count_failure(request)
        raise AuthenticationFailed(reason)

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class AgentTokenAuthentication(BearerAuthentication):
    """Authenticates an external agent by the token of its registration."""

    def lookup(self, token: str) -> tuple[Registration, str] | None:
        registration = find_registration(token, now=timezone.now())
        return (registration, token) if registration is not None else None


class OperatorTokenAuthentication(BearerAuthentication):
    """Authenticates an operator by a token created on the dashboard or with `make_token`."""

    unknown_message = "the token is unknown"

    def lookup(self, token: str) -> tuple[User, OperatorToken] | None:
        row = authenticate_operator_token(token, now=timezone.now())
        return (row.owner, row) if row is not None else None


def _count_failure(request: Request) -> None:
    now = time.time()
    ends = window_end(now, WINDOW_S)
    try:
        with short_lock_timeout():
            failures = increment(LIMIT_NAME, client_key(request.META), 1, ends=ends)
    except DatabaseError as error:
        log.warning("a wrong token was not counted: %s", error)
        return
    if failures > MAX_FAILURES:
        raise Throttled(wait=ends - now)


class HasOperatorScope(BasePermission):
    """Permission for accounts whose role covers the view's `scope`, and for tokens of that scope."""

    def has_permission(self, request: Request, view: Any) -> bool:
        scope = OperatorToken.Scope(view.scope)
        if isinstance(request.auth, OperatorToken) and request.auth.scope != scope:
            raise PermissionDenied(f"this token's scope is {request.auth.scope}, not {scope}")
        if request.user is None or not request.user.is_authenticated:
            return False
        if not request.user.has_perm(PERMISSIONS[scope]):
            raise PermissionDenied(f"{request.user} is not permitted to {scope.label}")
        return True


def token_note(request: Request) -> str:
    """The request's token, for the reason in the audit log; empty for a session."""
    return f" (token {request.auth.name})" if isinstance(request.auth, OperatorToken) else ""


OPERATOR_RESPONSES = {
    400: OpenApiResponse(PROBLEM_SCHEMA, "An invalid field, named."),
    401: OpenApiResponse(PROBLEM_SCHEMA, "Neither a session nor an active token."),
    403: OpenApiResponse(PROBLEM_SCHEMA, "Not permitted, or not the token's scope."),
    415: OpenApiResponse(PROBLEM_SCHEMA, "Not JSON."),
    429: OpenApiResponse(PROBLEM_SCHEMA, "Too many requests; `Retry-After` gives the seconds to wait."),
    500: OpenApiResponse(PROBLEM_SCHEMA, "The server failed."),
}
"""Failures of the endpoints for operators, in the OpenAPI schema."""


class AgentTokenScheme(OpenApiAuthenticationExtension):
    """The OpenAPI description of agent tokens."""

    target_class = "arena_site.token_authentication.AgentTokenAuthentication"
    name = "agentToken"
    description = "The token that `register_agent` printed."

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": self.description}


class OperatorTokenScheme(AgentTokenScheme):
    target_class = "arena_site.token_authentication.OperatorTokenAuthentication"
    name = "operatorToken"
    description = "A token of the required scope, created on the operator dashboard or with `make_token`."
