"""A harness that plays a Sunday by the real commands in processes of their own, kills them, and runs them again.

The sandbox is a second process. Each command runs in a fork of this one, so that a SIGKILL is a real one and a
start costs nothing. A round begins from a copy of one prepared database and ends with the books read in an order
that does not depend on ids: equal books mean that nobody can tell what died.
"""

import contextlib
import io
import json
import os
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.databases import postgres_url

ROOT = Path(__file__).resolve().parents[1]
ON_POSTGRES = os.environ.get("ARENA_TESTS_ON") == "postgres"
FIRST_SUNDAY = datetime(2026, 3, 1, tzinfo=UTC)
SUNDAY = FIRST_SUNDAY + timedelta(weeks=1)
NOBODY = dict.fromkeys(("gamma", "clob", "openrouter", "root"), "http://127.0.0.1:9")
"""The addresses of no sandbox."""
FAILED_OR_FINE = (0, 1)
"""A run that reports failures (a model that is down) has ended as it should."""

LINE_UP = (
    *("openai/gpt-5.2", "deepseek/deepseek-v3.2"),
    *("moonshotai/kimi-k2-thinking", "qwen/qwen3-235b-a22b-2507"),
)
"""Who plays the Sundays that are killed: one that bets much, one in prose, one that thinks, one that is down."""

Step = tuple[datetime, str]
PREPARED: list[Step] = [
    (FIRST_SUNDAY, "sync_markets"),
    (FIRST_SUNDAY, "start_cohort"),
    (FIRST_SUNDAY + timedelta(minutes=5), "run_decisions"),
    (FIRST_SUNDAY + timedelta(minutes=10), "take_snapshots"),
    (FIRST_SUNDAY + timedelta(hours=2), "run_forecasts --questions=2"),
    (FIRST_SUNDAY + timedelta(days=1), "check_resolutions"),
    (SUNDAY - timedelta(hours=6), "sync_markets"),
    (SUNDAY - timedelta(hours=6), "take_snapshots"),
]
PLAYED: list[Step] = [
    (SUNDAY, "sync_markets"),
    (SUNDAY, "check_resolutions"),
    (SUNDAY, "start_cohort"),
    (SUNDAY, "take_snapshots"),
    (SUNDAY + timedelta(minutes=5), "run_decisions"),
    (SUNDAY + timedelta(hours=2), "run_forecasts --questions=2"),
    (SUNDAY + timedelta(hours=6), "run_decisions"),
    (SUNDAY + timedelta(hours=8), "run_forecasts --questions=2"),
    (SUNDAY + timedelta(hours=12), "take_snapshots"),
]


@dataclass(frozen=True)
class Death:
    """When a command dies: at the n-th passing of a fail point, or after some seconds."""

    point: str = ""
    count: int = 1
    after_s: float = 0


class Noting:
    """Stands in for the name of a fail point: equals none, and notes in a file each that it is compared with."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __eq__(self, point: object) -> bool:
        with self.file.open("a") as notes:
            notes.write(f"{point}\n")
        return False

    def passed(self) -> set[str]:
        return set(self.file.read_text().split()) if self.file.exists() else set()


@dataclass(frozen=True)
class Quiet:
    """A Sunday on which nobody died: its books, the database as each command found it, the points each passed."""

    books: dict[str, Any]
    found: list[str]
    passed: list[set[str]]

    def first(self, point: str) -> int:
        """The command before which nobody can die of this point."""
        places = [index for index, points in enumerate(self.passed) if point in points]
        assert places, f"nothing reaches {point}"
        return places[0]


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, its summary, what it complained of."""

    code: int
    summary: dict[str, Any]
    complaint: str


class Database:
    """One prepared database and the copies that rounds play on."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.made = url, folder, list[str]()

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        """Leaves a server as it was found; a folder is its owner's to clear."""
        if self.is_postgres:
            for name in self.made:
                self.drop(name)

    @property
    def is_postgres(self) -> bool:
        return self.url.startswith("postgres")

    def address(self, name: str) -> str:
        """The DATABASE_URL of one of its databases."""
        if not self.is_postgres:
            return f"sqlite:///{name}"
        server, mark, options = self.url.partition("?")
        return f"{server.rpartition('/')[0]}/{name}{mark}{options}"

    def fresh(self, template: str | None = None) -> str:
        """The name of a new database: empty, or a copy of `template`."""
        if self.is_postgres:
            name = f"arena_kills_{uuid.uuid4().hex[:16]}"
            self.made.append(name)
            with psycopg.connect(self.url, autocommit=True) as server:
                server.execute(f'CREATE DATABASE "{name}"' + (f' TEMPLATE "{template}"' if template else ""))
            return name
        path = self.folder / f"{uuid.uuid4().hex[:16]}.sqlite3"
        if template:
            # Not by copying the file: what children wrote last may still stand in the log beside it.
            with (
                contextlib.closing(sqlite3.connect(template)) as source,
                contextlib.closing(sqlite3.connect(path)) as to,
            ):
                source.backup(to)
        return str(path)

    def drop(self, name: str) -> None:
        if self.is_postgres:
            with psycopg.connect(self.url, autocommit=True) as server:
                server.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        else:
            for path in Path(name).parent.glob(f"{Path(name).name}*"):
                path.unlink()


