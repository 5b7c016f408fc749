"""Makes an operator's API token."""

from datetime import datetime
from typing import Any

from django.contrib.auth.models import User

from arena_site.desk.acts import ACTS
from arena_site.desk.acts.tokens import TokenForm
from arena_site.desk.audit import performed
from arena_site.models import OperatorToken
from markets.commands import ArenaCommand, Result

BY = "a shell"


class Command(ArenaCommand):
    help = "Makes a token by which a program does one thing over the API in an operator's name; prints it, once."

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("name", metavar="NAME", help="what is to use it")
        parser.add_argument("--owner", metavar="USER", required=True, help="in whose name; needs the permission too")
        parser.add_argument("--scope", choices=OperatorToken.Scope.values, required=True)
        parser.add_argument("--days", type=int, help="how long it lasts (default: until it is revoked)")

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        form = TokenForm({name: options[name] for name in ("name", "scope", "days")})
        if not form.is_valid():
            self.refuse("; ".join(f"{name}: {' '.join(map(str, said))}" for name, said in form.errors.items()))
        owner = User.objects.filter(username=options["owner"]).first()
        if owner is None:
            self.refuse(f"there is no account {options['owner']}")
        done = performed(
            ACTS["make-token"], {**form.cleaned_data, "owner": owner}, at=at, by=BY, reason="by the command make_token"
        )
        if not done.changed:
            self.refuse(done.says)
        self._token = done.secret
        return Result({"name": form.cleaned_data["name"], "owner": owner.get_username(), "scope": options["scope"]})

    def _report(self, result: Result, *, as_json: bool) -> None:
        # Beside the summary of the run, which is stored.
        result.summary["token"] = self._token
        super()._report(result, as_json=as_json)
