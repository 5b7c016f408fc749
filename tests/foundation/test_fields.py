"""Exact decimals: what comes back is what went in, on both databases, in rows, lookups, sums and bulk updates."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F, Max, Sum

from foundation.models import Run
from markets.models import Outcome
from tests.factories import AgentFactory, MarketFactory, RunFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("text", ["0.01", "999999999999999.99", "9007199254740993.01", "0.00"])
def test_money_comes_back_to_the_cent(text: str) -> None:
    market = MarketFactory(volume=Decimal(text))
    market.refresh_from_db()
    assert str(market.volume) == text


def test_prices_of_ten_places_are_kept_and_found() -> None:
    MarketFactory(prices={"YES": "0.1234567891", "NO": "0.8765432109"})
    assert Outcome.objects.get(price=Decimal("0.1234567891")).side == "YES"
    assert Outcome.objects.filter(price__gt=Decimal("0.1234567891")).get().side == "NO"


def test_more_places_than_the_field_has_are_refused_not_rounded() -> None:
    with pytest.raises(ValueError, match=r"volume: 1\.005 has more than 2 decimal places"):
        MarketFactory(volume=Decimal("1.005"))


def test_sums_are_exact_and_bulk_updates_take_expressions() -> None:
    agents = [AgentFactory() for _ in range(3)]
    for agent in agents:
        agent.cash = Decimal("0.10")
    type(agents[0]).objects.bulk_update(agents, ["cash"])
    assert type(agents[0]).objects.aggregate(total=Sum("cash"))["total"] == Decimal("0.30")
    type(agents[0]).objects.update(cash=F("cash"))
    agents[0].refresh_from_db()
    assert str(agents[0].cash) == "0.10"


# --- Instants are read back from the database unchanged and in UTC

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
        (instant,) = cursor.fetchone()
        return instant if isinstance(instant, datetime) else datetime.fromisoformat(instant).replace(tzinfo=UTC)


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
