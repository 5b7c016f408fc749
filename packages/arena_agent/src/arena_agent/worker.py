"""The process in which an agent runs: it is handed tasks, a line each, and gives back checked answers.

Nothing but the lines reaches it: no outcomes, no token, no address.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from arena_agent.agent import Agent
from arena_agent.answering import Answerer, CheckedAnswer
from arena_agent.loading import UnusableAgent, describe, load_agent
from arena_agent.objects import ArenaTask

START_SECONDS = 60.0
TEARDOWN_SECONDS = 5.0
"""The time that an agent has for its `teardown`."""
SECRETS = ("SECRET_KEY", "CACHE_URL", "EMAIL_URL", "POSTGRES_PASSWORD")
SECRET_BEGINNINGS = ("ARENA_", "DATABASE_")
"""Variables that the agent's process is not handed: the maker's token, and the settings of an arena."""


class AgentLate(Exception):
    """The agent did not answer in time."""


class AgentEnded(Exception):
    """The agent's process ended before it answered."""


@dataclass(frozen=True)
class AgentCard:
    """An agent's name and track, and the protocols that it plays."""

    name: str
    track: str
    forecasts: bool
    trades: bool
    version: int | None = None

    @classmethod
    def of(cls, agent: Agent | type[Agent]) -> "AgentCard":
        """The card of an agent."""
        forecasts, trades = (agent.overrides(method) or agent.overrides("answer") for method in ("forecast", "trade"))
        return cls(agent.name, agent.track, forecasts, trades, agent.version)

    def plays(self, blocks: Mapping[str, str]) -> bool:
        """True if the agent has the method that a task with these blocks asks for."""
        return self.trades if "MARKETS" in blocks else self.forecasts


class AgentProcess:
    """The process of an agent; started at its first task, and again after it ended or was late."""

    def __init__(self, file: str, *, withheld: Collection[str] = ()) -> None:
        """`withheld` names further variables of the environment that the agent is not handed."""
        self._withheld = {*SECRETS, *withheld}
        path, colon, class_name = file.partition(".py:")
        path, colon = (f"{path}.py", ":") if colon else (path, "")
        self._file = f"{Path(path).resolve()}{colon}{class_name}"
        self._process: subprocess.Popen[str] | None = None
        self._card: AgentCard | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._folder = tempfile.TemporaryDirectory(prefix="arena-agent-")

    def __enter__(self) -> "AgentProcess":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        self._folder.cleanup()

    def card(self) -> AgentCard:
        """The agent's name and what it plays. Raises UnusableAgent."""
        if self._card is None:
            self._start()
        assert self._card is not None
        return self._card

    def answer(self, line: str, seconds: float) -> CheckedAnswer:
        """The answer to the task of a line. Raises AgentLate, AgentEnded or UnusableAgent."""
        self.send(line)
        return self.receive(seconds)

    def send(self, line: str) -> None:
        """Hands a task over; more may follow before its answer is received. Raises UnusableAgent."""
        self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # `receive` finds that the process has ended
            self._process.stdin.write(line.rstrip("\n") + "\n")
            self._process.stdin.flush()

    def receive(self, seconds: float) -> CheckedAnswer:
        """The answer to the first task without one; after AgentLate or AgentEnded all others are to be sent again."""
        assert self._process is not None
        try:
            answer = self._lines.get(timeout=min(max(seconds, 0.001), threading.TIMEOUT_MAX))
        except queue.Empty:
            self.stop()
            raise AgentLate(f"the agent did not answer within {seconds:.0f} seconds") from None
        if not answer:
            code = self._process.wait()
            self.stop()
            raise AgentEnded(f"the agent's process ended with code {code}")
        return CheckedAnswer.from_json(answer)

    def _close(self) -> None:
        """Ends the process after its agent's `teardown`."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(TEARDOWN_SECONDS + 1)
        self.stop()

    def stop(self) -> None:
        """Kills the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def _start(self) -> None:
        if self._process is not None:
            return
        environment = {}
        for name, value in os.environ.items():
            if name not in self._withheld and not name.startswith(SECRET_BEGINNINGS):
                environment[name] = value
        self._lines = queue.SimpleQueue()
        self._process = subprocess.Popen(  # noqa: S603 - the agent is the caller's own
            [sys.executable, "-m", "arena_agent.worker", self._file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=environment,
            cwd=self._folder.name,
            start_new_session=True,  # an interrupt from the terminal is for the command, which then ends this process
        )
        assert self._process.stdout is not None
        threading.Thread(target=_pass_lines, args=(self._process.stdout, self._lines), daemon=True).start()
        try:
            first = self._lines.get(timeout=START_SECONDS)
        except queue.Empty:
            self.stop()
            raise UnusableAgent(f"{self._file}: it was not loaded within {START_SECONDS:.0f} seconds") from None
        hello = json.loads(first) if first else {"problem": f"{self._file}: its process ended while it was loaded"}
        if "problem" in hello:
            self.stop()
            raise UnusableAgent(hello["problem"])
        self._card = AgentCard(**hello)


def _pass_lines(pipe: IO[str], lines: "queue.SimpleQueue[str]") -> None:
    """Puts each line of a pipe into a queue, and an empty one at its end."""
    try:
        for line in pipe:
            lines.put(line)
    except ValueError:  # closed by `stop`
        pass
    lines.put("")


def main(file: str) -> int:
    """Answers the tasks of standard input; what the agent prints goes to standard error."""
    source, output = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    try:
        answerer = start_answerer(load_agent(file), file)
    except UnusableAgent as error:
        print(json.dumps({"problem": str(error)}), file=output, flush=True)
        return 2
    print(json.dumps(asdict(AgentCard.of(answerer.agent))), file=output, flush=True)
    tasks: queue.SimpleQueue[str] = queue.SimpleQueue()
    has_teardown = answerer.agent.overrides("teardown")
    threading.Thread(target=_read_tasks, args=(source, tasks, has_teardown), daemon=True).start()
    while line := tasks.get():
        print(answerer.answer(read_task(line)).to_json(), file=output, flush=True)
    answerer.teardown()
    return 0


def start_answerer(agent: Agent, name: str) -> Answerer:
    """The answerer of an agent after its `setup`. Raises UnusableAgent."""
    answerer = Answerer(agent)
    try:
        answerer.setup()
    except Exception as error:
        raise UnusableAgent(f"{name}: {type(agent).__name__}.setup failed: {describe(error)}") from error
    return answerer


def read_task(line: str) -> ArenaTask:
    """The task of a line."""
    message = json.loads(line)
    optional = {name: message.get(name) or "" for name in ("frozen_at", "system_prompt", "user_prompt")}
    return ArenaTask(id=message["task"], blocks=message["blocks"], **optional)


def _read_tasks(source: IO[str], tasks: "queue.SimpleQueue[str]", has_teardown: bool) -> None:
    """Passes the lines of the source on; soon after its end the process ends, even while the agent is at work."""
    for line in source:
        tasks.put(line)
    if has_teardown:
        tasks.put("")
        time.sleep(TEARDOWN_SECONDS)
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
