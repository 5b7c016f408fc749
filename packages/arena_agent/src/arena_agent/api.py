"""`evaluate` and `run`, as functions for a notebook; the commands of the same names call them."""

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from arena_agent.access import find_access, journal_path
from arena_agent.arena_api import Arena, RegisteredAgent
from arena_agent.download import open_dataset
from arena_agent.evaluation import evaluate_on
from arena_agent.in_process import AnyAgent, open_agent
from arena_agent.journal import Journal
from arena_agent.live import PATIENCE_SECONDS, LiveLoop, LoopReport, with_retries
from arena_agent.loading import UnusableAgent
from arena_agent.reports import EvaluationReport
from arena_agent.worker import AgentCard


class Terminated(KeyboardInterrupt):
    """The process was asked to end."""


def evaluate(
    agent: AnyAgent,
    data: str | Path = "latest",
    *,
    url: str | None = None,
    condition: str = "",
    workers: int = 1,
    timeout: float = 900.0,
    out: str | Path | None = None,
    progress: Callable[[int], None] = lambda count: None,
) -> EvaluationReport:
    """The report of an agent on a dataset: a folder, an address, or a name at the arena of `url` or of the login.

    Writes `report.json` and `forecasts.csv` into `out`, where it is given. Raises UnusableAgent, InvalidDataset,
    DownloadFailed or NothingToScore.
    """
    dataset = open_dataset(str(data), url)
    with tempfile.TemporaryDirectory(prefix="arena-agent-") as scratch:
        return evaluate_on(
            agent,
            dataset,
            Path(out or scratch),
            condition=condition,
            workers=workers,
            seconds=timeout,
            progress=progress,
        )


def run(
    agent: AnyAgent,
    *,
    url: str | None = None,
    once: bool = False,
    dry_run: bool = False,
    replace: bool = False,
    minutes: float | None = None,
    patience: float = PATIENCE_SECONDS,
    journal: str | Path | None = None,
    show: Callable[[dict[str, Any]], None] = print,
) -> LoopReport:
    """Answers the arena's open tasks, once or until it is stopped; returns the counts.

    Raises AccessDenied, InvalidAddress, UnusableAgent, ArenaUnavailable, UnexpectedAnswer, JournalInUse or
    DamagedJournal.
    """
    with ExitStack() as stack:
        access = find_access(url)
        arena = stack.enter_context(Arena(access.url, access.token))
        runner = open_agent(agent)
        stack.enter_context(runner)
        card = runner.card()
        check_registration(card, with_retries(arena.registration, PATIENCE_SECONDS))
        path = Path(journal or journal_path(access.url, card.name))
        answers = None if dry_run else stack.enter_context(Journal(path))
        loop = LiveLoop(arena, runner, answers, show, replace=replace)
        stack.enter_context(_termination())
        try:
            if once or dry_run:
                return loop.run_once(patience)
            return loop.run_forever(None if minutes is None else minutes * 60)
        except Terminated:
            if once:
                raise
            return loop.report


def check_registration(card: AgentCard, registration: RegisteredAgent) -> None:
    """Checks that an agent declares the track and the version that the arena has registered. Raises UnusableAgent."""
    if card.track != registration.track:
        raise UnusableAgent(
            f"{card.name} declares the track {card.track}; {registration.slug} is registered for {registration.track}"
        )
    if card.version not in (None, registration.version):
        raise UnusableAgent(
            f"{card.name} declares version {card.version}; of {registration.slug}, version {registration.version} "
            "is registered"
        )


@contextmanager
def _termination() -> Iterator[None]:
    """Raises Terminated in the main thread at SIGTERM."""

    def terminate(number: int, frame: FrameType | None) -> None:
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
