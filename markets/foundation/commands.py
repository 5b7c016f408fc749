"""Base of the management commands: `--at`, `--json`, a recorded run, a summary and an exit code."""

import argparse
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError, ProgrammingError
from django.utils import timezone

from markets.models import Run

if TYPE_CHECKING:
    from rich.table import Table

FAILED, BAD_USAGE = 1, 2
FAILURES_SHOWN = 20


def parse_instant(text: str) -> datetime:
    """An aware UTC datetime from ISO-8601 text. Raises ArgumentTypeError for other text and for a naive time."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an ISO-8601 time; write it like 2026-03-08T00:05:00Z"
        ) from None
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} has no time zone; end it with Z for UTC")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is outside the years 1 to 9999") from None


@dataclass(slots=True)
class CommandResult:
    """The outcome of a command: its summary, log lines and failures. Any failure makes the exit code 1."""

    summary: dict[str, Any]
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed: bool = False


class ArenaCommand(BaseCommand):
    """A command for an instant. Subclasses implement `perform` and may add arguments."""

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--at", type=parse_instant, help="the instant to run for, ISO-8601 with a zone (default: now)"
        )
        parser.add_argument("--json", action="store_true", help="print the summary as one line of JSON")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        raise NotImplementedError

    def records_run(self, options: dict[str, Any]) -> bool:
        """True if this invocation is recorded as a Run."""
        return True

    def handle(self, *args: Any, **options: Any) -> None:
        at = options["at"] or timezone.now()
        kind = type(self).__module__.rpartition(".")[2]
        try:
            with Run.objects.recorded(kind, at) if self.records_run(options) else nullcontext() as run:
                result = self.perform(at, options)
                if run is not None:
                    run.summary, run.log = result.summary, [*result.failures, *result.log]
                    run.error = "\n".join(result.failures[:FAILURES_SHOWN])
                    if result.failed or result.failures:
                        run.status = Run.Status.FAILED
        except (OperationalError, ProgrammingError) as error:
            line = str(error).strip().splitlines()[0]
            raise CommandError(f"database: {line} (is it reachable, and migrated?)", returncode=FAILED) from error
        self._report(result, as_json=options["json"])

    def _report(self, result: CommandResult, *, as_json: bool) -> None:
        for line in result.failures[:FAILURES_SHOWN]:
            self.stderr.write(line)
        if (more := len(result.failures) - FAILURES_SHOWN) > 0:
            self.stderr.write(f"… and {more} more failures")
        if as_json:
            self.stdout.write(json.dumps(result.summary, cls=DjangoJSONEncoder))
        else:
            self.stdout.write(table_text(summary_table(result.summary)))
        if result.failed or result.failures:
            raise SystemExit(FAILED)

    def refuse(self, message: str) -> NoReturn:
        """Ends the command with exit code 2 (bad usage), before it has done anything."""
        raise CommandError(message, returncode=BAD_USAGE)

    @contextmanager
    def progress(self, title: str) -> Iterator[Callable[..., None]]:
        """A progress bar on stderr, as a function to call with (done, of) and an optional caption."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(title, total=None)

            def update(done: int, of: int, caption: str = "") -> None:
                bar.update(task, completed=done, total=of, description=f"{title} {caption}".strip())

            yield update


def summary_table(summary: dict[str, Any]) -> "Table":
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), "–" if value is None else str(value))
    return table


def table_text(table: "Table", width: int = 110) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
