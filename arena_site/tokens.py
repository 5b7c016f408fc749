"""Who asks the API by a token: an agent that submits, or a program in the name of an operator."""

import logging
import time
from typing import Any

from django.contrib.auth.models import User
from django.db import DatabaseError
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import registration_of
from arena_site.clients import client_key
from arena_site.limits import briefly, count, window_end
from arena_site.models import OperatorToken
from arena_site.operator_tokens import PERMISSIONS, Refused, operator_token

FAILURES = 10
WINDOW_S = 15 * 60
THING = "token"
SCHEME = "Bearer"
log = logging.getLogger(__name__)


class Bearer(BaseAuthentication):
    """`Authorization: Bearer TOKEN`. After ten wrong ones in a quarter of an hour a client waits with the next one.

    Only wrong ones are counted, by client: nobody's failures keep anybody's right token out.
    """

    unknown = "the token is unknown or revoked"

    def known(self, token: str) -> tuple[Any, Any] | None:
        """Whom the token belongs to, and what it is; None for one that is unknown. Raises Refused with the reason."""
        raise NotImplementedError

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.casefold() != SCHEME.casefold():
            return None
        try:
            if (known := self.known(token.strip())) is not None:
                return known
            why = self.unknown
        except Refused as refused:
            why = str(refused)
        _count_failure(request)
        raise AuthenticationFailed(why)

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


class ByToken(Bearer):
    """An external agent, by the token of its registration."""

    def known(self, token: str) -> tuple[Registration, str] | None:
        registration = registration_of(token, now=timezone.now())
        return (registration, token) if registration is not None else None


class ByOperatorToken(Bearer):
    """An operator, by a token made at the desk."""

    unknown = "the token is none that this arena knows"

    def known(self, token: str) -> tuple[User, OperatorToken] | None:
        row = operator_token(token, now=timezone.now())
        return (row.owner, row) if row is not None else None


def _count_failure(request: Request) -> None:
    now = time.time()
    ends = window_end(now, WINDOW_S)
    try:
        with briefly():
            failures = count(THING, client_key(request.META), 1, ends=ends)
    except DatabaseError as error:
        log.warning("a wrong token was not counted: %s", error)
        return
    if failures > FAILURES:
        raise Throttled(wait=ends - now)


class Registered(BasePermission):
    """Whoever has a token of a live registration."""

    message = "a token is needed"

    def has_permission(self, request: Request, view: Any) -> bool:
        return isinstance(request.user, Registration)


class Operates(BasePermission):
    """Whose role permits what the view's `scope` is about; of tokens, those of that scope."""

    def has_permission(self, request: Request, view: Any) -> bool:
        scope = OperatorToken.Scope(view.scope)
        if isinstance(request.auth, OperatorToken) and request.auth.scope != scope:
            raise PermissionDenied(f"this token's scope is {request.auth.scope}, not {scope}")
        if request.user is None or not request.user.is_authenticated:
            return False
        if not request.user.has_perm(PERMISSIONS[scope]):
            raise PermissionDenied(f"{request.user} is not permitted to {scope.label}")
        return True


def by_which(request: Request) -> str:
    """The token that a request came with, for the audit log; nothing for a session."""
    return f" (token {request.auth.name})" if isinstance(request.auth, OperatorToken) else ""


class TokenScheme(OpenApiAuthenticationExtension):
    """What the OpenAPI description says of it."""

    target_class = "arena_site.tokens.ByToken"
    name = "agentToken"
    about = "The token that `register_agent` printed."

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": self.about}


class OperatorTokenScheme(TokenScheme):
    target_class = "arena_site.tokens.ByOperatorToken"
    name = "operatorToken"
    about = "A token that an operator made at the desk or with `make_token`, of the scope that is asked for."
