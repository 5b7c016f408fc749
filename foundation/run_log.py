"""The log and progress of the run under way, stored line by line while it goes on, so that its page can follow it."""

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from django.db import Error, connection

INFO, WARNING, ERROR = "info", "warning", "error"
MAX_LINES = 500
"""Lines that are stored of a run; of errors twice as many."""
STORE_INTERVAL_S = 0.5
"""Lines of a report come in bursts, which are stored together."""
ROW_NAMES = ("decision", "elicitation", "market", "agent")
"""Fields of a log record that name a row, the most specific first."""


class RunLog:
    """Writes lines and progress to the row of a run; what the database refuses is stored with the run's end."""

    def __init__(self, run: Any) -> None:
        self.run, self.left_out, self.stored_s = run, 0, float("-inf")

    def write(self, level: str, text: str, rows: dict[str, int] | None = None) -> None:
        if len(self.run.log) >= (2 * MAX_LINES if level == ERROR else MAX_LINES):
            self.left_out += 1
        else:
            self._append(level, text, rows)

    def store(self, *, at_once: bool = False) -> None:
        # Within a transaction the lines would be lost with it, and would hold a lock until its end.
        if connection.in_atomic_block or not (at_once or time.monotonic() - self.stored_s >= STORE_INTERVAL_S):
            return
        self.stored_s = time.monotonic()
        with suppress(Error):  # a log must not end the run that it is of
            rows = type(self.run)._base_manager.filter(pk=self.run.pk)
            rows.update(log=self.run.log, progress=self.run.progress)

    def close(self) -> None:
        """Adds how many lines were left out, for the caller to store."""
        if self.left_out:
            self._append(INFO, f"… and {self.left_out} more lines")

    def _append(self, level: str, text: str, rows: dict[str, int] | None = None) -> None:
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "text": text}
        self.run.log.append(line | ({"rows": rows} if rows else {}))


def line_texts(log: list[Any]) -> list[str]:
    """The texts of a run's lines; older runs stored nothing else."""
    return [line["text"] if isinstance(line, dict) else str(line) for line in log]


_current: ContextVar[RunLog | None] = ContextVar("run_log", default=None)


@contextmanager
def attached(run: Any) -> Iterator[RunLog]:
    """Makes `run` the run under way: lines of reports, log records and progress go to its row."""
    log = RunLog(run)
    token = _current.set(log)
    try:
        yield log
    finally:
        _current.reset(token)
        log.close()


def write(level: str, text: str, **rows: int) -> None:
    """Writes a line to the run under way, if there is one, with the rows that it concerns: `decision=12`."""
    if (log := _current.get()) is not None:
        log.write(level, text, rows)
        log.store()


def record_progress(number: int, of: int, caption: str = "") -> None:
    """Stores how far the run under way is."""
    if (log := _current.get()) is not None:
        log.run.progress = {"done": number, "of": of, "caption": caption}
        log.store()


class ReportLines(Sequence[str]):
    """The lines of a report, each of which also goes to the log of the run under way."""

    level = INFO

    def __init__(self) -> None:
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        return self._lines[place]

    def write(self, line: str, **rows: int) -> None:
        """Adds a line about these rows, and writes it to the run's log."""
        self._lines.append(line)
        write(self.level, line, **rows)

    def write_all(self, lines: Iterable[str]) -> None:
        """Adds lines; those of another report are in the run's log already."""
        if isinstance(lines, ReportLines):
            self._lines += lines
            return
        for line in lines:
            self.write(line)


class FailureLines(ReportLines):
    """The failures of a report, which go to the log as errors."""

    level = ERROR


class RunLogHandler(logging.Handler):
    """Adds the apps' log records to the run under way: each step of a task, with a link to its row."""

    def emit(self, record: logging.LogRecord) -> None:
        log = _current.get()
        # A record with a reason is a failure, which is a line of the report too.
        if log is None or vars(record).get("reason"):
            return
        fields = vars(record)
        rows = {name: fields[name] for name in ROW_NAMES if isinstance(fields.get(name), int)}
        text = " ".join(filter(None, [record.getMessage(), fields.get("model")]))
        if "family" in fields:
            text = f"{fields['family']}: {text}"
        log.write(record.levelname.lower(), text, dict(list(rows.items())[:1]))
        # At once: the next line may be an answer that takes minutes.
        log.store(at_once=True)
