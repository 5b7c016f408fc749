"""The admin's login, which a stranger can neither guess his way through nor lock for others."""

import time
from http import HTTPStatus
from math import ceil

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from arena_site.clients import client_key
from arena_site.limits import count, give_back, window_end

FAILURES = 10
WINDOW_S = 15 * 60
THING = "login"


@never_cache
def login(request: HttpRequest) -> HttpResponse:
    """The admin's login page; after ten failures in a quarter of an hour a client waits for the next quarter.

    Counted by client and never by account, so that nobody's failures keep anybody else out. An attempt counts before
    the password is looked at and is given back if it was right: many at once get no further than one after another.
    """
    if request.method != "POST":
        return admin.site.login(request)
    now = time.time()
    client, ends = client_key(request.META), window_end(now, WINDOW_S)
    if count(THING, client, 1, ends=ends) > FAILURES:
        minutes = ceil((ends - now) / 60)
        page = render(request, "429.html", {"minutes": minutes}, status=HTTPStatus.TOO_MANY_REQUESTS)
        page["Retry-After"] = str(ceil(ends - now))
        return page
    response = admin.site.login(request)
    if response.status_code == HTTPStatus.FOUND:
        give_back(THING, client, ends=ends)
    return response
