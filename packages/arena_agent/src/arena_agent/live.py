"""The live loop: asks the agent for each open task once, and brings its answer to the arena whatever happens."""

import json
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from arena_agent.answering import CheckedAnswer
from arena_agent.arena_api import Arena, ArenaUnavailable, OpenTask, Reply, UnexpectedAnswer
from arena_agent.journal import Journal, TaskRecord
from arena_agent.loading import UnusableAgent
from arena_agent.worker import AgentEnded, AgentLate, AgentProcess

WAIT_SECONDS = 30
"""Of a long poll, where the arena knows them."""
POLL_SECONDS = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
MARGIN_SECONDS = 5.0
"""Of a task's time, kept for sending the answer."""
PATIENCE_SECONDS = 120.0
"""How long one round tries to reach the arena where no deadline says more."""
UNKNOWN_ENDPOINT = (404, 405)
MAX_REASON = 500

Value = TypeVar("Value")
Show = Callable[[dict[str, Any]], None]


@dataclass
class LoopReport:
    """Counts of a loop."""

    answered: int = 0
    refused: int = 0
    failed: int = 0
    pending: int = 0

    @property
    def ok(self) -> bool:
        """True if every task that was tried has an accepted answer."""
        return not (self.refused or self.failed or self.pending)

    def to_json(self) -> dict[str, Any]:
        """The counts by name."""
        return asdict(self)


