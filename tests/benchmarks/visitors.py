"""Do jobs stall the pages? `uv run python -m tests.benchmarks.visitors [--postgres] [--seconds 15]`.

A web server as in production, on a database of 140 agents with 4,480 positions; a visitor asks for one page after
another, and for endpoints, while nothing runs, while snapshots are taken, while 200 markets settle, while scores run.
Prints median and slowest answer of each phase in milliseconds, and the ratio to the idle phase.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

from tests.benchmarks.environment import scratch_url, set_up_production, web_server

ROOT = Path(__file__).resolve().parents[2]
PATHS = (
    *("/", "/cohorts/", "/cohorts/3/", "/cohorts/3/gpt-5.2/", "/markets/", "/markets/7/", "/decisions/9/", "/healthz"),
    *("/api/v1/leaderboard/", "/api/v1/agents/", "/api/v1/positions/", "/api/v1/snapshots/", "/api/v1/decisions/9/"),
)
PHASES = ("idle", "snapshots", "settlement", "scores")
LIMIT_MS = 250


def work(phase: str, seconds: float) -> None:
    """Runs one kind of pass over and over, in a process of its own, as a worker does."""
    from agents.services.resolutions import Resolution
    from agents.services.settlement import settle_market
    from cohorts.weeks import GRID
    from markets.models import Market
    from markets.sources.polymarket import Clob
    from scoring.services.scores import compute_scores
    from scoring.services.snapshots import take_snapshots
    from tests.factories import WEEK

    end, passes = time.monotonic() + seconds, 0
    at = WEEK + timedelta(weeks=21)
    markets = list(Market.objects.unsettled().prefetch_related("outcomes")[:200])
    while time.monotonic() < end:
        if phase == "snapshots":
            with Clob("http://127.0.0.1:9", retries=0) as clob:
                take_snapshots(at=at + passes * GRID, clob=clob)
        elif phase == "settlement":
            if passes == len(markets):
                break
            market = markets[passes]
            settle_market(market, Resolution(market.outcomes.all()[0]), at=at)
        else:
            compute_scores(at=at + timedelta(weeks=1))
        passes += 1
    print(f"{phase}: {passes} {'markets settled' if phase == 'settlement' else 'passes'}")


Answer = tuple[float, str, float]
"""Milliseconds, what was asked for, seconds into the phase."""


def visit(address: str, seconds: float) -> list[Answer]:
    """Each answer, one visitor after another."""
    import httpx

    answers = []
    start = time.monotonic()
    end = start + seconds
    with httpx.Client(base_url=address, timeout=120) as visitor:
        while time.monotonic() < end:
            for path in PATHS:
                began = time.perf_counter()
                visitor.get(path).raise_for_status()
                answers.append(((time.perf_counter() - began) * 1000, path, time.monotonic() - start))
    return answers


def measure(seconds: float) -> dict[str, list[Answer]]:
    """The answers of each phase."""
    results = {}
    with web_server() as (host, port):
        address = f"http://{host}:{port}"
        visit(address, 3)  # warms the workers
        for phase in PHASES:
            command = [sys.executable, "-m", "tests.benchmarks.visitors", "--work", phase, "--seconds", str(seconds)]
            worker = subprocess.Popen(command, cwd=ROOT) if phase != "idle" else None
            results[phase] = visit(address, seconds)
            if worker is not None:
                worker.wait()
    return results


def show(results: dict[str, list[Answer]]) -> None:
    idle = statistics.median(ms for ms, *_ in results["idle"])
    titles = f"{'':12}{'answers':>9}{'median ms':>11}{'p99 ms':>9}{'slowest ms':>12}{'median ratio':>14}"
    print(f"{titles}{'over 250 ms':>13}  slowest")
    for phase, answers in results.items():
        times = [ms for ms, *_ in answers]
        _, path, second = max(answers)
        middle, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
        slow = sum(t > LIMIT_MS for t in times)
        print(
            f"{phase:12}{len(times):>9}{middle:>11.1f}{p99:>9.1f}{max(times):>12.1f}{middle / idle:>14.2f}{slow:>13}"
            f"  {path} after {second:.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--work", choices=PHASES[1:], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        set_up_production(os.environ["DATABASE_URL"])
        work(options.work, options.seconds)
        return
    with scratch_url(postgres=options.postgres) as url:
        set_up_production(url)
        from django.core.management import call_command

        from tests.bulk_factories import create_portfolios

        call_command("migrate", verbosity=0)
        create_portfolios(cohorts=20, positions=32)
        show(measure(options.seconds))


if __name__ == "__main__":
    main()
