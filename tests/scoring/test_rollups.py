"""Totals by family and instant: always those of the snapshots, and curves that are read of them are no others."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Count, Sum
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from cohorts.models import Cohort
from scoring.histories import agent_values, family_values
from scoring.models import FamilyTotal, Snapshot
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


def changes() -> dict[str, Callable[[Agent], Any]]:
    def another_snapshot(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + 4 * TEN, cash=Decimal("1.23"))

    def many_at_once_some_known(agent: Agent) -> None:
        of_all = [agent.snapshots.earliest("taken_at") for agent in Agent.objects.all()]
        for step, row in enumerate(of_all):
            row.pk, row.taken_at = None, WEEK + (step % 2) * 4 * TEN
        Snapshot.objects.bulk_create(of_all, ignore_conflicts=True)

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

    def taken_back(agent: Agent) -> None:
        with transaction.atomic():
            another_snapshot(agent)
            transaction.set_rollback(True)

    return {change.__name__: change for change in (
        another_snapshot, many_at_once_some_known, values_rewritten, moved_in_time, taken_away, pruned, taken_back,
    )}  # fmt: skip


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_totals_are_those_of_the_snapshots_whoever_writes_them(
    season: list[Agent], change: Callable[[Agent], Any]
) -> None:
    before = kept()
    assert before == added_up() != {}
    change(season[0])
    assert kept() == added_up()
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
    call_command("migrate", "agents", "0001", verbosity=0)
    call_command("migrate", verbosity=0)
    assert kept() == added_up()
