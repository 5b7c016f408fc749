"""Authentication, with a limit on failures per client: the admin's login, and external agents' tokens."""

import logging
import time
from http import HTTPStatus
from math import ceil

from django.contrib import admin
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import find_registration
from arena_site.middleware.clients import client_key
from arena_site.middleware.limits import decrement, increment, short_lock_timeout, window_end

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


class AgentTokenAuthentication(BaseAuthentication):
    """External agents by the token of their registration: `Authorization: Bearer TOKEN`.

    At most ten wrong tokens per client and quarter of an hour. Only wrong ones count, per client, so that nobody's
    failures refuse another's valid token.
    """

    def authenticate(self, request: Request) -> tuple[Registration, str] | None:
        scheme, _, token = request.headers.get("Authorization", "").strip().partition(" ")
        if scheme.casefold() != SCHEME.casefold():
            return None
        token = token.strip()
        if (registration := find_registration(token, now=timezone.now())) is not None:
            return registration, token
        count_wrong_token(request)
        raise AuthenticationFailed("the token is unknown or revoked")

    def authenticate_header(self, request: Request) -> str:
        return SCHEME


def count_wrong_token(request: HttpRequest | Request) -> None:
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
