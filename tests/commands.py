"""Management commands called in this process, with what an operator reads of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

from django.core.management import CommandError, call_command

SUNDAY = datetime(2026, 3, 8, tzinfo=UTC)
"""The midnight at which cohort 1 starts in tests."""
DECISION = SUNDAY + timedelta(minutes=5)
"""When its first decisions are due."""


@dataclass(frozen=True)
class CommandOutput:
    """A finished command: its exit code, its JSON summary, its messages on stderr and what it printed."""

    code: int
    summary: Mapping[str, Any]
    stderr: str
    stdout: str = ""

    def __getitem__(self, key: str) -> Any:
        return self.summary[key]


def run(command: str, at: datetime | None = None, *arguments: object, **options: Any) -> CommandOutput:
    """The output of a command for an instant."""
    stdout, stderr, code = StringIO(), StringIO(), 0
    if at is not None:
        options["at"] = at
    try:
        call_command(command, *map(str, arguments), json=True, stdout=stdout, stderr=stderr, **options)
    except SystemExit as end:
        code = int(end.code or 0)
    except CommandError as error:
        return CommandOutput(error.returncode, {}, str(error))
    return CommandOutput(
        code, json.loads(stdout.getvalue().strip().splitlines()[-1]), stderr.getvalue(), stdout.getvalue()
    )
