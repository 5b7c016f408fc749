"""Instants are read back from the database unchanged and in UTC."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Max

from foundation.models import Run
from tests.factories import RunFactory

pytestmark = pytest.mark.django_db
EAST = timezone(timedelta(hours=5, minutes=45))
INSTANTS = (
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),  # an hour that Europe's clocks skip
    datetime(2026, 10, 25, 0, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 1, 1, 4, 0, 0, 1, tzinfo=EAST),
    datetime(1, 1, 2, tzinfo=UTC),
    datetime(9999, 12, 30, tzinfo=UTC),
)


def manual() -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT MAX(started_at) FROM foundation_run")
        (found,) = cursor.fetchone()
        return found if isinstance(found, datetime) else datetime.fromisoformat(found).replace(tzinfo=UTC)


def in_portions() -> Any:
    with transaction.atomic():
        return next(Run.objects.values_list("started_at", flat=True).iterator(chunk_size=1))


@pytest.mark.parametrize(
    "read",
    [
        lambda: Run.objects.get().started_at,
        lambda: Run.objects.aggregate(at=Max("started_at"))["at"],
        in_portions,
        manual,
    ],
    ids=["a model", "a sum", "in portions", "by hand"],
)
@pytest.mark.parametrize("at", INSTANTS, ids=str)
def test_instant_is_read_back_unchanged(read: Callable[[], Any], at: datetime) -> None:
    RunFactory(started_at=at, finished_at=at)
    assert read() == at
    assert read().tzinfo is UTC
