"""Numbers as they are written, and values over time as they are drawn."""

from datetime import timedelta
from decimal import Decimal
from itertools import pairwise

import pytest

from agents.models import Agent, Family
from cohorts.models import Cohort
from scoring.charts import Curve, line_chart
from scoring.templatetags import arena
from scoring.views.curves import MOST_INSTANTS, agent_curves, family_curves
from tests.factories import WEEK, AgentFactory, CohortFactory, ReleaseFactory, SnapshotFactory

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
HOURS = [WEEK + timedelta(hours=n) for n in range(3)]


# --- numbers and times ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "value", "written"),
    [
        (arena.money, Decimal("-1234.5"), "−$1,234.50"),
        (arena.money, "10000.00", "$10,000.00"),
        (arena.money, None, "–"),
        (arena.signed_money, Decimal("12.3"), "+$12.30"),
        (arena.signed_money, Decimal(0), "$0.00"),
        (arena.signed_percent, -0.001, "0.00\u202f%"),
        (arena.signed_percent, 3.456, "+3.46\u202f%"),
        (arena.share, 0.5, "50.0\u202f%"),
        (arena.share, 0.0, "0.0\u202f%"),
        (arena.score, 0.0, "0.000"),
        (arena.score, None, "–"),
        (arena.price, Decimal("0.4300000000"), "0.430"),
        (arena.price, Decimal("0.0005"), "0.0005"),
        (arena.cost, Decimal("0.00123"), "$0.0012"),
        (arena.cost, Decimal("12.345"), "$12.34"),
        (arena.seconds, 1234, "1.2\u202fs"),
        (arena.when, None, "–"),
        (arena.tone, -0.004, ""),
        (arena.tone, -3, "loss"),
    ],
)
def test_a_number_is_written_one_way(write, value, written):
    assert write(value) == written


# --- charts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [0, 9000])
def test_names_at_the_ends_of_lines_do_not_overlap_and_keep_their_order(elsewhere):
    near = [Curve(str(n), "#000000", [Decimal(4000 + 10 * n)] * 3) for n in range(6)]

    chart = line_chart(HOURS, [*near, Curve("far", "#000000", [Decimal(elsewhere)] * 3)])

    heights = [line.label.y for line in chart.lines[:6]]
    assert all(low - high > 17.9 for low, high in pairwise(heights))
    assert all(0 < line.label.y <= chart.bottom for line in chart.lines)


def test_a_line_begins_where_its_values_begin():
    chart = line_chart(HOURS, [Curve("late", "#000000", [None, Decimal(1), Decimal(2)])])

    assert chart.lines[0].path.count("L") == 1


def test_a_single_instant_and_a_flat_line_can_be_drawn():
    assert line_chart(HOURS[:1], [Curve("one", "#000000", [Decimal(0)])]).lines[0].end.x > 0


def test_nothing_makes_no_chart():
    assert line_chart([], []) is None


def test_a_long_history_is_thinned_to_its_first_and_last_and_few_between():
    agent = AgentFactory()
    for number in range(MOST_INSTANTS + 30):
        SnapshotFactory(agent=agent, taken_at=WEEK + timedelta(minutes=10 * number), cash=Decimal(10000 + number))

    for curves in (agent_curves([agent]), family_curves([agent])):
        assert len(curves.instants) == MOST_INSTANTS
        assert curves.instants[0] == WEEK
        assert curves.instants[-1] == WEEK + timedelta(minutes=10 * (MOST_INSTANTS + 29))
        assert curves.curves[0].values[-1] == Decimal(10000 + MOST_INSTANTS + 29)


def agent_of(slug: str) -> Agent:
    """The agent of a family in a new cohort."""
    return AgentFactory(cohort=CohortFactory(), family=Family.objects.get(slug=slug))


def totals(agent: Agent, values: dict[int, int]) -> None:
    """The agent's total value on days after the first week's start."""
    for days, value in values.items():
        SnapshotFactory(agent=agent, taken_at=WEEK + days * DAY, cash=Decimal(value))


def test_a_mean_does_not_jump_where_one_cohort_has_no_snapshot():
    first, second = agent_of("grok-4"), agent_of("grok-4")
    totals(first, {0: 10000, 1: 12000, 3: 12000})
    totals(second, {1: 10000, 2: 11000})

    values = family_curves([first, second]).curves[0].values

    assert list(values) == [10000, 11000, 11500, 11500]


def test_a_completed_cohort_keeps_its_cash_in_the_mean():
    over, going = agent_of("grok-4"), agent_of("grok-4")
    totals(over, {0: 10400})
    totals(going, {2: 10000})
    over.cohort.status, over.cohort.completed_at = Cohort.Status.COMPLETED, WEEK + DAY
    over.cash = Decimal("10600.00")

    assert list(family_curves([over, going]).curves[0].values) == [10400, 10300]


def test_a_change_of_release_marks_the_curve():
    first = agent_of("gpt-5.1")
    totals(first, {0: 10000, 7: 10000})
    ReleaseFactory(family=first.family, model_id="openai/gpt-6", effective_from=WEEK + 2 * DAY)
    second = agent_of("gpt-5.1")

    curves = family_curves([first, second])

    assert curves.curves[0].turns == [(WEEK + 7 * DAY, "openai/gpt-6 from cohort 2 on")]
    assert [mark.text for mark in curves.chart(Decimal(10000)).lines[0].marks] == ["openai/gpt-6 from cohort 2 on"]
