"""Who submits: the registration that a request's token belongs to."""

import logging
import time
from typing import Any

from django.db import DatabaseError
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import registration_of
from arena_site.clients import client_key
from arena_site.limits import briefly, count, window_end

FAILURES = 10
WINDOW_S = 15 * 60
THING = "token"
SCHEME = "Bearer"
log = logging.getLogger(__name__)


class ByToken(BaseAuthentication):
    """`Authorization: Bearer TOKEN`. After ten wrong ones in a quarter of an hour a client waits with the next one.

    Only wrong ones are counted, by client: nobody's failures keep anybody's right token out.
    """

    def authenticate(self, request: Request) -> tuple[Registration, str] | None:  # type: ignore[override]
        header = request.headers.get("Authorization")
        if header is None:
            return None
        scheme, _, token = header.strip().partition(" ")
        known = registration_of(token.strip(), now=timezone.now()) if scheme.casefold() == SCHEME.casefold() else None
        if known is None:
            _count_failure(request)
            raise AuthenticationFailed("the token is unknown or revoked")
        return known, token

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


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


class TokenScheme(OpenApiAuthenticationExtension):
    """What the OpenAPI description says of it."""

    target_class = "arena_site.tokens.ByToken"
    name = "agentToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "The token that `register_agent` printed."}