@contextlib.contextmanager
def sandbox(seed: int = 3) -> Iterator[dict[str, str]]:
    """A sandbox process; yields its addresses."""
    env = {**os.environ, "DJANGO_SETTINGS_MODULE": "arena_site.settings"}
    command = [sys.executable, "manage.py", "sandbox", "--seed", str(seed)]
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(10)


class Arena:
    """Runs commands against a sandbox and a database, each in a process of its own."""

    def __init__(
        self,
        addresses: dict[str, str],
        database: Database,
        unblock: Callable[[], object] = lambda: None,
        migrated: str | None = None,
    ) -> None:
        self.addresses, self.database, self.unblock = addresses, database, unblock
        self.template = migrated
        self.clock = httpx.Client()
        self.deaths = 0
        warm()

    def migrated(self) -> str:
        """The name of a database in which nothing has happened yet."""
        name = self.database.fresh(self.template)
        if self.template is None:
            assert self._child(name, lambda: _command("migrate", None)) in FAILED_OR_FINE
        return name

    def prepare(self, line_up: Sequence[str] = ()) -> str:
        """The name of a database at the end of a first week, of these models alone if any are named."""
        name = self.migrated()
        if line_up:
            self._child(name, lambda: _keep_to(line_up))
        for step in PREPARED:
            self.run(name, step)
        return name

    def run(self, name: str, step: Step, death: Death | Noting | None = None) -> int:
        """A command's exit code; -9 if it was killed."""
        at, command = step
        self.set_clock(at)
        return self._child(name, lambda: _command(command, at), death)

    def run_at_once(self, name: str, step: Step, processes: int) -> list[Ended]:
        """How a command ended in each of some processes that began it at the same instant."""
        at, command = step
        self.set_clock(at)
        ready_reader, ready = os.pipe()
        go_reader, go = os.pipe()
        said_reader, said = os.pipe()

        def work() -> int:
            os.close(go)
            os.write(ready, b".")
            os.read(go_reader, 1)  # returns once the parent has closed its end
            ended = _ended(command, at)
            # Less than a pipe takes in one piece, so that no two reports mix.
            os.write(said, json.dumps([ended.code, ended.summary, ended.complaint[-2000:]]).encode() + b"\n")
            return ended.code

        children = [self._fork(name, work) for _ in range(processes)]
        os.close(said)
        os.close(ready)
        waiting = sum(len(os.read(ready_reader, 1)) for _ in children)
        os.close(go)
        with os.fdopen(said_reader) as reports:
            ends = [Ended(*json.loads(line)) for line in reports]
        for pid in children:
            os.waitpid(pid, 0)
        os.close(ready_reader)
        os.close(go_reader)
        assert len(ends) == waiting == processes, "a process died before it could say how it ended"
        return ends

    def call(self, name: str, command: str, *arguments: str, at: datetime = SUNDAY, **options: Any) -> Ended:
        """How a command with options ended."""
        ended: Ended = self.read(name, lambda: _ended(command, at, *arguments, **options))
        return ended

    def set_clock(self, at: datetime) -> None:
        self.clock.post(f"{self.addresses['root']}/sandbox/clock", json={"now": at.isoformat()}).raise_for_status()

    def quiet(self, prepared: str) -> Quiet:
        """Plays the Sunday undisturbed, and keeps what each command found."""
        name, found, passed = self.database.fresh(prepared), list[str](), list[set[str]]()
        for index, step in enumerate(PLAYED):
            found.append(self.database.fresh(name))
            noting = Noting(self.database.folder / f"passed-{index}-{uuid.uuid4().hex[:16]}")
            assert self.run(name, step, noting) in FAILED_OR_FINE
            passed.append(noting.passed())
        return Quiet(self.books(name), found, passed)

    def play(self, name: str, deaths: Callable[[int, int], Death | None], *, first: int = 0) -> dict[str, Any]:
        """Plays the Sunday; `deaths` says how the n-th try of the i-th command dies, if it does. Returns the books.

        `first` is the command to begin with, on a database as that one finds it.
        """
        for index, step in list(enumerate(PLAYED))[first:]:
            for attempt in range(20):
                code = self.run(name, step, deaths(index, attempt))
                if code != -signal.SIGKILL:
                    break
                self.deaths += 1
                self._child(name, _let_leases_expire)
            assert code in FAILED_OR_FINE, f"{step[1]} ended with {code}"
        return self.books(name)

    def books(self, name: str) -> dict[str, Any]:
        return self.read(name, _books)

    def read(self, name: str, what: Callable[[], Any]) -> Any:
        """What a function says of a database, called in a process of its own."""
        reader, writer = os.pipe()

        def write() -> int:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(what(), pipe)
            return 0

        pid = self._fork(name, write)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            said = pipe.read()
        os.waitpid(pid, 0)
        return pickle.loads(said)

    def _child(self, name: str, work: Callable[[], int], death: Death | Noting | None = None) -> int:
        pid = self._fork(name, work, death)
        if isinstance(death, Death) and death.after_s:
            time.sleep(death.after_s)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status)

    def _fork(self, name: str, work: Callable[[], int], death: Death | Noting | None = None) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            self.unblock()
            _become(name, self.database, self.addresses, death)
            code = work()
        except BaseException:  # a child must never return into the parent's code
            traceback.print_exc()
        finally:
            os._exit(code)


