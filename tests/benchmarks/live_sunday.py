"""One Sunday on the real clock: `arena` beside a sandbox whose models take minutes to answer.

    python -m tests.benchmarks.live_sunday --database postgres://… --folder /tmp/sunday

Snapshots, syncs and resolutions go on while models think, an agent from outside bets on a market that resolves soon
after, and the arena is stopped and started in between. Ends when the first decisions and forecasts are done; then
`verify_ledger` and the archive's own program prove the record. The database must be empty. Exits 1 if either finds a
violation, or if nothing was settled.
"""

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from tests.databases import PROJECT

SEASON_STARTS = datetime(2026, 3, 1, tzinfo=UTC)
COMMENT_S = 10
"""Between the comments of a stream that waits, as the gateway sends them."""
PORT = 8071
STEP_S = 20


class SlowGateway(ThreadingHTTPServer):
    """A gateway that thinks: passes requests on, and answers completions after a minute or more."""

    daemon_threads = True

    def __init__(self, upstream: str, seconds: tuple[float, float], seed: int) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.upstream, self.seconds, self.dice = upstream, seconds, random.Random(seed)
        self.waits: list[float] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class SlowHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SlowGateway

    def do_GET(self) -> None:
        self._relay(httpx.get(self.server.upstream + self.path, headers=self._headers(), timeout=60))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = httpx.post(self.server.upstream + self.path, content=body, headers=self._headers(), timeout=60)
        if answer.status_code != 200 or "event-stream" not in answer.headers["Content-Type"]:
            self._relay(answer)
            return
        shortest, longest = self.server.seconds
        wait = shortest * (longest / shortest) ** self.server.dice.random()
        self.server.waits.append(wait)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            self._chunk(b": PROCESSING\n\n")
            time.sleep(min(left, COMMENT_S))
        self._chunk(answer.content)
        self.wfile.write(b"0\r\n\r\n")

    def _headers(self) -> Mapping[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.wfile.flush()

    def _relay(self, answer: httpx.Response) -> None:
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def sandbox_on_the_real_clock(seed: int) -> Iterator[Mapping[str, str]]:
    """The addresses of a sandbox whose clock follows the real one."""
    weeks = (datetime.now(UTC) - SEASON_STARTS) // timedelta(weeks=1) + 8
    command = [sys.executable, "manage.py", "sandbox", "--seed", str(seed), "--weeks", str(weeks)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True)
    stopped = threading.Event()
    try:
        assert process.stdout is not None
        addresses = json.loads(process.stdout.readline())

        def follow() -> None:
            while not stopped.is_set():
                now = {"now": datetime.now(UTC).isoformat()}
                httpx.post(f"{addresses['root']}/sandbox/clock", json=now).raise_for_status()
                stopped.wait(STEP_S)

        threading.Thread(target=follow, daemon=True).start()
        yield addresses
    finally:
        stopped.set()
        process.terminate()
        process.wait(10)


class LiveArena:
    """The commands of an installation, with a log file each."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder, self.env = folder, {**os.environ, **settings}
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "manage.py", *arguments]
        ran = subprocess.run(command, cwd=PROJECT, env=self.env, capture_output=True, text=True)
        note(f"{' '.join(arguments)}: exit {ran.returncode}")
        return ran

    def begin(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{name}.log").open("ab")
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.Popen(command, cwd=PROJECT, env=self.env, stdout=log, stderr=log)

    def start(self) -> None:
        self.process = self.begin("arena", "arena", "--port", str(PORT))
        note("arena started")

    def stop(self) -> None:
        assert self.process is not None
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(180)
        note(f"arena stopped in {time.monotonic() - begun:.0f} s")


def answer_as_a_visitor(token: str) -> str | None:
    """Answers every open trading task with a small bet; the venue's id of the market that it bet on, if it did."""
    client = httpx.Client(base_url=f"http://127.0.0.1:{PORT}", headers={"Authorization": f"Bearer {token}"})
    bet_on = None
    try:
        tasks = client.get("/api/v1/submissions/open/", timeout=20).json()
        for task in tasks.get("trading", ()):
            query = {"agent": task["agent"], "universe": task["universe"]}
            market = next(row for row in client.get("/api/v1/markets/", params={"status": "active"}).json()["results"])
            side = market["outcomes"][0]["side"]
            body = {"action": "BET", "bets": [{"market_id": str(market["id"]), "side": side, "amount": 100}]}
            reply = client.post(
                "/api/v1/submissions/", params=query, json=body, headers={"Idempotency-Key": json.dumps(query)}
            )
            note(f"visitor: {reply.status_code} {reply.text[:200]}")
            bet_on = market["external_id"] if reply.status_code == 201 else None
    except (httpx.HTTPError, ValueError, StopIteration) as failure:
        note(f"visitor: {failure!r}")
    return bet_on


def note(line: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {line}", flush=True)


def play(arena: LiveArena, sandbox: str, restart_after_s: float, longest_s: float) -> None:
    """The Sunday, from the first migration to the last answer."""
    ran = arena.command("migrate", "-v0")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    last_week = (datetime.now(UTC) - timedelta(weeks=1)).isoformat()  # in time for the week's cohort
    registered = arena.command("register_agent", "Visitor", "--json", "--at", last_week)
    token = json.loads(registered.stdout.splitlines()[-1])["token"]
    arena.start()
    now = arena.begin("now", "arena", "--now")
    begun, restarted, bet_on = time.monotonic(), False, None
    while now.poll() is None and time.monotonic() - begun < longest_s:
        time.sleep(STEP_S)
        if bet_on is None and (bet_on := answer_as_a_visitor(token)):
            told = httpx.post(f"{sandbox}/sandbox/resolutions", json={"market": bet_on, "winner": 0})
            note(f"market {bet_on} resolves: {told.status_code}")
        if not restarted and time.monotonic() - begun > restart_after_s:
            arena.stop()
            arena.start()
            restarted = True
    if now.poll() is None:
        now.send_signal(signal.SIGTERM)
        now.wait(900)
    note(f"the first decisions and forecasts ended with {now.returncode}")
    time.sleep(11 * 60)  # the window of visitors, and a snapshot after the last answer
    note(arena.command("check_resolutions", "--json").stdout[-500:])


def prove(arena: LiveArena) -> bool:
    """Whether the ledger and the archive hold, and something was settled."""
    ledger = arena.command("verify_ledger", "--json")
    print(ledger.stdout[-2000:], ledger.stderr[-2000:])
    out = arena.folder / "archive"
    archive = arena.command("export_dataset", "--out", str(out), "--format", "csv", "--json")
    print(archive.stdout[-500:], archive.stderr[-500:])
    program = [sys.executable, str(out / "verify_arena.py"), str(out)]
    proof = subprocess.run(program, capture_output=True, text=True)
    print(proof.stdout[-2000:], proof.stderr[-2000:])
    with (out / "csv" / "settlements.csv").open() as rows:
        settled = len(list(csv.DictReader(rows)))
    note(f"{settled} positions settled")
    return ledger.returncode == archive.returncode == proof.returncode == 0 < settled


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--database", required=True, help="an empty one")
    parser.add_argument("--folder", type=Path, required=True, help="for logs, spool, backups and the archive")
    parser.add_argument("--seconds", type=float, nargs=2, default=(60, 600), help="the shortest and longest answer")
    parser.add_argument("--restart-after", type=float, default=900, help="seconds")
    parser.add_argument("--minutes", type=float, default=120, help="after which the first run is told to end")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with sandbox_on_the_real_clock(options.seed) as addresses:
        path = addresses["openrouter"].removeprefix(addresses["root"])
        gateway = SlowGateway(addresses["root"], tuple(options.seconds), options.seed)
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        settings = {
            "DATABASE_URL": options.database,
            "GAMMA_BASE_URL": addresses["gamma"],
            "CLOB_BASE_URL": addresses["clob"],
            "OPENROUTER_BASE_URL": gateway.url + path,
            "OPENROUTER_API_KEY": "sandbox",
            "SECRET_KEY": "only-for-a-played-sunday-0123456789-abcdefghij",
            "ARENA_SPOOL_DIR": str(options.folder / "spool"),
            "ARENA_BACKUP_DIR": str(options.folder / "backups"),
            "ARENA_EXPORT_DIR": str(options.folder / "exports"),
        }
        arena = LiveArena(options.folder, settings)
        try:
            play(arena, addresses["root"], options.restart_after, options.minutes * 60)
            sound = prove(arena)
        finally:
            arena.stop()
    note(f"{len(gateway.waits)} answers, {min(gateway.waits):.0f} to {max(gateway.waits):.0f} s each")
    sys.exit(0 if sound else 1)


if __name__ == "__main__":
    main()
