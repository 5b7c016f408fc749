"""The value of a portfolio: the database sums what each position is worth by itself, rounded to the cent."""

from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models import Agent, Position
from agents.models.ledger import marked_value
from scoring.selectors.valuations import MAX_SHARES_IN_SQL, valuations
from tests.factories import WEEK, AgentFactory, MarketFactory
from tests.scoring.reads import statements
from tests.selection import examples

pytestmark = pytest.mark.django_db

COST = Decimal("12.34")
MILLIONTHS = st.integers(1, 10**12).map(lambda number: Decimal(number).scaleb(-6))
"""Up to a million shares; whole and half ones with round prices come to a half cent often."""
SHARES = MILLIONTHS | st.integers(1, 2000).map(lambda number: Decimal(number) / 2)
PRICES = st.integers(0, 10**10).map(lambda number: Decimal(number).scaleb(-10)) | st.integers(0, 100).map(
    lambda cents: Decimal(cents) / 100
)


def holding(*positions: tuple[Decimal | str, Decimal | str | None]) -> Agent:
    """An agent with nothing but a position of each number of shares at each price."""
    agent: Agent = AgentFactory()
    for shares, price in positions:
        outcome = MarketFactory().outcomes.earliest("pk")
        outcome.price = None if price is None else Decimal(price)
        outcome.save()
        Position.objects.create(
            agent=agent, market=outcome.market, outcome=outcome, shares=Decimal(shares), cost_basis=COST, opened_at=WEEK
        )
    return agent


def positions_value(agent: Agent) -> Decimal:
    return valuations([agent])[agent.pk].positions_value


@settings(max_examples=examples(30))
@given(st.lists(st.tuples(SHARES, st.none() | PRICES), min_size=1, max_size=4))
def test_a_portfolio_is_worth_what_its_positions_are(positions: list[tuple[Decimal, Decimal | None]]) -> None:
    with transaction.atomic():
        agent = holding(*positions)
        assert positions_value(agent) == sum(marked_value(shares, COST, price) for shares, price in positions)
        transaction.set_rollback(True)


@pytest.mark.parametrize(
    ("shares", "price", "value"),
    [
        ("0.5", "0.01", "0.00"),
        ("1.5", "0.01", "0.02"),
        ("2.5", "0.01", "0.02"),
        ("2.500001", "0.01", "0.03"),
        ("2.499999", "0.01", "0.02"),
        ("0.000001", "1", "0.00"),
        ("1000000", "0.0000000001", "0.00"),
        ("123456.789", "0.9999999999", "123456.79"),
        ("899999999.995", "1", "900000000.00"),
        ("899999999.985", "1", "899999999.98"),
    ],
)
def test_half_a_cent_is_rounded_to_the_even_one(shares: str, price: str, value: str) -> None:
    assert positions_value(holding((shares, price))) == Decimal(value)


@pytest.mark.parametrize(
    ("positions", "value"),
    [
        # More shares than the database can multiply.
        ([(str(MAX_SHARES_IN_SQL * 1000), "0.5"), ("10", "0.25")], MAX_SHARES_IN_SQL * 500 + Decimal("2.50")),
        ([("10", None), ("10", "0.25")], COST + Decimal("2.50")),
    ],
)
def test_position_that_the_database_can_not_value_counts_beside_others(
    positions: list[tuple[str, str | None]], value: Decimal
) -> None:
    assert positions_value(holding(*positions)) == value


def test_a_portfolio_is_one_row_however_many_positions_it_has() -> None:
    agents = [holding(*[("10", "0.25")] * number) for number in (1, 3)]
    agents_read = Agent.objects.select_related("cohort__methodology").filter(pk__in=[a.pk for a in agents])
    assert [value.positions_value for value in valuations(agents_read).values()] == [Decimal("2.50"), Decimal("7.50")]
    assert statements(valuations, agents_read.all()) == 2
    assert valuations([]) == {}
