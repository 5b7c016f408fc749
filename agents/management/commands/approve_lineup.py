"""`approve_lineup`: successors in place of releases that the coming cohort can not use."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from agents import clients
from agents.gateway.completions import GatewayFailure
from agents.services.lineups import effective_from
from agents.services.release_check import UnusableLineUp, approval_lines, renew_lineup
from foundation.commands import ArenaCommand, CommandResult


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
        week, current = effective_from(at=at), options["current"]
        model_ids = dict(text.partition("=")[::2] for text in options["models"])
        summary: dict[str, Any] = {"line_up": None, "effective_from": None, "replaced": []}
        try:
            catalogue = clients.model_catalogue()
            if catalogue is None and model_ids:
                self.refuse("ARENA_LINEUP=unchecked: no catalogue tells a model's prices; use the dashboard")
            line_up, changes = renew_lineup(
                catalogue, current=current, models=model_ids, week=week, by="approve_lineup", at=at
            )
        except GatewayFailure as failure:
            return CommandResult(summary, failures=[failure.reason])
        except UnusableLineUp as error:
            unusable = [fault.as_row() for fault in error.unusable]
            lines = approval_lines(error.unusable, current=error.current)
            return CommandResult(summary | {"lineup": unusable}, failures=lines)
        except ValidationError as error:
            self.refuse("; ".join(error.messages))
        if line_up is None:
            return CommandResult(summary, log=["every release of the line-up can be used: nothing to approve"])
        rows = [change.as_row() for change in changes]
        replaced = [row for row in rows if row["from"] != row["to"]]
        summary = {"line_up": line_up.pk, "effective_from": week, "replaced": replaced}
        return CommandResult(summary, log=list(map(str, changes)))
