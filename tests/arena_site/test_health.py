"""Liveness, readiness and metrics."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from ipaddress import ip_network
from pathlib import Path
from uuid import uuid4

import pytest
import stamina
import time_machine
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Count, Max
from django.db.models.functions import Coalesce
from django.utils import timezone
from django_q.models import Schedule

from agents.models import Decision, ModelCall
from arena_site import jobs
from arena_site.models import Worker
from foundation.models import Run
from foundation.services.alerts import raise_alert
from foundation.version import VERSION
from markets.models import Market, Outcome, PriceObservation, UniverseEntry
from scoring.models import Snapshot
from tests.commands import run
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    SnapshotFactory,
    UniverseFactory,
    play_week,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("arena_site.urls")]

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import json, sys
import django
from django.conf import settings
django.setup()
settings.ROOT_URLCONF = "arena_site.urls"
from django.test import Client
answer = Client().get(sys.argv[1])
print(json.dumps([answer.status_code, answer.content.decode()]))
"""


def request_with(database: str, address: str) -> tuple[int, str]:
    """The response of a process with this DATABASE_URL."""
    settings = {"DATABASE_URL": database, "ALLOWED_HOSTS": "testserver", "DJANGO_SETTINGS_MODULE": "tests.settings"}
    environment = os.environ | settings
    process = subprocess.run(
        [sys.executable, "-c", ASK, address], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert process.returncode == 0, process.stderr
    status, body = json.loads(process.stdout)
    return status, body


def metrics(client) -> dict[str, float]:
    lines = client.get("/metrics").content.decode().splitlines()
    return {name: float(value) for name, _, value in (li.rpartition(" ") for li in lines if not li.startswith("#"))}


def test_liveness_runs_no_query(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "version": VERSION})


def test_ready_with_a_migrated_database(client):
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "database": "ok", "migrations": "ok"})


def test_unready_response_names_pending_migrations(client):
    ((app, name),) = MigrationLoader(connection).graph.leaf_nodes("scoring")
    MigrationRecorder(connection).record_unapplied(app, name)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["migrations"] == f"not applied: scoring.{name}"


def test_unready_response_without_a_database_reveals_no_secret():
    status, body = request_with("postgres://arena:hunter2@127.0.0.1:9/arena", "/readyz")
    assert status == 503
    assert "can not be reached" in json.loads(body)["database"]
    assert "hunter2" not in body
    assert "127.0.0.1" not in body


def test_metrics_answer_without_a_database():
    status, body = request_with("postgres://arena:hunter2@127.0.0.1:9/arena", "/metrics")
    assert status == 200
    assert "arena_database_up 0.0" in body
    assert "hunter2" not in body


def test_metrics_count_the_rows_of_the_database(client):
    agent = AgentFactory()
    decision = DecisionFactory(agent=agent)
    ModelCallFactory(decision=decision, result="malformed")
    ModelCallFactory(decision=decision)
    at = datetime(2026, 3, 9, tzinfo=UTC)
    SnapshotFactory(agent=agent, taken_at=at)
    for market in ("m1", "m2"):
        raise_alert(kind="closed-unresolved", items={market: market}, message="look", at=at)
    with Run.objects.recorded("sync_markets", at):
        pass
    values = metrics(client)
    assert values["arena_database_up"] == 1
    assert values['arena_cohorts{status="active"}'] == 1
    assert values['arena_agents{status="active"}'] == 1
    assert values['arena_decisions{status="completed"}'] == 1
    assert values['arena_model_calls_total{result="malformed"}'] == 1
    assert values['arena_model_cost_usd{model="openai/gpt-5.2"}'] == pytest.approx(0.005)
    assert values['arena_open_alerts_by_kind{kind="closed-unresolved"}'] == 2
    assert values["arena_open_alerts"] == 2
    assert values['arena_newest_timestamp_seconds{of="snapshot"}'] == at.timestamp()
    ran = values['arena_run_last_success_timestamp_seconds{kind="sync_markets"}']
    assert ran == pytest.approx(timezone.now().timestamp(), abs=60)
    assert 'arena_run_last_failure_timestamp_seconds{kind="sync_markets"}' not in values


