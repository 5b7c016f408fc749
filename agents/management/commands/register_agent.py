"""Registers somebody else's agent."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError

from agents.models import Registration
from agents.services.registrations import agent_register
from markets.commands import ArenaCommand, Result


class Command(ArenaCommand):
    help = "Lets an external agent take part from the next cohort and the next questions on; prints its token, once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME", help="as it is shown on the boards")
        parser.add_argument(
            "--protocol", choices=Registration.Protocol.values, default=Registration.Protocol.BOTH.value
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        try:
            made = agent_register(name=options["name"], protocol=options["protocol"], at=at)
        except ValidationError as wrong:
            self.refuse(" ".join(wrong.messages))
        self._token = made.token
        return Result({"family": made.registration.family.slug, "protocol": made.registration.protocol})

    def _report(self, result: Result, *, as_json: bool) -> None:
        # Beside the summary of the run, which is stored.
        result.summary["token"] = self._token
        super()._report(result, as_json=as_json)
