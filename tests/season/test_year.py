"""The benchmark of a long season: a week of it passes every check, and each violation is named."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from agents.models import Agent, Decision, Position
from cohorts.models import Cohort, MissedWeek
from tests.benchmarks import season_checks
from tests.benchmarks.year import Week
from tests.factories import WEEK, AgentFactory, CohortFactory, DecisionFactory, UniverseFactory, bet
from tests.guards import guards_removed

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20


def test_one_week_passes_every_check_and_prints_its_figures() -> None:
    command = [sys.executable, "-m", "tests.benchmarks.year", "--weeks", "1", "--json"]
    command += ["--postgres"] if connection.vendor == "postgresql" else []
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    output = json.loads(ran.stdout)
    assert output["database"] == ("PostgreSQL" if connection.vendor == "postgresql" else "SQLite")
    assert output["violations"] == []
    assert output["cohorts"] == {"active": 1}
    assert output["decisions"] == {"completed": 7}
    snapshots = next(table for table in output["tables"] if table["table"] == "scoring_snapshot")
    assert snapshots["rows"] == 7 * 29  # every six hours, both midnights counted
    assert [week["number"] for week in output["by week"]] == [1]


def level(**changes: Callable[[int], Any]) -> list[Week]:
    """Thirty weeks that are all alike, but for what changes with their number."""
    weeks = [
        Week(number, processor={"sync": 5.0}, resident=200 * MIB, descriptors=20, connections=1, rows={})
        for number in range(1, 31)
    ]
    for week in weeks:
        week.rows = dict.fromkeys(season_checks.PERMANENT_TABLES, week.number * 100)
        for name, value in changes.items():
            setattr(week, name, value(week.number))
    return weeks


def test_weeks_without_growth_pass() -> None:
    assert [*season_checks.process_growth(level()), *season_checks.table_growth(level())] == []


@pytest.mark.parametrize(
    ("name", "grown"),
    [
        ("resident", lambda number: (200 + 4 * number) * MIB),
        ("descriptors", lambda number: 20 + number),
        ("connections", lambda number: 1 + number // 15),
        ("processor", lambda number: {"sync": 5.0 + number}),
    ],
)
def test_growth_of_the_process_is_named(name: str, grown: Callable[[int], Any]) -> None:
    lines = list(season_checks.process_growth(level(**{name: grown})))
    called = {"resident": "memory", "processor": "time"}.get(name, name)
    assert [line.partition(":")[0] for line in lines] == [called]


def test_a_table_that_a_week_adds_more_and_more_to_is_named() -> None:
    weeks = level()
    for week in weeks:
        week.rows["foundation_alert"] = week.number**2
    assert [line.partition(":")[0] for line in season_checks.table_growth(weeks)] == ["foundation_alert"]


def test_a_table_with_more_rows_than_predicted_is_named() -> None:
    assert list(season_checks.tables_beyond_prediction({"a": 102, "b": 103}, {"a": 100, "b": 100})) == [
        "b: 103 rows, 100 were predicted"
    ]


@pytest.mark.django_db
def test_a_week_without_a_cohort_is_named_unless_it_is_recorded() -> None:
    CohortFactory(week_start=WEEK)
    CohortFactory(week_start=WEEK + timedelta(weeks=2))
    span = (WEEK, WEEK + timedelta(weeks=3))
    gap = WEEK + timedelta(weeks=1)
    unrecorded = f"week of {gap:%Y-%m-%d}: no cohort, and not recorded as missed"
    assert list(season_checks.unrecorded_weeks(*span)) == [unrecorded]
    MissedWeek.objects.create(week_start=gap, recorded_at=gap, reason="asleep")
    assert list(season_checks.unrecorded_weeks(*span)) == []


@pytest.mark.django_db
def test_a_cohort_that_is_over_and_not_completed_is_named_unless_somebody_holds_something() -> None:
    agent = AgentFactory(cohort=CohortFactory(week_start=WEEK))
    bet(agent)
    span = (WEEK, WEEK + timedelta(weeks=1))
    over = (WEEK, WEEK + timedelta(weeks=5))
    missing_weeks = {WEEK + timedelta(weeks=number) for number in range(1, 5)}
    MissedWeek.objects.bulk_create(
        MissedWeek(week_start=week, recorded_at=week, reason="asleep") for week in missing_weeks
    )
    assert list(season_checks.unrecorded_weeks(*over)) == []
    Position.objects.update(status=Position.Status.SETTLED, shares=0, cost_basis=0, closed_at=WEEK)
    assert list(season_checks.unrecorded_weeks(*span)) == []
    (line,) = season_checks.unrecorded_weeks(*over)
    assert line.startswith(f"cohort {agent.cohort.number}:")
    Cohort.objects.update(status=Cohort.Status.COMPLETED, completed_at=over[1])
    assert list(season_checks.unrecorded_weeks(*over)) == []


@pytest.mark.django_db
def test_decisions_that_never_ended_or_were_never_made_are_named() -> None:
    agent = AgentFactory(cohort=CohortFactory(week_start=WEEK))
    end = WEEK + timedelta(weeks=1)
    assert [line.rpartition(": ")[2] for line in season_checks.decision_violations(end)] == ["0 decisions, 1 were due"]
    decision = DecisionFactory(agent=agent, universe=UniverseFactory(week_start=WEEK, frozen_at=WEEK))
    assert list(season_checks.decision_violations(end)) == []
    with guards_removed(Decision):
        Decision.objects.filter(pk=decision.pk).update(status=Decision.Status.FAILED, decided_at=None, action=None)
    assert [line.partition(" of ")[0] for line in season_checks.decision_violations(end)] == [f"decision {decision.pk}"]
    Agent.objects.update(status=Agent.Status.BANKRUPT)
    Decision.objects.update(status=Decision.Status.MISSED)
    assert list(season_checks.decision_violations(end)) == []


@pytest.mark.django_db
def test_books_that_do_not_add_up_are_named() -> None:
    agent = AgentFactory()
    assert list(season_checks.ledger_violations(WEEK)) == []
    Agent.objects.filter(pk=agent.pk).update(cash="9999.99")
    assert any(f"agent {agent.pk}" in line for line in season_checks.ledger_violations(WEEK))
