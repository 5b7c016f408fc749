"""Creates an operator's API token."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from arena_site.dashboard.actions import ACTIONS
from arena_site.dashboard.actions.tokens import TokenForm
from arena_site.dashboard.audit import perform_action
from arena_site.models import OperatorToken
from markets.foundation.commands import ArenaCommand, CommandResult

SHELL = "a shell"


class Command(ArenaCommand):
    help = "Creates a token by which a program does one thing over the API in an operator's name, and prints it once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME", help="the program that will use it")
        parser.add_argument("--owner", metavar="USER", required=True, help="the account in whose name it acts")
        parser.add_argument("--scope", choices=OperatorToken.Scope.values, required=True)
        parser.add_argument("--days", type=int, help="its lifetime (default: until it is revoked)")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        form = TokenForm({name: options[name] for name in ("name", "scope", "days")})
        if not form.is_valid():
            self.refuse("; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items()))
        owner = User.objects.filter(username=options["owner"]).first()
        if owner is None:
            self.refuse(f"there is no account {options['owner']}")
        outcome = perform_action(
            ACTIONS["make-token"],
            {**form.cleaned_data, "owner": owner},
            at=at,
            by=SHELL,
            reason="by the command make_token",
        )
        if not outcome.changed:
            self.refuse(outcome.message)
        self._token = outcome.secret
        return CommandResult(
            {"name": form.cleaned_data["name"], "owner": owner.get_username(), "scope": options["scope"]}
        )

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        # Added after the run's summary has been stored.
        result.summary["token"] = self._token
        super()._report(result, as_json=as_json)
