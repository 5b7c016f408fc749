"""Where operating conditions hold, found by looking at the record and at this machine."""

import shutil
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import connection

from agents.models import SigningKey
from agents.services.envelopes import due_envelopes
from agents.services.signing_keys import available_keys, key_problem
from arena_site.models import AuditEntry, Backup
from arena_site.operations.condition import Occurrence
from arena_site.operations.record_clock import RECORD_AHEAD, instants_ahead
from cohorts.models import Cohort
from cohorts.weeks import week_start
from foundation.guards import unguarded
from foundation.services.alerts import listing

FREE_FRACTION, FREE_BYTES = 0.05, 5 * 2**30
"""A disk is low below this fraction, or, where it is large, below so many bytes."""
BACKUP_AGE = timedelta(hours=36)
"""A night's backup that failed is known by noon."""
OPENING_TIME = timedelta(minutes=10)
"""The job opens what is due every 5 minutes."""
MANY_FAILURES, FAILURES_WITHIN = 20, timedelta(hours=1)


def find_high_spending(now: datetime) -> list[Occurrence]:
    from agents.services.spending import spending_by_protocol  # loads the venues' clients

    week, findings = week_start(now), []
    for spending in spending_by_protocol(week):
        if spending.spent and spending.is_near:
            name = spending.protocol
            message = f"{spending.amounts} for {name} are spent, booked costs included."
            subject = f"{name} {week:%Y-%m-%d}"
            finding = Occurrence(message, subject, name, remedy=spending.remedy, urgent=spending.is_reached)
            findings.append(finding)
    return findings


def find_low_disks(now: datetime) -> list[Occurrence]:
    findings = []
    for folder in watched_folders():
        usage = shutil.disk_usage(folder)
        if usage.free < min(usage.total * FREE_FRACTION, FREE_BYTES):
            text = f"{folder}: {usage.free / 2**30:.1f} GiB free of {usage.total / 2**30:.1f}"
            findings.append(Occurrence(text, str(folder), text))
    return findings


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


def is_backup_old(taken_at: datetime, now: datetime) -> bool:
    """True for a newest backup, or a start without one, of so long ago that a night's backup is missing."""
    return now - taken_at >= BACKUP_AGE


def find_old_backup(now: datetime) -> list[Occurrence]:
    newest = Backup.objects.first()
    first_cohort = Cohort.objects.order_by("started_at").values_list("started_at", flat=True).first()
    since = newest.taken_at if newest else first_cohort
    if since is None or not is_backup_old(since, now):
        return []
    text = f"The newest backup is of {since:%Y-%m-%d %H:%M} UTC." if newest else "There is no backup yet."
    return [Occurrence(text, "backup-old", "backups")]


def find_missing_guards(now: datetime) -> list[Occurrence]:
    return [Occurrence(table, table, table) for table in unguarded(connection)]


def find_instants_ahead(now: datetime) -> list[Occurrence]:
    """None for a demo, whose dates are its own."""
    ahead = None if settings.ARENA_ANY_DATE else instants_ahead()
    if not ahead:
        return []
    return [Occurrence(f"The record is ahead of the clock: {ahead}.", RECORD_AHEAD, "the record")]


def find_signing_key_problem(now: datetime) -> list[Occurrence]:
    key = SigningKey.objects.current()
    problem = key_problem(key, now) if key else ""
    if not key or not problem:
        return []
    is_missing = key.public_key not in available_keys()
    return [Occurrence(problem, key.fingerprint, f"signing key {key}", urgent=is_missing)]


def find_many_failed_logins(now: datetime) -> list[Occurrence]:
    """Within an hour; beyond the limits of clients and accounts no more are recorded."""
    failures = AuditEntry.objects.filter(action="login", result=AuditEntry.Result.REFUSED, at__gt=now - FAILURES_WITHIN)
    number = failures.count()
    if number < MANY_FAILURES:
        return []
    names = sorted(set(failures.order_by().values_list("by", flat=True)))
    return [Occurrence(f"{number} logins to the admin failed within an hour, at {listing(names)}.", "admin", "admin")]


def find_unopened_envelopes(now: datetime) -> list[Occurrence]:
    """None for a demo, whose dates are its own."""
    if settings.ARENA_ANY_DATE:
        return []
    findings = []
    for envelope in due_envelopes(now - OPENING_TIME).select_related("decision", "elicitation").order_by("pk"):
        name = f"envelope {envelope.pk}"
        message = f"{name}, due {envelope.sealed_until:%Y-%m-%d %H:%M}"
        findings.append(Occurrence(message, str(envelope.pk), name))
    return findings
