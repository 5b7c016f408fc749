"""Keeping the arena: alerts, schedules, and who plays on."""

from datetime import datetime
from typing import Any

from django import forms
from django_q.models import Schedule

from agents.models import Family
from agents.services.enrolment import family_withdraw
from arena_site import jobs
from arena_site.desk.act import Act, Asked, Done, Preview, list_path, nothing, row_path, unchanged
from markets.models import Alert

NAMES = [(job.name, f"{job.name}: {job.about}") for job in jobs.JOBS]


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
            self.fields["alert"].queryset = Alert.objects.filter(cleared_at=None)  # type: ignore[attr-defined]


class Acknowledge(Act):
    name, title, confirm = "acknowledge", "Acknowledge alerts", "Yes, acknowledge"
    about = "Takes what a person has seen off the desk."
    permission = "arena_site.acknowledge_alerts"
    usual_reason = "seen"
    form = AlertForm

    def target(self, asked: Asked) -> str:
        return "; ".join(str(alert) for alert in asked["alert"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["alert"][0]) if len(asked["alert"]) == 1 else list_path(Alert)

    def state(self, asked: Asked) -> dict[str, Any]:
        rows = Alert.objects.filter(pk__in=[alert.pk for alert in asked["alert"]])
        return {f"alert {pk} cleared at": at for pk, at in rows.values_list("pk", "cleared_at")}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        still = [alert for alert in asked["alert"] if alert.cleared_at is None]
        if not still:
            return nothing("Cleared already: there is nothing to acknowledge.")
        return Preview("These leave the desk. A cause that persists may raise a new one.", [str(a) for a in still])

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        still = Alert.objects.filter(pk__in=[alert.pk for alert in asked["alert"]], cleared_at=None)
        acknowledged = still.update(cleared_at=at)
        if not acknowledged:
            return unchanged("Nothing was acknowledged: cleared already.", list_path(Alert))
        return Done(f"{acknowledged} acknowledged.", path=list_path(Alert))


class ScheduleForm(forms.Form):
    schedule = forms.MultipleChoiceField(choices=NAMES, label="Schedules", widget=forms.CheckboxSelectMultiple)


class Pause(Act):
    name, title, confirm = "pause", "Pause schedules", "Yes, pause"
    about = "They ring no more until they are resumed, restarts included."
    permission = "arena_site.tend_schedules"
    form = ScheduleForm

    def target(self, asked: Asked) -> str:
        return ", ".join(asked["schedule"])

    def target_path(self, asked: Asked) -> str:
        return list_path(Schedule)

    def state(self, asked: Asked) -> dict[str, Any]:
        rows = Schedule.objects.filter(name__in=asked["schedule"]).order_by("name")
        return {str(s.name): "paused" if s.repeats == jobs.PAUSED else f"rings {s.next_run}" for s in rows}

    def due(self, asked: Asked) -> list[str]:
        """Those of the schedules for which there is something to do."""
        rows = Schedule.objects.filter(name__in=asked["schedule"]).exclude(repeats=jobs.PAUSED)
        return [str(name) for name in rows.order_by("name").values_list("name", flat=True)]

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if not (due := self.due(asked)):
            return nothing("Paused already, or never installed.")
        return Preview("Until they are resumed these ring no more; what runs now runs on to its end.", due)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        paused = [name for name in self.due(asked) if jobs.pause(name)]
        if not paused:
            return unchanged("Nothing was paused: paused already, or never installed.")
        return Done(f"Paused: {', '.join(paused)}.")


class Resume(Pause):
    name, title, confirm = "resume", "Resume schedules", "Yes, resume"
    about = "What was paused rings again."

    def due(self, asked: Asked) -> list[str]:
        rows = Schedule.objects.filter(name__in=asked["schedule"], repeats=jobs.PAUSED)
        return [str(name) for name in rows.order_by("name").values_list("name", flat=True)]

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if not (due := self.due(asked)):
            return nothing("None of them is paused.")
        return Preview("They ring again by their cron lines, and once at once for what they slept through.", due)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        resumed = [name for name in self.due(asked) if jobs.resume(name)]
        if not resumed:
            return unchanged("Nothing was resumed: none of them is paused.")
        return Done(f"Resumed: {', '.join(resumed)}.")


class FamilyForm(forms.Form):
    family = forms.ModelChoiceField(Family.objects.filter(external=False), to_field_name="slug")


class Withdraw(Act):
    name, title, confirm = "withdraw", "Withdraw a family from future cohorts", "Yes, withdraw it"
    about = "It plays its cohorts to their end and enters no new one."
    permission = "arena_site.withdraw_families"
    form = FamilyForm

    def target(self, asked: Asked) -> str:
        return str(asked["family"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["family"])

    def state(self, asked: Asked) -> dict[str, Any]:
        return {"active": Family.objects.get(pk=asked["family"].pk).active}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if not asked["family"].active:
            return nothing("It is withdrawn already.")
        return Preview(
            f"{asked['family']} enters no cohort that starts from now on and is asked for no new forecasts. Cohorts it "
            "is in are played to their end; what it did stays on every board."
        )

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        if not family_withdraw(asked["family"]):
            return unchanged("Nothing was changed: it is withdrawn already.", row_path(asked["family"]))
        return Done(f"{asked['family']} is withdrawn.", path=row_path(asked["family"]))
