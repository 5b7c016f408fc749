"""Actions on what runs may spend and whom they ask: the weekly cap, and pauses of models and protocols."""

from datetime import datetime
from typing import Any

from django import forms
from django.conf import settings

from agents.models import Family, RunSetting
from agents.services.run_settings import set_condition_paused, set_paused, set_spend_limit, spend_limit
from agents.services.spending import week_spending
from arena_site.dashboard.action import Action, ActionResult, FormData, Preview
from cohorts.conditions import stored_conditions
from cohorts.weeks import week_start

Protocol = RunSetting.Protocol


class SpendCapForm(forms.Form):
    protocol = forms.ChoiceField(choices=Protocol.choices, widget=forms.RadioSelect)
    limit = forms.DecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=2,
        required=False,
        label="Cap in US dollars a week",
        help_text="Empty for ARENA_SPEND_LIMIT_USD of the settings.",
    )


class SetSpendCap(Action):
    name, title, confirm_label = "set-cap", "Set the spend cap", "Yes, set it"
    description = "The most that decisions or forecasts may cost in a week. In force at once, in running jobs too."
    permission = "arena_site.manage_schedules"
    form, listed = SpendCapForm, RunSetting

    def target(self, data: FormData) -> str:
        return f"spend cap of {Protocol(data['protocol']).label}"

    def state(self, data: FormData) -> dict[str, Any]:
        row = RunSetting.objects.filter(protocol=data["protocol"], family=None, condition="").first()
        return {"cap": None if row is None or row.spend_limit_usd is None else f"{row.spend_limit_usd:.2f}"}

    def obstacle(self, data: FormData, at: datetime) -> str:
        limit = data["limit"]
        if self.state(data)["cap"] == (None if limit is None else f"{limit:.2f}"):
            return "That is its cap already."
        return ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        default = settings.ARENA_SPEND_LIMIT_USD
        spending = week_spending(data["protocol"], week_start(at))
        spent, new_cap = spending.spent, default if data["limit"] is None else data["limit"]
        warning = "This week has cost as much already: no model is asked until the next." if spent >= new_cap else ""
        change = f"The cap becomes ${new_cap:.2f} a week, after ${spending.cap:.2f}."
        return Preview(f"{change} Spent this week: ${spent:.2f}.", warning=warning)

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        if not set_spend_limit(data["protocol"], data["limit"]):
            return None
        cap = spend_limit(data["protocol"], settings.ARENA_SPEND_LIMIT_USD)
        return ActionResult(f"The {self.target(data)} is ${cap:.2f} a week.")


def condition_choices() -> list[tuple[str, str]]:
    """The names of the conditions of all methodologies."""
    return [("", "every condition"), *((name, name) for name in stored_conditions().names())]


class PauseForm(forms.Form):
    protocol = forms.MultipleChoiceField(
        choices=Protocol.choices, initial=Protocol.values, label="Of", widget=forms.CheckboxSelectMultiple
    )
    family = forms.ModelChoiceField(
        Family.objects.filter(external=False), to_field_name="slug", required=False, empty_label="every model",
        label="Model",
    )  # fmt: skip
    condition = forms.ChoiceField(
        choices=condition_choices, required=False, help_text="Of the forecasts of every model."
    )

    def clean(self) -> FormData:
        data = super().clean() or {}
        if data.get("condition"):
            data["protocol"] = [Protocol.FORECAST]
            if data.get("family"):
                self.add_error("condition", "A condition is paused for every model: name no model.")
        return data


class PauseModels(Action):
    name, title, confirm_label = "pause-models", "Pause a model, a condition or a protocol", "Yes, pause"
    description = "Runs ask nobody who is paused, and say so. A request that has been sent goes on."
    permission = "arena_site.manage_schedules"
    form, listed = PauseForm, RunSetting
    paused = True
    nothing_affected = "Paused already."
    summary = (
        "Runs leave these out from now on. What is not asked before its window ends is recorded as missed, which can "
        "not be undone."
    )
    past_verb = "Paused"

    def target(self, data: FormData) -> str:
        if data["condition"]:
            return str(RunSetting(protocol=Protocol.FORECAST, condition=data["condition"]))
        protocols = " and ".join(Protocol(protocol).label for protocol in data["protocol"])
        return f"{protocols} of {data['family'] or 'every family'}"

    def state(self, data: FormData) -> dict[str, Any]:
        condition = data["condition"]
        rows = RunSetting.objects.filter(
            protocol__in=data["protocol"], family=data["family"], condition=condition, paused=True
        )
        if condition:
            return {condition: rows.exists()}
        paused = set(rows.values_list("protocol", flat=True))
        return {Protocol(protocol).label: protocol in paused for protocol in data["protocol"]}

    def obstacle(self, data: FormData, at: datetime) -> str:
        changes = {self.paused} != set(self.state(data).values())
        return "" if changes else self.nothing_affected

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview(self.summary, [self.target(data)])

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        condition, changed = data["condition"], 0
        if condition:
            changed = int(set_condition_paused(condition, paused=self.paused))
        for protocol in data["protocol"] if not condition else ():
            changed += set_paused(protocol, data["family"], paused=self.paused)
        return ActionResult(f"{self.past_verb}: {self.target(data)}.") if changed else None


class ResumeModels(PauseModels):
    name, title, confirm_label = "resume-models", "Resume a model, a condition or a protocol", "Yes, resume"
    description = "Runs ask those again that were paused."
    paused = False
    nothing_affected = "Not paused."
    summary = "The next run asks these again; run it now where that is too late."
    past_verb = "Resumed"