@contextlib.contextmanager
def arena_in(folder: Path, unblock: Callable[[], object], migrated: str) -> Iterator[Arena]:
    """An arena beside a sandbox of its own, on the kind of database that the suite runs on; nothing of it stays."""
    with sandbox() as addresses, database_in(folder) as database:
        yield Arena(addresses, database, unblock, migrated)


def database_in(folder: Path) -> Database:
    """Databases of the kind that the suite runs on."""
    return Database(postgres_url() if ON_POSTGRES else "sqlite", folder)


def _become(name: str, database: Database, addresses: dict[str, str], death: Death | Noting | None) -> None:
    """Points this fresh child at its database and at the sandbox, and arms its fail point."""
    from django.conf import settings
    from django.db import connections

    from arena_site import conf
    from markets import failpoints

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
    if isinstance(death, Noting):
        failpoints._NAME = death
    elif death is not None and death.point:
        failpoints._NAME, failpoints._left = death.point, death.count


def _command(name: str, at: datetime | None) -> int:
    from django.core.management import call_command

    options: dict[str, Any] = {"verbosity": 0} if at is None else {"at": at, "json": True}
    try:
        call_command(*name.split(), stdout=io.StringIO(), stderr=io.StringIO(), **options)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _ended(name: str, at: datetime, *arguments: str, **options: Any) -> Ended:
    from django.core.management import CommandError, call_command

    said, complained = io.StringIO(), io.StringIO()
    try:
        call_command(*name.split(), *arguments, at=at, json=True, stdout=said, stderr=complained, **options)
    except SystemExit as end:
        return Ended(int(end.code or 0), _summary(said.getvalue()), complained.getvalue())
    except CommandError as error:
        return Ended(error.returncode, {}, str(error))
    except Exception:  # whatever it is, the test that reads this shows it
        return Ended(70, {}, traceback.format_exc())
    return Ended(0, _summary(said.getvalue()), complained.getvalue())


def _summary(said: str) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(said.strip().splitlines()[-1])
    return summary


def _keep_to(line_up: Sequence[str]) -> int:
    from agents.models import Family

    Family.objects.exclude(releases__model_id__in=line_up).update(active=False)
    return 0


def _let_leases_expire() -> int:
    """What waiting for the lease of a dead worker would do."""
    from django.utils import timezone

    from agents.models import Decision, Elicitation

    for task in (Decision, Elicitation):
        task.objects.filter(status=task.Status.CLAIMED).update(lease_until=timezone.now())
    return 0


