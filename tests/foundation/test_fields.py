"""Exact decimals: what comes back is what went in, on both databases, in rows, lookups, sums and bulk updates."""

from decimal import Decimal

import pytest
from django.db.models import F, Sum

from markets.models import Outcome
from tests.factories import AgentFactory, MarketFactory

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
