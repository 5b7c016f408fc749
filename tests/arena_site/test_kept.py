"""Board and curves are sent again as they were made, and never once anything they rest on has changed."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family
from cohorts.models import Cohort
from scoring.models import Leaderboard, Snapshot
from scoring.rollups import add_up
from scoring.services.boards import refresh_boards
from tests.factories import WEEK, AgentFactory, CohortFactory, SnapshotFactory
from tests.tampering import lifted

pytestmark = pytest.mark.django_db(transaction=True)
BOARD, PERFORMANCE = "/api/v1/leaderboard/", "/api/v1/performance/"
STEP = timedelta(minutes=10)
GAP = 4
"""The step of which there is no snapshot."""


def queries(client: Client, path: str, **headers: str) -> int:
    with CaptureQueriesContext(connection) as counted:
        client.get(path, headers=headers)
    return len(counted)


@pytest.fixture
def season() -> Agent:
    """An agent with two hours of snapshots, and a board."""
    agent = AgentFactory(family=Family.objects.get(slug="grok-4"))
    for step in {*range(13)} - {GAP}:
        SnapshotFactory(agent=agent, taken_at=WEEK + step * STEP)
    refresh_boards(at=WEEK)
    return agent


def worth(client: Client, path: str = PERFORMANCE) -> list[str]:
    series = client.get(path).json()["series"]
    return [value for _, value in series[0]["points"]]


@pytest.mark.parametrize("path", [BOARD, PERFORMANCE, f"{PERFORMANCE}?range=1D&family=grok-4", f"{BOARD}?page_size=3"])
def test_what_has_not_changed_costs_one_query(season: Agent, client: Client, path: str) -> None:
    first = client.get(path)
    assert queries(client, path) == 1
    again = client.get(path)
    assert (again.content, dict(again.items())) == (first.content, dict(first.items()))
    assert again["Access-Control-Allow-Origin"] == "*"
    assert again["ETag"]


def test_who_has_it_already_is_told_so_from_what_is_kept(season: Agent, client: Client) -> None:
    etag = client.get(BOARD)["ETag"]
    assert queries(client, BOARD, **{"if-none-match": etag}) == 1
    told = client.get(BOARD, headers={"if-none-match": etag})
    assert (told.status_code, told.content, told["Access-Control-Allow-Origin"]) == (304, b"", "*")


def test_an_answer_that_was_first_asked_for_by_its_version_is_kept_whole(season: Agent, client: Client) -> None:
    assert client.get(BOARD, headers={"if-none-match": '"another"'}).status_code == 200
    etag = client.get(BOARD)["ETag"]
    refresh_boards(at=WEEK + STEP)
    assert client.get(BOARD, headers={"if-none-match": etag}).status_code == 304
    assert client.get(BOARD).json()["count"] == 1


def changes() -> dict[str, Callable[[Agent], Any]]:
    def by_sql(agent: Agent) -> None:
        with lifted(Snapshot), connection.cursor() as cursor:
            cursor.execute("UPDATE scoring_snapshot SET total_value = total_value, stale_positions = 1")
            cursor.execute("DELETE FROM scoring_snapshot WHERE agent_id = %s", [agent.pk])

    def oldest_becomes_another(agent: Agent) -> None:
        first = agent.snapshots.earliest("taken_at")
        first.cash = first.total_value = Decimal("9000.00")
        with lifted(Snapshot):
            first.save()

    def newest_is_added(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + 20 * STEP, cash=Decimal("11000.00"))

    def gap_is_filled(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + GAP * STEP, cash=Decimal("12000.00"))

    def another_plays(agent: Agent) -> None:
        other = AgentFactory(cohort=CohortFactory(started_at=WEEK), family=agent.family)
        SnapshotFactory(agent=other, taken_at=WEEK + 5 * STEP, cash=Decimal("13000.00"))

    def cohort_ends(agent: Agent) -> None:
        Cohort.objects.update(status="completed", completed_at=WEEK + 4 * STEP)
        Agent.objects.update(cash=Decimal("14000.00"))

    return {change.__name__: change for change in (
        by_sql, oldest_becomes_another, newest_is_added, gap_is_filled, another_plays, cohort_ends,
    )}  # fmt: skip


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_a_change_shows_in_the_next_curves(season: Agent, client: Client, change: Callable[[Agent], Any]) -> None:
    before = worth(client)
    change(season)
    fresh_series = client.get(PERFORMANCE).json()["series"]
    season.family.save()  # renews the token of the players: the answer is made anew, from nothing kept
    add_up(connection)
    assert client.get(PERFORMANCE).json()["series"] == fresh_series
    after = [value for _, value in fresh_series[0]["points"]] if fresh_series else []
    assert after != before


def test_money_of_an_ended_cohort_shows_at_once(season: Agent, client: Client) -> None:
    Cohort.objects.update(status="completed", completed_at=WEEK + 4 * STEP)
    assert worth(client)[-1] == "10000.00"
    Agent.objects.update(cash=Decimal("10500.00"))
    assert worth(client)[-1] == "10500.00"


def test_a_board_written_shows_in_the_next_answer(season: Agent, client: Client) -> None:
    assert client.get(BOARD).json()["results"][0]["return_percent"] == 0
    board = Leaderboard.objects.get(protocol="trading", methodology="")
    board.entries[0]["return_percent"] = 4.5
    board.save()
    assert client.get(BOARD).json()["results"][0]["return_percent"] == 4.5
    Leaderboard.objects.all().delete()
    assert client.get(BOARD).json()["count"] == 0


def test_what_a_transaction_takes_back_is_not_shown(season: Agent, client: Client) -> None:
    before = client.get(PERFORMANCE).json()["series"]
    with transaction.atomic():
        SnapshotFactory(agent=season, taken_at=WEEK + 13 * STEP, cash=Decimal("20000.00"))
        SnapshotFactory(agent=season, taken_at=WEEK + 14 * STEP, cash=Decimal("20000.00"))
        assert client.get(PERFORMANCE).json()["series"] != before
        transaction.set_rollback(True)
    SnapshotFactory(agent=season, taken_at=WEEK + 13 * STEP, cash=Decimal("10100.00"))
    SnapshotFactory(agent=season, taken_at=WEEK + 14 * STEP, cash=Decimal("10100.00"))
    assert worth(client)[-2:] == ["10100.00", "10100.00"]


def test_a_snapshot_of_an_instant_to_come_shows_once_it_has_come(season: Agent, client: Client) -> None:
    SnapshotFactory(agent=season, taken_at=WEEK + timedelta(days=3), cash=Decimal("12345.00"))
    with time_machine.travel(WEEK + timedelta(days=2), tick=False):
        assert worth(client)[-1] == "10000.00"
    with time_machine.travel(WEEK + timedelta(days=4), tick=False):
        assert worth(client)[-1] == "12345.00"


def test_an_answer_that_is_kept_counts_towards_the_limit(season: Agent, client: Client, settings: Any) -> None:
    settings.ARENA_API_RATE = 3
    said = [client.get(BOARD, REMOTE_ADDR="203.0.113.77").status_code for _ in range(5)]
    assert said == [200, 200, 200, 429, 429]


def test_a_fault_is_not_kept(season: Agent, client: Client) -> None:
    for _ in range(2):
        assert client.get(f"{BOARD}?methodology=v99").status_code == 400
        assert client.get(f"{PERFORMANCE}?range=2W").json() == client.get(f"{PERFORMANCE}?range=2W").json()
    assert Snapshot.objects.count() == 12
