"""Alerts about what runs out: the spend cap, disks, and the age of the newest backup."""

import shutil
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from django.conf import settings
from django.db import connection

from agents.services.model_calls import TASK_MODELS, cap_remedy, spend_in_week
from agents.services.run_settings import spend_limit
from arena_site.models import Backup
from cohorts.models import Cohort
from cohorts.weeks import week_start
from foundation.services.alerts import clear_alert, clear_others, raise_alert

SPEND_HIGH, DISK_LOW, BACKUP_OLD = "spend-high", "disk-low", "backup-old"
SPENDING_WARNING = Decimal("0.8")
"""The fraction of the spend cap from which there is an alert."""
FREE_FRACTION, FREE_BYTES = 0.05, 5 * 2**30
"""A disk is low below this fraction, or, where it is large, below so many bytes."""
BACKUP_AGE = timedelta(hours=36)
"""A night's backup that failed is known by noon."""
DASHBOARD = "/admin/#infrastructure"


def refresh_resource_alerts(*, now: datetime) -> None:
    """Raises and clears these alerts, by the real clock."""
    _refresh_spending(now)
    _refresh_disks(now)
    _refresh_backup(now)


def _refresh_spending(now: datetime) -> None:
    week, high = week_start(now), set()
    for protocol in TASK_MODELS:
        spend, cap = spend_in_week(protocol, week), spend_limit(protocol, settings.ARENA_SPEND_LIMIT_USD)
        if not spend.counted or spend.counted < cap * SPENDING_WARNING:
            continue
        _, subject = spend_alert(protocol, week)
        high.add(subject)
        raise_alert(
            kind=SPEND_HIGH,
            items={subject: protocol},
            message=f"${spend.counted:.2f} of this week's ${cap:.2f} for {protocol} are spent, booked costs included.",
            at=now,
            path="/admin/",
            remedy=f"At the cap nobody is asked any more until the next week. {cap_remedy(spend)}",
            urgent=spend.counted >= cap,
        )
    clear_others(SPEND_HIGH, high, at=now)


def spend_alert(protocol: str, week: datetime) -> tuple[str, str]:
    """Kind and subject of the alert about a protocol's spending in a week."""
    return SPEND_HIGH, f"{protocol} {week:%Y-%m-%d}"


def _refresh_disks(now: datetime) -> None:
    low = {}
    for folder in watched_folders():
        usage = shutil.disk_usage(folder)
        if usage.free < min(usage.total * FREE_FRACTION, FREE_BYTES):
            low[str(folder)] = f"{folder}: {usage.free / 2**30:.1f} GiB free of {usage.total / 2**30:.1f}"
    clear_others(DISK_LOW, low, at=now)
    if low:
        raise_alert(
            kind=DISK_LOW,
            subject="disks",
            items=low,
            message=f"Disk space is low: {'; '.join(low.values())}.",
            at=now,
            path=DASHBOARD,
            remedy="Make room, or move backups (ARENA_BACKUP_DIR) and archives (ARENA_EXPORT_DIR) to another disk.",
        )


def watched_folders() -> list[Path]:
    """The folders of this machine that the arena writes to, one for each disk; a server's disk is not among them."""
    folders = [settings.ARENA_SPOOL_DIR, settings.ARENA_EXPORT_DIR, settings.ARENA_BACKUP_DIR]
    if connection.vendor == "sqlite":
        folders.insert(0, Path(str(connection.settings_dict["NAME"])).resolve().parent)
    by_disk: dict[int, Path] = {}
    for folder in folders:
        existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.is_dir())
        by_disk.setdefault(existing.stat().st_dev, existing)
    return list(by_disk.values())


def _refresh_backup(now: datetime) -> None:
    newest = Backup.objects.first()
    first_cohort = Cohort.objects.order_by("started_at").values_list("started_at", flat=True).first()
    since = newest.taken_at if newest else first_cohort
    if since is None or now - since < BACKUP_AGE:
        clear_alert(BACKUP_OLD, [BACKUP_OLD], at=now)
        return
    age = f"The newest backup is of {since:%Y-%m-%d %H:%M} UTC." if newest else "There is no backup yet."
    raise_alert(
        kind=BACKUP_OLD,
        items={BACKUP_OLD: "backups"},
        message=age,
        at=now,
        path=DASHBOARD,
        remedy="Read why the last run of backup failed, remove the cause, and run manage.py backup.",
        urgent=False,
    )
