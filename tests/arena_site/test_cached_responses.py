"""Responses of the leaderboard and the curves are cached until anything that they are made from changes."""

import gzip
import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.core.cache import cache, caches
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Agent, Family
from agents.services import ledger
from arena_site import conf
from arena_site.middleware import last_change
from cohorts.models import Cohort
from foundation.models import Run
from markets.services.cache_versions import Scope, renew_versions
from scoring.leaderboard_keys import LeaderboardKey
from scoring.models import Leaderboard, Snapshot
from scoring.services.trading_leaderboards import LeaderboardContents, refresh_trading_leaderboards, store_leaderboards
from tests.arena_site.addresses import FORMS, PLAYED, REFUSED, pages
from tests.factories import WEEK, AgentFactory, CohortFactory, SnapshotFactory

pytestmark = pytest.mark.django_db
LEADERBOARD, PERFORMANCE = "/api/v1/leaderboard/", "/api/v1/performance/"
STEP = timedelta(minutes=10)
GAP = 4
"""The step of which there is no snapshot."""
UNCACHED = FORMS | {"/og/trading.png", "/data/"}
"""Pages that are made anew for each reader: forms, and files."""


def queries(client: Client, path: str, **headers: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        client.get(path, headers=headers)
    return len(captured)


@pytest.fixture
def season() -> Agent:
    """An agent with two hours of snapshots, and a board."""
    agent = AgentFactory(family=Family.objects.get(slug="grok-4"))
    for step in {*range(13)} - {GAP}:
        SnapshotFactory(agent=agent, taken_at=WEEK + step * STEP)
    refresh_trading_leaderboards(at=WEEK)
    return agent


def worth(client: Client, path: str = PERFORMANCE) -> list[str]:
    series = client.get(path).json()["series"]
    return [value for _, value in series[0]["points"]]


@pytest.mark.parametrize(
    "path", [LEADERBOARD, PERFORMANCE, f"{PERFORMANCE}?range=1D&family=grok-4", f"{LEADERBOARD}?page_size=3"]
)
def test_unchanged_data_costs_one_query(season: Agent, client: Client, path: str) -> None:
    first = client.get(path)
    assert queries(client, path) == 1
    repeated = client.get(path)
    assert (repeated.content, dict(repeated.items())) == (first.content, dict(first.items()))
    assert client.get(path, headers={"origin": "https://notebook.example"})["Access-Control-Allow-Origin"] == "*"
    assert repeated["ETag"]


def test_client_with_the_same_version_gets_a_304_from_the_cache(season: Agent, client: Client) -> None:
    etag = client.get(LEADERBOARD)["ETag"]
    assert queries(client, LEADERBOARD, **{"if-none-match": etag}) == 1
    unchanged = client.get(LEADERBOARD, headers={"if-none-match": etag, "origin": "https://notebook.example"})
    assert (unchanged.status_code, unchanged.content, unchanged["Access-Control-Allow-Origin"]) == (304, b"", "*")


def test_response_first_requested_with_an_etag_is_cached_completely(season: Agent, client: Client) -> None:
    assert client.get(LEADERBOARD, headers={"if-none-match": '"another"'}).status_code == 200
    etag = client.get(LEADERBOARD)["ETag"]
    refresh_trading_leaderboards(at=WEEK + STEP)
    assert client.get(LEADERBOARD, headers={"if-none-match": etag}).status_code == 304
    assert client.get(LEADERBOARD).json()["count"] == 1


def test_compressed_response_is_cached_as_it_was_sent(season: Agent, client: Client) -> None:
    zipped = {"accept-encoding": "gzip"}
    first = client.get(PERFORMANCE, headers=zipped)
    assert first["Content-Encoding"] == "gzip"
    assert client.get(PERFORMANCE, headers=zipped).content == first.content  # made anew, its random bytes would differ
    assert client.get(PERFORMANCE).json() == json.loads(gzip.decompress(first.content))
    assert client.get(PERFORMANCE, headers=zipped | {"if-none-match": first["ETag"]}).status_code == 304


def changes() -> dict[str, Callable[[Agent], Any]]:
    def newest_is_added(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + 20 * STEP, cash=Decimal("11000.00"))

    def gap_is_filled(agent: Agent) -> None:
        SnapshotFactory(agent=agent, taken_at=WEEK + GAP * STEP, cash=Decimal("12000.00"))

    def another_agent(agent: Agent) -> None:
        other_agent = AgentFactory(cohort=CohortFactory(started_at=WEEK), family=agent.family)
        SnapshotFactory(agent=other_agent, taken_at=WEEK + 5 * STEP, cash=Decimal("13000.00"))

    def cohort_completes(agent: Agent) -> None:
        Cohort.objects.update(status="completed", completed_at=WEEK + 4 * STEP)
        ledger.deposit(ledger.lock_agent(agent.pk), Decimal("4000.00"), at=WEEK + 13 * STEP)

    return {change.__name__: change for change in (
        newest_is_added, gap_is_filled, another_agent, cohort_completes,
    )}  # fmt: skip


@pytest.mark.parametrize("change", changes().values(), ids=changes().keys())
def test_a_change_shows_in_the_next_curves(season: Agent, client: Client, change: Callable[[Agent], Any]) -> None:
    before = client.get(PERFORMANCE).json()
    with time_machine.travel(WEEK + timedelta(weeks=70), tick=False):
        change(season)
        after = client.get(PERFORMANCE).json()
        cache.clear()
        assert client.get(PERFORMANCE).json() == after != before


def test_money_of_a_completed_cohort_shows_at_once(season: Agent, client: Client) -> None:
    Cohort.objects.update(status="completed", completed_at=WEEK + 4 * STEP)
    renew_versions(Scope.COMPETITION)
    assert worth(client)[-1] == "10000.00"
    ledger.deposit(ledger.lock_agent(season.pk), Decimal("500.00"), at=WEEK + 13 * STEP)
    assert worth(client)[-1] == "10500.00"


def test_a_new_leaderboard_shows_in_the_next_response(season: Agent, client: Client) -> None:
    assert client.get(LEADERBOARD).json()["results"][0]["return_percent"] == 0
    board = Leaderboard.objects.get(protocol="trading", methodology="")
    board.entries[0]["return_percent"] = 4.5
    changed = LeaderboardContents(board.entries, board.report)
    store_leaderboards({LeaderboardKey("trading"): changed}, at=board.computed_at)
    assert client.get(LEADERBOARD).json()["results"][0]["return_percent"] == 4.5


@pytest.mark.redis
def test_responses_are_cached_by_redis_too(redis: None, season: Agent, client: Client) -> None:
    first = client.get(LEADERBOARD)
    assert queries(client, LEADERBOARD) == 1
    assert client.get(LEADERBOARD).content == first.content
    refresh_trading_leaderboards(at=WEEK + STEP)
    assert queries(client, LEADERBOARD) > 1


def test_without_its_redis_server_every_response_is_computed(season: Agent, client: Client, settings: Any) -> None:
    settings.CACHES = settings.CACHES | {"default": conf.cache("redis://127.0.0.1:1/0")}
    for _ in range(2):
        assert client.get(LEADERBOARD).json()["count"] == 1


def test_a_rolled_back_write_is_not_shown(season: Agent, client: Client) -> None:
    before = client.get(PERFORMANCE).json()["series"]
    with transaction.atomic():
        SnapshotFactory(agent=season, taken_at=WEEK + 13 * STEP, cash=Decimal("20000.00"))
        SnapshotFactory(agent=season, taken_at=WEEK + 14 * STEP, cash=Decimal("20000.00"))
        assert client.get(PERFORMANCE).json()["series"] != before
        transaction.set_rollback(True)
    SnapshotFactory(agent=season, taken_at=WEEK + 13 * STEP, cash=Decimal("10100.00"))
    SnapshotFactory(agent=season, taken_at=WEEK + 14 * STEP, cash=Decimal("10100.00"))
    assert worth(client)[-2:] == ["10100.00", "10100.00"]


def test_snapshot_of_a_later_instant_appears_at_that_instant(season: Agent, client: Client) -> None:
    SnapshotFactory(agent=season, taken_at=WEEK + timedelta(days=3), cash=Decimal("12345.00"))
    with time_machine.travel(WEEK + timedelta(days=2), tick=False):
        assert worth(client)[-1] == "10000.00"
    with time_machine.travel(WEEK + timedelta(days=4), tick=False):
        assert worth(client)[-1] == "12345.00"


def test_cached_response_counts_towards_the_rate_limit(season: Agent, client: Client, settings: Any) -> None:
    settings.ARENA_API_RATE = 3
    statuses = [client.get(LEADERBOARD, REMOTE_ADDR="203.0.113.77").status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


def test_errors_are_not_cached(season: Agent, client: Client) -> None:
    for _ in range(2):
        assert client.get(f"{LEADERBOARD}?methodology=v99").status_code == 400
        assert client.get(f"{PERFORMANCE}?range=2W").json() == client.get(f"{PERFORMANCE}?range=2W").json()
    assert Snapshot.objects.count() == 12


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def page_cache(season: Agent, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[time_machine.Traveller]:
    """Pages are cached; the clock stands in the middle of a minute, long after the last change."""
    monkeypatch.setattr(last_change, "STARTED", WEEK)
    settings.PAGE_CACHE_S = 60
    with time_machine.travel(timezone.now().replace(second=10) + timedelta(minutes=10), tick=False) as clock:
        yield clock


def stored_seconds() -> list[float]:
    """For how long each cached response is stored."""
    expirations = caches["default"]._expire_info.values()  # type: ignore[attr-defined]
    return [round(expiration - time.time()) for expiration in expirations]


def record_run() -> Run:
    with Run.objects.recorded("sync_markets", WEEK) as run:
        return run


def test_unchanged_page_costs_one_query(page_cache: Any, client: Client) -> None:
    for path in (*pages(missing=PLAYED - {"cohort", "agent", "trades"}), "/markets/?q=rain"):
        first = client.get(path)
        assert first.status_code == REFUSED.get(path, 200), path
        if path in UNCACHED:
            continue
        assert queries(client, path) == 1, path
        assert client.get(path).content == first.content
        assert client.get(path, headers={"if-none-match": first["ETag"]}).status_code == 304, path


def test_cache_keeps_no_unknown_query_string(page_cache: Any, client: Client) -> None:
    addresses = ["/", "/markets/", "/models/", LEADERBOARD, PERFORMANCE]
    for address in addresses:
        client.get(address)
    stored = len(stored_seconds())
    for number in range(5):
        for address in addresses:
            client.get(f"{address}?unknown{number}=1")
            client.get(f"{address}?{number}")
            client.get(address, headers={"accept": f"application/json, x/y{number}"})
            client.get(address, headers={"accept-encoding": f"x{number}"})
    assert len(stored_seconds()) == stored
    assert set(stored_seconds()) == {600}


def test_page_is_made_anew_after_a_run(page_cache: Any, client: Client) -> None:
    assert "Grok 9" not in client.get("/models/").text
    Family.objects.filter(slug="grok-4").update(display_name="Grok 9")
    renew_versions(Scope.COMPETITION)
    assert "Grok 9" not in client.get("/models/").text
    record_run()
    page_cache.shift(1)
    assert "Grok 9" in client.get("/models/").text


def test_page_is_made_anew_each_minute(page_cache: Any, client: Client) -> None:
    client.get("/")
    page_cache.shift(59)
    assert queries(client, "/") == 1
    page_cache.shift(2)
    assert queries(client, "/") > 1


def test_no_page_is_cached_while_a_run_is_under_way(page_cache: Any, client: Client) -> None:
    with Run.objects.recorded("check_resolutions", WEEK):
        client.get("/")
        assert queries(client, "/") > 1


def test_run_that_was_lost_keeps_no_page_from_the_cache(page_cache: Any, client: Client) -> None:
    Run.objects.create(kind="check_resolutions", at=WEEK)
    page_cache.shift(120)
    client.get("/")
    assert queries(client, "/") == 1


@pytest.mark.parametrize("path", ["/admin/login/", "/healthz", "/data/"])
def test_what_is_no_page_is_not_cached(page_cache: Any, client: Client, path: str) -> None:
    client.get(path)
    assert not any("MAX(heartbeat_at)" in query["sql"] for query in captured(client, path))


def captured(client: Client, path: str) -> list[dict[str, str]]:
    with CaptureQueriesContext(connection) as context:
        client.get(path)
    return context.captured_queries
