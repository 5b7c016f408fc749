"""Management commands in processes of their own, against a sandbox process, which a test can kill and run again.

Each command runs in a fork of the test process, so that a SIGKILL is real and a start costs nothing. A run begins
with a copy of a prepared database and ends with its ledger, read without ids so that runs can be compared.
"""

import contextlib
import io
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import httpx

from tests.commands import CommandOutput, run
from tests.databases import PROJECT, DatabaseCopies
from tests.faults.ledger_state import ledger_state

FIRST_SUNDAY = datetime(2026, 3, 1, tzinfo=UTC)
SUNDAY = FIRST_SUNDAY + timedelta(weeks=1)
NO_SANDBOX = dict.fromkeys(("gamma", "clob", "openrouter", "root"), "http://127.0.0.1:9")
"""Addresses at which nothing answers."""
FORK = multiprocessing.get_context("fork")
BARRIER_S = 60
READ_S = 300
"""How long processes that start at the same instant wait for each other."""
CRASHED = 70
"""The exit code of a process in which a command raised."""
COMPLETED = (0, 1)
"""Exit codes of a command that ran to its end; 1 reports failures, such as a model that is down."""

LINE_UP = (*("openai/gpt-5.2", "deepseek/deepseek-v3.2"), *("moonshotai/kimi-k2-thinking", "qwen/qwen3-235b-a22b-2507"))
"""Four personas of the sandbox: one bets much, one answers in prose, one is slow, one is down."""

PACKAGES = ("agents", "arena_site", "cohorts", "forecast_rank", "markets", "scipy", "scoring")
"""Packages that commands import when they run."""
Step = tuple[datetime, str]
FIRST_WEEK: list[Step] = [
    (FIRST_SUNDAY, "sync_markets"),
    (FIRST_SUNDAY, "start_cohort"),
    (FIRST_SUNDAY + timedelta(minutes=5), "run_decisions"),
    (FIRST_SUNDAY + timedelta(minutes=10), "take_snapshots"),
    (FIRST_SUNDAY + timedelta(minutes=20), "open_envelopes"),
    (FIRST_SUNDAY + timedelta(hours=2), "run_forecasts --questions=2"),
    (FIRST_SUNDAY + timedelta(days=1), "check_resolutions"),
    (SUNDAY - timedelta(hours=6), "sync_markets"),
    (SUNDAY - timedelta(hours=6), "take_snapshots"),
]
SECOND_SUNDAY: list[Step] = [
    (SUNDAY, "sync_markets"),
    (SUNDAY, "check_resolutions"),
    (SUNDAY, "start_cohort"),
    (SUNDAY, "take_snapshots"),
    (SUNDAY + timedelta(minutes=5), "run_decisions"),
    (SUNDAY + timedelta(minutes=10), "take_snapshots"),
    (SUNDAY + timedelta(minutes=20), "open_envelopes"),
    (SUNDAY + timedelta(hours=2), "run_forecasts --questions=2"),
    (SUNDAY + timedelta(hours=6), "run_decisions"),
    (SUNDAY + timedelta(hours=8), "run_forecasts --questions=2"),
    (SUNDAY + timedelta(hours=12), "take_snapshots"),
]


@dataclass(frozen=True)
class Kill:
    """When a command is killed: at the n-th passing of a fail point."""

    point: str
    count: int = 1


class FailpointRecorder:
    """Stands in for the name of a fail point and writes to a file each name that it is compared with."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __eq__(self, point: object) -> bool:
        with self.file.open("a") as notes:
            notes.write(f"{point}\n")
        return False

    def passed(self) -> list[str]:
        """Each name once, in the order in which they were passed."""
        return list(dict.fromkeys(self.file.read_text().split())) if self.file.exists() else []


@dataclass(frozen=True)
class UndisturbedRun:
    """A Sunday without kills: its ledger, and the fail points that each command passed."""

    ledger: dict[str, Any]
    passed: list[list[str]]


@contextlib.contextmanager
def sandbox(seed: int = 3, weeks: int = 0) -> Iterator[dict[str, str]]:
    """A sandbox process with markets for so many weeks; yields its addresses."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    command = [sys.executable, "manage.py", "sandbox", "--seed", str(seed), "--weeks", str(weeks)]
    process = subprocess.Popen(command, cwd=PROJECT, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)


