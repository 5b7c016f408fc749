"""Releases that a coming cohort can not use, by the gateway's catalogue, and line-ups with their successors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.db import transaction

from agents.lineup_2026 import CURRENT_LINEUP
from agents.model_ids import alias_fault, product_line, version_numbers
from agents.models import Family, LineUp, Release
from agents.models.family import name_slug
from agents.services.lineups import (
    LineUpChange,
    approve_lineup,
    latest_releases,
    lineup_changes,
    lineup_releases,
    propose_lineup,
)
from cohorts.models import Methodology
from cohorts.weeks import WEEK
from foundation.bulk import rows_by
from foundation.services.alerts import clear_alert, listing, raise_alert
from markets.services.cache_versions import Scope, lock_scope, save_competition_row

if TYPE_CHECKING:
    from agents.gateway.catalogue import CatalogueModel, ModelCatalogue

UNUSABLE_ALERT = "release-unusable"
CATALOGUE_TERMS = (
    "canonical_slug", "supported_parameters", "context_length", "max_completion_tokens", "price_overrides",
    "released_on", "knowledge_cutoff",
)  # fmt: skip
NEWCOMER_COLOR = "#4b5563"
"""Of a family that joins by its model's id, until a person gives it a color of its own in the admin."""
APPROVE_COMMAND = "uv run manage.py approve_lineup"
FLAGSHIP_IDS = frozenset(competitor.model_id for competitor in CURRENT_LINEUP)


@dataclass(frozen=True, slots=True)
class UnusableRelease:
    """A release that no cohort can use, the reason, and the model that follows it."""

    release: Release
    why: str
    successor: CatalogueModel | None

    def __str__(self) -> str:
        following = f"its successor is {self.successor.id}" if self.successor else "it has no successor: name a model"
        return f"{self.release.family.slug}: {self.release.model_id} {self.why}; {following}"

    def as_row(self) -> dict[str, str | None]:
        return {
            "family": self.release.family.slug,
            "release": self.release.model_id,
            "why": self.why,
            "successor": self.successor.id if self.successor else None,
        }


class UnusableLineUp(Exception):
    """A line-up, `current` where it is the shipped one, with releases that a cohort can not use."""

    def __init__(self, unusable: Sequence[UnusableRelease], *, current: bool = False) -> None:
        super().__init__(" ".join([*(f"{fault}." for fault in unusable), approval(unusable, current=current)]))
        self.unusable, self.current = unusable, current


def approval(unusable: Iterable[UnusableRelease], *, current: bool = False) -> str:
    """The command that approves the successors, with the models that a person has to name.

    Where the shipped line-up was asked for, as `current`, it begins with that again; it is not proposed in place of
    a flagship that it holds itself.
    """
    releases = [fault.release for fault in unusable if fault.successor is None]
    unnamed = [f"{release.family.slug}=MODEL" for release in releases]
    if current:
        return f"Approve with: {' '.join([APPROVE_COMMAND, *unnamed, '--current'])}"
    is_replaced = not FLAGSHIP_IDS.intersection(release.model_id for release in releases)
    flagships = f"; or each maker's flagship with: {APPROVE_COMMAND} --current" if releases and is_replaced else ""
    return f"Approve with: {' '.join([APPROVE_COMMAND, *unnamed])}{flagships}"


def approval_lines(unusable: Iterable[UnusableRelease], *, automatic: bool = False, current: bool = False) -> list[str]:
    """The releases for whose replacement a person is needed, and the command that approves it; empty if none is."""
    remaining = [fault for fault in unusable if not (automatic and fault.successor)]
    return [*map(str, remaining), approval(remaining, current=current)] if remaining else []


def unusable_releases(
    releases: Iterable[Release], catalogue: ModelCatalogue | None, *, week: datetime, weeks: int | None = None
) -> list[UnusableRelease]:
    """The releases that a cohort of this week can not use; `weeks` of decisions, if not the methodology's.

    Without a catalogue these are the ids that are marked as moving aliases.
    """
    end = week + (weeks or Methodology.objects.current().decision_weeks) * WEEK
    unusable = []
    for release in releases:
        why = alias_fault(release.model_id, catalogue.aliases if catalogue else {})
        if catalogue and not why:
            why = _listing_fault(release.model_id, catalogue, end.date())
        if why:
            successor = find_successor(release.model_id, catalogue) if catalogue else None
            unusable.append(UnusableRelease(release, why, successor))
    return unusable


