"""Line-ups: proposed by a person or the catalogue check, previewed, then approved for later cohorts or rejected."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Max

from agents.model_ids import alias_fault
from agents.models import Family, LineUp, LineUpEntry, Release
from agents.prices import Prices
from cohorts.models import Cohort
from cohorts.weeks import WEEK, week_start
from foundation.json_lines import json_number
from foundation.row_hashes import hash_after
from foundation.services.alerts import clear_alert, raise_alert
from markets.services.cache_versions import Scope, renew_versions

PROPOSED_ALERT = "line-up-proposed"


@dataclass(frozen=True, slots=True)
class LineUpChange:
    """The change of one family's release; `before` is None for a new family, `after` for a removed one."""

    family: str
    before: Release | None
    after: Release | None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            release = self.after or self.before
            return f"{self.family} {'comes in' if self.after else 'leaves'}: {_describe(release)}"
        if self.before.model_id == self.after.model_id:
            prices = f"{_format_prices(self.before)} becomes {_format_prices(self.after)}"
            return f"{self.family} stays with {self.after.model_id}: {prices}"
        return f"{self.family}: {_describe(self.before)} becomes {_describe(self.after)}"

    def as_row(self) -> dict[str, str | None]:
        before = self.before.model_id if self.before else None
        after = self.after.model_id if self.after else None
        return {"family": self.family, "from": before, "to": after}


@dataclass(frozen=True, slots=True)
class LineUpPreview:
    """The effect of approving a line-up: its start and the changes."""

    effective_from: datetime
    changes: tuple[LineUpChange, ...]
    withdrawn: tuple[str, ...]
    """Families in the list that are not active: they do not compete."""


def propose_lineup(
    *, releases: Sequence[Release], by: str, reason: str, at: datetime, findings: Iterable[str] = ()
) -> LineUp:
    """A proposed line-up of these releases, in their order. Raises ValidationError for an invalid list."""
    check_releases(releases, at=at)
    with transaction.atomic():
        line_up = LineUp.objects.create(proposed_at=at, proposed_by=by, reason=reason, findings=list(findings))
        entries = []
        for position, release in enumerate(releases, start=1):
            entry = LineUpEntry(line_up=line_up, family_id=release.family_id, release=release, position=position)
            entries.append(entry)
        LineUpEntry.objects.bulk_create(entries)
        raise_alert(
            kind=PROPOSED_ALERT,
            items={str(line_up.pk): f"line-up {line_up.pk}"},
            message=f"Line-up {line_up.pk} is proposed by {by}: {reason}",
            at=at,
            path=f"/admin/agents/lineup/{line_up.pk}/change/",
            remedy="Approve or reject it on the dashboard.",
            urgent=False,
        )
    return line_up


def check_releases(releases: Sequence[Release], *, at: datetime) -> None:
    """Raises ValidationError if these releases are no valid line-up for approval at `at`."""
    if not releases:
        raise ValidationError({"releases": "a line-up needs at least one release"})
    families: set[int] = set()
    for release in releases:
        if release.family.external:
            raise ValidationError({"releases": f"{release.family} is external: it plays by its registration"})
        if release.family_id in families:
            raise ValidationError({"releases": f"{release.family} has two releases in it"})
        if release.effective_from > max(at, effective_from(at=at)):
            raise ValidationError(
                {"releases": f"{release} may play from {release.effective_from:%Y-%m-%d %H:%M} UTC on, not before"}
            )
        families.add(release.family_id)
    refuse_aliases(releases, {})


def refuse_aliases(releases: Iterable[Release], aliases: Mapping[str, str]) -> None:
    """Raises ValidationError if a release is one of the catalogue's moving aliases, or marked as one."""
    for release in releases:
        if fault := alias_fault(release.model_id, aliases):
            raise ValidationError(f"{release.family.slug}: {release.model_id} {fault}; name one model")


