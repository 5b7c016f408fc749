"""Begins and ends maintenance, in which no model is asked."""

from datetime import datetime
from typing import Any

from django.utils import timezone

from agents.services.run_settings import begin_maintenance, end_maintenance, maintenance_line
from arena_site.dashboard.audit import BY
from arena_site.models import AuditEntry
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
        switch, reason, before = options["switch"], options["reason"].strip(), maintenance_line()
        changed = False
        if switch == "on":
            if not reason:
                self.refuse("--reason TEXT is needed: pages show it")
            if len(reason) > 200:
                self.refuse("--reason: must be at most 200 characters")
            changed = begin_maintenance(reason, at=timezone.now())
        elif switch == "off":
            changed = end_maintenance(at=timezone.now())
        if changed:
            AuditEntry.objects.create(
                at=timezone.now(),
                by=BY,
                action="maintenance" if switch == "on" else "end-maintenance",
                reason=reason or "ended by command",
                result=AuditEntry.Result.DONE,
                before={"maintenance": before},
                after={"maintenance": maintenance_line()},
            )
        return CommandResult({"maintenance": maintenance_line() or "off", "changed": changed})
