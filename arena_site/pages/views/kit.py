"""The kit: its page, the index from which `pip` installs it, and `llms.txt`."""

import re

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from arena_site.kit import NAME, PACKAGES, read_kit
from arena_site.pages.views.data import serve_file


@require_safe
def kit(request: HttpRequest) -> HttpResponse:
    """How to install and use the kit, and its wheels with their hashes."""
    return render(request, "kit.html", {"index": read_kit(), "home": request.build_absolute_uri("/")})


@require_safe
def simple_index(request: HttpRequest) -> HttpResponse:
    """The packages that this index has itself."""
    links = []
    for name in dict.fromkeys(wheel.package for wheel in read_kit().wheels):
        links.append(f'<a href="{name}/">{name}</a>')
    return _page("The kit's packages", links)


@require_safe
def simple_package(request: HttpRequest, name: str) -> HttpResponse:
    """The wheels of a package of the kit; for any other the index that the kit was built with has them."""
    normal = re.sub(r"[-_.]+", "-", name).lower()
    if not NAME.fullmatch(normal):
        raise Http404
    index = read_kit()
    if normal not in PACKAGES:
        if not index.upstream:
            raise Http404
        return HttpResponseRedirect(f"{index.upstream}/{normal}/")
    links = []
    for wheel in index.wheels:
        if wheel.package == normal:
            links.append(f'<a href="../../wheels/{wheel.file}#sha256={wheel.sha256}">{wheel.file}</a>')
    if not links:
        raise Http404
    return _page(normal, links)


@require_safe
def wheel(request: HttpRequest, file: str) -> HttpResponse:
    """A wheel of the last build."""
    if file not in [wheel.file for wheel in read_kit().wheels]:
        raise Http404
    return serve_file(request, settings.ARENA_KIT_DIR / file)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    """The site described for language models (`llms.txt`), with the addresses that they need."""
    names = ("kit", "datasets", "methodologies", "data", "new-agent", "agents-board", "schema", "api-docs")
    pages = {}
    for name in names:
        pages[name.replace("-", "_")] = request.build_absolute_uri(reverse(name))
    return render(
        request,
        "llms.txt",
        {"home": request.build_absolute_uri("/"), "pages": pages},
        content_type="text/plain; charset=utf-8",
    )


def _page(title: str, links: list[str]) -> HttpResponse:
    """A page of the simple repository API; names of packages and wheels need no escape."""
    head = f"<!DOCTYPE html><html><head><title>{title}</title></head>"
    return HttpResponse(f"{head}<body>\n{'<br>'.join(links)}\n</body></html>\n")
