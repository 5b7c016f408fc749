"""The weekly look at the gateway's catalogue: what changed becomes a proposal, and never more than that."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from agents.catalogue import Listed, ModelCatalogue, line_of, version_of
from agents.models import LineUp, Release
from agents.services.lineups import effective_from, lineup_propose, lineup_reject, upcoming
from cohorts.models import Methodology
from cohorts.weeks import WEEK
from markets.blocks import json_number

BY = "the catalogue's check"
NAMED = 5
"""How many newer models of a vendor are named."""


@dataclass(slots=True)
class LineUpCheck:
    """What the catalogue says of the line-up, and the proposal that it led to, if any."""

    models: int
    skipped: int
    findings: list[str] = field(default_factory=list)
    proposal: LineUp | None = None
    new: bool = False


def lineup_check(catalogue: ModelCatalogue, *, at: datetime) -> LineUpCheck:
    """Compares the line-up that was approved last with the catalogue.

    Newer models of the same product line, changed prices and announced ends make one proposal. What was proposed
    last by the check is not proposed again, whatever became of it; a proposal that is still open makes way.
    """
    check = LineUpCheck(len(catalogue.models), catalogue.skipped)
    current = upcoming()
    if current is None:
        check.findings.append("no line-up was ever approved: there is nothing to compare with")
        return check
    with transaction.atomic():
        before = [entry.release for entry in current.playing().order_by("position")]
        after = [_next(release, catalogue, check.findings, at=at) for release in before]
        wanted = [release for release in after if release is not None]
        if [_terms(release) for release in wanted] != [_terms(release) for release in before] and wanted:
            _propose(check, wanted, at=at)
    return check


def _next(release: Release, catalogue: ModelCatalogue, findings: list[str], *, at: datetime) -> Release | None:
    """The release to play for a family: the same, one at other prices, a newer one, not stored; None where it ends."""
    family, listed = release.family.slug, catalogue.models.get(release.model_id)
    successor = _successor(release, listed, catalogue)
    findings += _also_new(release, listed, successor, catalogue)
    if successor is not None:
        findings.append(f"{family}: {successor.id} of {successor.created:%Y-%m-%d} follows {release.model_id}")
        return _release(release, successor, at=at)
    if listed is None:
        findings.append(f"{family}: {release.model_id} is listed no more")
        return None
    if listed.expires is not None:
        findings.append(f"{family}: {release.model_id} will be taken off on {listed.expires}")
        if listed.expires < _asked_until(at).date():
            return None
    if (listed.price_prompt, listed.price_completion) != (release.price_prompt, release.price_completion):
        findings.append(
            f"{family}: {release.model_id} costs ${listed.price_prompt:f} and ${listed.price_completion:f} per token, "
            f"not ${json_number(release.price_prompt)} and ${json_number(release.price_completion)}"
        )
        return _release(release, listed, at=at)
    return release


def _successor(release: Release, listed: Listed | None, catalogue: ModelCatalogue) -> Listed | None:
    """The newest model of the same line that is newer than the release's and stays.

    What is listed no more has no age to compare: then the numbers in the names say which is newer.
    """
    newer = [
        model
        for model in catalogue.models.values()
        if model.line == line_of(release.model_id)
        and model.expires is None
        and (
            model.created > listed.created
            if listed is not None
            else version_of(model.id) > version_of(release.model_id)
        )
    ]
    return max(newer, key=lambda model: (model.created, model.id), default=None)


def _also_new(
    release: Release, listed: Listed | None, successor: Listed | None, catalogue: ModelCatalogue
) -> Sequence[str]:
    """Newer models of the vendor in other lines: for a person to think about."""
    vendor = release.model_id.partition("/")[0]
    newer = [
        model
        for model in catalogue.models.values()
        if listed is not None
        and model.id.partition("/")[0] == vendor
        and ":" not in model.id
        and model.created > listed.created
        and model.line != listed.line
        and model != successor
    ]
    newest = sorted(newer, key=lambda model: model.created, reverse=True)
    if not newest:
        return ()
    more = f" and {len(newest) - NAMED} more" if len(newest) > NAMED else ""
    return (f"{release.family.slug}: {vendor} also has {', '.join(model.id for model in newest[:NAMED])}{more}",)


def _release(current: Release, listed: Listed, *, at: datetime) -> Release:
    """The release on record for what is listed, else a new one, not stored yet."""
    terms = {
        "family": current.family,
        "model_id": listed.id,
        "price_prompt": listed.price_prompt,
        "price_completion": listed.price_completion,
    }
    known = Release.objects.filter(**terms, effective_from__lte=at).select_related("family").first()
    name = current.display_name if listed.id == current.model_id else listed.display_name
    return known or Release(**terms, display_name=name, effective_from=at)


def _propose(check: LineUpCheck, releases: Sequence[Release], *, at: datetime) -> None:
    last = LineUp.objects.filter(proposed_by=BY).order_by("-pk").first()
    if last is not None and _listed_terms(last) == [_terms(release) for release in releases]:
        check.proposal = last
        return
    for release in releases:
        if release.pk is None:
            release.save()
    for earlier in LineUp.objects.filter(proposed_by=BY, status=LineUp.Status.PROPOSED):
        lineup_reject(earlier, by=BY, reason="A later check found more.", at=at)
    reason = f"{len(check.findings)} findings in the gateway's catalogue."
    check.proposal = lineup_propose(releases=releases, by=BY, reason=reason, at=at, findings=check.findings)
    check.new = True


def _listed_terms(line_up: LineUp) -> list[tuple[Any, ...]]:
    return [_terms(entry.release) for entry in line_up.entries.select_related("release").order_by("position")]


def _terms(release: Release) -> tuple[Any, ...]:
    return (release.family_id, release.model_id, release.price_prompt, release.price_completion)


def _asked_until(at: datetime) -> datetime:
    """Until when the next cohort is asked."""
    return effective_from(at=at) + Methodology.objects.current().decision_weeks * WEEK