def _books() -> dict[str, Any]:
    """Everything that must not depend on who died when, by names instead of ids."""
    from agents.models import (
        Chain,
        ChainLink,
        Decision,
        Elicitation,
        Forecast,
        JournalEntry,
        ModelCall,
        Position,
        Settlement,
        Trade,
    )
    from agents.services.audit import verify_ledger
    from agents.services.chain import verify_chain
    from agents.services.forecast_audit import verify_forecasts
    from markets.models import Market, QuestionOption, QuestionSet, Universe
    from scoring.models import BrierScore, ForecastScore, Leaderboard, Snapshot

    who = ("agent__cohort__number", "agent__family__slug")
    what = ("market__external_id", "outcome__side")
    asked = ("sheet__question_set__day", "sheet__question_set__part", "sheet__number", "sheet__arm")
    judged = ModelCall.objects.filter(result__in=["answered", "malformed", "declined", "refused"], late=False)
    board = Leaderboard.objects.get(protocol="trading", methodology="").entries
    return {
        "journal": _rows(JournalEntry, *who, "sequence", "kind", "amount", "balance", "occurred_at"),
        "trades": _rows(
            Trade,
            *who,
            "decision__week",
            "sequence",
            *what,
            "kind",
            "shares",
            "price",
            "amount",
            "cost_basis",
            "realized_pnl",
            "implied_confidence",
            "executed_at",
        ),
        "positions": _rows(
            Position, *who, *what, "status", "shares", "cost_basis", "realized_pnl", "opened_at", "closed_at"
        ),
        "settlements": _rows(Settlement, *who, "market__external_id", "kind", "payout", "realized_pnl", "settled_at"),
        "decisions": _rows(Decision, *who, "week", "status", "action", "fallback", "refusals", "decided_at"),
        "snapshots": _rows(Snapshot, *who, "taken_at", "cash", "total_value", "brier", "resolved_bets"),
        "scores": _rows(BrierScore, *who, "market__external_id", "trade__sequence", "score", "outcome"),
        "markets": _rows(Market, "external_id", "status", "winning_outcome__side", "resolved_at", "closed_at"),
        "universes": _rows(Universe, "week_start", "methodology", "frozen_at", "sha256"),
        "board": [{key: entry[key] for key in entry if key != "cost_usd"} for entry in board],
        "question sets": _rows(QuestionSet, "day", "methodology", "part", "frozen_at", "sha256"),
        "questions": _rows(
            QuestionOption, "question__options_sha256", "question__status", "question__resolved_at", "name", "happened"
        ),
        "elicitations": _rows(Elicitation, *asked, "release__model_id", "status", "declined", "refusals", "made_at"),
        "forecasts": [
            (*row[:-1], sorted(row[-1].items()))
            for row in _rows(
                Forecast,
                *(f"elicitation__{name}" for name in asked),
                "release__model_id",
                "arm",
                "question__options_sha256",
                "made_at",
                "rationale",
                "probabilities",
            )
        ],
        "forecast scores": _rows(
            ForecastScore,
            "forecast__question__options_sha256",
            "forecast__family__slug",
            "forecast__arm",
            "forecast__made_at",
            "brier",
            "log",
        ),
        # Not the hashes: which link comes first, and the ids in prompts, may depend on who died.
        "chain": _rows(
            ChainLink,
            "protocol",
            *(f"decision__{name}" for name in (*who, "week")),
            *(f"elicitation__{name}" for name in (*asked, "release__model_id")),
        ),
        "chain lengths": _rows(Chain, "protocol", "length"),
        "violations": verify_ledger().violations + verify_forecasts()[1] + verify_chain()[1],
        "answers bought twice": [
            key
            for key in judged.values_list("decision_id", "elicitation_id", "attempt").distinct()
            if judged.filter(decision_id=key[0], elicitation_id=key[1], attempt=key[2]).count() > 1
        ],
    }


def _rows(model: Any, *fields: str) -> list[tuple[Any, ...]]:
    return sorted(model.objects.values_list(*fields), key=repr)


def warm() -> None:
    """Imports what the commands import, at their start and on their way, so that a fork starts at once."""
    import scipy.optimize
    import scipy.stats  # noqa: F401
    from django.core.management import load_command_class

    for app, command in (
        *(("cohorts", "sync_markets"), ("agents", "start_cohort"), ("scoring", "run_decisions")),
        *(("scoring", "check_resolutions"), ("scoring", "take_snapshots"), ("agents", "run_forecasts")),
    ):
        load_command_class(app, command)


def random_deaths(dice: random.Random, longest_s: float) -> Callable[[int, int], Death | None]:
    """Kills about half of all first and second tries at a random moment."""

    def death(index: int, attempt: int) -> Death | None:
        if attempt > 2 or dice.random() < 0.4:
            return None
        return Death(after_s=dice.uniform(0.005, longest_s))

    return death


def differences(undisturbed: dict[str, Any], books: dict[str, Any]) -> list[str]:
    return [name for name, rows in undisturbed.items() if books[name] != rows]
