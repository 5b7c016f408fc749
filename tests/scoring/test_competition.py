"""The competition index is read once for each version, and a change by a service shows at once."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from agents.services import ledger
from agents.services.cohort_start import start_cohort, withdraw_family
from agents.services.registrations import register_external_agent
from agents.services.settlement import complete_cohorts
from cohorts.models import Cohort, Methodology
from markets.services.cache_versions import Scope, renew_versions, save_competition_row
from scoring.selectors.competition import CompetitionIndex, attach_competition, competition_index
from tests.factories import WEEK, AgentFactory, CohortFactory
from tests.scoring.reads import statements

pytestmark = pytest.mark.django_db


def contents(index: CompetitionIndex) -> list[Any]:
    """All that pages read of an index."""
    return [
        [(family.slug, family.display_name, family.color, family.active) for family in index.families.values()],
        [(cohort.number, cohort.status, cohort.methodology.version) for cohort in index.cohorts.values()],
        [methodology.title for methodology in index.methodologies.values()],
        [(agent.pk, agent.family.slug, agent.cohort.number, agent.model_id) for agent in index.agents],
        [agent.cash for agent in index.agents if agent.cohort.completed_at],
    ]


def changes() -> dict[str, Callable[[], Any]]:
    def renamed_family() -> None:
        family = Family.objects.get(slug="grok-4")
        family.display_name = "Grok 4 Heavy"
        save_competition_row(family)

    def new_methodology_title() -> None:
        methodology = Methodology.objects.get(version="v1")
        methodology.title = "The first"
        save_competition_row(methodology)

    def money_of_a_completed_cohort() -> None:
        agent = Agent.objects.filter(cohort__number=1).first()
        assert agent is not None
        ledger.deposit(ledger.lock_agent(agent.pk), Decimal("0.01"), at=WEEK)

    def completed_cohort() -> None:
        assert complete_cohorts(at=WEEK + timedelta(weeks=60)) == 1

    return {
        "family": renamed_family,
        "new family": lambda: register_external_agent(name="Newcomer", protocol="both", at=WEEK),
        "withdrawn family": lambda: withdraw_family(Family.objects.get(slug="grok-4")),
        "cohort": lambda: start_cohort(at=WEEK + timedelta(weeks=9)),
        "completed cohort": completed_cohort,
        "methodology": new_methodology_title,
        "cash": money_of_a_completed_cohort,
    }


@pytest.fixture
def season() -> None:
    for number in (1, 2):
        cohort = CohortFactory(number=number, started_at=WEEK)
        for slug in ("grok-4", "kimi-k2"):
            AgentFactory(cohort=cohort, family=Family.objects.get(slug=slug))
    Cohort.objects.filter(number=1).update(status="completed", completed_at=WEEK)
    renew_versions(Scope.COMPETITION)


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_a_change_shows_at_once_and_so_does_its_rollback(season: None, change: Callable[[], Any]) -> None:
    before = contents(competition_index())
    with transaction.atomic():
        change()
        assert contents(competition_index()) != before
        transaction.set_rollback(True)
    assert contents(competition_index()) == before


def test_unchanged_index_is_not_read_again(season: None) -> None:
    first = competition_index()
    assert competition_index() is first
    assert statements(competition_index) == 1
    with CaptureQueriesContext(connection) as captured:
        assert {agent.cohort.methodology.version for agent in attach_competition(Agent.objects.all())} <= {"v1", "v2"}
    assert len(captured) == 2
