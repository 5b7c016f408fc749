"""Families in the addresses of pages: by the name that they show. Slugs and earlier names lead there."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.models import Family
from scoring.selectors.competition import competition_index, last_competition_index

View = Callable[..., HttpResponse]
FAMILY_ARGUMENTS = ("slug", "first", "second")
"""The arguments of URLs that name a family."""
OPTIONS = ("page_view", "picture_size")
"""The arguments of views that are not in their addresses."""


def by_address(view: View, url_name: str) -> View:
    """The view, given the slugs of families where its address has their names; other names of them redirect.

    Raises Http404 for the name of no family.
    """

    def page(request: HttpRequest, **arguments: Any) -> HttpResponse:
        slugs_by_address = last_competition_index().slugs_by_address
        names = {key: value for key, value in arguments.items() if key in FAMILY_ARGUMENTS}
        if set(names.values()) <= slugs_by_address.keys():
            return view(request, **{**arguments, **{key: slugs_by_address[name] for key, name in names.items()}})
        addresses = competition_index().addresses
        in_address = {key: value for key, value in arguments.items() if key not in OPTIONS}
        for key, name in names.items():
            in_address[key] = addresses[family_slug(name)]
        query = request.META["QUERY_STRING"]
        return redirect(reverse(url_name, kwargs=in_address) + (f"?{query}" if query else ""), permanent=True)

    return page


def family_slug(name: str) -> str:
    """The slug of the family with this name, slug or earlier name in an address. Raises Http404."""
    competition = competition_index()
    if slug := competition.slugs_by_address.get(name):
        return slug
    if name in competition.by_slug:
        return name
    if family := Family.objects.named(name):
        return family.slug
    raise Http404(f"there is no model {name}")