class CommandRunner:
    """Commands against a sandbox and a database, each in a process of its own."""

    def __init__(
        self,
        addresses: dict[str, str],
        database: DatabaseCopies,
        unblock: Callable[[], object],
        migrated: str | None = None,
    ) -> None:
        self.addresses, self.database, self.unblock = addresses, database, unblock
        self.template = migrated
        self.clock = httpx.Client()
        import_commands()

    def migrated(self, line_up: Sequence[str] = ()) -> str:
        """The name of a new, migrated database, whose active models are these, or all."""
        name = self.database.fresh(self.template)
        if self.template is None:
            assert self._child(name, lambda: _command("migrate", None)) in COMPLETED
        if line_up:
            self._child(name, lambda: _begin_with(line_up))
        return name

    def prepare(self, line_up: Sequence[str] = ()) -> str:
        """The name of a database at the end of a first week, played by these models, or by all."""
        name = self.migrated(line_up)
        for at, command in FIRST_WEEK:
            self.set_clock(at)
            self.import_modules(self.read(name, partial(_imported_by, command, at)))
        return name

    def import_modules(self, modules: Sequence[str]) -> None:
        """Imports what a child has imported, so that the next ones start with it."""
        for module in modules:
            import_module(module)

    def run(self, name: str, step: Step, kill: Kill | FailpointRecorder | None = None) -> int:
        """A command's exit code; -9 if it was killed."""
        at, command = step
        self.set_clock(at)
        return self._child(name, lambda: _command(command, at), kill)

    def run_concurrently(self, name: str, step: Step, processes: int) -> list[CommandOutput]:
        """The results of one command in several processes that start it at the same instant."""
        at, command = step
        self.set_clock(at)
        start, results, imported = FORK.Barrier(processes), FORK.SimpleQueue(), FORK.SimpleQueue()
        before = {*sys.modules}

        def work() -> int:
            start.wait(BARRIER_S)
            result = _command_result(command, at)
            results.put(replace(result, stderr=result.stderr[-2000:]))  # less than a pipe holds until it is read
            if processes == 1:
                imported.put([module for module in loaded_modules() if module not in before])
            return result.code

        children = [self.start(name, work) for _ in range(processes)]
        for child in children:
            child.join()
        if not imported.empty():
            self.import_modules(imported.get())
        outputs = [results.get() for _ in children if not results.empty()]
        assert len(outputs) == processes, "a process died before it reported its result"
        return outputs

    def call(self, name: str, command: str, *arguments: str, at: datetime = SUNDAY, **options: Any) -> CommandOutput:
        """The result of a command with options."""
        result: CommandOutput = self.read(name, lambda: _command_result(command, at, *arguments, **options))
        return result

    def set_clock(self, at: datetime) -> None:
        self.clock.post(f"{self.addresses['root']}/sandbox/clock", json={"now": at.isoformat()}).raise_for_status()

    def run_undisturbed(self, prepared: str) -> UndisturbedRun:
        name, passed = self.database.fresh(prepared), list[list[str]]()
        for index, step in enumerate(SECOND_SUNDAY):
            recorder = FailpointRecorder(self.database.folder / f"passed-{index}-{uuid.uuid4().hex[:16]}")
            assert self.run(name, step, recorder) in COMPLETED
            passed.append(recorder.passed())
        return UndisturbedRun(self.ledger(name), passed)

    def run_sunday(self, prepared: str, points: Sequence[Sequence[str]]) -> tuple[dict[str, Any], list[list[str]]]:
        """The ledger after a Sunday on which each command is killed at its points in turn, and which were reached."""
        name, killed = self.database.fresh(prepared), list[list[str]]()
        for step, points_of_command in zip(SECOND_SUNDAY, points, strict=True):
            killed.append([])
            for point in points_of_command:
                if self.run(name, step, Kill(point)) == -signal.SIGKILL:
                    killed[-1].append(point)
                self._child(name, let_leases_expire)
            code = self.run(name, step)
            assert code in COMPLETED, f"{step[1]} ended with {code}"
        ledger = self.ledger(name)
        self.database.drop(name)
        return ledger, killed

    def ledger(self, name: str) -> dict[str, Any]:
        return self.read(name, ledger_state)

    def read(self, name: str, function: Callable[[], Any]) -> Any:
        """The result of a function called in a process that is connected to this database."""
        receiver, sender = FORK.Pipe(duplex=False)

        def send() -> int:
            sender.send(function())
            return 0

        child = self.start(name, send)
        sender.close()  # the child's is left, so that its death ends the wait
        if not receiver.poll(READ_S):
            child.kill()
            raise AssertionError(f"no result after {READ_S} s: the child hangs")
        result = receiver.recv()
        child.join()
        return result

    def _child(self, name: str, work: Callable[[], int], kill: Kill | FailpointRecorder | None = None) -> int:
        child = self.start(name, work, kill)
        child.join()
        assert child.exitcode is not None
        return child.exitcode

    def start(self, name: str, work: Callable[[], int], kill: Kill | FailpointRecorder | None = None) -> ForkProcess:
        """A process that is connected to this database; it ends with the code that `work` returns."""

        def main() -> None:
            try:
                self.unblock()
                connect(name, self.database, self.addresses, kill)
                code = work()
            except BaseException:
                traceback.print_exc()
                code = CRASHED
            sys.exit(code)

        child = FORK.Process(target=main)
        child.start()
        return child


