"""Pages about the site itself: about, glossary, robots.txt, the images of its links, and errors."""

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import conditional_page, require_safe
from django.views.defaults import bad_request as bad_request_page
from django.views.defaults import server_error as error_page

from agents.models import Chain, Maintenance
from arena_site.middleware import API
from arena_site.pages import share_images
from arena_site.pages.glossary import GROUPS
from foundation.clock import present
from foundation.models import Run
from foundation.rest.problems import Problem, invalid_request
from scoring.selectors.competition import competition_index

SECURITY_LIFETIME = timedelta(days=180)
"""For how long security.txt may be believed; the RFC says less than a year."""


def maintenance(request: HttpRequest) -> dict[str, Maintenance | None]:
    """Template context: the maintenance that is under way."""
    return {"maintenance": Maintenance.objects.current()}


def demo(request: HttpRequest) -> dict[str, Any]:
    """Template context: whether this is the demo, with invented models and markets, and how much of it is played."""
    if not settings.ARENA_DEMO:
        return {"is_demo": False}
    season = Run.objects.filter(kind="demo", status=Run.Status.RUNNING).values_list("progress", flat=True).first()
    return {"is_demo": True, "demo_week": season.get("caption", "the first week") if season is not None else ""}


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """Purpose, limits, data and verification of the arena."""
    context = {
        "methodology": competition_index().methodology,
        "chains": Chain.objects.all(),
        "home": request.build_absolute_uri("/"),
        "today": present(),
    }
    return render(request, "about.html", context)


@require_safe
def glossary(request: HttpRequest) -> HttpResponse:
    """The definitions of all terms that pages use."""
    return render(request, "glossary.html", {"groups": GROUPS})


@require_safe
def corrections(request: HttpRequest) -> HttpResponse:
    """The page of corrections: claims that were withdrawn, as the documentation lists them."""
    lines = (settings.BASE_DIR / "docs" / "corrections.md").read_text().splitlines()
    listed = [line.removeprefix("- ") for line in lines if line.startswith("- ")]
    return render(request, "corrections.html", {"corrections": listed})


@require_safe
def robots(request: HttpRequest) -> HttpResponse:
    """Rules for search engines, and the address of the sitemap."""
    lines = ("User-agent: *", "Disallow: /admin/", "Disallow: /api/v1/", "Disallow: /metrics", "")
    site = request.build_absolute_uri(reverse("sitemaps"))
    return HttpResponse("\n".join([*lines, f"Sitemap: {site}", ""]), content_type="text/plain; charset=utf-8")


@require_safe
def security(request: HttpRequest) -> HttpResponse:
    """Where to report a vulnerability, by RFC 9116."""
    contact = settings.ARENA_SECURITY_CONTACT or request.build_absolute_uri("/about/")
    expires = (timezone.now() + SECURITY_LIFETIME).replace(hour=0, minute=0, second=0, microsecond=0)
    lines = (
        f"Contact: {contact}", f"Expires: {expires:%Y-%m-%dT%H:%M:%SZ}", "Preferred-Languages: en",
        f"Canonical: {request.build_absolute_uri(request.path)}", "",
    )  # fmt: skip
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")


@conditional_page
@require_safe
def share_image(request: HttpRequest, name: str, extension: str) -> HttpResponse:
    """A leaderboard as a picture of 1200 by 630 pixels: a PNG for social networks, an SVG for printing."""
    image = share_images.share_image(name, extension, request.build_absolute_uri("/"))
    if image is None:
        raise Http404(f"there is no image {name}.{extension}")
    version, content = image
    headers = {"ETag": f'"{version}"', "Cache-Control": "max-age=600"}
    return HttpResponse(content, content_type=share_images.TYPES[extension], headers=headers)


def server_error(request: HttpRequest) -> HttpResponse:
    """A response of status 500: problem details under /api/, a page elsewhere."""
    if request.path.startswith(API):
        return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "the server failed; it is logged")
    return error_page(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A response to what Django refuses before any view: problem details under /api/, a page elsewhere."""
    if request.path.startswith(API) and isinstance(exception, RequestDataTooBig):
        return Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the body is too long")
    if request.path.startswith(API):
        return invalid_request({"request": ["can not be read, or its Host is none of this site's"]})
    return bad_request_page(request, exception)
