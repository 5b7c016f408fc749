"""Totals by family and instant, and spans: always those of the snapshots, and curves read of them are no others."""

import random
from collections.abc import Callable
from copy import copy
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Count, Max, Min, Sum
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from cohorts.models import Cohort
from scoring.histories import agent_values, family_values
from scoring.models import FamilyTotal, Snapshot, SnapshotSpan
from scoring.roster import with_company
from scoring.services.retention import prune_snapshots
from tests.factories import WEEK, AgentFactory, CohortFactory, SnapshotFactory
from tests.tampering import lifted

pytestmark = pytest.mark.django_db
TEN, DAY = timedelta(minutes=10), timedelta(days=1)
GROK, KIMI = "grok-4", "kimi-k2"


def agent_of(slug: str, cohort: Cohort) -> Agent:
    return AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))


def marked(agent: Agent, steps: Any, dice: random.Random) -> None:
    for step in steps:
        worth = Decimal(dice.randrange(900_000, 1_100_000)).scaleb(-2)
        SnapshotFactory(agent=agent, taken_at=WEEK + step * TEN, cash=worth)


@pytest.fixture
def season() -> list[Agent]:
    """Two cohorts of two families, the first one over; snapshots with gaps, one of them at the instant of a closing."""
    dice, over, going = random.Random(5), CohortFactory(started_at=WEEK), CohortFactory(started_at=WEEK + 6 * TEN)
    for slug in (GROK, KIMI):
        marked(agent_of(slug, over), {*range(13)} - {4}, dice)
        marked(agent_of(slug, going), {*range(8, 20)} - ({12} if slug == GROK else set()), dice)
    Cohort.objects.filter(pk=over.pk).update(status="completed", completed_at=WEEK + 11 * TEN + timedelta(minutes=3))
    return with_company(Agent.objects.order_by("pk"))


def added_up() -> dict[Any, tuple[int, Decimal]]:
    rows = Snapshot.objects.order_by().values_list("agent__family", "taken_at")
    return {
        (family, at): (number, total)
        for family, at, number, total in rows.annotate(number=Count("pk"), total=Sum("total_value"))
    }


def kept() -> dict[Any, tuple[int, Decimal]]:
    rows = FamilyTotal.objects.values_list("family", "taken_at", "agents", "total")
    return {(family, at): (number, total) for family, at, number, total in rows}


def spans_looked_up() -> dict[int, tuple[datetime, datetime]]:
    rows = Snapshot.objects.order_by().values_list("agent").annotate(oldest=Min("taken_at"), newest=Max("taken_at"))
    return {agent: (oldest, newest) for agent, oldest, newest in rows}


def spans() -> dict[int, tuple[datetime, datetime]]:
    return {span.agent_id: (span.oldest, span.newest) for span in SnapshotSpan.objects.all()}


