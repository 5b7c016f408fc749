"""Actions on line-ups: the releases that take part in future cohorts."""

from collections.abc import Iterable
from datetime import datetime
from operator import attrgetter
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.models import Family, LineUp, Release
from agents.services.cost_estimate import plan_costs
from agents.services.lineups import (
    approve_lineup,
    check_releases,
    effective_from,
    latest_approved,
    latest_releases,
    lineup_changes,
    preview_lineup,
    propose_lineup,
    refuse_aliases,
    reject_lineup,
    releases_of,
)
from agents.services.release_check import lineup_with, newcomer, propose_newcomer
from arena_site.dashboard.action import (
    Action,
    ActionResult,
    ChoiceForm,
    FormData,
    Preview,
    RowChoiceField,
    row_path,
)
from foundation import clock


class ReleasesForm(forms.Form):
    """A choice of releases, initially those of the line-up approved last."""

    release = forms.ModelMultipleChoiceField(
        Release.objects.filter(family__external=False).select_related("family").order_by("family", "-effective_from"),
        label="Releases",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one."},
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        field = self.fields["release"]
        field.label_from_instance = _choice  # type: ignore[attr-defined]
        if not self.is_bound and (line_up := latest_approved()):
            field.initial = list(line_up.entries.values_list("release", flat=True))

    def clean_release(self) -> list[Release]:
        releases = sorted(self.cleaned_data["release"], key=lambda release: release.family_id)
        try:
            check_releases(releases, at=clock.now())
            _look_up_aliases(releases)
        except ValidationError as wrong:
            raise forms.ValidationError(wrong.messages) from wrong
        return releases


def _look_up_aliases(releases: Iterable[Release]) -> None:
    """Raises ValidationError if a release is a moving alias of the gateway's catalogue, or if that can not be read."""
    try:
        catalogue = clients.model_catalogue()
    except GatewayFailure as failure:
        raise ValidationError(f"{failure.reason}: the releases could not be looked up; try again later") from failure
    refuse_aliases(releases, catalogue.aliases if catalogue else {})


def _choice(release: Release) -> str:
    return f"{release.family.slug}: {release.display_name} ({release.model_id}), from {release.effective_from:%Y-%m-%d}"


class ProposeLineUp(Action):
    name, title, confirm_label = "propose-line-up", "Propose a line-up", "Yes, propose it"
    description = "Proposes the releases that take part in future cohorts."
    permission = "agents.add_lineup"
    form: type[forms.Form] = ReleasesForm
    listed = LineUp

    def target(self, data: FormData) -> str:
        return ", ".join(map(attrgetter("model_id"), data["release"]))

    def obstacle(self, data: FormData, at: datetime) -> str:
        release_ids = sorted(release.pk or 0 for release in data["release"])
        proposed = LineUp.objects.filter(status=LineUp.Status.PROPOSED)
        for line_up in filter(None, [latest_approved(), *proposed]):
            if sorted(line_up.entries.values_list("release", flat=True)) == release_ids:
                return f"That is {line_up}, {line_up.get_status_display().lower()} already."
        return ""

    def effect(self, data: FormData, at: datetime) -> Preview:
        lines = list(map(_choice, data["release"]))
        return Preview("It takes effect once an administrator approves it.", lines)

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        line_up = propose_lineup(releases=data["release"], by=by, reason=reason, at=at)
        return ActionResult(f"{str(line_up).capitalize()} is proposed.", path=row_path(line_up))


class NewcomerForm(forms.Form):
    """A model of the gateway's catalogue, with its prices and what a week and a season of it would cost."""

    model = forms.CharField(max_length=120, label="Model", help_text="The gateway's id, such as openai/gpt-5.2.")
    family = forms.ModelChoiceField(
        Family.objects.active(), to_field_name="slug", required=False, empty_label="a new family",
        label="In place of the release of", help_text="The family stays, and with it its earlier results.",
    )  # fmt: skip

    def clean(self) -> FormData:
        data: FormData = self.cleaned_data
        if "model" not in data or "family" not in data:
            return data
        at = clock.now()
        try:
            catalogue = clients.model_catalogue()
            if catalogue is None:
                raise ValidationError("ARENA_LINEUP=unchecked: no catalogue tells prices; add a release in the admin")
            week = effective_from(at=at)
            release = newcomer(data["model"], catalogue, family=data["family"], week=week, at=at)
        except GatewayFailure as failure:
            self.add_error("model", f"{failure.reason}: the catalogue could not be read; try again later")
        except ValidationError as wrong:
            self.add_error("model", forms.ValidationError(wrong.messages))
        else:
            alone = plan_costs(at=at, releases=[release], catalogue=catalogue)
            together = plan_costs(at=at, releases=lineup_with(release), catalogue=catalogue)
            data["release"] = release
            data["costs"] = [f"It alone costs {alone}.", f"The line-up with it costs {together}."]
        return data


class AddModel(ProposeLineUp):
    name, title, confirm_label = "add-model", "Add a model", "Yes, propose it"
    description = "Proposes the line-up approved last with one more model of the gateway's catalogue."
    form = NewcomerForm

    def target(self, data: FormData) -> str:
        return str(data["model"])

    def obstacle(self, data: FormData, at: datetime) -> str:
        return super().obstacle({"release": lineup_with(data["release"])}, at)

    def effect(self, data: FormData, at: datetime) -> Preview:
        changes = lineup_changes(latest_releases(), lineup_with(data["release"]))
        return Preview(super().effect({"release": []}, at).summary, [*map(str, changes), *data["costs"]])

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult:
        line_up = propose_newcomer(data["release"], by=by, reason=reason, at=at)
        return ActionResult(f"{str(line_up).capitalize()} is proposed.", path=row_path(line_up))


def proposed_lineups(rows: QuerySet[LineUp]) -> QuerySet[LineUp]:
    return rows.filter(status=LineUp.Status.PROPOSED).order_by("-proposed_at")


class LineUpForm(ChoiceForm):
    line_up = RowChoiceField(LineUp.objects.all(), "line-up", proposed_lineups)


class ApprovalForm(LineUpForm):
    def clean_line_up(self) -> LineUp:
        line_up: LineUp = self.cleaned_data["line_up"]
        if line_up.status == LineUp.Status.PROPOSED:
            _look_up_aliases(releases_of(line_up))
        return line_up


class ApproveLineUp(Action):
    name, title, confirm_label = "approve-line-up", "Approve a line-up", "Yes, approve it"
    description = "Cohorts that start from now on use it; cohorts that have started do not change."
    permission = "agents.change_lineup"
    form: type[LineUpForm] = ApprovalForm
    row_field = "line_up"

    def state(self, data: FormData) -> dict[str, Any]:
        line_up = LineUp.objects.get(pk=data["line_up"].pk)
        return {
            "status": line_up.status,
            "effective from": line_up.effective_from,
            "approved last": str(latest_approved()),
        }

    def obstacle(self, data: FormData, at: datetime) -> str:
        line_up: LineUp = data["line_up"]
        is_proposed = line_up.status == LineUp.Status.PROPOSED
        return "" if is_proposed else f"It is {line_up.get_status_display().lower()} already."

    def effect(self, data: FormData, at: datetime) -> Preview:
        effect = preview_lineup(data["line_up"], at=at)
        summary = f"Cohorts that start on {effect.effective_from:%Y-%m-%d} or later use it."
        withdrawn = f"Withdrawn families take no part: {', '.join(effect.withdrawn)}." if effect.withdrawn else ""
        return Preview(summary, list(map(str, effect.changes)) or ["Nothing changes."], withdrawn)

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        line_up: LineUp = data["line_up"]
        try:
            if not approve_lineup(line_up, by=by, reason=reason, at=at):
                return None
        except ValidationError as wrong:
            return ActionResult(f"Nothing was approved: {'; '.join(wrong.messages)}.", changed=False)
        line_up.refresh_from_db()
        return ActionResult(f"{str(line_up).capitalize()} takes effect on {line_up.effective_from:%Y-%m-%d}.")


class RejectLineUp(ApproveLineUp):
    name, title, confirm_label = "reject-line-up", "Reject a line-up", "Yes, reject it"
    description = "Rejects a proposal; the line-up approved last stays in use."
    form = LineUpForm

    def effect(self, data: FormData, at: datetime) -> Preview:
        return Preview("It is never used, and the catalogue check does not propose the same again.")

    def execute(self, data: FormData, *, at: datetime, by: str, reason: str) -> ActionResult | None:
        return ActionResult("Rejected.") if reject_lineup(data["line_up"], by=by, reason=reason, at=at) else None
