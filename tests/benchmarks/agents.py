"""How many external agents may answer at once? `uv run python -m tests.benchmarks.agents [--postgres] [--agents 200]`.

A demo is played first. Then as many agents answer the same batch of questions within `--seconds`, a minute unless said
otherwise, each by a connection of its own, at a web server as in production. Prints the statuses, the median, the 95th
percentile and the slowest answer in milliseconds, and the server's processor time for an answer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.benchmarks.environment import scratch_url, set_up_production, web_server

ROOT = Path(__file__).resolve().parents[2]
Answer = tuple[int, float]
"""The status, and milliseconds."""


def tokens(count: int, *, at: datetime) -> list[str]:
    """The tokens of new agents."""
    from agents.services.registrations import register_external_agent

    return [register_external_agent(name=f"Agent {n}", protocol="forecast", at=at).token for n in range(count)]


def even_answer(task: dict[str, Any]) -> dict[str, Any]:
    """Even odds for each question of a batch."""
    columns, *lines = [json.loads(line) for line in task["blocks"]["QUESTIONS"].splitlines()]
    questions = [dict(zip(columns, line, strict=True)) for line in lines]
    forecasts = []
    for question in questions:
        share = 1 / len(question["options"])
        forecasts.append(
            {"question_id": question["question_id"], "probabilities": dict.fromkeys(question["options"], share)}
        )
    return {"forecasts": forecasts}


def measure(address: str, agents: list[str], seconds: float) -> list[Answer]:
    """The answer of each agent, one after another at even distances, whether or not those before have ended."""
    import httpx

    path = f"{address}/api/v1/submissions/"
    listed = httpx.get(f"{path}open/", headers={"Authorization": f"Bearer {agents[0]}"}).raise_for_status()
    task = listed.json()["forecast"][0]
    answer = even_answer(task)
    context = httpx.create_ssl_context(verify=False)  # spares each client the reading of all certificates

    def submit(number: int, token: str) -> Answer:
        time.sleep(max(0.0, start + seconds * number / len(agents) - time.monotonic()))
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "benchmark"}
        with httpx.Client(headers=headers, timeout=60, verify=context) as client:
            began = time.perf_counter()
            reply = client.post(path, params={"batch": task["batch"]}, json=answer)
            return reply.status_code, (time.perf_counter() - began) * 1000

    start = time.monotonic() + 1
    with ThreadPoolExecutor(len(agents)) as pool:
        return list(pool.map(submit, range(len(agents)), agents))


def processor_seconds() -> float:
    """The processor time of all processes below this one."""
    import psutil

    times = [process.cpu_times() for process in psutil.Process().children(recursive=True)]
    return sum(spent.user + spent.system for spent in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--agents", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with scratch_url(postgres=options.postgres) as url:
        command = [sys.executable, "manage.py", "demo", "--no-serve", "--weeks", "1", "--database", url]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.environ["ARENA_HTTPS"] = "false"
        set_up_production(url)
        from arena_site.management.commands.sandbox_season import external_agents_clock

        clock = external_agents_clock(1)
        os.environ["ARENA_CLOCK"] = clock.isoformat()
        agents = tokens(options.agents, at=clock - timedelta(days=1))
        with web_server() as (host, port):
            before = processor_seconds()
            answers = measure(f"http://{host}:{port}", agents, options.seconds)
            spent = processor_seconds() - before
    times = [ms for _, ms in answers]
    p95 = statistics.quantiles(times, n=20, method="inclusive")[18]
    print(
        f"{dict(Counter(status for status, _ in answers))}; median {statistics.median(times):.0f} ms, "
        f"p95 {p95:.0f} ms, slowest {max(times):.0f} ms; "
        f"{spent / len(answers) * 1000:.0f} ms of processor time each"
    )


if __name__ == "__main__":
    main()
