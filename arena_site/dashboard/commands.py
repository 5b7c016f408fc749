"""Base of the commands that perform an operator's action: its form, its checks and its audit entry."""

from datetime import datetime
from itertools import chain
from typing import Any

from arena_site.dashboard.action import Action
from arena_site.dashboard.audit import perform_action
from foundation.commands import ArenaCommand, CommandResult

BY = "manage.py"
REASON_LENGTH = 2000


class ActionCommand(ArenaCommand):
    """Performs an action as its page does, with a reason for the audit log."""

    action: Action

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", required=True, help="for the audit log")

    def form_fields(self, options: dict[str, Any]) -> dict[str, Any]:
        """The action's form, filled in from the command's arguments."""
        raise NotImplementedError

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        reason, form = options["reason"].strip(), self.action.form(self.form_fields(options))
        if not 0 < len(reason) <= REASON_LENGTH:
            self.refuse(f"--reason: must be of 1 to {REASON_LENGTH} characters")
        if not form.is_valid():
            self.refuse(" ".join(map(str, chain.from_iterable(form.errors.values()))))
        result = perform_action(self.action, form.cleaned_data, at=at, by=BY, reason=reason)
        self.action.after_commit(form.cleaned_data, result, at=at)
        return CommandResult({"changed": result.changed, "message": result.message})
