"""Actions on alerts, schedules, families and maintenance."""

from datetime import datetime
from operator import attrgetter
from typing import Any

from django import forms
from django.utils import timezone
from django_q.models import Schedule

from agents.models import Decision, Family, Maintenance
from agents.services.cohort_start import withdraw_family
from agents.services.run_settings import (
    begin_maintenance,
    end_maintenance,
    maintenance_line,
    paused_families,
    set_paused,
)
from arena_site import jobs
from arena_site.dashboard.action import Action, ActionResult, FormData, Preview, list_path, row_path
from arena_site.dashboard.actions.runs import enqueued, worker_warning
from arena_site.operations.notices import channels
from foundation.models import Alert
from foundation.services.alerts import acknowledge_alerts, raise_alert

REASON_LENGTH = 200
SCHEDULES = [(job.name, f"{job.name}: {job.description}") for job in jobs.JOBS]


class AlertForm(forms.Form):
    alert = forms.ModelMultipleChoiceField(
        Alert.objects.all(),
        label="Alerts",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose one."},
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not self.is_bound:
            self.fields["alert"].queryset = Alert.objects.open()  # type: ignore[attr-defined]


class AcknowledgeAlerts(Action):
    name, title, confirm_label = "acknowledge", "Acknowledge alerts", "Yes, acknowledge"
    description = "Removes alerts from the dashboard once a person has seen them."
    permission = "arena_site.acknowledge_alerts"
    default_reason = "seen"
    form = AlertForm

    def target(self, data: FormData) -> str:
        return "; ".join(map(str, data["alert"]))

    def target_path(self, data: FormData) -> str:
        return row_path(data["alert"][0]) if len(data["alert"]) == 1 else list_path(Alert)

    def state(self, data: FormData) -> dict[str, Any]:
        rows = Alert.objects.filter(pk__in=list(map(attrgetter("pk"), data["alert"])))
        return {f"alert {pk} cleared at": at for pk, at in rows.values_list("pk", "cleared_at")}

    def obstacle(self, data: FormData, at: datetime) -> str:
        return "" if data["alert"].filter(cleared_at=None) else "Cleared already: there is nothing to acknowledge."

    def effect(self, data: FormData, at: datetime) -> Preview:
        summary = "These are removed from the dashboard. A cause that persists may raise a new one."
        return Preview(summary, list(map(str, data["alert"].filter(cleared_at=None))))

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        acknowledged = acknowledge_alerts(data["alert"], at=at)
        return ActionResult(f"{acknowledged} acknowledged.", path=list_path(Alert)) if acknowledged else None


class SendTestAlert(Action):
    """Raises an alert that tells of nothing, which takes the way of every other: through the queue and each channel."""

    KIND = "test"
    name, title, confirm_label = "test-alert", "Send a test alert", "Yes, send it"
    description = "Shows whether alerts reach you: a worker sends one by every channel of the settings."
    permission = "arena_site.acknowledge_alerts"
    default_reason = "to see that alerts arrive"

    def target(self, data: FormData) -> str:
        return "a test alert"

    def target_path(self, data: FormData) -> str:
        return list_path(Alert, kind__exact=self.KIND)

    def state(self, data: FormData) -> dict[str, Any]:
        return {"open test alerts": Alert.objects.open().filter(kind=self.KIND).count()}

    def obstacle(self, data: FormData, at: datetime) -> str:
        if not channels():
            return "No channel is set up: set ARENA_ALERT_EMAIL or ARENA_ALERT_WEBHOOK, and restart."
        open_alert = Alert.objects.open().filter(kind=self.KIND).first()
        explanation = f"The last one, of {open_alert.raised_at:%d %B, %H:%M} UTC, is open: " if open_alert else ""
        return f"{explanation}acknowledge it first." if explanation else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        summary = f"A test alert leaves by {' and '.join(channels())}. Acknowledge it once it has arrived."
        return Preview(summary, warning=worker_warning())

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        raise_alert(
            kind=self.KIND,
            items={self.KIND: f"sent by {by}"},
            message=f"A test alert, sent by {by}: alerts reach you.",
            at=at,
            remedy="Nothing is wrong. Acknowledge it.",
        )
        return enqueued(jobs.enqueue("alerts"), "The test alert is on its way. Its page says when it was delivered.")


class ScheduleForm(forms.Form):
    schedule = forms.MultipleChoiceField(choices=SCHEDULES, label="Schedules", widget=forms.CheckboxSelectMultiple)


class PauseSchedules(Action):
    name, title, confirm_label = "pause", "Pause schedules", "Yes, pause"
    description = "Paused schedules stay paused until they are resumed, also across restarts."
    permission = "arena_site.manage_schedules"
    form, listed = ScheduleForm, Schedule
    repeats = jobs.PAUSED
    nothing_affected = "Paused already, or never installed."
    summary = "These enqueue no job until they are resumed; a job that runs now goes on."
    past_verb = "Paused"

    def target(self, data: FormData) -> str:
        return ", ".join(data["schedule"])

    def state(self, data: FormData) -> dict[str, Any]:
        rows = Schedule.objects.filter(name__in=data["schedule"]).order_by("name")
        return {str(s.name): "paused" if s.repeats == jobs.PAUSED else f"next run {s.next_run}" for s in rows}

    def affected(self, data: FormData) -> list[str]:
        rows = Schedule.objects.filter(name__in=data["schedule"]).exclude(repeats=self.repeats)
        return list(rows.order_by("name").values_list("name", flat=True))

    def obstacle(self, data: FormData, at: datetime) -> str:
        return "" if self.affected(data) else self.nothing_affected

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(self.summary, self.affected(data))

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        affected = self.affected(data)
        schedules = Schedule.objects.filter(name__in=affected).exclude(repeats=self.repeats)
        changed = schedules.update(repeats=self.repeats)
        return ActionResult(f"{self.past_verb}: {', '.join(affected)}.") if changed else None


class ResumeSchedules(PauseSchedules):
    name, title, confirm_label = "resume", "Resume schedules", "Yes, resume"
    description = "Starts paused schedules again."
    repeats = jobs.UNLIMITED
    nothing_affected = "None of them is paused."
    summary = "These run by their cron lines again, and once at once for the runs that they missed."
    past_verb = "Resumed"


class BeginMaintenance(Action):
    name, title, confirm_label = "maintenance", "Begin maintenance", "Yes, begin"
    description = "No model is asked until it ends; pages say so. Syncs, settlement and scores go on."
    permission = "arena_site.manage_schedules"
    reason_help = "For the audit log, and for readers: it stands on every page."
    listed = Maintenance

    def state(self, data: FormData) -> dict[str, Any]:
        return {"maintenance": maintenance_line()}

    def obstacle(self, data: FormData, at: datetime) -> str:
        return "It is under way already." if maintenance_line() else ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(
            "A conversation that has begun is finished; nobody new is asked, and no prices or questions are frozen. "
            "A week whose Sunday passes meanwhile has no decisions."
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        has_begun = begin_maintenance(reason[:REASON_LENGTH], at=timezone.now())
        return ActionResult("Maintenance has begun.") if has_begun else None


class EndMaintenance(BeginMaintenance):
    name, title, confirm_label = "end-maintenance", "End maintenance", "Yes, end it"
    description = "Models are asked again, by the next scheduled runs."
    reason_help = "For the audit log."

    def obstacle(self, data: FormData, at: datetime) -> str:
        return "" if maintenance_line() else "None is under way."

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview("Models are asked again: decisions as long as Sunday lasts, forecasts within the hour.")

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        return ActionResult("Maintenance has ended.") if end_maintenance(at=timezone.now()) else None


class FamilyForm(forms.Form):
    family = forms.ModelChoiceField(Family.objects.filter(external=False), to_field_name="slug")
    at_once = forms.BooleanField(
        required=False, label="Also ask it nothing more in the cohorts that run",
        help_text="Its decisions there are recorded as missed. Resume the model to undo that.",
    )  # fmt: skip


class WithdrawFamily(Action):
    name, title, confirm_label = "withdraw", "Withdraw a family", "Yes, withdraw it"
    description = "The family enters no new cohort. It finishes those that run, or leaves them at once."
    permission = "arena_site.withdraw_families"
    form = FamilyForm

    def row(self, data: FormData) -> Family:
        family: Family = data["family"]
        return family

    def state(self, data: FormData) -> dict[str, Any]:
        paused = data["family"].pk in paused_families(Decision.PROTOCOL)
        return {"active": Family.objects.get(pk=data["family"].pk).active, "trading paused": paused}

    def obstacle(self, data: FormData, at: datetime) -> str:
        state = self.state(data)
        changes = state["active"] or (data["at_once"] and not state["trading paused"])
        return "" if changes else "It is withdrawn already."

    def effect(self, data: FormData, at: datetime) -> Preview:
        running = "It finishes the cohorts that it is in,"
        if data["at_once"]:
            running = "It decides no more in the cohorts that it is in, where its positions are settled as usual,"
        return Preview(
            f"{data['family']} enters no cohort that starts from now on and is asked for no new forecasts. {running} "
            "and stays on every leaderboard."
        )

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        changed = withdraw_family(data["family"])
        if data["at_once"]:
            changed = set_paused(Decision.PROTOCOL, data["family"], paused=True) or changed
        return ActionResult(f"{data['family']} is withdrawn.") if changed else None
