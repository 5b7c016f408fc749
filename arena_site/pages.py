"""Pages that belong to no app."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe
from django.views.defaults import server_error as page_of_error

from agents.models import Chain
from arena_site import api
from scoring.roster import roster


def is_demo(request: HttpRequest) -> dict[str, bool]:
    """For every template: is this the demo, whose models and markets are made up?"""
    return {"is_demo": settings.ARENA_DEMO}


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """What the arena is, what its results can and can not say, and where its data are."""
    context = {
        "methodology": roster().methodology,
        "chains": Chain.objects.all(),
        "home": request.build_absolute_uri("/"),
        "today": timezone.now(),
    }
    return render(request, "about.html", context)


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """Where a search engine may look, and where the list of pages is."""
    lines = ("User-agent: *", "Disallow: /admin/", "Disallow: /api/v1/", "Disallow: /metrics", "")
    site = request.build_absolute_uri(reverse("sitemaps"))
    return HttpResponse("\n".join([*lines, f"Sitemap: {site}", ""]), content_type="text/plain; charset=utf-8")


def server_error(request: HttpRequest) -> HttpResponse:
    """500 in the form that the door speaks: JSON under /api/, a page elsewhere."""
    return api.server_error(request) if request.path.startswith("/api/") else page_of_error(request)