def changes() -> dict[str, Callable[[Agent], Any]]:
    def another_snapshot(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + 4 * TEN, cash=Decimal("1.23"))

    def many_at_once_some_known(agent: Agent) -> None:
        of_all = [agent.snapshots.earliest("taken_at") for agent in Agent.objects.all()]
        for step, row in enumerate(of_all):
            row.pk, row.taken_at = None, WEEK + (step % 2) * 4 * TEN
        Snapshot.objects.bulk_create(of_all, ignore_conflicts=True)

    def two_of_a_family_more(agent: Agent) -> None:
        row = agent.snapshots.latest("taken_at")
        rows = [copy(row) for _ in range(2)]
        for each in rows:
            each.pk, each.agent = None, agent_of(GROK, CohortFactory(started_at=WEEK))
        Snapshot.objects.bulk_create(rows)

    def values_rewritten(agent: Agent) -> None:
        with lifted(Snapshot), connection.cursor() as cursor:
            cursor.execute("UPDATE scoring_snapshot SET cash = cash + 100, total_value = total_value + 100")

    def moved_in_time(agent: Agent) -> None:
        with lifted(Snapshot):
            agent.snapshots.filter(taken_at=WEEK).update(taken_at=WEEK + 4 * TEN)

    def taken_away(agent: Agent) -> None:
        with lifted(Snapshot):
            Snapshot.objects.filter(taken_at__lte=WEEK + 8 * TEN).delete()

    def pruned(agent: Agent) -> None:
        assert prune_snapshots(at=WEEK + 40 * DAY) > 20

    def newest_taken_away(agent: Agent) -> None:
        with lifted(Snapshot):
            Snapshot.objects.filter(taken_at__gte=WEEK + 11 * TEN).delete()

    def all_of_one_taken_away(agent: Agent) -> None:
        with lifted(Snapshot):
            agent.snapshots.all().delete()

    def older_than_any(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK - TEN, cash=Decimal("1.23"))

    def become_anothers(agent: Agent) -> None:
        SnapshotFactory(agent=AgentFactory(cohort=agent.cohort), taken_at=WEEK + 2 * TEN, cash=Decimal("1.23"))
        with lifted(Snapshot):
            agent.snapshots.exclude(taken_at=WEEK + 2 * TEN).update(agent=Agent.objects.latest("pk"))

    def taken_back(agent: Agent) -> None:
        with transaction.atomic():
            another_snapshot(agent)
            transaction.set_rollback(True)

    return {change.__name__: change for change in (
        another_snapshot, many_at_once_some_known, two_of_a_family_more, values_rewritten, moved_in_time, taken_away,
        newest_taken_away, all_of_one_taken_away, older_than_any, become_anothers, pruned, taken_back,
    )}  # fmt: skip


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_totals_and_spans_are_those_of_the_snapshots_whoever_writes_them(
    season: list[Agent], change: Callable[[Agent], Any]
) -> None:
    before = kept()
    assert before == added_up() != {}
    assert spans() == spans_looked_up() != {}
    change(season[0])
    assert kept() == added_up()
    assert spans() == spans_looked_up()
    assert (kept() == before) == (change.__name__ == "taken_back")


def means(agents: list[Agent], instants: list[datetime]) -> dict[str, list[Any]]:
    """By the rule, agent by agent."""
    values, expected = agent_values(agents, instants), {}
    for slug in sorted({agent.family.slug for agent in agents}):
        own = [values[agent.pk] for agent in agents if agent.family.slug == slug]
        known = [[value for value in at_once if value is not None] for at_once in zip(*own, strict=True)]
        expected[slug] = [round(sum(v) / len(v), 2) if v else None for v in known]
    return expected


@pytest.mark.parametrize("chosen", ["all", "a cohort", "a family", "pruned"])
def test_means_read_of_totals_are_those_of_the_agents(season: list[Agent], chosen: str) -> None:
    if chosen == "pruned":
        prune_snapshots(at=WEEK + 40 * DAY)
    agents = {
        "a cohort": [agent for agent in season if agent.cohort.number == 2],
        "a family": [agent for agent in season if agent.family.slug == KIMI],
    }.get(chosen, season)
    instants = [WEEK + n * timedelta(minutes=5) for n in range(-2, 44)]
    assert {family.slug: values for family, values in family_values(agents, instants)} == means(agents, instants)


def test_where_every_agent_has_its_snapshot_no_agent_is_looked_up(season: list[Agent], client: Client) -> None:
    """So that a curve costs the same, however many cohorts there were."""
    with CaptureQueriesContext(connection) as counted:
        family_values(season, [WEEK + step * TEN for step in (1, 2, 3, 14, 15)])
    assert len(counted) == 2
    assert not any("found" in query["sql"] for query in counted)
    with CaptureQueriesContext(connection) as counted:
        family_values(season, [WEEK + step * TEN for step in (1, 4, 14)])
    assert len(counted) == 3


@pytest.mark.django_db(transaction=True)
def test_what_changed_while_no_trigger_was_there_is_added_up_after_a_migration() -> None:
    marked(agent_of(GROK, CohortFactory(started_at=WEEK)), range(4), random.Random(1))
    FamilyTotal.objects.filter(taken_at=WEEK).delete()
    FamilyTotal.objects.filter(taken_at=WEEK + TEN).update(total=0)
    SnapshotSpan.objects.update(oldest=WEEK + TEN)
    call_command("migrate", "agents", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    assert kept() == added_up()
    assert spans() == spans_looked_up()
