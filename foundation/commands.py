"""Base of the management commands: `--at`, `--json`, a recorded run, a summary and an exit code."""

import argparse
import io
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from django.core.management.base import BaseCommand, CommandError
from django.core.serializers.json import DjangoJSONEncoder
from django.db import DatabaseError, OperationalError, ProgrammingError
from django.utils import timezone

from foundation import clock, run_log
from foundation.heartbeats import beat
from foundation.models import Run
from foundation.services.runs import alert_failed_run, begin_run, clear_failed_run, mark_lost_runs, recorders

if TYPE_CHECKING:
    from rich.table import Table

FAILED, BAD_USAGE = 1, 2
FAILURES_SHOWN = 20
LABELS = {"replay": "past instant, stored prices"}

log = logging.getLogger(__name__)


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
    """The outcome of a command: its summary, log lines and failures. Any failure makes the exit code 1.

    `alerted` is how many of the failures have an alert of their own.
    """

    summary: dict[str, Any]
    log: Sequence[str] = ()
    failures: Sequence[str] = ()
    failed: bool = False
    alerted: int = 0
    code: int = 0
    """The exit code where nothing failed."""


class ArenaCommand(BaseCommand):
    """A command for an instant. Subclasses implement `perform` and may add arguments."""

    stealth_options = ("live",)
    """`live`: an instant is given, and the run is one of the present all the same, as a job's is."""
    leaves_run = True
    """Whether an invocation is recorded as a Run, unless `records_run` says otherwise of some."""
    raises_alert = False
    """Whether a failure is an alert, until the next success: of every job's command."""
    can_wait = False
    """Whether a failure harms nothing before the morning."""
    runs_alone: dict[str, Any] | None = None
    """For a command of which one run at a time is enough: the summary of an invocation that finds another at work."""

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument(
            "--at", type=parse_instant, help="the instant to run for, ISO-8601 with a zone (default: now)"
        )
        parser.add_argument("--json", action="store_true", help="print the summary as one line of JSON")

    def perform(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        raise NotImplementedError

    def is_live(self, options: dict[str, Any]) -> bool:
        """True if what is written is dated by the clock, not by `--at`."""
        return options["at"] is None or bool(options.get("live"))

    def records_run(self, options: dict[str, Any]) -> bool:
        """True if this invocation is recorded as a Run."""
        return self.leaves_run

    def covers_all(self, options: dict[str, Any]) -> bool:
        """True if a success of this invocation shows that an earlier failure is mended."""
        return True

    def handle(self, *args: Any, **options: Any) -> None:
        if options["at"] and clock.is_ahead(options["at"]):
            minutes = clock.TOLERANCE // timedelta(minutes=1)
            self.refuse(f"--at {options['at']:%Y-%m-%dT%H:%M:%SZ} is more than {minutes} minutes ahead of the clock")
        try:
            if self.records_run(options):
                present = self._present()
                result = self._record(options["at"] or present, options)
            else:
                result = self.perform(options["at"] or clock.now(), options)
        except (OperationalError, ProgrammingError) as error:
            line = str(error).strip().splitlines()[0]
            raise CommandError(f"database: {line} (is it reachable, and migrated?)", returncode=FAILED) from error
        self._report(result, as_json=options["json"])

    def _present(self) -> datetime:
        """The present by the database's clock; refuses on a machine that would record what is ahead of it."""
        try:
            return clock.recording_now()
        except clock.ClockAhead as error:
            self.refuse(str(error))

    def _record(self, at: datetime, options: dict[str, Any]) -> CommandResult:
        """Performs the command as a recorded run, and raises or clears its alert."""
        mark_lost_runs(now=timezone.now())
        kind = type(self).__module__.rpartition(".")[2]
        run, is_new = begin_run(
            kind,
            at,
            alone=self.runs_alone is not None,
            now=timezone.now(),
            raises_alert=self.raises_alert,
            can_wait=self.can_wait,
        )
        if not is_new:
            self.stderr.write(f"skipped: another {kind} has been at work since {run.started_at:%Y-%m-%d %H:%M:%S} UTC")
            return CommandResult(dict(self.runs_alone or {}))
        with Run.objects.recording(run):
            try:
                result = self.perform(at, options)
            except CommandError:
                raise
            except (Exception, SystemExit) as error:  # a SystemExit is a job's time limit
                self._alert(run, [str(error) or type(error).__name__], at)
                raise
            for record in recorders:
                record()
            run.summary = result.summary
            # Lines of a report were written when they came; those of plain lists are written now.
            run_log.FailureLines().write_all(result.failures)
            run_log.ReportLines().write_all(result.log)
            run.error = "\n".join(result.failures[:FAILURES_SHOWN])
            if result.failed or result.failures:
                run.status = Run.Status.FAILED
            if len(result.failures) > result.alerted or (result.failed and not result.failures):
                self._alert(run, result.failures or result.log, at)
            elif self.raises_alert and self.covers_all(options):
                clear_failed_run(run, at=at)
        return result

    def _alert(self, run: Run, failures: Sequence[str], at: datetime) -> None:
        if not self.raises_alert:
            return
        try:
            alert_failed_run(run, failures, at=at)
        except DatabaseError as error:  # reporting the failure must not hide it
            log.warning("no alert could be raised for %s: %s", run.kind, error)

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
        if result.code:
            raise SystemExit(result.code)

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

            def update(number: int, of: int, caption: str = "") -> None:
                beat()
                bar.update(task, completed=number, total=of, description=f"{title} {caption}".strip())
                run_log.record_progress(number, of, caption)

            yield update


def summary_table(summary: dict[str, Any]) -> "Table":
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in summary.items():
        table.add_row(figure_label(name), figure_text(value))
    return table


def figure_label(name: str) -> str:
    """The words for a figure of a summary."""
    return LABELS.get(name, name.replace("_", " "))


def figure_text(value: Any) -> str:
    """A figure of a summary as an operator reads it."""
    if value is None:
        return "–"
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


def score_text(value: float | None, form: str = ".4f") -> str:
    """A score as tables show it, never as "-0.0000"."""
    return "–" if value is None else f"{round(value, 4) + 0:{form}}"


def table_text(table: "Table", width: int = 110) -> str:
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
