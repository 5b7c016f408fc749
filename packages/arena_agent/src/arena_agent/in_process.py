"""An agent in a thread of this process: a class of a notebook, which another process could not load."""

import queue
import threading
from pathlib import Path
from types import TracebackType

from arena_agent.agent import Agent
from arena_agent.answering import CheckedAnswer
from arena_agent.loading import UnusableAgent, check_class, describe
from arena_agent.worker import (
    TEARDOWN_SECONDS,
    AgentCard,
    AgentEnded,
    AgentLate,
    AgentProcess,
    read_task,
    start_answerer,
)

AnyAgent = str | Path | Agent | type[Agent]
"""FILE or FILE:CLASS, a class of agents, or one of its objects."""


class AgentThread:
    """The thread of an agent, with the methods of `AgentProcess`; it can not be killed, only left alone."""

    def __init__(self, agent: Agent | type[Agent]) -> None:
        self._agent = agent
        self._thread: threading.Thread | None = None
        self._tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[CheckedAnswer | UnusableAgent | AgentEnded] = queue.SimpleQueue()

    def __enter__(self) -> "AgentThread":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        thread = self._thread
        self.stop()
        if thread is not None:
            thread.join(TEARDOWN_SECONDS)

    def card(self) -> AgentCard:
        """The agent's name and what it plays. Raises UnusableAgent."""
        agent = self._agent if isinstance(self._agent, type) else type(self._agent)
        check_class(agent, agent.__module__)
        return AgentCard.of(agent)

    def answer(self, line: str, seconds: float) -> CheckedAnswer:
        """The answer to the task of a line. Raises AgentLate, AgentEnded or UnusableAgent."""
        self.send(line)
        return self.receive(seconds)

    def send(self, line: str) -> None:
        """Hands a task over; more may follow before its answer is received."""
        if self._thread is None:
            self._tasks, self._answers = queue.SimpleQueue(), queue.SimpleQueue()
            self._thread = threading.Thread(target=self._work, args=(self._tasks, self._answers), daemon=True)
            self._thread.start()
        self._tasks.put(line)

    def receive(self, seconds: float) -> CheckedAnswer:
        """The answer to the first task without one; after AgentLate or AgentEnded all others are to be sent again."""
        try:
            answer = self._answers.get(timeout=min(max(seconds, 0.001), threading.TIMEOUT_MAX))
        except queue.Empty:
            self.stop()
            raise AgentLate(f"the agent did not answer within {seconds:.0f} seconds") from None
        if isinstance(answer, UnusableAgent | AgentEnded):
            self.stop()
            raise answer
        return answer

    def stop(self) -> None:
        """Lets the thread end after the task at hand."""
        if self._thread is not None:
            self._tasks.put("")
        self._thread = None

    def _work(
        self, tasks: "queue.SimpleQueue[str]", answers: "queue.SimpleQueue[CheckedAnswer | UnusableAgent | AgentEnded]"
    ) -> None:
        try:
            agent = self._agent() if isinstance(self._agent, type) else self._agent
            answerer = start_answerer(agent, type(agent).__module__)
        except UnusableAgent as error:
            answers.put(error)
            return
        except Exception as error:
            answers.put(UnusableAgent(f"the agent can not be made: {describe(error)}"))
            return
        try:
            while line := tasks.get():
                answers.put(answerer.answer(read_task(line)))
        except BaseException as error:  # SystemExit, which would end a process
            answers.put(AgentEnded(f"the agent's thread ended: {describe(error)}"))
            return
        answerer.teardown()


def open_agent(agent: AnyAgent) -> AgentProcess | AgentThread:
    """A process for the agent of a file, a thread for a class or an object."""
    return AgentProcess(str(agent)) if isinstance(agent, str | Path) else AgentThread(agent)
