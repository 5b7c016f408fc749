"""The journal of the live loop: what was answered is on the disk before it is sent, and each reply after it came."""

import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

try:
    import fcntl
except ImportError:  # Windows has none: there two loops on one journal are not noticed
    fcntl = None  # type: ignore[assignment]


class JournalInUse(Exception):
    """Another loop writes to the journal."""


class DamagedJournal(Exception):
    """A line of the journal is not what was written; the message names it."""


@dataclass
class TaskRecord:
    """A task's record in the journal."""

    task: str
    target: dict[str, int]
    key: str = ""
    body: str | None = None
    deadline: str = ""
    status: int | None = None
    reply: dict[str, Any] | None = None
    failures: int = 0
    """How often the agent had no answer."""

    @property
    def pending(self) -> bool:
        """True if there is an answer without a reply."""
        return self.body is not None and self.status is None


class Journal:
    """An append-only file of JSON Lines; each line is on the disk when a method returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = path
        self.tasks: dict[str, TaskRecord] = {}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._lock()
            for line in self._whole_lines():
                self._apply(line)
        except BaseException:
            os.close(self._file)
            raise
        _sync_folder(path.parent)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)

    def add_answer(self, task: str, target: dict[str, int], body: str, deadline: str) -> TaskRecord:
        """Stores the answer to a task under a new key, before it is sent."""
        return self._append(
            event="answer", task=task, target=target, key=str(uuid.uuid4()), body=body, deadline=deadline
        )

    def add_reply(self, task: str, status: int, reply: dict[str, Any]) -> TaskRecord:
        """Stores the arena's reply to the answer."""
        return self._append(event="reply", task=task, status=status, reply=reply)

    def add_failure(self, task: str, target: dict[str, int], reason: str) -> TaskRecord:
        """Stores that the agent had no answer, and why."""
        return self._append(event="failure", task=task, target=target, reason=reason)

    def _append(self, **entry: Any) -> TaskRecord:
        line = json.dumps(entry | {"at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"})
        content = f"{line}\n".encode()
        while content:
            content = content[os.write(self._file, content) :]
        os.fsync(self._file)
        return self._apply(line)

    def _apply(self, line: str) -> TaskRecord:
        entry = json.loads(line)
        record = self.tasks.setdefault(entry["task"], TaskRecord(entry["task"], entry.get("target", {})))
        match entry["event"]:
            case "answer":
                record.key, record.body, record.deadline = entry["key"], entry["body"], entry["deadline"]
                record.target = entry["target"]
                record.status = record.reply = None
            case "reply":
                record.status, record.reply = entry["status"], entry["reply"]
            case "failure":
                record.failures += 1
        return record

    def _lock(self) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise JournalInUse(f"{self.path}: another loop is at work with this journal") from None

    def _whole_lines(self) -> Iterator[str]:
        """The lines so far; the last one is dropped if a kill cut it, for then nothing was sent after it."""
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end < len(content):
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        for number, line in enumerate(content[:end].splitlines(), start=1):
            try:
                json.loads(line)["task"]
            except (ValueError, KeyError, TypeError):
                raise DamagedJournal(f"{self.path}, line {number}: it is not as it was written") from None
            yield line.decode()


def read_replies(path: Path) -> list[dict[str, Any]]:
    """The replies of a journal, while a loop may be at work with it."""
    lines = path.read_bytes().split(b"\n")[:-1]
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(json.loads(line))
        except ValueError:
            raise DamagedJournal(f"{path}, line {number}: it is not as it was written") from None
    return [entry for entry in entries if entry.get("event") == "reply"]


def _sync_folder(folder: Path) -> None:
    """Puts the folder's entry of a new file on the disk."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
