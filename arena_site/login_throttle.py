"""The admin's login with a limit on failures per client, which can not be used to lock others out."""

import time
from http import HTTPStatus
from math import ceil

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from arena_site.clients import client_key
from arena_site.limits import decrement, increment, window_end

MAX_FAILURES = 10
WINDOW_S = 15 * 60
LIMIT_NAME = "login"


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
    if increment(LIMIT_NAME, client, 1, ends=ends) > MAX_FAILURES:
        minutes = ceil((ends - now) / 60)
        page = render(request, "429.html", {"minutes": minutes}, status=HTTPStatus.TOO_MANY_REQUESTS)
        page["Retry-After"] = str(ceil(ends - now))
        return page
    response = admin.site.login(request)
    if response.status_code == HTTPStatus.FOUND:
        decrement(LIMIT_NAME, client, ends=ends)
    return response
