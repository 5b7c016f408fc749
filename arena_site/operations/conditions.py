"""The states of the arena that need an operator, each described once: alerts, metrics, `doctor`, buttons are views.

What fails while a service works (a task, a venue, a job) raises its alert there; it is listed where the dashboard
has a button against it, or shows it in words of its own.
"""

from datetime import datetime
from operator import attrgetter

from agents.services.credit_alerts import CREDITS_LOW
from agents.services.lineups import PROPOSED_ALERT
from agents.services.release_check import UNUSABLE_ALERT
from agents.services.settled_results import RESULT_CHANGED
from agents.services.settlement import OVERDUE_ALERT
from agents.services.signing_keys import ALERT as SIGNING_KEY
from agents.services.task_alerts import FAILED
from arena_site.dashboard import alert_actions
from arena_site.dashboard import findings as shown
from arena_site.operations import watched_findings as watched
from arena_site.operations.condition import OperatingCondition
from arena_site.operations.record_clock import RECORD_AHEAD
from arena_site.operations.record_clock import REMEDY as WITHDRAW_READINGS
from arena_site.operations.worker_watch import NO_WORKER
from foundation.bulk import rows_by
from foundation.services.alerts import clear_others, raise_alert
from foundation.services.runs import JOB_FAILED
from markets.services.venue_health import PRICES_STALE, VENUE_DOWN

SPEND_HIGH, UNGUARDED, UNOPENED = "spend-high", "record-unguarded", "envelopes-unopened"
READ_LOG = "Read why, remove the cause, then run it again."