class LiveLoop:
    """One agent at one arena. Without a journal it is a dry run, which sends nothing."""

    def __init__(self, arena: Arena, process: AgentProcess, journal: Journal | None, show: Show) -> None:
        self._arena = arena
        self._process = process
        self._journal = journal
        self._show = show
        self._knows_wait = True
        self._tried: set[str] = set()
        self.report = LoopReport()

    def run_once(self) -> LoopReport:
        """Brings pending answers home, and answers what is open now. Raises ArenaUnavailable if nobody answers."""
        self._settle()
        tasks = with_retries(self._arena.open_tasks, PATIENCE_SECONDS)
        self._answer_all(tasks.now, tasks.trading + tasks.forecast)
        return self.report

    def run_forever(self) -> None:
        """Goes on until it is stopped; an arena that can not be reached is tried again."""
        while True:
            began = time.monotonic()
            try:
                self._settle()
                now, tasks = self._wait_for_tasks()
                self._answer_all(now, tasks)
            except ArenaUnavailable as error:
                self._show({"event": "unavailable", "reason": str(error)})
                time.sleep(max(min(error.retry_after, LONGEST_PAUSE), POLL_SECONDS))
            time.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - began)))

    def _wait_for_tasks(self) -> tuple[datetime, list[OpenTask]]:
        try:
            tasks = self._arena.open_tasks(wait=WAIT_SECONDS if self._knows_wait else None)
        except UnexpectedAnswer as error:
            if not self._knows_wait or " 400 " not in str(error):
                raise
            self._knows_wait = False
            tasks = self._arena.open_tasks()
        return tasks.now, tasks.trading + tasks.forecast

    def _answer_all(self, now: datetime, tasks: list[OpenTask]) -> None:
        """Answers the tasks that are new, the most urgent first; each gets its share of the time that is left."""
        began = time.monotonic()
        card = self._process.card()
        new = [task for task in tasks if card.plays(task.blocks) and not self._is_done(task)]
        new.sort(key=lambda task: task.deadline)
        for index, task in enumerate(new):
            seconds = (task.deadline - now).total_seconds() - (time.monotonic() - began)
            self._tried.add(task.id)
            self._answer(
                task, until=time.monotonic() + seconds, seconds=(seconds - MARGIN_SECONDS) / (len(new) - index)
            )

    def _is_done(self, task: OpenTask) -> bool:
        record = self._journal.tasks.get(task.id) if self._journal else None
        return task.id in self._tried or (record is not None and bool(record.body or record.failures))

    def _answer(self, task: OpenTask, *, until: float, seconds: float) -> None:
        try:
            if seconds <= 0:
                raise AgentLate("the task was found too late for an answer")
            answer = self._process.answer(_task_line(task), seconds)
        except AgentLate as error:
            self._fail(task, "late", str(error))
            return
        except (AgentEnded, UnusableAgent) as error:  # unusable: it could not be started again
            self._fail(task, "raised", str(error))
            return
        if answer.body is None:
            self._fail(task, "raised" if answer.raised else "refused", "; ".join(answer.faults) or "no answer")
            return
        if self._journal is None:
            self._show_dry_run(task, answer)
            return
        record = self._journal.add_answer(task.id, task.target, answer.body, task.deadline.isoformat())
        if answer.faults:
            kind = "raised" if answer.raised else "refused"
            self._journal.add_failure(task.id, task.target, kind, "; ".join(answer.faults)[:MAX_REASON])
        self._send(record, until - time.monotonic())
        self._report_failures(record)

    def _show_dry_run(self, task: OpenTask, answer: CheckedAnswer) -> None:
        assert answer.body is not None
        self.report.answered += 1
        self._show({"event": "answer", "task": task.id, "answer": json.loads(answer.body), "faults": answer.faults})

    def _fail(self, task: OpenTask, kind: str, reason: str) -> None:
        self.report.failed += 1
        self._show({"event": "failure", "task": task.id, "kind": kind, "reason": reason})
        if self._journal is not None:
            self._report_failures(self._journal.add_failure(task.id, task.target, kind, reason[:MAX_REASON]))

    def _settle(self) -> None:
        """Sends the answers and reports again that have no reply yet."""
        if self._journal is None:
            return
        self.report.pending = 0
        for record in list(self._journal.tasks.values()):
            if record.pending:
                seconds = (datetime.fromisoformat(record.deadline) - datetime.now(UTC)).total_seconds()
                self._send(record, min(max(seconds, 0.0), PATIENCE_SECONDS))
            self._report_failures(record)

    def _send(self, record: TaskRecord, seconds: float) -> None:
        """Sends a stored answer, again and again while there is time, and stores the reply."""
        assert self._journal is not None
        assert record.body is not None
        body = record.body
        try:
            reply = with_retries(lambda: self._arena.submit(record.target, record.key, body), seconds)
        except ArenaUnavailable as error:
            self.report.pending += 1
            self._show({"event": "pending", "task": record.task, "reason": str(error)})
            return
        self._journal.add_reply(record.task, reply.status, reply.body)
        if reply.status == 201:
            self.report.answered += 1
            self._show({"event": "answered", "task": record.task, "reply": reply.body})
        else:
            self.report.refused += 1
            self._show({"event": "refused", "task": record.task, "status": reply.status, "reason": reply.detail})

    def _report_failures(self, record: TaskRecord) -> None:
        """Reports the failures of a task that were not yet; an arena without that address is left in peace."""
        assert self._journal is not None
        for failure in record.failures:
            if failure["reported"]:
                continue
            key, kind, reason = failure["key"], failure["kind"], failure["reason"]
            try:
                reply = self._arena.report(record.target, key, kind, reason)
            except ArenaUnavailable as error:
                self._show({"event": "unreported", "task": record.task, "reason": str(error)})
                continue
            except UnexpectedAnswer:  # an arena that knows no reports answers with a page
                reply = Reply(status=404, body={})
            self._journal.add_report(record.task, key, reply.status)
            if reply.status >= 400 and reply.status not in UNKNOWN_ENDPOINT:
                self._show({"event": "unreported", "task": record.task, "reason": f"{reply.status} {reply.detail}"})


def with_retries(request: Callable[[], Value], seconds: float) -> Value:
    """The result of a request, made at least once and again after each fault that may pass, for some seconds."""
    until, pause = time.monotonic() + seconds, FIRST_PAUSE
    while True:
        try:
            return request()
        except ArenaUnavailable as error:
            wait = max(pause * random.uniform(0.5, 1.5), error.retry_after)
            if time.monotonic() + wait >= until:
                raise
            time.sleep(wait)
            pause = min(pause * 2, LONGEST_PAUSE)


def _task_line(task: OpenTask) -> str:
    """The task as the agent's process is handed it."""
    line = {
        "task": task.id,
        "frozen_at": task.frozen_at.isoformat(),
        "blocks": task.blocks,
        "system_prompt": task.system_prompt,
        "user_prompt": task.user_prompt,
    }
    return json.dumps(line)
