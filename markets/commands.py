"""What every command of the arena shares: `--at`, `--json`, a recorded run, a summary, an exit code."""

import argparse
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import OperationalError, ProgrammingError
from django.utils import timezone
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from markets.models import Run

FAILED, BAD_USAGE = 1, 2
FAILURES_SHOWN = 20


def instant(text: str) -> datetime:
    """An aware UTC datetime from ISO-8601 text. Raises argparse's error for anything else, a naive time too."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no ISO-8601 time; write it like 2026-03-08T00:05:00Z") from None
    if at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} names no time zone; end it with Z for UTC")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} lies outside the years 1 to 9999") from None


@dataclass(slots=True)
class Result:
    """What a command did: its summary in the contract's words, lines for the log, and what failed."""

    summary: dict[str, Any]
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    failed: bool = False


class ArenaCommand(BaseCommand):
    """A command for an instant. Subclasses say what to do in `perform` and add their own arguments."""

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--at", type=instant, help="the instant to run for, ISO-8601 with a zone (default: now)")
        parser.add_argument("--json", action="store_true", help="print the summary as one line of JSON")

    def perform(self, at: datetime, options: dict[str, Any]) -> Result:
        raise NotImplementedError

    def records_run(self, options: dict[str, Any]) -> bool:
        """Does this invocation leave a row among the runs?"""
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

    def _report(self, result: Result, *, as_json: bool) -> None:
        for line in result.failures[:FAILURES_SHOWN]:
            self.stderr.write(line)
        if (more := len(result.failures) - FAILURES_SHOWN) > 0:
            self.stderr.write(f"… and {more} more failures")
        if as_json:
            self.stdout.write(json.dumps(result.summary, cls=DjangoJSONEncoder))
        else:
            self.stdout.write(rendered(summary_table(result.summary)))
        if result.failed or result.failures:
            raise SystemExit(FAILED)

    def refuse(self, message: str) -> NoReturn:
        """Ends the command as badly used: nothing was done."""
        raise CommandError(message, returncode=BAD_USAGE)

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[..., None]]:
        """A progress bar on stderr; call what it gives with (done, of) and, if there is one, a caption."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(what, total=None)

            def move(done: int, of: int, caption: str = "") -> None:
                bar.update(task, completed=done, total=of, description=f"{what} {caption}".strip())

            yield move


def summary_table(summary: dict[str, Any]) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summary.items():
        table.add_row(name.replace("_", " "), "–" if value is None else str(value))
    return table


def rendered(table: Table, width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
