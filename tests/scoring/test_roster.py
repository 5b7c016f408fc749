"""Who plays is read once, and what changes of it is seen by the very next who asks."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from cohorts.models import Cohort, Methodology
from scoring.roster import Roster, roster, with_company
from tests.factories import WEEK, AgentFactory, CohortFactory

pytestmark = pytest.mark.django_db


def told(known: Roster) -> list[Any]:
    """All that pages read of it."""
    return [
        [(family.slug, family.display_name, family.color) for family in known.families.values()],
        [(cohort.number, cohort.status, cohort.methodology.version) for cohort in known.cohorts.values()],
        [methodology.title for methodology in known.methodologies.values()],
        [(player.pk, player.family.slug, player.cohort.number, player.model_id) for player in known.players],
        [player.cash for player in known.players if player.cohort.completed_at],
    ]


def changes() -> dict[str, Callable[[], Any]]:
    return {
        "a family": lambda: Family.objects.filter(slug="grok-4").update(display_name="Grok 4 Heavy"),
        "a new family": lambda: Family.objects.create(slug="new", display_name="New", provider="x", color="#123456"),
        "a cohort": lambda: CohortFactory(number=9),
        "a status": lambda: Cohort.objects.filter(number=2).update(status="completed", completed_at=WEEK),
        "a methodology": lambda: Methodology.objects.filter(version="v1").update(title="The first"),
        "an agent": lambda: AgentFactory(cohort=Cohort.objects.get(number=2)),
        "what a finished agent has": lambda: Agent.objects.filter(cohort__number=1).update(cash="123.45"),
    }


@pytest.fixture
def season() -> None:
    for number in (1, 2):
        cohort = CohortFactory(number=number, started_at=WEEK)
        for slug in ("grok-4", "kimi-k2"):
            AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))
    Cohort.objects.filter(number=1).update(status="completed", completed_at=WEEK)


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_a_change_is_seen_at_once_and_so_is_its_being_taken_back(season: None, change: Callable[[], Any]) -> None:
    before = told(roster())
    with transaction.atomic():
        change()
        assert told(roster()) != before
        transaction.set_rollback(True)
    assert told(roster()) == before


def test_what_has_not_changed_is_not_read_again(season: None) -> None:
    first = roster()
    with CaptureQueriesContext(connection) as counted:
        assert roster() is first
    assert len(counted) == 1
    with CaptureQueriesContext(connection) as counted:
        assert {agent.cohort.methodology.version for agent in with_company(Agent.objects.all())} <= {"v1", "v2"}
    assert len(counted) == 2