def _listing_fault(model_id: str, catalogue: ModelCatalogue, end: date) -> str:
    """Why a cohort that decides until `end` can not use a model of the catalogue; empty if it can."""
    listed = catalogue.models.get(model_id)
    if listed is None:
        plain, colon, suffix = model_id.partition(":")
        if colon and plain in catalogue.models:
            return f"is not listed: the gateway has {plain} without ':{suffix}'"
        return "is no longer listed"
    if listed.price_fault:
        return f"has a price that can not be read: {listed.price_fault}"
    return f"expires on {listed.expires}" if listed.expires is not None and listed.expires < end else ""


def find_successor(model_id: str, catalogue: ModelCatalogue) -> CatalogueModel | None:
    """The newest other model of the same maker and product line: no variant, no alias, no expiration date."""
    line = product_line(model_id.partition(":")[0])
    candidates = []
    for model in catalogue.models.values():
        is_usable = model.expires is None and model.alias_target is None and not model.price_fault
        if is_usable and model.product_line == line and model.id != model_id:
            candidates.append(model)
    return max(candidates, key=lambda model: (model.created, version_numbers(model.id), model.id), default=None)


def raise_unusable_alerts(releases: Iterable[Release], unusable: Sequence[UnusableRelease], *, at: datetime) -> None:
    """Raises one alert for the releases that can not be used, and clears those of the other families."""
    items = {fault.release.family.slug: fault.release.model_id for fault in unusable}
    clear_alert(UNUSABLE_ALERT, {release.family.slug for release in releases} - items.keys(), at=at)
    if unusable:
        raise_alert(
            kind=UNUSABLE_ALERT,
            subject="line-up",
            items=items,
            message=f"No cohort can start with {listing(list(map(str, unusable)))}.",
            at=at,
            path="/admin/agents/lineup/",
            remedy=approval(unusable),
        )


def choose_releases(
    releases: Iterable[Release],
    catalogue: ModelCatalogue,
    *,
    models: Mapping[str, str],
    current: bool = False,
    week: datetime,
    at: datetime,
) -> list[Release]:
    """The releases, with the named model or the successor in place of each that can not be used.

    `models` holds model ids by the family's slug; an empty one leaves the family out. New releases are not stored yet.
    Raises UnusableLineUp where a family is left without a model that can be used.
    """
    choices: list[Release] = []
    unresolved: list[UnusableRelease] = []
    for release in releases:
        model_id = models.get(release.family.slug)
        if model_id == "":
            continue
        if model_id:
            release = Release(family=release.family, model_id=model_id)
        faults = unusable_releases([release], catalogue, week=week)
        successor = faults[0].successor if faults else catalogue.models[release.model_id]
        if successor is None or (faults and model_id):
            unresolved += faults
        elif release.pk and not faults:
            choices.append(release)
        else:
            name = successor.display_name if faults else release.display_name
            choices.append(release_of(release.family, successor, name or successor.display_name, at=at))
    if unresolved:
        raise UnusableLineUp(unresolved, current=current)
    return choices


def release_of(family: Family, listed: CatalogueModel, display_name: str, *, at: datetime) -> Release:
    """The family's release with the listed id and prices."""
    prices = {
        "price_prompt": listed.price_prompt,
        "price_completion": listed.price_completion,
        "price_overrides": listed.price_overrides,
    }
    return stored_or_new(Release(family=family, model_id=listed.id, display_name=display_name, **prices), at=at)


def newcomer(
    model_id: str, catalogue: ModelCatalogue, *, family: Family | None, week: datetime, at: datetime
) -> Release:
    """A release, not stored yet, of a model of the catalogue that is to join the line-up of a coming week.

    It is for `family`, or for a new one of the model's name. Raises ValidationError where no cohort could use it.
    """
    maker, _, name = model_id.partition("/")
    slug = name_slug(name.partition(":")[0])
    if family is None and (namesake := Family.objects.filter(slug=slug).first()):
        if not namesake.active or not namesake.releases.filter(model_id=model_id).exists():
            raise ValidationError(f"{slug} is another family's name: choose a family")
        family = namesake
    family = family or Family(slug=slug, color=NEWCOMER_COLOR)
    if unusable := unusable_releases([Release(family=family, model_id=model_id)], catalogue, week=week):
        raise ValidationError(f"{model_id} {unusable[0].why}")
    listed = catalogue.models[model_id]
    if family.pk is None:
        family.display_name, family.provider = listed.display_name, listed.maker or maker
        family.full_clean()
    release = release_of(family, listed, listed.display_name, at=at)
    set_catalogue_terms(release, catalogue)
    return release


def lineup_with(release: Release) -> list[Release]:
    """The releases of the line-up approved last, with this one in its family's place or at the end."""
    by_family = rows_by("family.slug", latest_releases())
    return list({**by_family, release.family.slug: release}.values())


