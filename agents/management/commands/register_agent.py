"""`register_agent`: the registration of an external agent."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from agents.models import Family, Registration
from agents.services.registrations import register_external_agent
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Registers an external agent from the next cohort and question set on; prints its token once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME", help="the name on the leaderboards")
        parser.add_argument(
            "--protocol", choices=Registration.Protocol.values, default=Registration.Protocol.BOTH.value
        )
        parser.add_argument(
            "--track",
            choices=Family.Track.values,
            default=Family.Track.CLOSED.value,
            help="closed: only what the task shows, 15 minutes; open: anything, until the methodology's open window",
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        try:
            new = register_external_agent(
                name=options["name"], protocol=options["protocol"], track=options["track"], at=at
            )
        except ValidationError as error:
            self.refuse(" ".join(error.messages))
        self._token = new.token
        return CommandResult({"family": new.family.slug, "protocol": new.protocol, "track": new.family.track})

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        # Added here because the summary is stored with the run before it is printed.
        result.summary["token"] = self._token
        super()._report(result, as_json=as_json)