def preview_lineup(line_up: LineUp, *, at: datetime) -> LineUpPreview:
    """The effect of approving a line-up at `at`."""
    after = releases_of(line_up)
    changes = lineup_changes(latest_releases(), after)
    withdrawn = tuple(release.family.slug for release in after if not release.family.active)
    return LineUpPreview(effective_from(at=at), changes, withdrawn)


def lineup_changes(before: Iterable[Release], after: Iterable[Release]) -> tuple[LineUpChange, ...]:
    """The changes between two lists of releases, in the order of the later one."""
    old = {release.family.slug: release for release in before}
    new = {release.family.slug: release for release in after}
    changes = []
    for family in new | old:
        if old.get(family) != new.get(family):
            changes.append(LineUpChange(family, old.get(family), new.get(family)))
    return tuple(changes)


def approve_lineup(line_up: LineUp, *, by: str, reason: str, at: datetime) -> bool:
    """Approves a line-up for the cohorts that start from now on. False if it was decided on before."""
    releases, start = releases_of(line_up), effective_from(at=at)
    check_releases(releases, at=at)
    approved = _decide(line_up, LineUp.Status.APPROVED, by, reason, at, start)
    if approved and start <= at:
        rename_families(releases)
    return approved


def reject_lineup(line_up: LineUp, *, by: str, reason: str, at: datetime) -> bool:
    """Rejects a proposed line-up. False if it was decided on before."""
    return _decide(line_up, LineUp.Status.REJECTED, by, reason, at, None)


def _decide(line_up: LineUp, status: str, by: str, reason: str, at: datetime, start: datetime | None) -> bool:
    with transaction.atomic():
        clear_alert(PROPOSED_ALERT, [str(line_up.pk)], at=at)
        proposed = LineUp.objects.filter(pk=line_up.pk, status=LineUp.Status.PROPOSED)
        decision = {"status": status, "effective_from": start}
        decision |= {"decided_at": at, "decided_by": by, "decision_reason": reason}
        return bool(proposed.update(**decision, row_sha256=hash_after(line_up, decision)))


def rename_families(releases: Iterable[Release]) -> None:
    """Lets each family show the name of its release, unless a person has named it otherwise than any release of it."""
    for release in releases:
        name = release.family.display_name
        if name != release.display_name and release.family.releases.filter(display_name=name).exists():
            Family.objects.filter(pk=release.family_id).update(display_name=release.display_name)
            renew_versions(Scope.COMPETITION)


def effective_from(*, at: datetime) -> datetime:
    """The start of the week of `at`, or of the first later one, that has no cohort yet nor any after it."""
    week = week_start(at)
    newest = Cohort.objects.aggregate(newest=Max("week_start"))["newest"]
    return max(week, newest + WEEK) if newest else week


def latest_approved() -> LineUp | None:
    """The line-up that was approved last; it may take effect only next week."""
    return LineUp.objects.approved().first()


def latest_releases() -> list[Release]:
    """The releases of the line-up that was approved last, in its order; empty where none was."""
    line_up = latest_approved()
    return releases_of(line_up) if line_up else []


def lineup_releases(at: datetime) -> list[Release]:
    """The releases of the line-up in force at an instant, in its order, of active families."""
    line_up = LineUp.objects.in_force(at)
    return [entry.release for entry in line_up.active_entries().order_by("position")] if line_up else []


def releases_of(line_up: LineUp) -> list[Release]:
    """The releases of a line-up, in its order."""
    return [entry.release for entry in line_up.entries.select_related("release__family").order_by("position")]


def _describe(release: Release | None) -> str:
    return f"{release} at {_format_prices(release)}" if release else "nothing"


def _format_prices(release: Release) -> str:
    prices, dearest = (release.price_prompt, release.price_completion), release.token_prices.dearest(None)
    conditions = f", under conditions up to {_per_million(dearest)}" if dearest != prices else ""
    return f"{_per_million(prices)} per million tokens{conditions}"


def _per_million(prices: Prices) -> str:
    prompt, completion = prices
    return f"${json_number(prompt * 10**6)} and ${json_number(completion * 10**6)}"
