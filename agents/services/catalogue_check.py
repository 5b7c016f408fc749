"""The weekly check of the line-up against the gateway's catalogue; changes become a proposed line-up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.gateway.catalogue import CatalogueModel, ModelCatalogue
from agents.gateway.model_ids import product_line, version_numbers
from agents.models import LineUp, Release
from agents.services.lineups import effective_from, latest_approved, propose_lineup, reject_lineup
from cohorts.models import Methodology
from cohorts.weeks import WEEK
from markets.foundation.json_lines import json_number

PROPOSER = "the catalogue's check"
MAX_NAMED = 5
"""How many newer models of a vendor a finding names."""


@dataclass(slots=True)
class LineUpCheck:
    """The findings of a check, and the line-up proposed for them, if any; `new` if this check proposed it."""

    models: int
    skipped: int
    findings: list[str] = field(default_factory=list)
    proposal: LineUp | None = None
    new: bool = False


def check_lineup(catalogue: ModelCatalogue, *, at: datetime) -> LineUpCheck:
    """Compares the line-up that was approved last with the catalogue.

    Newer models of the same product line, changed prices and announced expirations make one proposal, which replaces
    an open one of an earlier check. The last proposal of a check is not repeated, even if it was rejected.
    """
    check = LineUpCheck(len(catalogue.models), catalogue.skipped)
    current = latest_approved()
    if current is None:
        check.findings.append("no line-up was ever approved: there is nothing to compare with")
        return check
    with transaction.atomic():
        before = [entry.release for entry in current.active_entries().order_by("position")]
        candidates = [_next_release(release, catalogue, check.findings, at=at) for release in before]
        after = [release for release in candidates if release is not None]
        if after and [_terms(release) for release in after] != [_terms(release) for release in before]:
            _propose(check, after, at=at)
    return check


def _next_release(release: Release, catalogue: ModelCatalogue, findings: list[str], *, at: datetime) -> Release | None:
    """The family's next release, stored or not: the same, one at new prices, or a newer model; None if it expires."""
    family, listed = release.family.slug, catalogue.models.get(release.model_id)
    successor = _successor(release, listed, catalogue)
    findings += _newer_models(release, listed, successor, catalogue)
    if successor is not None:
        findings.append(f"{family}: {successor.id} of {successor.created:%Y-%m-%d} follows {release.model_id}")
        return _release_for(release, successor, at=at)
    if listed is None:
        findings.append(f"{family}: {release.model_id} is no longer listed")
        return None
    if listed.expires is not None:
        findings.append(f"{family}: {release.model_id} expires on {listed.expires}")
        if listed.expires < _decisions_end(at).date():
            return None
    if (listed.price_prompt, listed.price_completion) != (release.price_prompt, release.price_completion):
        findings.append(
            f"{family}: {release.model_id} costs ${listed.price_prompt:f} and ${listed.price_completion:f} per token, "
            f"not ${json_number(release.price_prompt)} and ${json_number(release.price_completion)}"
        )
        return _release_for(release, listed, at=at)
    return release


def _successor(release: Release, listed: CatalogueModel | None, catalogue: ModelCatalogue) -> CatalogueModel | None:
    """The newest model of the same product line that is newer than the release's and has no expiration date.

    The age of a model that is no longer listed is unknown: then the numbers in the ids decide.
    """
    newer = [
        model
        for model in catalogue.models.values()
        if model.product_line == product_line(release.model_id)
        and model.expires is None
        and (
            model.created > listed.created
            if listed is not None
            else version_numbers(model.id) > version_numbers(release.model_id)
        )
    ]
    return max(newer, key=lambda model: (model.created, model.id), default=None)


def _newer_models(
    release: Release, listed: CatalogueModel | None, successor: CatalogueModel | None, catalogue: ModelCatalogue
) -> Sequence[str]:
    """A finding on the vendor's newer models of other product lines, for the operator."""
    vendor = release.model_id.partition("/")[0]
    newer = [
        model
        for model in catalogue.models.values()
        if listed is not None
        and model.id.partition("/")[0] == vendor
        and ":" not in model.id
        and model.created > listed.created
        and model.product_line != listed.product_line
        and model != successor
    ]
    newest = sorted(newer, key=lambda model: model.created, reverse=True)
    if not newest:
        return ()
    more = f" and {len(newest) - MAX_NAMED} more" if len(newest) > MAX_NAMED else ""
    return (f"{release.family.slug}: {vendor} also has {', '.join(model.id for model in newest[:MAX_NAMED])}{more}",)


def _release_for(current: Release, listed: CatalogueModel, *, at: datetime) -> Release:
    """The stored release with the listed id and prices, else a new one, not stored yet."""
    terms = {
        "family": current.family,
        "model_id": listed.id,
        "price_prompt": listed.price_prompt,
        "price_completion": listed.price_completion,
    }
    stored = Release.objects.filter(**terms, effective_from__lte=at).select_related("family").first()
    name = current.display_name if listed.id == current.model_id else listed.display_name
    return stored or Release(**terms, display_name=name, effective_from=at)


def _propose(check: LineUpCheck, releases: Sequence[Release], *, at: datetime) -> None:
    last = LineUp.objects.filter(proposed_by=PROPOSER).order_by("-pk").first()
    if last is not None and _line_up_terms(last) == [_terms(release) for release in releases]:
        check.proposal = last
        return
    for release in releases:
        if release.pk is None:
            release.save()
    for earlier in LineUp.objects.filter(proposed_by=PROPOSER, status=LineUp.Status.PROPOSED):
        reject_lineup(earlier, by=PROPOSER, reason="A later check found more.", at=at)
    reason = f"{len(check.findings)} findings in the gateway's catalogue."
    check.proposal = propose_lineup(releases=releases, by=PROPOSER, reason=reason, at=at, findings=check.findings)
    check.new = True


def _line_up_terms(line_up: LineUp) -> list[tuple[Any, ...]]:
    return [_terms(entry.release) for entry in line_up.entries.select_related("release").order_by("position")]


def _terms(release: Release) -> tuple[Any, ...]:
    return (release.family_id, release.model_id, release.price_prompt, release.price_completion)


def _decisions_end(at: datetime) -> datetime:
    """The end of the next cohort's decision weeks."""
    return effective_from(at=at) + Methodology.objects.current().decision_weeks * WEEK
