"""Pages that belong to no app."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from django.views.defaults import server_error as page_of_error

from arena_site import api


def is_demo(request: HttpRequest) -> dict[str, bool]:
    """For every template: is this the demo, whose models and markets are made up?"""
    return {"is_demo": settings.ARENA_DEMO}


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """What the arena is, what its results can and can not say, and where its data are."""
    return render(request, "about.html")


def server_error(request: HttpRequest) -> HttpResponse:
    """500 in the form that the door speaks: JSON under /api/, a page elsewhere."""
    return api.server_error(request) if request.path.startswith("/api/") else page_of_error(request)
