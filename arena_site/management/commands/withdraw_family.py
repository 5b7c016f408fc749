"""`withdraw_family`: a family enters no new cohort, and leaves those that run if told so."""

from typing import Any

from arena_site.dashboard.actions.maintenance import WithdrawFamily
from arena_site.dashboard.audit import ActionCommand


class Command(ActionCommand):
    help = "Withdraws a family from future cohorts; --now: it decides no more in those that run, either."
    action = WithdrawFamily()

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("family", metavar="FAMILY", help="the family's slug, such as grok-4")
        parser.add_argument("--now", action="store_true", help="asks it nothing more in the cohorts that run")

    def form_fields(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"family": options["family"], "at_once": options["now"]}