def propose_newcomer(release: Release, *, by: str, reason: str, at: datetime) -> LineUp:
    """Proposes the line-up approved last with this release, which is stored with its family if they are new."""
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)
        if release.family.pk is None:
            save_competition_row(release.family)
        store_releases([release])
        return propose_lineup(releases=lineup_with(release), by=by, reason=reason, at=at)


def stored_or_new(release: Release, *, at: datetime) -> Release:
    """The family's stored release with the same id and prices, else this one, in effect from `at`."""
    release.effective_from = at
    if release.family.pk is None:
        return release
    terms = {name: getattr(release, name) for name in ("family", "model_id", "price_prompt", "price_completion")}
    stored = Release.objects.filter(**terms, effective_from__lte=at).select_related("family").first()
    return stored or release


def current_releases(*, at: datetime) -> list[Release]:
    """The releases of the current line-up that ships with the arena, of active families."""
    families = rows_by("slug", Family.objects.active())
    releases = []
    for competitor in CURRENT_LINEUP:
        if competitor.slug in families:
            release = Release(family=families[competitor.slug], **competitor.release_fields)
            releases.append(stored_or_new(release, at=at))
    return releases


def renew_lineup(
    catalogue: ModelCatalogue | None,
    *,
    current: bool = False,
    models: Mapping[str, str] | None = None,
    week: datetime,
    by: str,
    at: datetime,
) -> tuple[LineUp | None, tuple[LineUpChange, ...]]:
    """Approves the line-up of a coming week without the releases that can not be used, and returns its changes.

    It begins with the line-up in force, or with the `current` one that ships. None where nothing changes. Raises
    UnusableLineUp as `choose_releases` does, and ValidationError for an unknown family or an empty list.
    """
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)
        before = lineup_releases(week)
        releases = current_releases(at=at) if current else before
        if unknown := (models or {}).keys() - {release.family.slug for release in releases}:
            raise ValidationError(f"{', '.join(sorted(unknown))}: no family of the line-up; write FAMILY=MODEL")
        if catalogue is not None:
            releases = choose_releases(releases, catalogue, models=models or {}, current=current, week=week, at=at)
        elif unusable := unusable_releases(releases, None, week=week):
            raise UnusableLineUp(unusable, current=current)
        changes = lineup_changes(before, releases)
        reason = "; ".join(map(str, changes))
        line_up = approve_releases(releases, by=by, reason=reason, at=at) if changes else None
        store_first_terms(releases, catalogue)
        return line_up, changes


def approve_releases(releases: Sequence[Release], *, by: str, reason: str, at: datetime) -> LineUp:
    """An approved line-up of these releases, those stored that are new. Raises ValidationError for an invalid list."""
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)
        store_releases(releases)
        line_up = propose_lineup(releases=releases, by=by, reason=reason, at=at)
        approve_lineup(line_up, by=by, reason=reason, at=at)
        raise_unusable_alerts(releases, (), at=at)
    return line_up


def store_releases(releases: Iterable[Release]) -> None:
    """Stores the new ones among the releases."""
    for release in releases:
        if release.pk is None:
            while Release.objects.filter(family=release.family, effective_from=release.effective_from).exists():
                release.effective_from -= timedelta(microseconds=1)
            release.save()


def store_first_terms(releases: Iterable[Release], catalogue: ModelCatalogue | None) -> None:
    """Stores what the catalogue says of releases of which nothing is known yet, so that their cost can be told."""
    if catalogue is not None:
        store_catalogue_terms([release for release in releases if release.supported_parameters is None], catalogue)


def store_catalogue_terms(releases: Iterable[Release], catalogue: ModelCatalogue) -> None:
    """Stores what the catalogue says of each release besides its id and its prices without conditions."""
    for release in releases:
        if set_catalogue_terms(release, catalogue):
            release.save(update_fields=CATALOGUE_TERMS)


def set_catalogue_terms(release: Release, catalogue: ModelCatalogue | None) -> bool:
    """Sets, unsaved, what the catalogue says of a release; False if it does not list it."""
    listed = catalogue.models.get(release.model_id) if catalogue else None
    if listed is None:
        return False
    release.canonical_slug = listed.canonical_slug or release.canonical_slug
    release.supported_parameters = listed.supported_parameters
    release.context_length = listed.context_length
    release.max_completion_tokens = listed.max_completion_tokens
    release.price_overrides = listed.price_overrides
    release.released_on = listed.listed_on or release.released_on
    release.knowledge_cutoff = listed.knowledge_cutoff
    return True