def test_metrics_report_late_jobs_due_decisions_and_spending(client, settings):
    settings.ARENA_SPEND_LIMIT_USD = Decimal("12.5")
    now = WEEK + timedelta(hours=5)
    universe = UniverseFactory(markets=[])
    cohort = CohortFactory()
    for status in ("completed", "failed", "failed"):
        unfinished = {} if status == "completed" else {"action": None, "decided_at": None}
        DecisionFactory(agent=AgentFactory(cohort=cohort), universe=universe, status=status, **unfinished)
    for lease, token in ((now + timedelta(minutes=1), uuid4()), (now - timedelta(minutes=1), uuid4())):
        claim = {"action": None, "decided_at": None, "lease_id": token, "lease_until": lease}
        DecisionFactory(agent=AgentFactory(cohort=cohort), universe=universe, status="claimed", **claim)
    ModelCallFactory(decision=Decision.objects.order_by("pk").first(), cost_usd=Decimal("0.75"))
    for kind, violations in (("sync_markets", None), ("verify_ledger", 3)):
        Run.objects.create(
            kind=kind, at=now, started_at=now, status="succeeded", finished_at=now - timedelta(seconds=90),
            summary={} if violations is None else {"violations": violations},
        )  # fmt: skip
    MarketFactory(closed=True, traded=True, closed_at=now - timedelta(hours=73))
    MarketFactory(closed=True, traded=True, closed_at=now - timedelta(hours=71))
    MarketFactory(closed=True, closed_at=now - timedelta(hours=73))
    Outcome.objects.filter(market=MarketFactory(traded=True), side="YES").update(price_stale=True)
    Outcome.objects.filter(market=MarketFactory()).update(price_stale=True)
    with time_machine.travel(now, tick=False):
        values = metrics(client)
    assert values['arena_run_age_seconds{kind="sync_markets"}'] == 90
    assert values['arena_decisions_due{state="claimable"}'] == 3
    assert values['arena_decisions_due{state="claimed"}'] == 1
    assert values["arena_decisions_failed_this_week"] == 2
    assert values["arena_stale_traded_prices"] == 1
    assert values["arena_markets_overdue"] == 1
    assert values['arena_spend_this_week_usd{protocol="trading"}'] == 0.75
    assert values['arena_spend_this_week_usd{protocol="forecast"}'] == 0
    assert values["arena_spend_limit_usd"] == 12.5
    assert values["arena_ledger_violations"] == 3


def test_metrics_show_the_size_of_the_database_and_of_each_table_that_grows(client):
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE foundation_run CASCADE")  # makes PostgreSQL forget its estimate: -1 rows
        assert rows_shown(client)["foundation_run"] == 0
    play_week()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
    assert metrics(client)["arena_database_bytes"] > 100_000
    # SQLite tells the highest id, which earlier tests may have raised.
    number = Count("pk") if connection.vendor == "postgresql" else Coalesce(Max("pk"), 0)
    assert rows_shown(client) == {
        model._meta.db_table: model.objects.aggregate(number=number)["number"]
        for model in (PriceObservation, Snapshot, ModelCall, Run, Market, Outcome, UniverseEntry)
    }


def rows_shown(client) -> dict[str, float]:
    name = re.compile(r'arena_table_rows\{table="(.*)"\}')
    return {match[1]: number for key, number in metrics(client).items() if (match := name.fullmatch(key))}


def test_metrics_of_an_empty_arena_omit_absent_values(client):
    values = metrics(client)
    assert values["arena_database_up"] == 1
    assert not any(name.startswith("arena_newest_timestamp_seconds") for name in values)


SERIES = (
    "arena_workers_alive", "arena_queue_depth", "arena_queue_oldest_age_seconds", "arena_schedules_paused",
    "arena_notices_unsent", "arena_open_alerts", "arena_record_unguarded",
    *(f'arena_spend_usd{{kind="{kind}",protocol="{protocol}"}}' for kind in ("billed", "booked")
      for protocol in ("trading", "forecast")),
    *(f'arena_model_{name}{{model="openai/gpt-5.2"}}' for name in ("latency_seconds", "failures_total", "cost_usd")),
    *(f'arena_venue_{name}{{venue="{venue}"}}' for name in ("latency_seconds", "failures_total")
      for venue in ("polymarket", "kalshi")),
)  # fmt: skip


