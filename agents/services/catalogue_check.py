"""The weekly check of the line-up against the gateway's catalogue; changes become a proposed line-up."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from agents.gateway.catalogue import CatalogueModel, ModelCatalogue
from agents.model_ids import alias_fault, product_line
from agents.models import LineUp, Release
from agents.services.cost_estimate import plan_costs
from agents.services.lineups import effective_from, latest_approved, propose_lineup, reject_lineup, releases_of
from agents.services.release_check import (
    UnusableRelease,
    find_successor,
    raise_unusable_alerts,
    release_of,
    store_first_terms,
    store_releases,
    unusable_releases,
)
from foundation.json_lines import json_number
from markets.services.cache_versions import Scope, lock_scope

PROPOSER = "the catalogue's check"
MAX_NAMED = 5
"""How many newer models of a vendor a finding names."""


@dataclass(slots=True)
class LineUpCheck:
    """The findings of a check, and the line-up proposed for them, if any; `new` if this check proposed it."""

    findings: list[str] = field(default_factory=list)
    unusable: list[UnusableRelease] = field(default_factory=list)
    rises: list[str] = field(default_factory=list)
    """The findings by which a release becomes dearer."""
    proposal: LineUp | None = None
    new: bool = False


def check_lineup(catalogue: ModelCatalogue, *, at: datetime) -> LineUpCheck:
    """Compares the line-up that was approved last with the catalogue.

    Newer models of the same product line, changed prices and announced expirations make one proposal, which replaces
    an open one of an earlier check. The last proposal of a check is not repeated, even if it was rejected.
    """
    check = LineUpCheck()
    with transaction.atomic():
        lock_scope(Scope.COMPETITION)  # two checks at once would both propose
        current = latest_approved()
        if current is None:
            check.findings.append("no line-up was ever approved: there is nothing to compare with")
            return check
        before = [entry.release for entry in current.active_entries().order_by("position")]
        check.unusable = unusable_releases(before, catalogue, week=effective_from(at=at))
        raise_unusable_alerts(before, check.unusable, at=at)
        unusable = {fault.release.pk for fault in check.unusable}
        after = []
        for release in before:
            usable = release.pk not in unusable
            following = _next_release(release, catalogue, check.findings, usable=usable, at=at)
            if any(_prices(later) > _prices(release) for later in following):
                check.rises.append(check.findings[-1])
            after += following
        store_first_terms([release for release in before if release in after], catalogue)
        if after and after != before:
            _propose(check, before, after, at=at)
    return check


def _prices(release: Release) -> Decimal:
    return release.price_prompt + release.price_completion


def _next_release(
    release: Release, catalogue: ModelCatalogue, findings: list[str], *, usable: bool, at: datetime
) -> list[Release]:
    """The family's next release, stored or not: the same, one at new prices, or a newer model; none if it ends."""
    family, listed = release.family.slug, catalogue.models.get(release.model_id)
    successor = find_successor(release.model_id, catalogue)
    if usable and listed and successor and successor.created <= listed.created:
        successor = None
    findings += _newer_models(release, listed, successor, catalogue)
    if fault := alias_fault(release.model_id, catalogue.aliases):
        findings.append(f"{family}: {release.model_id} {fault}")
    elif listed is None:
        findings.append(f"{family}: {release.model_id} is no longer listed")
    elif listed.expires is not None:
        findings.append(f"{family}: {release.model_id} expires on {listed.expires}")
    if successor is not None:
        findings.append(f"{family}: {successor.id} of {successor.created:%Y-%m-%d} follows {release.model_id}")
        return [release_of(release.family, successor, successor.display_name, at=at)]
    if listed is None or not usable:
        return []
    if (listed.price_prompt, listed.price_completion) != (release.price_prompt, release.price_completion):
        findings.append(
            f"{family}: {release.model_id} costs ${listed.price_prompt:f} and ${listed.price_completion:f} per token, "
            f"not ${json_number(release.price_prompt)} and ${json_number(release.price_completion)}"
        )
        return [release_of(release.family, listed, release.display_name, at=at)]
    return [release]


def _newer_models(
    release: Release, listed: CatalogueModel | None, successor: CatalogueModel | None, catalogue: ModelCatalogue
) -> Sequence[str]:
    """A finding on the vendor's other models, for the operator: newer ones, or all where the release has vanished."""
    vendor = release.model_id.partition("/")[0]
    newest = []
    for model in sorted(catalogue.models.values(), key=lambda model: model.created, reverse=True):
        is_other = model.product_line != product_line(release.model_id) and model != successor
        is_newer = listed is None or model.created > listed.created
        is_plain = ":" not in model.id and model.alias_target is None
        if model.id.partition("/")[0] == vendor and is_plain and is_newer and is_other:
            newest.append(model.id)
    more = f" and {len(newest) - MAX_NAMED} more" if len(newest) > MAX_NAMED else ""
    names = ", ".join(newest[:MAX_NAMED])
    return [f"{release.family.slug}: {vendor} also has {names}{more}"] if newest else []


def _propose(check: LineUpCheck, before: list[Release], releases: list[Release], *, at: datetime) -> None:
    last = LineUp.objects.filter(proposed_by=PROPOSER).order_by("-pk").first()
    if last is not None and releases_of(last) == releases:
        check.proposal = last
        return
    store_releases(releases)
    for earlier in LineUp.objects.filter(proposed_by=PROPOSER, status=LineUp.Status.PROPOSED):
        reject_lineup(earlier, by=PROPOSER, reason="A later check found more.", at=at)
    usual, coming = (plan_costs(at=at, releases=line_up).week_usd for line_up in (before, releases))
    rises = f" Dearer: {'; '.join(check.rises)}." if check.rises else ""
    number = len(check.findings)
    reason = (
        f"{number} finding{'' if number == 1 else 's'} in the gateway's catalogue.{rises} "
        f"A week will cost about ${coming:.2f}; until now ${usual:.2f}."
    )
    check.proposal = propose_lineup(releases=releases, by=PROPOSER, reason=reason, at=at, findings=check.findings)
    check.new = True
