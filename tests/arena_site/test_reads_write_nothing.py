"""A read changes nothing: no GET of a page, of the API or of the admin writes a row."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse
from django.utils import timezone

from arena_site.api import ENDPOINTS
from arena_site.dashboard.actions import ACTIONS
from foundation.models import Alert, Run
from tests.arena_site.endpoints import ROWS
from tests.arena_site.test_admin import OURS, grow, url
from tests.factories import WEEK, RunFactory
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
WRITE = re.compile(r"\s*(?:WITH\b.*\b)?(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.DOTALL)
SITE = (
    "/healthz",
    "/readyz",
    "/metrics",
    "/robots.txt",
    "/leaderboard.csv",
    "/search/?q=rain",
    "/feeds/decisions.atom",
)
COMPUTED = (
    "", "calibration/", "time/", "costs/", "release-trends/", "comparisons/gpt-5.1/grok-4/", "performance/",
    "submissions/", "submissions/open/",
)  # fmt: skip


def play() -> None:
    """Rows of every model, and a run whose process was gone before it could say how it ended."""
    grow()
    ago = timezone.now() - timedelta(minutes=2)
    RunFactory(status="running", finished_at=None, raises_alert=True, started_at=ago, heartbeat_at=ago)


season = shared_rows(play)


def pages(client: Client) -> Iterator[str]:
    """Each page once, and one of each kind that a row has."""
    yield from SITE
    kinds = set()
    for part in re.findall(r"<loc>http://testserver(.*?)</loc>", client.get("/sitemap.xml").content.decode()):
        for path in re.findall(r"<loc>http://testserver(.*?)</loc>", client.get(part).content.decode()):
            if (kind := resolve(path).view_name) not in kinds:
                kinds.add(kind)
                yield path
    for path in ("/", "/trading/", "/forecasts/", "/agents/"):
        yield f"{path}?as_of={WEEK + timedelta(days=9):%Y-%m-%d}"


def resources(client: Client) -> Iterator[str]:
    yield from ("/api/schema/", "/api/docs/", *[f"/api/v1/{path}" for path in COMPUTED])
    for name in ENDPOINTS:
        yield f"/api/v1/{name}/"
        if name in ROWS and (row := ENDPOINTS[name].queryset.first()):
            yield f"/api/v1/{name}/{getattr(row, ENDPOINTS[name].lookup_field)}/"


def admin_pages(client: Client) -> Iterator[str]:
    yield reverse("admin:index")
    yield from [reverse("admin:action", args=[name]) for name in ACTIONS]
    yield from [reverse("admin:foundation_run_live", args=[run.pk]) for run in Run.objects.all()]
    for model in (*OURS, Run, Alert):
        yield url(model, "changelist")
        yield from [url(model, "change", row.pk) for row in model._default_manager.order_by("-pk")[:1]]


@pytest.mark.parametrize(("paths", "least"), [(pages, 39), (resources, 50), (admin_pages, 145)])
def test_no_read_writes_a_row(
    season: None, admin_client: Client, paths: Callable[[Client], Iterator[str]], least: int
) -> None:
    read = 0
    written: dict[str, list[str]] = {}
    for path in paths(admin_client):
        with CaptureQueriesContext(connection) as captured:
            status = admin_client.get(path).status_code
        read += status == 200
        writes = [query["sql"][:80] for query in captured if WRITE.match(query["sql"])]
        if writes:
            written[path] = writes
    assert written == {}
    assert read >= least
    assert Run.objects.filter(status="running", finished_at=None).count() == 1
