"""A year in the sandbox: `uv run python -m tests.benchmarks.year [--weeks 52] [--postgres] [--json] [--seed 0]`.

One process plays every job at its simulated time, on the clock of that time, against the bundled sandbox: 52 cohorts of
7 agents, models that fail or answer nonsense, markets that vanish or never end, and an operator who cancels the latter.
The grid is coarser than live: sync, resolutions and scores once a day, snapshots every 6 hours, decisions on Sunday
00:05 and 06:00, `prune` once a week. Prints time, memory and the size of every table, and a line for each violation
that `season_checks` finds: exit 1 if there is any.
"""

import argparse
import io
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any

from tests.benchmarks.environment import scratch_database

STARTS = datetime(2026, 3, 1, tzinfo=UTC)
DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
SNAPSHOTS_EVERY = timedelta(hours=6)
OPERATOR, SCORES = "operator", "compute_scores"
PATIENCE = timedelta(days=14)
"""How long an alert stands before the operator cancels its market."""


def timetable(weeks: int) -> Iterator[tuple[datetime, tuple[str, ...]]]:
    """The jobs that are enqueued at each instant, in order; the last instant is the end of the last week."""
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
    """What one week cost, and what stood at its end.

    seconds, processor : by job; the latter of this process alone, without the sandbox or a database server
    """

    number: int
    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    resident: int = 0
    descriptors: int = 0
    connections: int = 0
    rows: dict[str, int] = field(default_factory=dict)


