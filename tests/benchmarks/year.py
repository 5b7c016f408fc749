"""A year in the sandbox: `uv run python -m tests.benchmarks.year [--weeks 52] [--postgres] [--json] [--seed 0]`.

One process plays every job at its simulated time, on the clock of that time, against the bundled sandbox: 52 cohorts of
7 agents, models that are down or talk nonsense, markets that vanish or never end, and an operator who cancels the
latter. The grid is coarser than live: sync, resolutions and scores once a day, snapshots every 6 hours, decisions on
Sunday 00:05 and 06:00, `prune` once a week. Prints what time, memory and every table came to, and a line for each
promise that was broken: exit 1 if there is any.
"""

import argparse
import io
import json
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from tests.benchmarks.filled import scratch_database

STARTS = datetime(2026, 3, 1, tzinfo=UTC)
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
SNAPSHOTS_EVERY = timedelta(hours=6)
OPERATOR, SCORES = "operator", "compute_scores"
PATIENCE = timedelta(days=14)
"""How long an alert stands before the operator cancels its market."""
PAGE = {"scoring_snapshot": 201, "markets_priceobservation": 221, "markets_run": 452, "markets_market": 2048}
"""Bytes a row as the page about the architecture has them: PostgreSQL, with indexes."""


def timetable(weeks: int) -> Iterator[tuple[datetime, tuple[str, ...]]]:
    """Which jobs are enqueued at which instant, in order; the last instant is the end of the last week."""
    at, end = STARTS, STARTS + weeks * WEEK
    while at <= end:
        since = (at - STARTS) % WEEK
        sunday, midnight = since < DAY and at < end, at.hour == 0
        names = (
            *(("sync",) if midnight else ()),
            *(("cohort",) if sunday and midnight else ()),
            "snapshots",
            *(("resolutions", SCORES) if midnight else ()),
            *(("decisions",) if sunday and at.hour == 6 else ()),
            *((OPERATOR,) if since == timedelta(days=6, hours=12) else ()),
        )
        yield at, names
        if sunday and midnight:
            yield at + timedelta(minutes=5), ("decisions",)
            yield at + timedelta(hours=3, minutes=40), ("prune",)
        if since == DAY:
            yield at + timedelta(minutes=10), ("missed_decisions",)
        at += SNAPSHOTS_EVERY


@dataclass(slots=True)
class Week:
    """What one week cost, and what stood at its end."""

    number: int
    seconds: dict[str, float] = field(default_factory=dict)
    """By job."""
    processor: dict[str, float] = field(default_factory=dict)
    """Processor seconds by job, of this process alone: neither the sandbox nor a database server is in them."""
    resident: int = 0
    descriptors: int = 0
    connections: int = 0
    rows: dict[str, int] = field(default_factory=dict)


