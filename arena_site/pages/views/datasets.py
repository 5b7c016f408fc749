"""Public datasets by name: their list, and their files."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from arena_site.pages.views.data import serve_file
from scoring.exports.public_datasets import DATASET_RULE, dataset_facts, dataset_file, dataset_names

LATEST = "latest"


@require_safe
def datasets(request: HttpRequest) -> HttpResponse:
    """The versions with cards, sizes, hashes and terms, and how to evaluate an agent on them."""
    from arena_agent.dataset import FILES, MANIFEST
    from arena_agent.hub import CARD

    rows = list(map(dataset_facts, dataset_names()))
    context = {"datasets": rows, "card": CARD, "files": (MANIFEST, *FILES), "rule": DATASET_RULE}
    return render(request, "datasets.html", context | {"home": request.build_absolute_uri("/")})


@require_safe
def dataset(request: HttpRequest, name: str, file: str) -> HttpResponse:
    """A file of a version, or of the latest."""
    names = dataset_names()
    name = names[0] if names and name == LATEST else name
    if name not in names or not (path := dataset_file(name, file)).is_file():
        raise Http404
    return serve_file(request, path)
