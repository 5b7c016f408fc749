"""Whatever Kalshi does wrong, the sync fails, says so in few lines, and Polymarket's part of it is whole."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import stamina

from foundation.models import Run
from markets.models import Market, Outcome
from tests.commands import SUNDAY, run
from tests.faults.upstream import FAULTS, TIMEOUT_S, TINY_TIMEOUT_S, faulty
from tests.sandbox import Venue

pytestmark = pytest.mark.each_database

RAIN = "Will it rain?"
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def unhurried() -> Iterator[None]:
    """One retry of what may pass, and no wait before it."""
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_of_the_second_venue_costs_the_first_nothing(venue: Venue, settings: Any, fault: str) -> None:
    settings.ARENA_SOURCES = ("polymarket", "kalshi")
    settings.ARENA_VENUE_TIMEOUT_S = TIMEOUT_S
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    venue.move(RAIN, Yes="0.50", No="0.50")
    with faulty(FAULTS[fault]) as kalshi:
        settings.KALSHI_BASE_URL = kalshi.url
        # One that hangs is given up at once; the healthy venue, asked over the same setting, is quick.
        settings.ARENA_VENUE_TIMEOUT_S = 8 * TINY_TIMEOUT_S if FAULTS[fault].hangs else TIMEOUT_S
        ran = run("sync_markets", SUNDAY + HOUR)
    assert (ran.code, ran["updated"]) == (1, 1)
    assert ran.stderr.startswith("kalshi: ")
    assert len(ran.stderr.strip().splitlines()) == 1
    assert Run.objects.latest("pk").status == "failed"
    assert Outcome.objects.get(side="YES").price == Decimal("0.50")
    assert [market.source for market in Market.objects.all()] == ["polymarket"]