CONDITIONS = (
    # the installation
    OperatingCondition("host-refused", show=shown.find_refused_host),
    OperatingCondition(
        NO_WORKER, show=shown.find_missing_workers, hides=(PRICES_STALE,),
        remedy="Start one: manage.py arena, or restart its service.",
    ),
    OperatingCondition(
        "jobs-overdue", show=shown.find_overdue_jobs,
        remedy="A worker is alive but does not take it: look at the queue, then restart its service.",
    ),
    OperatingCondition(
        "maintenance", show=shown.find_maintenance, button="End maintenance", action="end-maintenance", urgent=False,
    ),
    OperatingCondition(
        "schedules-paused", show=shown.find_paused_schedules, button="Resume", action="resume", urgent=False,
    ),
    OperatingCondition(
        "models-paused", show=shown.find_paused_models, button="Resume", action="resume-models", urgent=False,
    ),
    OperatingCondition(
        UNGUARDED, watched.find_missing_guards, name="guards", alert="guards",
        summary="The record can be changed: triggers that guard it are missing from {}.",
        remedy="Run manage.py migrate, which installs them, then verify_ledger, which names what was changed.",
    ),
    OperatingCondition(
        RECORD_AHEAD, watched.find_instants_ahead, name="record", alert=RECORD_AHEAD, path="/admin/foundation/run/",
        remedy=WITHDRAW_READINGS,
    ),
    OperatingCondition(
        "disk-low", watched.find_low_disks, show=shown.find_short_disk, name="disk space", alert="disks",
        summary="Disk space is low: {}.",
        remedy="Make room, or move backups (ARENA_BACKUP_DIR) and archives (ARENA_EXPORT_DIR) to another disk.",
    ),
    OperatingCondition(
        "backup-old", watched.find_old_backup, name="backup", button="Back up now", action="backup", urgent=False,
        remedy="Read why the last run of backup failed, remove the cause, and run manage.py backup.",
    ),
    OperatingCondition(
        UNOPENED, watched.find_unopened_envelopes, name="sealed answers", alert=UNOPENED,
        path="/admin/foundation/run/",
        summary="Sealed answers were not opened in time: {}. Until they are, nothing of their universe is settled.",
        remedy="Read why the last run of open_envelopes failed, remove the cause, and run manage.py open_envelopes.",
    ),
    OperatingCondition(
        SIGNING_KEY, watched.find_signing_key_problem, name="signing key",
        remedy="Set ARENA_SIGNING_KEY back to the key in use, or rotate: see “The signing key” in docs/operate.md.",
    ),
    OperatingCondition(
        "login-failures", watched.find_many_failed_logins, name="logins", path="/admin/arena_site/auditentry/",
        remedy="The audit log names their networks: refuse them at the front. A second factor stops guesses.",
    ),
    # jobs and tasks
    OperatingCondition(
        VENUE_DOWN, show=shown.find_venue_alerts, button="Sync now", action="sync_markets", hides=(PRICES_STALE,),
    ),
    OperatingCondition(PRICES_STALE, button="Sync now", action="sync_markets"),
    OperatingCondition(
        JOB_FAILED, show=shown.find_failed_jobs, remedy=READ_LOG, button="Run again",
        action=alert_actions.path_to_rerun,
    ),
    OperatingCondition("job-without-result", show=shown.find_failing_functions, remedy=READ_LOG),
    OperatingCondition(
        "account-refused", show=shown.find_tasks_of_refused_account, hides=(FAILED, CREDITS_LOW, JOB_FAILED),
    ),
    OperatingCondition("cap-reached", show=shown.find_tasks_at_the_cap, hides=(FAILED, SPEND_HIGH, JOB_FAILED)),
    OperatingCondition(
        FAILED, show=shown.find_failed_tasks, button="Retry", action=alert_actions.path_to_retry, hides=(JOB_FAILED,),
    ),
    OperatingCondition(
        "tasks-interrupted", show=shown.find_interrupted_tasks, urgent=False,
        remedy="The next run asks again; Release lets you retry at once.",
    ),
    OperatingCondition(
        "ledger-violations", show=shown.find_violations,
        remedy="Its log names each row: manage.py rebuild_derived mends derived ones, a backup has the others.",
    ),
    # markets, line-up and costs
    OperatingCondition(
        UNUSABLE_ALERT, show=shown.find_unusable_releases, button="Propose a line-up", action="propose-line-up",
        hides=(PROPOSED_ALERT,),
    ),
    OperatingCondition(PROPOSED_ALERT, button="Approve", action=alert_actions.path_to_approve),
    OperatingCondition(
        OVERDUE_ALERT, show=shown.find_overdue_markets, button="Settle", action=alert_actions.path_to_settle,
    ),
    OperatingCondition(RESULT_CHANGED, button="Reverse", action=alert_actions.path_to_reverse),
    OperatingCondition(
        "held-prices-stale", show=shown.find_stale_prices, urgent=False,
        remedy="Nothing, unless it lasts: the next price that is accepted ends it.",
    ),
    OperatingCondition(
        SPEND_HIGH, watched.find_high_spending, show=shown.find_high_spending, path="/admin/",
        button="Change the cap", action="set-cap",
        remedy="At the cap nobody is asked any more until the next week.",
    ),
    OperatingCondition(CREDITS_LOW, button="Reconcile", action="reconcile_costs"),
    OperatingCondition(
        "notices-unsent", show=shown.find_unsent_notices, urgent=False,
        remedy="Each names why: correct its channel's setting and restart; it is tried again until it arrives.",
    ),
)  # fmt: skip
"""In the order in which the dashboard lists what is equally urgent."""
CONDITIONS_BY_KIND = rows_by("kind", CONDITIONS)
WATCHED = list(filter(attrgetter("find"), CONDITIONS))
"""The conditions that a job finds by looking; services raise the alerts of the others."""


# ── their alerts ──────────────────────────────────────────────────────────────────────────────────


def refresh_conditions(*, now: datetime) -> None:
    """Raises and clears the alert of each condition that is found by looking, by the real clock."""
    for condition in WATCHED:
        refresh_condition(condition, now=now)


def refresh_condition(condition: OperatingCondition, *, now: datetime) -> None:
    findings = condition.findings(now)
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
