"""`approve_lineup`: successors in place of releases that the coming cohort can not use."""

from datetime import datetime
from typing import Any

from agents import clients
from agents.gateway import GatewayFailure
from agents.services.cohort_start import lineup_releases
from agents.services.lineups import effective_from
from agents.services.release_check import (
    UnusableLineUp,
    approval,
    approve_releases,
    choose_releases,
    current_releases,
)
from markets.foundation.commands import ArenaCommand, CommandResult

BY = "approve_lineup"


class Command(ArenaCommand):
    help = (
        "Approves, for the next cohort, the successor of each release that the gateway no longer lists or that expires "
        "within the cohort's decision weeks."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "models", nargs="*", metavar="FAMILY=MODEL", help="a model for a family; `FAMILY=` leaves the family out"
        )
        parser.add_argument(
            "--current", action="store_true", help="begin with the shipped line-up of makers' flagships"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        week = effective_from(at=at)
        before = lineup_releases(week)
        releases = current_releases(at=at) if options["current"] else before
        named = dict(text.partition("=")[::2] for text in options["models"])
        if unknown := named.keys() - {release.family.slug for release in releases}:
            self.refuse(f"{', '.join(sorted(unknown))}: no family of the line-up; write FAMILY=MODEL")
        summary: dict[str, Any] = {"line_up": None, "effective_from": None, "replaced": []}
        try:
            catalogue = clients.model_catalogue()
            if catalogue is not None:
                releases = choose_releases(releases, catalogue, named=named, week=week, at=at)
            elif named:
                self.refuse(
                    "ARENA_LINEUP=unchecked: without a catalogue a model's prices are not known; use the dashboard"
                )
        except GatewayFailure as failure:
            return CommandResult(summary, failures=[failure.reason])
        except UnusableLineUp as error:
            rows = [each.as_row() for each in error.unusable]
            failures = [*map(str, error.unusable), approval(error.unusable)]
            return CommandResult(summary | {"lineup": rows}, failures=failures)
        if not releases:
            self.refuse("a line-up needs at least one family")
        if [release.pk for release in releases] == [release.pk for release in before]:
            return CommandResult(summary, log=["every release of the line-up can be used: nothing to approve"])
        old = {release.family.slug: release.model_id for release in before}
        new = {release.family.slug: release.model_id for release in releases}
        replaced = [
            {"family": slug, "from": old.get(slug), "to": new.get(slug)}
            for slug in dict.fromkeys([*old, *new])
            if old.get(slug) != new.get(slug)
        ]
        changes = "; ".join(f"{each['family']}: {each['from']} becomes {each['to']}" for each in replaced)
        line_up = approve_releases(releases, by=BY, reason=changes or "New prices.", at=at)
        return CommandResult({"line_up": line_up.pk, "effective_from": week, "replaced": replaced}, log=[changes])
