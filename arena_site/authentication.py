"""Authentication, with limits on failures: the admin's login with its second factor, and external agents' tokens."""

import time
from collections.abc import Iterator
from http import HTTPStatus
from math import ceil

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request

from agents.models import Registration
from agents.services.registrations import find_registration
from arena_site.middleware.clients import client_networks
from arena_site.middleware.limits import add_to_count, remaining, window_end
from arena_site.models import AuditEntry

MAX_FAILURES = 10
WINDOW_S = 15 * 60
LOGIN, ACCOUNT, TOKEN = "login", "account", "token"
"""Names of the limits."""
ACCOUNT_FACTOR = 3
"""Strangers together have so many times the failures of one client at an account."""
BROWSER_COOKIE, BROWSER_LIFETIME_S = "arena_browser", 180 * 86_400
"""Names the account that logged in with this browser: strangers' failures do not lock it out there."""
UNKNOWN_ACCOUNT = "(no such account)"
"""Stands for a name of no account, which may be a password that was typed at the wrong place."""
SCHEME = "Bearer"


@never_cache
def login(request: HttpRequest) -> HttpResponse:
    """The admin's login page, with at most ten failures per client, and thirty per account, in a quarter of an hour.

    A browser that has logged in to the account counts by its client alone, so that nobody can lock another out. An
    attempt is counted before its password is checked and taken back if that was right, so that simultaneous attempts
    can not exceed the limit. Beyond the limit nothing is written.
    """
    if request.method != "POST":
        return admin.site.login(request)
    now = time.time()
    ends = window_end(now, WINDOW_S)
    name = request.POST.get("username", "")[:150]
    account = name if User.objects.filter(username=name).exists() else UNKNOWN_ACCOUNT
    limits = [(LOGIN, client_networks(request.META))]
    if not _has_logged_in(request, account):
        limits.append((ACCOUNT, [(account, ACCOUNT_FACTOR)]))
    if min([remaining(limit, keys, MAX_FAILURES, ends=ends) for limit, keys in limits]) < 0:
        minutes = ceil((ends - now) / 60)
        page = render(request, "429.html", {"minutes": minutes}, status=HTTPStatus.TOO_MANY_REQUESTS)
        page["Retry-After"] = str(ceil(ends - now))
        return page
    response = admin.site.login(request)
    has_succeeded = response.status_code == HTTPStatus.FOUND
    if has_succeeded:
        for limit, key in _counters(limits):
            add_to_count(limit, key, -1, ends=ends)
        response.set_signed_cookie(
            BROWSER_COOKIE, account, max_age=BROWSER_LIFETIME_S, httponly=True, samesite="Lax",
            secure=settings.ARENA_HTTPS, path=request.path,
        )  # fmt: skip
    result = AuditEntry.Result.DONE if has_succeeded else AuditEntry.Result.REFUSED
    reason = "by the login page" if has_succeeded else ""
    network = limits[0][1][0][0]
    AuditEntry.objects.create(at=timezone.now(), by=account, action=LOGIN, result=result, reason=reason, target=network)
    return response


def _has_logged_in(request: HttpRequest, account: str) -> bool:
    """Whether this browser has logged in to the account."""
    known = request.get_signed_cookie(BROWSER_COOKIE, default=None, max_age=BROWSER_LIFETIME_S)
    return account != UNKNOWN_ACCOUNT and known == account


def _counters(limits: list[tuple[str, list[tuple[str, int]]]]) -> Iterator[tuple[str, str]]:
    for limit, keys in limits:
        for key, _ in keys:
            yield limit, key


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
    if remaining(TOKEN, client_networks(request.META), MAX_FAILURES, ends=ends) < 0:
        raise Throttled(wait=ends - now)
