"""Builds the kit's wheels and the index under /kit/simple/."""

from datetime import datetime
from typing import Any

from django.core.management.base import CommandError

from arena_site.kit import KitNotBuilt, build_kit, is_current, read_kit
from foundation.commands import ArenaCommand, CommandResult


class Command(ArenaCommand):
    help = "Builds the wheels of the kit and the index that /kit/simple/ serves, by uv; needs no database."
    requires_system_checks: list[str] = []
    leaves_run = False

    def add_arguments(self, parser: Any) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--if-changed", action="store_true", help="only if the sources changed since the last build"
        )

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        index = read_kit()
        if not (options["if_changed"] and is_current(index)):
            try:
                index = build_kit()
            except (KitNotBuilt, OSError) as error:
                raise CommandError(str(error)) from None
        return CommandResult({"wheels": [wheel.file for wheel in index.wheels], "upstream": index.upstream})
