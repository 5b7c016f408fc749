"""Alerts about what runs out, and the nightly backups whose age is one of them."""

import shutil
import sqlite3
from collections import namedtuple
from contextlib import closing
from datetime import timedelta
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.test import Client

from agents.models import ModelCall, Receipt, Trade
from agents.services.run_settings import set_spend_limit
from arena_site.models import Backup
from arena_site.operations.alert_watch import watch_alerts
from cohorts.models import Cohort
from foundation.models import Alert, Run
from tests.arena_site.dashboard.accounts import sign_in
from tests.arena_site.test_notices import Hook, hook  # noqa: F401 - a fixture
from tests.commands import DECISION, SUNDAY, run
from tests.databases import ON_POSTGRES
from tests.factories import WEEK, CohortFactory
from tests.guards import remove_guards
from tests.markup import get_page, visible_text
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
DiskUsage = namedtuple("DiskUsage", "total used free")


def open_alerts(*kinds: str) -> list[Alert]:
    return list(Alert.objects.open().filter(kind__in=kinds))


def backup_at(taken_at: Any) -> Backup:
    return Backup.objects.create(taken_at=taken_at, file="/b/arena.dump", machine="m", bytes=1, sha256="0" * 64)


def test_four_fifths_of_the_spend_cap_are_an_alert_until_the_week_ends(venue: Venue, settings: Any) -> None:
    venue.market("Will it rain?")
    for command in ("sync_markets", "start_cohort", "run_decisions"):
        run(command, DECISION)
    spent = sum(ModelCall.objects.values_list("cost_usd", flat=True), Decimal(0))
    settings.ARENA_SPEND_LIMIT_USD = spent / Decimal("0.79")
    watch_alerts(now=DECISION)
    assert open_alerts("spend-high") == []
    settings.ARENA_SPEND_LIMIT_USD = spent / Decimal("0.81")
    watch_alerts(now=DECISION)
    (alert,) = open_alerts("spend-high")
    assert (alert.subject, alert.urgent) == ("trading 2026-03-08", False)
    watch_alerts(now=DECISION + timedelta(days=7))
    assert open_alerts("spend-high") == []


def test_spending_is_measured_against_the_cap_that_an_operator_set(venue: Venue) -> None:
    venue.market("Will it rain?")
    for command in ("sync_markets", "start_cohort", "run_decisions"):
        run(command, DECISION)
    watch_alerts(now=DECISION)
    assert open_alerts("spend-high") == []
    spent = sum(ModelCall.objects.values_list("cost_usd", flat=True), Decimal(0))
    set_spend_limit("trading", spent.quantize(Decimal("0.01"), ROUND_DOWN))
    watch_alerts(now=DECISION)
    (alert,) = open_alerts("spend-high")
    assert alert.urgent
    assert "on the dashboard" in alert.remedy
    set_spend_limit("trading", None)
    watch_alerts(now=DECISION)
    assert open_alerts("spend-high") == []


@pytest.mark.parametrize(
    "bills",
    [
        {"key": {"label": "k", "usage": 9, "limit_remaining": 0.99}},
        {
            "key": {"label": "k", "usage": 9, "limit_remaining": None},
            "credits": {"total_credits": 10, "total_usage": 9.01},
        },
    ],
    ids=["of the key", "of the account"],
)
def test_credits_that_last_no_week_are_an_alert(venue: Venue, bills: dict[str, Any]) -> None:
    venue.bills |= bills
    run("reconcile_costs", SUNDAY)
    (alert,) = open_alerts("credits-low")
    assert "has $0.99 left; a week like the last takes $1.00" in alert.message
    assert "Gateway credits $0.99 left" in visible_text(get_page(sign_in("viewer"), "/admin/"), "#failures")
    venue.bills = {"key": {"label": "k", "usage": 9, "limit_remaining": 1}}
    run("reconcile_costs", SUNDAY)
    assert open_alerts("credits-low") == []


def test_low_disk_is_an_urgent_alert_and_ends_with_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(100 * 2**30, 0, 4 * 2**30))
    watch_alerts(now=SUNDAY)
    (alert,) = open_alerts("disk-low")
    assert alert.urgent
    assert "4.0 GiB free of 100.0" in alert.message
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(100 * 2**30, 0, 6 * 2**30))
    watch_alerts(now=SUNDAY)
    assert open_alerts("disk-low") == []


def test_missing_guards_are_an_urgent_alert_until_migrate_installs_them(client: Client) -> None:
    remove_guards(Trade, Receipt)
    watch_alerts(now=SUNDAY)
    (alert,) = open_alerts("record-unguarded")
    assert (alert.urgent, alert.names) == (True, ["agents_receipt", "agents_trade"])
    assert "manage.py migrate" in alert.remedy
    assert "\narena_record_unguarded 2.0\n" in client.get("/metrics").content.decode()
    call_command("migrate", verbosity=0)
    watch_alerts(now=SUNDAY)
    assert open_alerts("record-unguarded") == []
    assert "\narena_record_unguarded 0.0\n" in client.get("/metrics").content.decode()


def test_backup_older_than_a_day_and_a_half_is_an_alert(hook: Hook, settings: Any) -> None:  # noqa: F811
    settings.ARENA_INSTANCE = "north"
    watch_alerts(now=WEEK + 40 * HOUR)
    assert open_alerts("backup-old") == [], "nothing to back up"
    CohortFactory()
    Cohort.objects.update(started_at=WEEK)
    watch_alerts(now=WEEK + 37 * HOUR)
    (alert,) = open_alerts("backup-old")
    assert alert.message == "There is no backup yet."
    (payload,) = [payload for payload in hook.payloads if payload["kind"] == "backup-old"]
    assert (payload["severity"], payload["instance"]) == ("warning", "north")
    backup_at(WEEK + 38 * HOUR)
    watch_alerts(now=WEEK + 39 * HOUR)
    assert open_alerts("backup-old") == []
    watch_alerts(now=WEEK + 75 * HOUR)
    assert open_alerts("backup-old")[0].message == "The newest backup is of 2026-03-09 14:00 UTC."


@pytest.mark.skipif(ON_POSTGRES, reason="pg_dump sees none of a test's own transaction")
@pytest.mark.django_db(transaction=True)  # SQLite copies no database in whose transaction it is
def test_nightly_backup_is_checked_recorded_and_rotated(settings: Any, tmp_path: Path) -> None:
    settings.ARENA_BACKUP_DIR, settings.ARENA_BACKUPS_KEPT = tmp_path / "new" / "backups", 2
    names = []
    for day in range(3):
        with time_machine.travel(SUNDAY + timedelta(days=day), tick=False):
            names.append(Path(run("backup")["file"]).name)
    (settings.ARENA_BACKUP_DIR / "mine.sqlite3").touch()
    assert names[0] == "arena-20260308T000000Z.sqlite3"
    assert sorted(file.name for file in settings.ARENA_BACKUP_DIR.glob("arena-*")) == names[1:]
    assert Backup.objects.count() == 3
    assert Run.objects.filter(kind="backup", status="succeeded").count() == 3
    with closing(sqlite3.connect(settings.ARENA_BACKUP_DIR / names[2])) as copy:
        assert copy.execute("SELECT count(*) FROM arena_site_backup").fetchone() == (2,)


def test_age_of_the_newest_backup_is_a_metric(client: Client) -> None:
    assert "arena_backup_age_seconds NaN" in client.get("/metrics").content.decode()
    backup_at(SUNDAY)
    with time_machine.travel(SUNDAY + HOUR, tick=False):
        assert "arena_backup_age_seconds 3600.0" in client.get("/metrics").content.decode()
