"""Does one client keep a visitor waiting? `uv run python -m tests.benchmarks.greedy_client --database FILE`.

A web server as in production on the database of a finished demo; a visitor asks for `/` again and again, alone and
while one client with 24 connections asks for what is not cached: boards, filtered pages and lists, pictures. Prints the
visitor's times in milliseconds and the statuses that the client got.
"""

import argparse
import itertools
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.request import urlopen

import httpx

from tests.benchmarks.environment import set_up_production, web_server

PROJECT = Path(__file__).resolve().parents[2]
CONNECTIONS = 24
BAR_MS = 1000
ADDRESSES = (
    "/?as_of=2026-03-{day:02}T{hour:02}:{minute:02}:00Z",
    "/forecasts/?as_of=2026-03-{day:02}T{hour:02}:{minute:02}:00Z",
    "/trading/?as_of=2026-03-{day:02}T{hour:02}:{minute:02}:00Z",
    "/api/v1/leaderboard/?protocol=forecast&as_of=2026-03-{day:02}T{hour:02}:{minute:02}:00Z",
    "/forecasts/?gamma=1&from=2026-03-{day:02}&to=2026-03-{day:02}",
    "/calibration/?from=2026-03-{day:02}",
    "/forecasts/charts/scores.png?as_of=2026-03-{day:02}T{hour:02}:{minute:02}:00Z",
    "/markets/?q=a{number}",
    "/api/v1/prices/?market={number}",
    "/api/v1/forecasts/?question={number}",
)


def ask(address: str, first: int, until: float) -> Counter[str]:
    """The statuses that one of the connections gets, none equal to another's addresses."""
    statuses = Counter[str]()
    with httpx.Client(base_url=address, timeout=60, verify=False) as client:
        for number in itertools.count(first, CONNECTIONS):
            if time.monotonic() > until:
                return statuses
            template = ADDRESSES[number % len(ADDRESSES)]
            path = template.format(
                number=number, day=2 + number % 20, hour=number // 20 % 24, minute=number // 480 % 60
            )
            try:
                statuses[str(client.get(path).status_code)] += 1
            except httpx.HTTPError as error:
                statuses[type(error).__name__] += 1
    raise AssertionError


def attack(address: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(CONNECTIONS) as connections:
        counts = connections.map(lambda first: ask(address, first, until), range(CONNECTIONS))
    print("the client's answers:", dict(sum(counts, Counter[str]())))


def visit(address: str, seconds: float) -> list[float]:
    """The visitor's times in milliseconds, a new connection for each."""
    times, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        urlopen(f"{address}/", timeout=60).read()
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(0.05)
    return times


def show(phase: str, times: list[float]) -> float:
    p95 = statistics.quantiles(times, n=20)[18]
    median, slowest = statistics.median(times), max(times)
    print(f"{phase:8}{len(times):>6} answers, median {median:.1f} ms, p95 {p95:.1f} ms, slowest {slowest:.1f} ms")
    return p95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", type=Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--attack", metavar="ADDRESS", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.attack:
        attack(options.attack, options.seconds)
        return
    set_up_production(f"sqlite:///{options.database.resolve()}")
    with web_server() as (host, port):
        address = f"http://{host}:{port}"
        visit(address, 3)  # warms the workers
        show("alone", visit(address, options.seconds / 2))
        command = [sys.executable, "-m", "tests.benchmarks.greedy_client", "--attack", address]
        client = subprocess.Popen([*command, "--seconds", str(options.seconds)], cwd=PROJECT)
        p95 = show("beside", visit(address, options.seconds))
        client.wait()
    raise SystemExit(p95 > BAR_MS)


if __name__ == "__main__":
    main()