class Year:
    """Plays the timetable and records what the checks need."""

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
        from rich.progress import track

        count = len(self.weeks)
        by_week = groupby(timetable(count), lambda step: min((step[0] - STARTS) // WEEK, count - 1))
        with httpx.Client(timeout=30) as client:
            for index, steps in track(by_week, "playing", total=count, console=Console(stderr=True)):
                for at, names in steps:
                    client.post(self.clock, json={"now": at.isoformat()}).raise_for_status()
                    for name in names:
                        self.enqueue(name, at, self.weeks[index])
                self.measure(self.weeks[index])

    def measure(self, week: Week) -> None:
        from tests.benchmarks.measures import connection_count, descriptor_count, resident_bytes, row_counts

        week.resident, week.descriptors, week.connections = resident_bytes(), descriptor_count(), connection_count()
        week.rows = row_counts()

    def enqueue(self, name: str, at: datetime, week: Week) -> None:
        """One job at its time, as a worker runs it: by its function, and with a row in django-q's record."""
        import time_machine
        from django_q.monitor import save_task

        self.enqueued[name] += 1
        began, began_processor = time.perf_counter(), time.process_time()
        with time_machine.travel(at, tick=True):
            if name == OPERATOR:
                self.cancelled += cancel_stuck_markets(at)
            else:
                result, failed = self.run(name, at)
                self.failures[name] += failed
                self.runs.append((at, failed))
                about = {"id": uuid.uuid4().hex, "name": name, "func": f"arena_site.jobs.{name}", "started": at}
                outcome_fields = {"stopped": datetime.now(UTC), "result": result, "success": not failed}
                save_task({"args": (), "kwargs": {}, "sync": True} | about | outcome_fields, self.broker)
        week.seconds[name] = week.seconds.get(name, 0.0) + time.perf_counter() - began
        week.processor[name] = week.processor.get(name, 0.0) + time.process_time() - began_processor

    def run(self, name: str, at: datetime) -> tuple[str, bool]:
        """The result of a job, and whether it failed: a model that is down fails a run, and is part of the year."""
        from django.core.management import call_command

        from arena_site import jobs

        if name == "prune":
            self.pruned_at = at
        if name == SCORES:
            output = io.StringIO()
            call_command(SCORES, at=at, json=True, stdout=output)
            return output.getvalue(), False
        try:
            return getattr(jobs, name)(), False
        except jobs.JobFailed as failure:
            return str(failure), True


def cancel_stuck_markets(at: datetime) -> int:
    """Cancels markets that have been gone, or closed without an end, for too long; returns how many."""
    from agents.services.resolutions import CANCELLATION
    from agents.services.settlement import settle_market
    from foundation.models import AlertItem
    from foundation.services.alerts import clear_alert
    from markets.models import Market

    cancelled = 0
    for item in list(AlertItem.objects.filter(cleared_at=None, alert__raised_at__lte=at - PATIENCE)):
        market = Market.objects.unsettled().filter(external_id=item.subject).first()
        if market is not None:
            cancelled += settle_market(market, CANCELLATION, at=at) is not None
        clear_alert(item.kind, [item.subject], at=at)
    return cancelled


def job_rows(year: Year) -> list[dict[str, Any]]:
    """Seconds and processor seconds a week of each job, in the first and the last weeks."""
    from tests.benchmarks.season_checks import first_and_last

    return [
        {"job": job, "runs": year.enqueued[job]}
        | {
            f"{title}, {end}": round(sum(getattr(week, title).get(job, 0.0) for week in weeks) / len(weeks), 2)
            for title in ("seconds", "processor")
            for end, weeks in zip(("first", "last"), first_and_last(year.weeks), strict=True)
        }
        for job in sorted(year.enqueued)
    ]


def table_rows(year: Year, predicted: dict[str, int]) -> list[dict[str, Any]]:
    """Each table that holds anything, the largest first."""
    from tests.benchmarks.measures import table_bytes
    from tests.benchmarks.season_checks import rows_a_week

    sizes, rows = table_bytes(), year.weeks[-1].rows
    return [
        {
            "table": table,
            "rows": rows[table],
            "at most": predicted.get(table),
            "bytes a row": round(sizes[table] / rows[table]),
            "rows a week, then and last": rows_a_week(year.weeks, table),
            "MiB": round(sizes[table] / 2**20, 2),
        }
        for table in sorted(rows, key=lambda table: -sizes.get(table, 0))
        if rows[table]
    ]


def print_table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    from foundation.commands import table_text

    table = Table()
    for place, heading in enumerate(rows[0]):
        table.add_column(heading, justify="right" if place else "left")
    for row in rows:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    print(table_text(table))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server instead of SQLite")
    parser.add_argument("--json", action="store_true", help="print all figures as one line of JSON")
    options = parser.parse_args()
    if options.weeks < 1:
        parser.error("--weeks must be at least 1")
    with ExitStack() as stack:
        stack.enter_context(scratch_database(postgres=options.postgres))
        from django.test import override_settings

        from arena_site.jobs import install
        from tests.benchmarks import season_checks
        from tests.benchmarks.measures import database_bytes
        from tests.faults.processes import sandbox

        addresses = stack.enter_context(sandbox(options.seed, options.weeks))
        bases = {f"{name.upper()}_BASE_URL": addresses[name] for name in ("gamma", "clob", "openrouter")}
        stack.enter_context(override_settings(**bases))
        install()
        began = time.perf_counter()
        year = Year(options.weeks, f"{addresses['root']}/sandbox/clock")
        year.play()
        seconds = time.perf_counter() - began
        span: dict[str, Any] = {"starts": STARTS, "ends": STARTS + options.weeks * WEEK, "grid": SNAPSHOTS_EVERY}
        violations = season_checks.violations(year, **span)
        tables = table_rows(year, season_checks.predicted_rows(year, **span))
        early, last = season_checks.early(year.weeks), year.weeks[-1]
        summary = {
            "weeks": options.weeks,
            "database": "PostgreSQL" if options.postgres else "SQLite",
            "seconds": round(seconds, 1),
            "processor seconds": round(sum(sum(week.processor.values()) for week in year.weeks), 1),
            "jobs enqueued": sum(year.enqueued.values()),
            "jobs failed": dict(+year.failures),
            "markets cancelled by hand": year.cancelled,
            "MiB on disk": round(database_bytes() / 2**20, 1),
            "MiB of memory": {f"week {week.number}": round(week.resident / 2**20, 1) for week in (early, last)},
            "descriptors": {f"week {week.number}": week.descriptors for week in (early, last)},
            "connections": {f"week {week.number}": week.connections for week in (early, last)},
            **season_checks.tally(),
        }
    if options.json:
        by_week = [asdict(week) for week in year.weeks]
        print(json.dumps(summary | {"tables": tables, "by week": by_week, "violations": violations}))
    else:
        print_table(job_rows(year))
        print_table(tables)
        print("\n".join([*(f"{name}: {value}" for name, value in summary.items()), *violations]))
        print(f"{len(violations)} violations")
    return int(bool(violations))


if __name__ == "__main__":
    raise SystemExit(main())
