"""Begins and ends maintenance, in which no model is asked."""

from datetime import datetime
from typing import Any

from agents.services.run_settings import maintenance_line
from arena_site.dashboard.actions.maintenance import REASON_LENGTH, BeginMaintenance, EndMaintenance
from arena_site.dashboard.audit import BY, perform_action
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = (
        "Begins (on) or ends (off) maintenance: no model is asked, begun conversations are finished, pages say so. "
        "Without a word it says how it stands."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("switch", nargs="?", choices=("on", "off"))
        parser.add_argument("--reason", default="", help="for the audit log and, of on, for the pages")

    def records_run(self, options: dict[str, Any]) -> bool:
        return options["switch"] is not None  # cached pages are of the last run

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        switch, reason = options["switch"], options["reason"].strip()
        if switch == "on" and not reason:
            self.refuse("--reason TEXT is needed: pages show it")
        if switch == "on" and len(reason) > REASON_LENGTH:
            self.refuse(f"--reason: must be at most {REASON_LENGTH} characters")
        changed = False
        if switch is not None:
            action = BeginMaintenance() if switch == "on" else EndMaintenance()
            if not action.obstacle({}, at):
                reason = reason or "ended by command"
                changed = perform_action(action, {}, at=at, by=BY, reason=reason).changed
        return CommandResult({"maintenance": maintenance_line() or "off", "changed": changed})
