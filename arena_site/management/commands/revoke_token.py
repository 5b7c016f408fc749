"""Revokes an operator's API token."""

from datetime import datetime
from typing import Any

from arena_site.desk.acts import ACTS
from arena_site.desk.audit import performed
from arena_site.management.commands.make_token import BY
from arena_site.models import OperatorToken
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Revokes the operator's API token of this name; one that is revoked already stays so."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME")

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        named = OperatorToken.objects.filter(name=options["name"]).select_related("owner")
        # The newest of the name: all before it were revoked to make room.
        row = named.order_by("-pk").first()
        if row is None:
            self.refuse(f"there is no token {options['name']}")
        done = performed(ACTS["revoke-token"], {"token": row}, at=at, by=BY, reason="by the command revoke_token")
        return Result({"name": row.name, "owner": row.owner.get_username(), "revoked": int(done.changed)})
