"""The instant of which pages and the API tell."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine

from foundation.clock import present
from foundation.models import Run

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ENDS_AT = datetime(2026, 4, 12, 0, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)


def played_until(at: datetime) -> None:
    for instant in (at - HOUR, at):
        Run.objects.create(kind="take_snapshots", at=instant)


def test_a_live_site_tells_of_the_real_time() -> None:
    played_until(ENDS_AT)
    with time_machine.travel(NOW, tick=False):
        assert present() == NOW


def test_a_demo_tells_of_the_instant_that_its_season_has_reached(settings: Any) -> None:
    settings.ARENA_DEMO, settings.ARENA_CLOCK = True, ENDS_AT
    assert present() == ENDS_AT, "before its first command"
    played_until(ENDS_AT - 5 * HOUR)
    assert present() == ENDS_AT - 5 * HOUR
    Run.objects.create(kind="verify_ledger", at=ENDS_AT + HOUR)  # by hand, later
    assert present() == ENDS_AT - 5 * HOUR