def test_each_series_of_operation_is_there_at_zero(client):
    values = metrics(client)
    assert {name: values.get(name) for name in SERIES} == dict.fromkeys(SERIES, 0)


def test_metrics_of_operation_and_of_models(client):
    now = timezone.now()
    for seconds in (5, 59, 61):
        Worker.objects.create(name=f"host:{seconds}", seen_at=now - timedelta(seconds=seconds))
    with time_machine.travel(now - timedelta(seconds=90), tick=False):
        jobs.enqueue("scores")
    jobs.install()
    Schedule.objects.filter(name="sync").update(repeats=jobs.PAUSED)
    decision = DecisionFactory()
    for result, latency in (("answered", 1500), ("failed", 500), ("lost", None)):
        ModelCallFactory(decision=decision, result=result, latency_ms=latency, sent_at=now)
    with time_machine.travel(now, tick=False):
        values = metrics(client)
    assert values["arena_workers_alive"] == 2
    assert (values["arena_queue_depth"], values["arena_queue_oldest_age_seconds"]) == (1, 90)
    assert values["arena_schedules_paused"] == 1
    assert values['arena_model_latency_seconds{model="openai/gpt-5.2"}'] == 1
    assert values['arena_model_failures_total{model="openai/gpt-5.2"}'] == 2
    assert values['arena_model_cost_usd{model="openai/gpt-5.2"}'] == pytest.approx(0.0075)


def test_metrics_count_the_requests_to_venues(client, venue):
    venue.market("Will it rain?")
    run("sync_markets", WEEK)
    values = metrics(client)
    count = values['arena_venue_requests_total{venue="polymarket"}']
    assert count >= 1
    assert values['arena_venue_failures_total{venue="polymarket"}'] == 0
    assert 0 < values['arena_venue_latency_seconds{venue="polymarket"}'] < 10


def test_metrics_count_the_failed_requests_to_a_venue(client, settings):
    settings.GAMMA_BASE_URL = "http://127.0.0.1:9"
    with stamina.set_testing(True, attempts=1):
        assert run("sync_markets", WEEK).code == 1
    assert metrics(client)['arena_venue_failures_total{venue="polymarket"}'] == 1


def test_health_is_never_cached(client):
    for address in ("/healthz", "/readyz", "/metrics"):
        assert "no-store" in client.get(address)["Cache-Control"]


HTTPS = {"ARENA_HTTPS": True, "SECURE_SSL_REDIRECT": True, "ALLOWED_HOSTS": ["arena.example"]}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_monitor_on_this_machine_is_answered_whatever_the_settings_of_https_and_hosts(client, settings, path):
    for name, value in HTTPS.items():
        setattr(settings, name, value)
    assert client.get(path, headers={"host": "127.0.0.1:8000"}).status_code == 200
    settings.ARENA_MONITOR_NETWORKS = [ip_network("10.9.0.0/16")]
    assert client.get(path, REMOTE_ADDR="10.9.1.2", headers={"host": "web:8000"}).status_code == 200


def test_metrics_are_shown_to_no_reader(client, settings):
    settings.ARENA_TRUSTED_PROXIES = [ip_network("127.0.0.1")]
    for forwarded in ("203.0.113.9", "127.0.0.1, 203.0.113.9"):
        assert client.get("/metrics", headers={"x-forwarded-for": forwarded}).status_code == 404
    assert client.get("/metrics", REMOTE_ADDR="203.0.113.9").status_code == 404
    assert client.get("/healthz", headers={"x-forwarded-for": "203.0.113.9"}).status_code == 200
    assert client.get("/metrics").status_code == 200


def test_documented_rules_ask_for_metrics_that_exist(client):
    document = (ROOT / "docs" / "operate.md").read_text()
    rules = re.findall(r"alert: \w+, expr: (.+?)(?:, for|})", document)
    assert len(rules) == 5
    run("verify_ledger", WEEK)
    names = set(re.findall(r"^# TYPE (\w+)", client.get("/metrics").content.decode(), re.MULTILINE))
    assert set(re.findall(r"arena_\w+", " ".join(rules))) <= names
