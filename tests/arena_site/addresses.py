"""The table of addresses for sweeps: what the URLs name, with the rows that the test's database has."""

from collections.abc import Collection, Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.urls import URLPattern, reverse

from agents.models import Agent, Decision, Family, Forecast
from arena_site import api
from arena_site.api import ENDPOINTS
from arena_site.dashboard.actions import ACTIONS
from arena_site.pages.filters import page_url
from arena_site.pages.urls import urlpatterns
from cohorts.models import Cohort, Methodology
from foundation.models import Run
from markets.models import Market, Question, Universe, UniverseEntry
from tests.arena_site.endpoints import ROWS

OF_ROWS: dict[str, tuple[Any, ...]] = {
    "decision": (Decision.objects, "pk"),
    "cohort": (Cohort.objects, "number"),
    "agent": (Agent.objects, "cohort__number", "family__slug"),
    "trades": (Agent.objects, "cohort__number", "family__slug"),
    "external-agent": (Family.objects.filter(external=True), "slug"),
    "family": (Family.objects, "slug"),
    "market": (Market.objects, "pk"),
    "universe": (Universe.objects, "pk"),
    "universe-entry": (UniverseEntry.objects, "universe_id", "market_id"),
    "forecast": (Forecast.objects, "pk"),
    "question": (Question.objects, "pk"),
    "methodology": (Methodology.objects.exclude(published_at=None), "version"),
}
"""Pages of rows, and the columns that are the arguments of their URLs."""
PLAYED = OF_ROWS.keys() - {"family", "methodology"}
"""Pages whose rows only a season brings."""
GIVEN = {
    "comparison": ("gpt-5.1", "grok-4"),
    "comparison-api": ("gpt-5.1", "grok-4"),
    "share-image": ("trading", "png"),
    "sitemap": ("decisions",),
}
"""Arguments of the other URLs that take some."""
FILES = {"daily-chain-heads", "archive-zip", "archive-file", "dataset-file", "kit-package", "kit-wheel"}
"""Published files, which read no database."""
FORMS = {"/agents/new/", "/agents/application/", "/agents/owner/"}
"""Pages that are written to, with secrets."""
OPERATIONS = ("/healthz", "/readyz", "/metrics")
REFUSED = {
    "/agents/application/": 410,  # wants the link of a mail
    "/api/v1/submissions/": 401,
    "/api/v1/submissions/open/": 401,
    "/api/v1/submissions/agent/": 401,
}
"""Statuses of what a stranger may not read."""


def pages(*, of_each: int | None = 1, missing: Collection[str] = ()) -> Iterator[str]:
    """The address of every page, with so many rows of each kind, or all; a chart is read as its page is.

    `missing` names the kinds of which the test's database has no row.
    """
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        name = str(pattern.name)
        if name in OF_ROWS:
            rows, *columns = OF_ROWS[name]
            arguments = list(rows.order_by("pk").values_list(*columns)[:of_each])
            assert bool(arguments) == (name not in missing), name
            yield from (page_url(name, *row) for row in arguments)
        elif name not in FILES and not name.endswith("-chart"):
            yield page_url(name, *GIVEN.get(name, ()))


def endpoints() -> Iterator[str]:
    """The address of every read of the API, and of a row of each list."""
    for pattern in api.urlpatterns:
        if isinstance(pattern, URLPattern) and pattern.name:
            yield reverse(pattern.name, args=GIVEN.get(pattern.name, ()))
    for name, view in ENDPOINTS.items():
        yield f"/api/v1/{name}/"
        if name in ROWS and (row := view.queryset.first()):
            yield f"/api/v1/{name}/{getattr(row, view.lookup_field)}/"


def administration() -> Iterator[str]:
    """The address of every page of the admin that is read, and of a row of each model."""
    yield reverse("admin:index")
    yield from [reverse("admin:action", args=[name]) for name in ACTIONS]
    yield from [reverse("admin:foundation_run_live", args=[run.pk]) for run in Run.objects.all()]
    for model in admin.site._registry:
        yield admin_address(model, "changelist")
        yield from [admin_address(model, "change", row.pk) for row in model._default_manager.order_by("-pk")[:1]]


def admin_address(model: type[Model], page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)