def connect(
    name: str, database: DatabaseCopies, addresses: dict[str, str], kill: Kill | FailpointRecorder | None = None
) -> None:
    """Connects this process to a database and a sandbox, and arms its fail point."""
    from django.conf import settings
    from django.db import connections

    from arena_site import conf
    from foundation import failpoints

    wrapper = connections["default"]
    wrapper.connection = None  # the parent's, if it had one, is not ours to use or to close
    wrapper.in_atomic_block, wrapper.savepoint_ids, wrapper.needs_rollback = False, [], False
    wrapper.settings_dict.update(conf.database(database.address(name)))
    wrapper.settings_dict["OPTIONS"] = {
        key: value for key, value in wrapper.settings_dict["OPTIONS"].items() if key != "pool"
    }
    settings.GAMMA_BASE_URL, settings.CLOB_BASE_URL = addresses["gamma"], addresses["clob"]
    settings.OPENROUTER_BASE_URL = addresses["openrouter"]
    settings.ARENA_LLM_TRANSPORT_RETRIES = 0
    if isinstance(kill, FailpointRecorder):
        failpoints._NAME = kill
    elif kill is not None:
        failpoints._NAME, failpoints._countdown = kill.point, kill.count


def _command(name: str, at: datetime | None) -> int:
    from django.core.management import call_command

    options: dict[str, Any] = {"verbosity": 0} if at is None else {"at": at, "json": True}
    try:
        call_command(*name.split(), stdout=io.StringIO(), stderr=io.StringIO(), **options)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _command_result(name: str, at: datetime, *arguments: str, **options: Any) -> CommandOutput:
    command, *arguments_of_command = name.split()
    try:
        return run(command, at, *arguments_of_command, *arguments, **options)
    except Exception:  # the test that reads this shows it
        return CommandOutput(CRASHED, {}, traceback.format_exc())


def _imported_by(command: str, at: datetime) -> list[str]:
    """The modules loaded after a command."""
    assert _command(command, at) in COMPLETED
    return loaded_modules()


def loaded_modules() -> list[str]:
    """The modules of the project that this process has loaded, and SciPy's."""
    return [name for name in sys.modules if name.partition(".")[0] in PACKAGES]


def _begin_with(line_up: Sequence[str]) -> int:
    """Leaves these models active, and registers an agent that never answers: with one, decisions wait in envelopes."""
    from agents.models import Family
    from agents.services.registrations import register_external_agent

    Family.objects.exclude(releases__model_id__in=line_up).update(active=False)
    register_external_agent(name="Bystander", protocol="trading", at=FIRST_SUNDAY - timedelta(days=1))
    return 0


def let_leases_expire() -> int:
    """Ends the leases of killed workers, as waiting would."""
    from django.utils import timezone

    from agents.models import Decision, Elicitation

    for task in (Decision, Elicitation):
        task.objects.filter(status=task.Status.CLAIMED).update(lease_until=timezone.now())
    return 0


def import_commands() -> None:
    """Imports what the commands import, so that each fork starts at once."""
    import scipy.optimize
    import scipy.stats  # noqa: F401
    from django.core.management import get_commands, load_command_class

    for command in (
        "sync_markets",
        "start_cohort",
        "run_decisions",
        "open_envelopes",
        "check_resolutions",
        "take_snapshots",
        "run_forecasts",
    ):
        load_command_class(get_commands()[command], command)
