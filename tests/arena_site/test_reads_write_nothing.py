"""A read changes nothing: no GET of a page, of the API or of the admin writes a row."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from foundation.models import Run
from tests.arena_site.addresses import OPERATIONS, administration, endpoints, pages
from tests.arena_site.test_admin import grow
from tests.factories import WEEK, RunFactory
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
WRITE = re.compile(r"\s*(?:WITH\b.*\b)?(?:INSERT|UPDATE|DELETE|REPLACE)\b", re.DOTALL)
BOARDS = ("/", "/trading/", "/forecasts/", "/agents/")


def play() -> None:
    """Rows of every model, and a run whose process was gone before it could say how it ended."""
    grow()
    ago = timezone.now() - timedelta(minutes=2)
    RunFactory(status="running", finished_at=None, raises_alert=True, started_at=ago, heartbeat_at=ago)


season = shared_rows(play)


def site_pages() -> Iterator[str]:
    yield from (*pages(), *OPERATIONS, "/search/?q=rain")
    yield from [f"{path}?as_of={WEEK + timedelta(days=9):%Y-%m-%d}" for path in BOARDS]


@pytest.mark.parametrize(("paths", "least"), [(site_pages, 39), (endpoints, 50), (administration, 145)])
def test_no_read_writes_a_row(
    season: None, admin_client: Client, paths: Callable[[], Iterator[str]], least: int
) -> None:
    read = 0
    written: dict[str, list[str]] = {}
    for path in paths():
        with CaptureQueriesContext(connection) as captured:
            status = admin_client.get(path).status_code
        read += status == 200
        writes = [query["sql"][:80] for query in captured if WRITE.match(query["sql"])]
        if writes:
            written[path] = writes
    assert written == {}
    assert read >= least
    assert Run.objects.filter(status="running", finished_at=None).count() == 1
