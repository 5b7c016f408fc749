"""Who plays in cohorts to come: proposed, seen as it would be, then approved or rejected by an administrator."""

from datetime import datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from agents.models import LineUp, Release
from agents.services.lineups import (
    check_releases,
    lineup_approve,
    lineup_preview,
    lineup_propose,
    lineup_reject,
    upcoming,
)
from arena_site.desk.act import Act, Asked, Done, Preview, RowField, list_path, nothing, row_path, unchanged
from arena_site.desk.acts.runs import Ring
from markets import clock


class ReleasesForm(forms.Form):
    """Releases to choose from, those of the line-up that was approved last chosen."""

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
        if not self.is_bound and (line_up := upcoming()):
            field.initial = list(line_up.entries.values_list("release", flat=True))

    def clean_release(self) -> list[Release]:
        releases = sorted(self.cleaned_data["release"], key=lambda release: release.family_id)
        try:
            check_releases(releases, at=clock.now())
        except ValidationError as wrong:
            raise forms.ValidationError(wrong.messages) from wrong
        return releases


def _choice(release: Release) -> str:
    return f"{release.family.slug}: {release.display_name} ({release.model_id}), from {release.effective_from:%Y-%m-%d}"


class Propose(Act):
    name, title, confirm = "propose-line-up", "Propose a line-up", "Yes, propose it"
    about = "Which release of which family is to play in cohorts to come."
    permission = "agents.add_lineup"
    form = ReleasesForm

    def target(self, asked: Asked) -> str:
        return ", ".join(release.model_id for release in asked["release"])

    def target_path(self, asked: Asked) -> str:
        return list_path(LineUp)

    def same(self, asked: Asked) -> LineUp | None:
        """A line-up of these very releases that waits already, or that counts already."""
        wanted = [release.pk for release in asked["release"]]
        waiting = LineUp.objects.filter(status=LineUp.Status.PROPOSED)
        for line_up in filter(None, [upcoming(), *waiting]):
            if sorted(line_up.entries.values_list("release", flat=True)) == sorted(wanted):
                return line_up
        return None

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if line_up := self.same(asked):
            return nothing(f"That is {line_up}, {line_up.get_status_display().lower()} already.")
        lines = [_choice(release) for release in asked["release"]]
        return Preview("Nothing plays by it until an administrator has approved it.", lines)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        if line_up := self.same(asked):
            return unchanged(f"Nothing was proposed: that is {line_up}.", row_path(line_up))
        line_up = lineup_propose(releases=asked["release"], by=by, reason=reason, at=at)
        return Done(f"{str(line_up).capitalize()} is proposed.", path=row_path(line_up))


class LineUpForm(forms.Form):
    line_up = RowField(LineUp.objects.all(), "line-up")


class Approve(Act):
    name, title, confirm = "approve-line-up", "Approve a line-up", "Yes, approve it"
    about = "Cohorts that start from the next week on play by it; those that have started never do."
    permission = "agents.change_lineup"
    form = LineUpForm

    def target(self, asked: Asked) -> str:
        return str(asked["line_up"])

    def target_path(self, asked: Asked) -> str:
        return row_path(asked["line_up"])

    def state(self, asked: Asked) -> dict[str, Any]:
        line_up = LineUp.objects.get(pk=asked["line_up"].pk)
        return {"status": line_up.status, "effective from": line_up.effective_from, "approved last": str(upcoming())}

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        line_up: LineUp = asked["line_up"]
        if line_up.status != LineUp.Status.PROPOSED:
            return nothing(f"It is {line_up.get_status_display().lower()} already.")
        seen = lineup_preview(line_up, at=at)
        says = f"Cohorts that start on {seen.effective_from:%Y-%m-%d} or later play by it."
        withdrawn = f"Withdrawn, so not playing all the same: {', '.join(seen.withdrawn)}." if seen.withdrawn else ""
        return Preview(says, [change.says for change in seen.changes] or ["Nothing changes."], withdrawn)

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        line_up: LineUp = asked["line_up"]
        path = row_path(line_up)
        try:
            approved = lineup_approve(line_up, by=by, reason=reason, at=at)
        except ValidationError as wrong:
            return unchanged(f"Nothing was approved: {'; '.join(wrong.messages)}.", path)
        if not approved:
            return unchanged("Nothing was approved: it was decided on before.", path)
        line_up.refresh_from_db()
        return Done(f"{str(line_up).capitalize()} counts from {line_up.effective_from:%Y-%m-%d} on.", path=path)


class Reject(Approve):
    name, title, confirm = "reject-line-up", "Reject a line-up", "Yes, reject it"
    about = "Ends a proposal; the line-up that was approved last goes on."

    def preview(self, asked: Asked, *, at: datetime) -> Preview:
        if asked["line_up"].status != LineUp.Status.PROPOSED:
            return nothing(f"It is {asked['line_up'].get_status_display().lower()} already.")
        return Preview("It is never played. The catalogue's check does not propose the same again.")

    def perform(self, asked: Asked, *, at: datetime, by: str, reason: str) -> Done:
        path = row_path(asked["line_up"])
        if not lineup_reject(asked["line_up"], by=by, reason=reason, at=at):
            return unchanged("Nothing was rejected: it was decided on before.", path)
        return Done("Rejected.", path=path)


class Check(Ring):
    name, title, confirm = "check-line-up", "Check the line-up now", "Yes, check it"
    about = "The gateway's catalogue beside the line-up, outside its Wednesday."
    function, kind = "line_up", "check_lineup"
    would = "A worker reads the gateway's catalogue. What has changed becomes a proposal; nobody plays by it as yet."
