"""Family totals always equal the sums of the snapshots, and curves read from them equal those of the agents."""

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.db.models import Count, Sum

from agents.models import Agent, Family
from cohorts.models import Cohort
from markets.models import CacheVersion
from markets.services.cache_versions import Scope, renew_versions
from scoring.models import FamilyTotal, Snapshot
from scoring.selectors.competition import attach_competition
from scoring.selectors.histories import agent_values, family_values
from scoring.services.retention import prune_snapshots
from scoring.services.snapshots import delete_snapshots, record_snapshots
from tests.factories import WEEK, AgentFactory, CohortFactory, SnapshotFactory
from tests.scoring.reads import statements
from tests.shared_rows import shared_rows
from tests.threads import all_at_once

pytestmark = pytest.mark.django_db
TEN, DAY = timedelta(minutes=10), timedelta(days=1)
GROK, KIMI = "grok-4", "kimi-k2"


def agent_of(slug: str, cohort: Cohort) -> Agent:
    return AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))


def take(agent: Agent, steps: Any, dice: random.Random) -> None:
    for step in steps:
        SnapshotFactory(
            agent=agent, taken_at=WEEK + step * TEN, cash=Decimal(dice.randrange(900_000, 1_100_000)).scaleb(-2)
        )


def play() -> None:
    """Two cohorts of two families, the first one completed; snapshots with gaps."""
    dice = random.Random(5)
    completed, running = CohortFactory(started_at=WEEK), CohortFactory(started_at=WEEK + 6 * TEN)
    for slug in (GROK, KIMI):
        take(agent_of(slug, completed), {*range(13)} - {4}, dice)
        take(agent_of(slug, running), {*range(8, 20)} - ({12} if slug == GROK else set()), dice)
    over = WEEK + 11 * TEN + timedelta(minutes=3)
    Cohort.objects.filter(pk=completed.pk).update(status="completed", completed_at=over)
    renew_versions(Scope.COMPETITION)


played = shared_rows(play)


@pytest.fixture
def season(played: None, db: None) -> list[Agent]:
    return attach_competition(Agent.objects.order_by("pk"))


def summed() -> dict[Any, tuple[int, Decimal]]:
    rows = Snapshot.objects.order_by().values_list("agent__family", "taken_at")
    return {
        (family, at): (number, total)
        for family, at, number, total in rows.annotate(number=Count("pk"), total=Sum("total_value"))
    }


def stored() -> dict[Any, tuple[int, Decimal]]:
    rows = FamilyTotal.objects.values_list("family", "taken_at", "agents", "total")
    return {(family, at): (number, total) for family, at, number, total in rows}


def copies(agents: list[Agent], taken_at: datetime) -> list[Snapshot]:
    rows = [agent.snapshots.earliest("taken_at") for agent in agents]
    for row in rows:
        row.pk, row.taken_at = None, taken_at
    return rows


def prune(agents: list[Agent]) -> None:
    assert prune_snapshots(at=WEEK + 40 * DAY) > 20


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda agents: record_snapshots(copies(agents, WEEK + 30 * TEN)), id="new instant"),
        pytest.param(lambda agents: record_snapshots(copies(agents[:1], WEEK + 15 * TEN)), id="instant of others"),
        pytest.param(
            lambda agents: record_snapshots(copies([a for a in agents if a.family.slug == GROK], WEEK + 31 * TEN)),
            id="two of a family",
        ),
        prune,
    ],
)
def test_totals_follow_every_write_of_snapshots(season: list[Agent], change: Callable[[list[Agent]], Any]) -> None:
    before, version = stored(), CacheVersion.objects.get(scope=Scope.SNAPSHOTS).version
    assert before == summed() != {}
    change(season)
    assert stored() == summed() != before
    assert CacheVersion.objects.get(scope=Scope.SNAPSHOTS).version != version


def test_snapshot_that_exists_stays_as_it_is_and_counts_once(season: list[Agent]) -> None:
    before = stored()
    record_snapshots(copies(season, WEEK + 10 * TEN))
    assert stored() == summed()
    assert stored()[season[0].family_id, WEEK + 10 * TEN] == before[season[0].family_id, WEEK + 10 * TEN]


def test_rolled_back_write_leaves_no_total(season: list[Agent]) -> None:
    before = stored()
    with transaction.atomic():
        record_snapshots(copies(season, WEEK + 30 * TEN))
        transaction.set_rollback(True)
    assert stored() == before == summed()


def test_refused_deletion_leaves_totals_and_snapshots(season: list[Agent]) -> None:
    before = stored()
    newest = season[0].snapshots.latest("taken_at")
    with pytest.raises(IntegrityError), transaction.atomic():
        delete_snapshots([newest.pk])
    assert stored() == before == summed()


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_two_passes_at_once_make_one_total() -> None:
    cohorts = [CohortFactory(), CohortFactory()]
    agents = [agent_of(GROK, cohort) for cohort in cohorts]
    for agent in agents:
        SnapshotFactory(agent=agent, taken_at=WEEK)
    at = WEEK + 3 * TEN
    all_at_once(*[partial(record_snapshots, copies([agent], at)) for agent in agents])
    assert stored()[agents[0].family_id, at] == (2, Decimal("20000.00"))


def means(agents: list[Agent], instants: list[datetime]) -> dict[str, list[Any]]:
    """The means by their definition, agent by agent."""
    values, expected = agent_values(agents, instants), {}
    for slug in sorted({agent.family.slug for agent in agents}):
        series = [values[agent.pk] for agent in agents if agent.family.slug == slug]
        values_by_instant = [[value for value in at_once if value is not None] for at_once in zip(*series, strict=True)]
        expected[slug] = [round(sum(column) / len(column), 2) if column else None for column in values_by_instant]
    return expected


@pytest.mark.parametrize("methodology", ["all", "a cohort", "a family", "pruned"])
def test_means_read_from_totals_are_those_of_the_agents(season: list[Agent], methodology: str) -> None:
    if methodology == "pruned":
        prune_snapshots(at=WEEK + 40 * DAY)
    agents = {
        "a cohort": [agent for agent in season if agent.cohort.number == 2],
        "a family": [agent for agent in season if agent.family.slug == KIMI],
    }.get(methodology, season)
    instants = [WEEK + n * timedelta(minutes=5) for n in range(-2, 44)]
    assert {family.slug: values for family, values in family_values(agents, instants)} == means(agents, instants)


def test_where_every_agent_has_its_snapshot_no_agent_is_looked_up(season: list[Agent]) -> None:
    """A curve costs the same, however many cohorts there are."""
    assert statements(family_values, season, [WEEK + step * TEN for step in (1, 2, 3, 14, 15)]) == 2
    assert statements(family_values, season, [WEEK + step * TEN for step in (1, 4, 14)]) == 3


def test_migrating_keeps_totals(season: list[Agent]) -> None:
    before = set(FamilyTotal.objects.values_list("pk", flat=True))
    call_command("migrate", verbosity=0)
    assert set(FamilyTotal.objects.values_list("pk", flat=True)) == before != set()
