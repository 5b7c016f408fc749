"""Revokes an operator's API token."""

from datetime import datetime
from typing import Any

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.audit import perform_action
from arena_site.management.commands.make_token import SHELL
from arena_site.models import OperatorToken
from markets.foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Revokes the operator's API token of this name. Repeating it changes nothing."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        named = OperatorToken.objects.filter(name=options["name"]).select_related("owner")
        # Older tokens of the name are revoked: only one may be active.
        row = named.order_by("-pk").first()
        if row is None:
            self.refuse(f"there is no token {options['name']}")
        data = {"token": row}
        outcome = perform_action(ACTIONS["revoke-token"], data, at=at, by=SHELL, reason="by the command revoke_token")
        return CommandResult({"name": row.name, "owner": row.owner.get_username(), "revoked": int(outcome.changed)})
