"""The states of the arena that need an operator, each described once: alerts, metrics, `doctor` and buttons are views.

What fails while a service works (a task, a venue, a job) raises its alert there. These are found by looking.
"""

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from pathlib import Path

from django.conf import settings
from django.db import connection

from agents.models import SigningKey
from agents.services.envelopes import due_envelopes
from agents.services.signing_keys import ALERT as SIGNING_KEY
from agents.services.signing_keys import available_keys, key_problem
from arena_site.models import AuditEntry, Backup
from arena_site.operations.record_clock import RECORD_AHEAD, instants_ahead
from arena_site.operations.record_clock import REMEDY as WITHDRAW_READINGS
from cohorts.models import Cohort
from cohorts.weeks import week_start
from foundation.guards import unguarded
from foundation.services.alerts import clear_others, listing, raise_alert

SPEND_HIGH, DISK_LOW, BACKUP_OLD, UNGUARDED = "spend-high", "disk-low", "backup-old", "record-unguarded"
FREE_FRACTION, FREE_BYTES = 0.05, 5 * 2**30
"""A disk is low below this fraction, or, where it is large, below so many bytes."""
BACKUP_AGE = timedelta(hours=36)
"""A night's backup that failed is known by noon."""
UNOPENED, OPENING_TIME = "envelopes-unopened", timedelta(minutes=10)
"""The job opens what is due every 5 minutes."""
LOGIN_FAILURES, MANY_FAILURES, FAILURES_WITHIN = "login-failures", 20, timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A thing of which a condition holds. What it leaves empty is as its condition says.

    subject, name : the item of an alert
    path, count : the page that shows it, which lists `count` rows if one is given
    button, action_path : the text and the address of the dashboard's button against it
    """

    message: str
    subject: str = ""
    name: str = ""
    path: str = ""
    count: int | None = None
    button: str = ""
    action_path: str = ""
    remedy: str = ""
    urgent: bool | None = None


@dataclass(frozen=True, slots=True)
class OperatingCondition:
    """A state that needs an operator: its kind, where it holds, and what to do.

    button, action : the text of the dashboard's button against it, and the name of the action that this opens
    hides : the kinds of alerts that the dashboard leaves out while it finds this
    name : its item of `doctor`
    alert : the subject of its only alert, which tells of all findings in `summary`; empty where each has its own
    """

    kind: str
    find: Callable[..., Iterable[Occurrence]]
    remedy: str = ""
    button: str = ""
    action: str = ""
    urgent: bool = True
    hides: tuple[str, ...] = ()
    name: str = ""
    alert: str = ""
    summary: str = ""
    path: str = "/admin/#infrastructure"

    def message(self, findings: Sequence[Occurrence]) -> str:
        """The text on these findings together."""
        if self.summary:
            return self.summary.format(listing(list(map(attrgetter("name"), findings))))
        return " ".join(map(attrgetter("message"), findings))

    def remedy_of(self, findings: Sequence[Occurrence]) -> str:
        own = findings[0].remedy if findings else ""
        return " ".join(filter(None, [self.remedy, own]))

    def is_urgent(self, findings: Iterable[Occurrence]) -> bool:
        return any(self.urgent if finding.urgent is None else finding.urgent for finding in findings)


# ── where they hold ───────────────────────────────────────────────────────────────────────────────


def find_high_spending(now: datetime) -> list[Occurrence]:
    from agents.services.spending import TASK_MODELS, week_spending  # loads the venues' clients

    week, findings = week_start(now), []
    for protocol in TASK_MODELS:
        spending = week_spending(protocol, week)
        if spending.spent and spending.is_near:
            subject = f"{protocol} {week:%Y-%m-%d}"
            message = f"{spending.amounts} for {protocol} are spent, booked costs included."
            finding = Occurrence(message, subject, protocol, remedy=spending.remedy, urgent=spending.is_reached)
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


def find_old_backup(now: datetime) -> list[Occurrence]:
    newest = Backup.objects.first()
    first_cohort = Cohort.objects.order_by("started_at").values_list("started_at", flat=True).first()
    since = newest.taken_at if newest else first_cohort
    if since is None or now - since < BACKUP_AGE:
        return []
    text = f"The newest backup is of {since:%Y-%m-%d %H:%M} UTC." if newest else "There is no backup yet."
    return [Occurrence(text, BACKUP_OLD, "backups")]


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


CONDITIONS = (
    OperatingCondition(
        UNGUARDED, find_missing_guards, name="guards", alert="guards",
        summary="The record can be changed: triggers that guard it are missing from {}.",
        remedy="Run manage.py migrate, which installs them, then verify_ledger, which names what was changed.",
    ),
    OperatingCondition(
        RECORD_AHEAD, find_instants_ahead, name="record", alert=RECORD_AHEAD, path="/admin/foundation/run/",
        remedy=WITHDRAW_READINGS,
    ),
    OperatingCondition(
        SPEND_HIGH, find_high_spending, name="spending", path="/admin/", button="Change the cap", action="set-cap",
        remedy="At the cap nobody is asked any more until the next week.",
    ),
    OperatingCondition(
        DISK_LOW, find_low_disks, name="disk space", alert="disks", summary="Disk space is low: {}.",
        remedy="Make room, or move backups (ARENA_BACKUP_DIR) and archives (ARENA_EXPORT_DIR) to another disk.",
    ),
    OperatingCondition(
        BACKUP_OLD, find_old_backup, name="backup", button="Back up now", action="backup", urgent=False,
        remedy="Read why the last run of backup failed, remove the cause, and run manage.py backup.",
    ),
    OperatingCondition(
        UNOPENED, find_unopened_envelopes, name="sealed answers", alert=UNOPENED, path="/admin/foundation/run/",
        summary="Sealed answers were not opened in time: {}. Until they are, nothing of their universe is settled.",
        remedy="Read why the last run of open_envelopes failed, remove the cause, and run manage.py open_envelopes.",
    ),
    OperatingCondition(
        SIGNING_KEY, find_signing_key_problem, name="signing key",
        remedy="Set ARENA_SIGNING_KEY back to the key in use, or rotate: see “The signing key” in docs/operate.md.",
    ),
    OperatingCondition(
        LOGIN_FAILURES, find_many_failed_logins, name="logins", path="/admin/arena_site/auditentry/",
        remedy="The audit log names their networks: refuse them at the front. A second factor stops guesses.",
    ),
)  # fmt: skip
CONDITIONS_BY_KIND = {condition.kind: condition for condition in CONDITIONS}


# ── their alerts ──────────────────────────────────────────────────────────────────────────────────


def refresh_conditions(*, now: datetime) -> None:
    """Raises and clears the alert of each condition, by the real clock."""
    for condition in CONDITIONS:
        refresh_condition(condition, now=now)


def refresh_condition(condition: OperatingCondition, *, now: datetime) -> None:
    findings = list(condition.find(now))
    # An alert of one subject may stand beside others of its kind that somebody else raised.
    clear_others(condition.kind, map(attrgetter("subject"), findings), at=now, subject=condition.alert or None)
    groups = [findings] if condition.alert else [[finding] for finding in findings]
    for group in filter(None, groups):
        raise_alert(
            kind=condition.kind,
            subject=condition.alert,
            items={finding.subject: finding.name for finding in group},
            message=condition.message(group),
            at=now,
            path=condition.path,
            remedy=condition.remedy_of(group),
            urgent=condition.is_urgent(group),
        )
