"""The live loop: asks the agent for each open task once, and brings its answer to the arena whatever happens."""

import json
import logging
import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from arena_agent.answering import CheckedAnswer
from arena_agent.arena_api import Arena, ArenaUnavailable, OpenTask, OpenTasks
from arena_agent.in_process import AgentThread
from arena_agent.journal import Journal, TaskRecord
from arena_agent.loading import UnusableAgent
from arena_agent.worker import AgentEnded, AgentLate, AgentProcess

POLL_SECONDS = 15.0
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
LONGEST_RETRY_PAUSE = 600.0
"""Between two tries of a task at which the agent failed; the first pause is `FIRST_PAUSE`, each next one twice it."""
MARGIN_SECONDS = 5.0
"""Of a task's time, kept for sending the answer."""
PATIENCE_SECONDS = 120.0
"""How long one round tries to reach the arena, or to get an answer of the agent, where no deadline says more."""
MAX_REASON = 500
log = logging.getLogger("arena_agent")

Value = TypeVar("Value")
Show = Callable[[dict[str, Any]], None]


@dataclass
class LoopReport:
    """Counts of a loop, and the dollars that the agent says it spent."""

    answered: int = 0
    refused: int = 0
    failed: int = 0
    pending: int = 0
    cost_usd: float = 0.0

    @property
    def ok(self) -> bool:
        """True if every task that was tried has an accepted answer."""
        return not (self.refused or self.failed or self.pending)

    def to_json(self) -> dict[str, Any]:
        """The counts by name."""
        return asdict(self)

    def __str__(self) -> str:
        """The counts in a line."""
        counts = [f"{count} {name}" for name, count in asdict(self).items() if name != "cost_usd"]
        return ", ".join(counts + ([f"{self.cost_usd:.4f} dollars spent"] if self.cost_usd else []))


@dataclass
class FailedTask:
    """A task at which the agent failed, and when it is tried again."""

    pause: float = FIRST_PAUSE
    next_try: float = 0.0

    def postpone(self) -> None:
        """Sets the time of the next try."""
        self.next_try = time.monotonic() + self.pause * random.uniform(0.5, 1.5)
        self.pause = min(self.pause * 2, LONGEST_RETRY_PAUSE)


