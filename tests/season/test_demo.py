"""The main job as a newcomer runs it: `demo` as a real process, a season over real HTTP, and the live process tree."""

import csv
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil
import pytest

from arena_site import jobs
from tests.documentation import code_blocks, example_client

pytestmark = [pytest.mark.longest, pytest.mark.slow, pytest.mark.thorough, pytest.mark.own_database]

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120


def environment(**extra: str) -> dict[str, str]:
    ours = ("ARENA_", "DJANGO_", "SECRET_KEY", "GAMMA_", "CLOB_", "OPENROUTER_", "KALSHI_", "DATABASE_URL")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)} | extra


@dataclass(frozen=True)
class Demo:
    """A demo of one week that serves its site: its process, database and output, and a page from while it played."""

    process: "subprocess.Popen[str]"
    database: Path
    address: str
    log: Path
    page_at_play: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder, port = tmp_path_factory.mktemp("demo"), free_port()
    database, log, address = folder / "demo.sqlite3", folder / "demo.log", f"http://127.0.0.1:{port}"
    command = ["demo", "--weeks", "1", "--seed", "3", "--database", f"sqlite:///{database}", "--port", str(port)]
    env = environment(ARENA_EXPORT_DIR=str(folder / "exports"))
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=env, stdout=output, stderr=output, text=True
        )
    try:
        eventually(lambda: answers(f"{address}/") == 200)
        page = httpx.get(f"{address}/").text
        assert "serving" not in log.read_text()
        eventually(lambda: "serving" in log.read_text())
        yield Demo(process, database, address, log, page)
        family = children(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
        assert not [pid for pid in family if Path(f"/proc/{pid}").exists()], "a stopped demo leaves no process behind"
    finally:
        process.kill()


def test_demo_prints_the_same_table_for_the_same_seed(served: Demo, migrated_file: Path, tmp_path: Path) -> None:
    database = Path(shutil.copy(migrated_file, tmp_path))
    command = [sys.executable, "manage.py", "demo", "--no-serve", "--database", f"sqlite:///{database}"]
    env = environment(ARENA_EXPORT_DIR=str(tmp_path / "exports"))
    ran = subprocess.run(
        [*command, "--weeks", "1", "--seed", "3"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    assert "week 1 of 1" in ran.stderr
    assert re.search(r"admin login: admin / \S+", ran.stdout)
    table = ran.stdout[: ran.stdout.index("admin login")]
    families = ("GPT-5.2", "Gemini 3 Pro", "Grok 4.1", "Claude Opus 4.5", "DeepSeek V3.2", "Kimi K2", "Qwen 3")
    assert all(name in table for name in families)
    assert table in served.log.read_text()


def test_board_holds_what_has_resolved_by_the_sunday_of_a_demo(served: Demo) -> None:
    with closing(sqlite3.connect(served.database)) as stored:
        sundays = stored.execute(
            "SELECT DISTINCT at FROM scoring_publishedboard WHERE protocol = 'forecast' AND track = '' ORDER BY at"
        )
        assert sundays.fetchall() == [("2026-03-08 00:00:00",)]


def test_ledger_of_a_demo_is_proved(served: Demo) -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "verify_ledger", "--json"],
        cwd=ROOT,
        env=environment(DATABASE_URL=f"sqlite:///{served.database}"),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    assert '"violations": 0' in ran.stdout


def test_agents_play_in_a_demo_and_its_archive_is_proved(served: Demo, tmp_path: Path) -> None:
    (published,) = served.database.parent.glob("exports/public-*/*.zip")
    shutil.unpack_archive(published, tmp_path)
    (program,) = tmp_path.rglob("verify_arena.py")
    ran = subprocess.run([sys.executable, program, program.parent], capture_output=True, text=True)
    assert (ran.returncode, json.loads(ran.stdout.splitlines()[-1])["violations"]) == (0, 0)
    with (program.parent / "csv" / "leaderboard_agents.csv").open() as board:
        rows = list(csv.DictReader(board))
    answered = {(row["forecaster"], row["protocol"]) for row in rows if row["answered"] not in ("", "0")}
    assert answered >= {
        ("shrinkage", "forecast"), ("extremes", "forecast"), ("extremes", "trading"), ("trader", "trading"),
    }  # fmt: skip
    with (program.parent / "csv" / "receipts.csv").open() as receipts:
        assert len(list(csv.DictReader(receipts))) > 10


ASKED_FOR_AGENTS_ALONE = """
SELECT count(*) FROM markets_questionentry entry WHERE reason = 'traded' AND NOT EXISTS (
  SELECT 1 FROM markets_questionoption option JOIN markets_outcome outcome ON outcome.id = option.outcome_id
  JOIN agents_trade trade ON trade.market_id = outcome.market_id JOIN agents_agent agent ON agent.id = trade.agent_id
  JOIN agents_family family ON family.id = agent.family_id
  WHERE option.question_id = entry.question_id AND NOT family.external)
"""


def test_bets_of_external_agents_choose_no_question(served: Demo) -> None:
    with closing(sqlite3.connect(served.database)) as stored:
        bets = "SELECT count(*) FROM agents_trade JOIN agents_agent a ON a.id = agent_id JOIN agents_family f"
        assert stored.execute(f"{bets} ON f.id = family_id WHERE external").fetchone()[0] > 0
        assert stored.execute(ASKED_FOR_AGENTS_ALONE).fetchone() == (0,)


def test_a_demo_never_plays_over_a_live_season(migrated_file: Path, tmp_path: Path) -> None:
    database = f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"
    subprocess.run(
        [sys.executable, "manage.py", "start_cohort"],
        cwd=ROOT,
        env=environment(DATABASE_URL=database, ARENA_LINEUP="unchecked"),
        check=True,
        capture_output=True,
    )
    ran = subprocess.run(
        [sys.executable, "manage.py", "demo", "--no-serve", "--weeks", "1", "--database", database],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 2
    assert "holds a season that is no demo" in ran.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts commands as processes and leaves none behind."""
    processes: list[subprocess.Popen[str]] = []

    def start(*command: str, **env: str) -> "subprocess.Popen[str]":
        log = (tmp_path / f"{command[0]}.log").open("a")
        process = subprocess.Popen(
            [sys.executable, "manage.py", *command], cwd=ROOT, env=environment(**env), stdout=log, stderr=log, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()


def answers(url: str) -> int | None:
    try:
        return httpx.get(url, verify=False).status_code  # spares each try the reading of all certificates
    except httpx.HTTPError:
        return None


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.2)


def children(pid: int) -> set[int]:
    """Every process below `pid`."""
    return {child.pid for child in psutil.Process(pid).children(recursive=True)}


def test_arena_runs_jobs_in_processes_apart_from_the_web_and_stops_all_cleanly(
    launch: Callable[..., "subprocess.Popen[str]"], tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path}/arena.sqlite3"
    dead = {f"{name}_BASE_URL": "http://127.0.0.1:9" for name in ("GAMMA", "CLOB", "OPENROUTER")}
    env = dead | {"DATABASE_URL": database, "SECRET_KEY": "x" * 50}
    ports = [free_port(), free_port()]  # two at once on one fresh database
    arena = launch("arena", "--port", str(ports[0]), "--current", **env, ARENA_LINEUP="unchecked")
    second_arena = launch("arena", "--port", str(ports[1]), **env)
    for port in ports:
        eventually(lambda port=port: answers(f"http://127.0.0.1:{port}/healthz") == 200)  # type: ignore[misc]
    eventually(lambda: len(children(arena.pid)) >= 6)  # gunicorn and its workers, the cluster and its own
    family = children(arena.pid)
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid in family]
    assert sum("gunicorn" in command for command in commands) >= 2
    assert sum("qcluster" in command for command in commands) >= 4
    (cluster,) = [child for child in psutil.Process(arena.pid).children() if "qcluster" in child.cmdline()]
    cluster.kill()
    eventually(lambda: "the worker ended with -9: it is started again" in (tmp_path / "arena.log").read_text())
    assert answers(f"http://127.0.0.1:{ports[0]}/") == 200, "the pages go on"
    eventually(lambda: sum("qcluster" in child.cmdline() for child in psutil.Process(arena.pid).children()) == 1)
    family |= children(arena.pid)
    for process in (arena, second_arena):
        process.send_signal(signal.SIGTERM)
    assert [process.wait(PATIENCE_S) for process in (arena, second_arena)] == [0, 0]
    assert not [pid for pid in family if Path(f"/proc/{pid}").exists()]
    output = (tmp_path / "arena.log").read_text()
    assert output.count(f"{len(jobs.JOBS)} schedules installed") == 2
    assert "createsuperuser" in output
    assert "gpt-5.1: openai/gpt-5.2 at $1.75 and $14 per million tokens becomes openai/gpt-5.6-sol at $5" in output
    assert "the line-up could not be checked, and no cohort starts before it is: gateway: GET /models" in output
    with closing(sqlite3.connect(tmp_path / "arena.sqlite3")) as stored:
        assert stored.execute("SELECT count(*) FROM django_q_schedule").fetchone() == (len(jobs.JOBS),)


@pytest.mark.parametrize("killed", ["arena", "cluster", "guard"])
def test_orphans_of_a_killed_process_end_by_themselves(
    launch: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, killed: str
) -> None:
    dead = {f"{name}_BASE_URL": "http://127.0.0.1:9" for name in ("GAMMA", "CLOB", "OPENROUTER")}
    env = dead | {"DATABASE_URL": f"sqlite:///{tmp_path}/arena.sqlite3", "SECRET_KEY": "x" * 50}
    if killed == "arena":
        arena_process = launch("arena", "--port", str(free_port()), **env, ARENA_LINEUP="unchecked")
        least = 9
    else:
        migrated = launch("migrate", **env)
        assert migrated.wait(PATIENCE_S) == 0
        arena_process = launch("qcluster", **env)
        least = 6
    eventually(lambda: len(children(arena_process.pid)) >= least)
    family = children(arena_process.pid)
    (victim,) = (
        psutil.Process(arena_process.pid).children() if killed == "guard" else [psutil.Process(arena_process.pid)]
    )
    victim.kill()
    arena_process.wait(PATIENCE_S)
    eventually(lambda: not [pid for pid in family if is_running(pid)])


def follow_tutorial(folder: Path, address: str, token: str) -> str:
    """The output of the commands of docs/agents.md, in a fresh environment with the kit of the demo's own index."""
    venv.create(folder / "venv", with_pip=True)
    # The dependencies are those of this environment, which a path lends; its editable packages are not on it.
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "lent.pth").write_text(str(Path(httpx.__file__).parents[1]))
    env = environment(
        PATH=f"{folder}/venv/bin:{os.environ['PATH']}",
        ARENA_AGENT_HOME=str(folder / "home"),
    )
    (agent,) = code_blocks("In ten minutes", "python")
    first, *later_blocks = code_blocks("In ten minutes", "sh")
    transcript = run_commands(first.replace("http://127.0.0.1:8000", address), folder, env)
    (folder / "cautious.py").write_text(agent)
    for commands in later_blocks:
        transcript += run_commands(commands.replace("http://127.0.0.1:8000", address), folder, env, typed=f"{token}\n")
    return transcript


def run_commands(commands: str, folder: Path, env: dict[str, str], *, typed: str = "") -> str:
    command = ["bash", "-e", "-c", commands]
    ran = subprocess.run(command, cwd=folder, env=env, input=typed, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_page_says_that_a_demo_is_being_played_and_then_shows_its_boards(served: Demo) -> None:
    for part in ("The season is being played: week 1, ", '<meta http-equiv="refresh" content="5">', " Mar 2026"):
        assert part in served.page_at_play
    assert f"{datetime.now(UTC):%-d %b %Y}" not in served.page_at_play
    page = httpx.get(f"{served.address}/").text
    assert "being played" not in page
    assert "refresh" not in page
    assert "Claude Opus 4.5" in page
    assert "the models are simulated" in page
    assert "Your own agent" in httpx.get(f"{served.address}/trading/").text


def test_tutorial_of_an_agent_holds_in_a_demo(served: Demo, tmp_path: Path) -> None:
    (token,) = re.findall(r"token of an external agent \(.*\): (\S+)", served.log.read_text())
    transcript = follow_tutorial(tmp_path / "newcomer", served.address, token)
    assert "sample-decision: ok" in transcript
    assert "cautious beside the models" in transcript
    assert "\n0 faults. " in transcript
    report = json.loads((tmp_path / "newcomer" / "report.json").read_text())
    board = httpx.get(f"{served.address}/api/v1/leaderboard/?protocol=forecast").json()["results"]
    (market,) = [row for row in board if row["forecaster"] == "market"]
    assert all(market[name] == report["references"]["market"][name] for name in ("brier", "brier_ci", "alpha"))
    assert "7 answered, 0 refused, 0 failed, 0 pending" in transcript
    assert re.findall(r"^answered \S+: (BET), receipt \d+, received ", transcript, re.MULTILINE) == ["BET"]
    assert len(re.findall(r"^[0-9a-f]{64}: ok$", transcript, re.MULTILINE)) == 7
    command = [sys.executable, "-c", example_client(), served.address, token]
    refusal = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (refusal.returncode, refusal.stdout) == (0, "nothing is open\n")
