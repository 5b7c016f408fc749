"""Puts the next signing key in use."""

from datetime import datetime
from typing import Any

from agents.services.signing_keys import NoOtherKey, rotate_signing_key
from arena_site.dashboard.audit import BY, write_entry
from arena_site.models import AuditEntry
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = (
        "Puts ARENA_NEXT_SIGNING_KEY in use for receipts and chain heads from now on, and ends the use of the key "
        "before it, which stays listed with its dates."
    )

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument("--reason", default="", help="for the audit log")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        reason = options["reason"].strip()
        if not reason:
            self.refuse("--reason TEXT is needed: the audit log holds it")
        try:
            key, rotated = rotate_signing_key(at=at)
        except NoOtherKey as error:
            self.refuse(str(error))
        if rotated:
            write_entry(
                action="rotate-signing-key",
                by=BY,
                result=AuditEntry.Result.DONE,
                reason=reason,
                target=f"signing key {key}",
                after={"key": key.fingerprint, "public_key": key.public_key},
            )
        return CommandResult({"key": key.fingerprint, "public_key": key.public_key, "rotated": rotated})