class LiveLoop:
    """One agent at one arena. Without a journal it is a dry run, which sends nothing."""

    def __init__(
        self,
        arena: Arena,
        agent: AgentProcess | AgentThread,
        journal: Journal | None,
        show: Show,
        *,
        replace: bool = False,
    ) -> None:
        """With `replace`, tasks that have an answer and are still open are answered anew, once."""
        self._arena = arena
        self._agent = agent
        self._journal = journal
        self._show = show
        self._replace = replace
        self._answered: set[str] = set()
        self._failed: dict[str, FailedTask] = {}
        self.report = LoopReport()

    def run_once(self, patience: float = PATIENCE_SECONDS) -> LoopReport:
        """Brings pending answers home, and answers what is open now; a failed task is tried again for some seconds.

        Raises ArenaUnavailable if nobody answers.
        """
        until = time.monotonic() + patience
        while True:
            wait = self._play_round(with_retries)
            if self._journal is None or wait is None or time.monotonic() + wait >= until:
                return self.report
            time.sleep(wait)

    def run_forever(self, seconds: float | None = None) -> LoopReport:
        """Goes on until it is stopped, or for some seconds; an arena that can not be reached is tried again."""
        until = math.inf if seconds is None else time.monotonic() + seconds
        while time.monotonic() < until:
            began, wait = time.monotonic(), None
            try:
                wait = self._play_round(lambda request, _: request())
            except ArenaUnavailable as error:
                self._show({"event": "unavailable", "reason": str(error)})
                time.sleep(max(min(error.retry_after, LONGEST_PAUSE), POLL_SECONDS))
            pause = POLL_SECONDS - (time.monotonic() - began)
            time.sleep(max(0.0, min(pause, until - time.monotonic(), pause if wait is None else wait)))
        return self.report

    def _play_round(self, request: Callable[[Callable[[], OpenTasks], float], OpenTasks]) -> float | None:
        """Settles what is pending and answers what is open; returns the seconds until a failed task is tried again."""
        self._settle()
        tasks = request(self._arena.open_tasks, PATIENCE_SECONDS)
        open_tasks = tasks.trading + tasks.forecast
        log.debug("%d tasks are open", len(open_tasks))
        self._answer_all(tasks.now, open_tasks)
        names = {task.id for task in open_tasks}
        waits = [failed.next_try for name, failed in self._failed.items() if name in names]
        return max(0.0, min(waits) - time.monotonic()) if waits else None

    def _answer_all(self, now: datetime, tasks: list[OpenTask]) -> None:
        """Answers the tasks without an answer, the most urgent first; each gets its share of the time that is left."""
        began = time.monotonic()
        card = self._agent.card()
        new = [task for task in tasks if card.plays(task.blocks) and self._is_due(task)]
        new.sort(key=lambda task: task.deadline)
        for index, task in enumerate(new):
            seconds = (task.deadline - now).total_seconds() - (time.monotonic() - began)
            share = (seconds - MARGIN_SECONDS) / (len(new) - index)
            self._answer(task, until=time.monotonic() + seconds, seconds=share)

    def _is_due(self, task: OpenTask) -> bool:
        if task.id in self._answered:
            return False
        record = self._journal.tasks.get(task.id) if self._journal else None
        has_answer = task.state == "answered" or (record is not None and record.body is not None)
        if has_answer and not self._replace:
            return False
        failed = self._failed.get(task.id)
        return failed is None or failed.next_try <= time.monotonic()

    def _answer(self, task: OpenTask, *, until: float, seconds: float) -> None:
        log.info("asking the agent about %s, %.0f s", task.id, seconds)
        try:
            if seconds <= 0:
                raise AgentLate("the task was found too late for an answer")
            answer = self._agent.answer(_task_line(task), seconds)
        except (AgentLate, AgentEnded, UnusableAgent) as error:  # unusable: it could not be started again
            self._fail(task, str(error))
            return
        self.report.cost_usd += answer.cost_usd
        if answer.body is None:
            self._fail(task, "; ".join(answer.faults) or "no answer")
            return
        self._answered.add(task.id)
        if self._failed.pop(task.id, None):
            self.report.failed -= 1
        if self._journal is None:
            self._show_dry_run(task, answer)
            return
        if answer.faults:
            self._show({"event": "left out", "task": task.id, "reason": "; ".join(answer.faults)[:MAX_REASON]})
        record = self._journal.add_answer(task.id, task.target, answer.body, task.deadline.isoformat())
        self._send(record, until - time.monotonic())

    def _show_dry_run(self, task: OpenTask, answer: CheckedAnswer) -> None:
        assert answer.body is not None
        self.report.answered += 1
        self._show({"event": "answer", "task": task.id, "answer": json.loads(answer.body), "faults": answer.faults})

    def _fail(self, task: OpenTask, reason: str) -> None:
        """Notes that a task has no answer yet, and when it is tried again."""
        self._show({"event": "failure", "task": task.id, "reason": reason})
        if task.id not in self._failed:
            self.report.failed += 1
        self._failed.setdefault(task.id, FailedTask()).postpone()
        if self._journal is not None:
            self._journal.add_failure(task.id, task.target, reason[:MAX_REASON])

    def _settle(self) -> None:
        """Sends the answers again that have no reply yet."""
        if self._journal is None:
            return
        self.report.pending = 0
        for record in list(self._journal.tasks.values()):
            if record.pending:
                seconds = (datetime.fromisoformat(record.deadline) - datetime.now(UTC)).total_seconds()
                self._send(record, min(max(seconds, 0.0), PATIENCE_SECONDS))

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
            log.warning("%s; again in %.1f s", error, wait)
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