class Year:
    """Plays the timetable and keeps what the checks need to know."""

    def __init__(self, weeks: int, clock: str):
        from django_q.brokers import get_broker

        self.weeks = [Week(number + 1) for number in range(weeks)]
        self.clock = clock
        self.broker = get_broker()
        self.enqueued = Counter[str]()
        self.failures = Counter[str]()
        self.runs: list[tuple[datetime, bool]] = []
        """When each run of a command began, and whether it failed."""
        self.pruned_at = STARTS
        self.cancelled = 0

    def play(self) -> None:
        import httpx
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        of = len(self.weeks)
        with (
            httpx.Client(timeout=30) as client,
            Progress(*columns, console=console, disable=not console.is_terminal) as bar,
        ):
            task = bar.add_task("playing", total=of)
            for index, part in groupby(timetable(of), lambda step: min((step[0] - STARTS) // WEEK, of - 1)):
                week = self.weeks[index]
                for at, names in part:
                    bar.update(task, description=f"{at:%d %b %Y}")
                    client.post(self.clock, json={"now": at.isoformat()}).raise_for_status()
                    for name in names:
                        self.enqueue(name, at, week)
                self.measure(week)
                bar.update(task, completed=week.number)
                if not console.is_terminal:
                    took, held = sum(week.seconds.values()), week.resident >> 20
                    console.print(f"week {week.number} of {of}: {took:.1f} s, {held} MiB")

    def measure(self, week: Week) -> None:
        from tests.benchmarks.measures import footprint, row_counts

        held = footprint()
        week.resident, week.descriptors, week.connections = held.resident, held.descriptors, held.connections
        week.rows = row_counts()

    def enqueue(self, name: str, at: datetime, week: Week) -> None:
        """One job at its time, as a worker runs it: by its function, and with a row in django-q's record."""
        import time_machine
        from django_q.monitor import save_task

        self.enqueued[name] += 1
        began, began_processor = time.perf_counter(), time.process_time()
        with time_machine.travel(at, tick=True):
            if name == OPERATOR:
                self.cancelled += cancel_what_waits(at)
            else:
                result, failed = self.run(name, at)
                self.failures[name] += failed
                self.runs.append((at, failed))
                about = {"id": uuid.uuid4().hex, "name": name, "func": f"arena_site.jobs.{name}", "started": at}
                ended = {"stopped": datetime.now(UTC), "result": result, "success": not failed}
                save_task({"args": (), "kwargs": {}, "sync": True} | about | ended, self.broker)
        week.seconds[name] = week.seconds.get(name, 0.0) + time.perf_counter() - began
        week.processor[name] = week.processor.get(name, 0.0) + time.process_time() - began_processor

    def run(self, name: str, at: datetime) -> tuple[str, bool]:
        """What a job said, and whether it failed: a model that is down fails a run, and is part of the year."""
        from django.core.management import call_command

        from arena_site import jobs

        if name == "prune":
            self.pruned_at = at
        if name == SCORES:
            said = io.StringIO()
            call_command(SCORES, at=at, json=True, stdout=said)
            return said.getvalue(), False
        try:
            return getattr(jobs, name)(), False
        except jobs.JobFailed as failure:
            return str(failure), True


def cancel_what_waits(at: datetime) -> int:
    """What a person does about markets that are gone, or closed without an end, for too long; returns how many."""
    from agents.services.resolutions import CANCELLATION
    from agents.services.settlement import settle_market
    from markets.models import Alert, Market

    cancelled = 0
    for alert in list(Alert.objects.filter(cleared_at=None, raised_at__lte=at - PATIENCE)):
        market = Market.objects.unsettled().filter(external_id=alert.subject).first()
        if market is not None:
            cancelled += settle_market(market, CANCELLATION, at=at) is not None
        Alert.objects.clear(alert.kind, alert.subject, at)
    return cancelled


@contextmanager
def sandbox(weeks: int, seed: int) -> Iterator[dict[str, str]]:
    """A sandbox process with markets for so many weeks, to which the settings point; yields its addresses."""
    from django.test import override_settings

    from arena_site.processes import manage_command, start, stop, stoppable

    with stoppable():
        process = start(manage_command("sandbox", "--seed", str(seed), "--weeks", str(weeks)), stdout=subprocess.PIPE)
        try:
            assert process.stdout is not None
            addresses = json.loads(process.stdout.readline())
            bases = {f"{name.upper()}_BASE_URL": addresses[name] for name in ("gamma", "clob", "openrouter")}
            with override_settings(**bases):
                yield addresses | {"pid": str(process.pid)}
        finally:
            stop(process)


def table_rows(year: Year, predicted: dict[str, int]) -> list[dict[str, Any]]:
    """Each table that holds anything, the largest first."""
    from tests.benchmarks.measures import table_bytes
    from tests.benchmarks.promises import weekly

    sizes, rows = table_bytes(), year.weeks[-1].rows
    return [
        {
            "table": table,
            "rows": rows[table],
            "at most": predicted.get(table),
            "bytes a row": round(sizes[table] / rows[table]),
            "on the page": PAGE.get(table),
            "rows a week": weekly(year.weeks, table),
            "MiB": round(sizes[table] / 2**20, 2),
        }
        for table in sorted(rows, key=lambda table: -sizes.get(table, 0))
        if rows[table]
    ]


def show(year: Year, tables: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from markets.foundation.commands import table_text
    from tests.benchmarks.promises import ends_of

    parts = ends_of(year.weeks)
    lasting = Table(title=f"Seconds a week, and processor seconds: first and last {len(parts[0])} weeks")
    for column in ("job", "runs", "first", "last", "ratio", "first", "last", "ratio"):
        lasting.add_column(column, justify="left" if column == "job" else "right")
    for job in [*sorted(year.enqueued), "whole"]:
        cells = []
        for what in ("seconds", "processor"):
            first, last = (
                sum(sum(s for name, s in getattr(week, what).items() if job in (name, "whole")) for week in part)
                / len(part)
                for part in parts
            )
            cells += [f"{first:.2f}", f"{last:.2f}", f"{last / first:.2f}" if first else "–"]
        lasting.add_row(job, str(year.enqueued[job] or ""), *cells)
    print(table_text(lasting))
    sizes = Table(title="Tables")
    for column in tables[0]:
        sizes.add_column(column, justify="left" if column == "table" else "right")
    for row in tables:
        change = row["rows a week"]
        shown = row | {"rows a week": f"{change[0]:.0f} → {change[1]:.0f}" if change else None}
        sizes.add_row(*("" if value is None else str(value) for value in shown.values()))
    print(table_text(sizes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server instead of SQLite")
    parser.add_argument("--json", action="store_true", help="print all figures as one line of JSON")
    options = parser.parse_args()
    if options.weeks < 1:
        parser.error("--weeks must be at least 1")
    with scratch_database(postgres=options.postgres), sandbox(options.weeks, options.seed) as addresses:
        from arena_site.jobs import install
        from tests.benchmarks import promises
        from tests.benchmarks.measures import database_bytes, processor_seconds

        install()
        began = time.perf_counter()
        year = Year(options.weeks, f"{addresses['root']}/sandbox/clock")
        year.play()
        seconds = time.perf_counter() - began
        span: dict[str, Any] = {"starts": STARTS, "ends": STARTS + options.weeks * WEEK, "grid": SNAPSHOTS_EVERY}
        lines = promises.broken(year, **span)
        tables = table_rows(year, promises.predicted_rows(year, **span))
        early, last = promises.early(year.weeks), year.weeks[-1]
        summary = {
            "weeks": options.weeks,
            "database": "PostgreSQL" if options.postgres else "SQLite",
            "seconds": round(seconds, 1),
            "processor seconds": round(sum(sum(week.processor.values()) for week in year.weeks), 1),
            "of the sandbox": round(processor_seconds(int(addresses["pid"])), 1),
            "jobs enqueued": sum(year.enqueued.values()),
            "jobs failed": dict(+year.failures),
            "markets cancelled by hand": year.cancelled,
            "MiB on disk": round(database_bytes() / 2**20, 1),
            "MiB of memory": {f"week {week.number}": round(week.resident / 2**20, 1) for week in (early, last)},
            "descriptors": {f"week {week.number}": week.descriptors for week in (early, last)},
            "connections": {f"week {week.number}": week.connections for week in (early, last)},
            **promises.tally(),
        }
    if options.json:
        by_week = [asdict(week) for week in year.weeks]
        print(json.dumps(summary | {"tables": tables, "by week": by_week, "broken": lines}))
    else:
        show(year, tables)
        print("\n".join([*(f"{name}: {value}" for name, value in summary.items()), *lines]))
        print(f"{len(lines)} promises broken")
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
