"""Authentication, with a limit on failures per client: the admin's login, and the API's bearer tokens."""

import logging
import time
from http import HTTPStatus
from math import ceil
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied, Throttled
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import find_registration
from arena_site.clients import client_key
from arena_site.limits import decrement, increment, short_lock_timeout, window_end
from arena_site.models import OperatorToken
from arena_site.operator_tokens import PERMISSION, InactiveToken, authenticate_operator_token

MAX_FAILURES = 10
WINDOW_S = 15 * 60
LOGIN, TOKEN = "login", "token"
"""Names of the limits."""
SCHEME = "Bearer"
log = logging.getLogger(__name__)


@never_cache
def login(request: HttpRequest) -> HttpResponse:
    """The admin's login page, with at most ten failures per client and quarter of an hour.

    Failures count per client and never per account, so that nobody can lock another out. An attempt is counted before
    its password is checked and taken back if that was right, so that simultaneous attempts can not exceed the limit.
    """
    if request.method != "POST":
        return admin.site.login(request)
    now = time.time()
    client, ends = client_key(request.META), window_end(now, WINDOW_S)
    if increment(LOGIN, client, 1, ends=ends) > MAX_FAILURES:
        minutes = ceil((ends - now) / 60)
        page = render(request, "429.html", {"minutes": minutes}, status=HTTPStatus.TOO_MANY_REQUESTS)
        page["Retry-After"] = str(ceil(ends - now))
        return page
    response = admin.site.login(request)
    if response.status_code == HTTPStatus.FOUND:
        decrement(LOGIN, client, ends=ends)
    return response


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
            failures = increment(TOKEN, client_key(request.META), 1, ends=ends)
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
        if not request.user.has_perm(PERMISSION):
            raise PermissionDenied(f"{request.user} is not permitted to {scope.label}")
        return True


def token_note(request: Request) -> str:
    """The request's token, for the reason in the audit log; empty for a session."""
    return f" (token {request.auth.name})" if isinstance(request.auth, OperatorToken) else ""
