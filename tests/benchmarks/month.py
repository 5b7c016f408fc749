"""A month in which everything breaks: `nice uv run python -m tests.benchmarks.month [--days 30] [--seed 0]`.

The jobs of the schedule at their times, on a coarser grid and a clock of March 2026, on a PostgreSQL database of its
own: against the sandbox, through a proxy that breaks answers. Services are away or refuse the account, a catalogue
becomes unreadable, a result changes, a release ends, runs are killed, an operator mistypes, settles and approves, an
agent from outside answers. Every day ends with `verify_ledger`, every week with an archive and both of its verifiers.
Prints what happened; exits 1 if a rule was broken or an expected alert did not come. Thirty days take twenty minutes
of processor time.
"""

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psycopg
import time_machine

from tests.benchmarks import month_plan
from tests.benchmarks.environment import set_up_production
from tests.benchmarks.month_plan import DAY, STARTS, Targets, timetable, troubles
from tests.benchmarks.year import print_table
from tests.databases import PROJECT, DatabaseCopies, postgres_url
from tests.faults.breaking_proxy import ALERTS, BY_CHANCE, Break, BreakingProxy, Edit
from tests.faults.processes import CommandRunner, Kill, sandbox

MIGRATION_S = 120
GRACE, PATIENCE = 2 * DAY, 8 * DAY
"""How long after the end of a fault, and after the beginning of one that lasts, an alert may still come."""


class Month:
    """The arena and all that befalls it; `violations` has a line for each rule that was broken."""

    def __init__(self, proxy: BreakingProxy, runner: CommandRunner, database: str, folder: Path) -> None:
        self.proxy, self.runner, self.database, self.folder = proxy, runner, database, folder
        self.violations: list[str] = []
        self.ran, self.codes, self.verifications = Counter[str](), Counter[str](), Counter[str]()
        self.seconds = defaultdict[str, float](float)
        """What each command took together."""
        self.expected: dict[tuple[str, str], tuple[datetime, datetime]] = {}
        """From when to when an alert must be raised, by its cause and its kind."""
        self.targets = Targets()
        self.tokens: dict[str, str] = {}

    # the play

    def play(self, days: int) -> None:
        for track in month_plan.VISITORS:
            ran = self.command("register_agent", f"Visitor {track}", "--track", track, at=STARTS - DAY)
            self.tokens[track] = ran["token"]
        for day in (STARTS + number * DAY for number in range(days)):
            began = time.monotonic()
            for at, name, *arguments in timetable(day):
                self.set_services(at)
                started = time.monotonic()
                with time_machine.travel(at, tick=True):
                    try:
                        getattr(self, name)(*arguments, at=at)
                    except Exception:
                        self.violate(f"{at:%a %d %H:%M}: {traceback.format_exc()[-1500:]}")
                if name == "job":
                    self.seconds[arguments[0]] += time.monotonic() - started
            note(f"{day:%a %d} {time.monotonic() - began:.0f} s, {sum(self.ran.values())} commands")

    def set_services(self, at: datetime) -> None:
        self.runner.set_clock(at)
        breaks, edits = list[Break](), list[Edit]()
        for trouble in troubles(self.targets):
            if not trouble.first <= at < trouble.last:
                continue
            self.expect(trouble.fault.name, *trouble.alerts, since=trouble.first, until=trouble.last)
            if isinstance(trouble.fault, Edit):
                edits.append(trouble.fault)
            else:
                breaks.append(trouble.fault)
        self.proxy.breaks, self.proxy.edits = [*breaks, *BY_CHANCE], edits

    def expect(self, cause: str, *kinds: str, since: datetime, until: datetime) -> None:
        self.expected |= {(cause, kind): (since, until + GRACE) for kind in kinds}

    def job(self, name: str, at: datetime) -> None:
        """A job as a worker runs it, or killed in a process of its own where the plan says so."""
        from arena_site import jobs
        from arena_site.operations.conditions import refresh_conditions
        from arena_site.operations.notices import send_notices
        from foundation.services.runs import mark_lost_runs
        from markets.services.venue_health import refresh_stale_prices

        self.ran[name] += 1
        victim, point = month_plan.KILLS.get((at - STARTS) // DAY, ("", ""))
        if name == victim and not self.proxy.thrown[f"kill -9 at {point}"]:
            child = self.runner.start(self.database, lambda: len(getattr(jobs, name)()), Kill(point))
            child.join()
            self.proxy.thrown[f"kill -9 at {point}"] += child.exitcode == -signal.SIGKILL
            if self.proxy.thrown[f"kill -9 at {point}"]:
                self.expect(f"kill -9 at {point}", "job-failed", since=at, until=at)
            mark_lost_runs(now=datetime.now(UTC))
        else:
            try:
                getattr(jobs, name)()
                self.codes["0"] += 1
            except jobs.JobFailed as failure:
                self.codes["1"] += 1
                note(f"{at:%a %d %H:%M} {str(failure)[:200]}")
        if name == "sync":  # at other times its prices are old on this grid
            refresh_stale_prices(at=datetime.now(UTC))
            refresh_conditions(now=datetime.now(UTC))
        send_notices(now=datetime.now(UTC))

    def command(self, name: str, *arguments: str, at: datetime) -> Any:
        from tests.commands import run

        self.ran[name] += 1
        started = time.monotonic()
        with time_machine.travel(at, tick=True):
            output = run(name, None, *arguments)
        self.seconds[name] += time.monotonic() - started
        self.codes[str(output.code)] += 1
        if output.code:
            note(f"{at:%a %d %H:%M} {name}: {output.stderr[:200]}")
        return output

    # people

    def visit(self, track: str, at: datetime) -> None:
        """The agent from outside of a track answers whatever is open."""
        from tests.season.full_season import submit

        submit(self.tokens[track], month_plan.visitors_answer, at=at)

    def operate(self, at: datetime) -> None:
        """The operator does what open alerts ask for: settles what is stuck, approves a line-up, closes the rest."""
        from foundation.models import Alert, AlertItem
        from foundation.services.alerts import acknowledge_alerts
        from markets.models import Market
        from tests.arena_site.dashboard.accounts import outcome_form, perform, sign_in

        open_items = AlertItem.objects.filter(cleared_at=None)
        for subject in open_items.filter(kind="closed-unresolved").values_list("subject", flat=True):
            market = Market.objects.get(external_id=subject.rpartition(" ")[2])
            response = perform(sign_in("operator"), "settle", **outcome_form(market, market.outcomes.first().side))
            self.proxy.thrown["a manual settlement"] += response.status_code == 302
        if at.weekday() == 6 and open_items.filter(kind="release-unusable").exists():
            self.command("approve_lineup", at=at)
        acknowledge_alerts(Alert.objects.open().filter(kind="tasks-missed"), at=at)

    def mistype(self, at: datetime) -> None:
        output = self.command("sync_markets", "--at", f"{at + 365 * DAY:%Y-%m-%dT%H:%M:%SZ}", at=at)
        self.proxy.thrown["a wrong --at"] += 1
        if output.code != 2:
            self.violate(f"a wrong --at ended with {output.code}")

    def migrate_under_lock(self, at: datetime) -> None:
        """`migrate` in a process of its own while somebody holds the trades; it must end, and leave every guard."""
        self.proxy.thrown["a lock during migrate"] += 1
        with psycopg.connect(self.runner.database.address(self.database)) as holder:
            holder.execute("LOCK TABLE agents_trade IN ACCESS EXCLUSIVE MODE")
            command = [sys.executable, "manage.py", "migrate", "-v0"]
            ran = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=MIGRATION_S)
        note(f"migrate under a lock ended with {ran.returncode}: {ran.stderr.strip()[-200:]}")

    def void(self, at: datetime) -> None:
        from agents.models import Position

        self.targets.voided.add(Position.objects.open().filter(market__status="active").first().market.external_id)

    def change(self, at: datetime) -> None:
        from markets.models import Market

        market = Market.objects.filter(source="polymarket", status="resolved").order_by("resolved_at").last()
        self.targets.changed.add(market.external_id)

    def announce_end(self, at: datetime) -> None:
        body = {"id": month_plan.ENDING, "ends": f"{at + 2 * DAY:%Y-%m-%d}", "successor": month_plan.SUCCESSOR}
        httpx.post(f"{self.runner.addresses['root']}/sandbox/models", json=body).raise_for_status()
        self.proxy.thrown["a release gone"] += 1
        self.expect(
            "a release gone", "release-gone", "release-unusable", "line-up-proposed", since=at, until=at + 7 * DAY
        )

    def check(self, at: datetime) -> None:
        """The rules of every day; on Saturdays an archive, too."""
        from foundation.models import Alert, Run
        from tests.faults.ledger_state import answers_bought_twice

        output = self.command("verify_ledger", at=at)
        self.verify("verify_ledger", at, output.code, output.stdout)
        for key in answers_bought_twice():
            self.violate(f"{at:%a %d}: bought twice: {key}")
        for run in Run.objects.filter(started_at__gte=at - DAY, status__in=("failed", "lost")).defer("log"):
            kinds = month_plan.TOLD_BY.get(run.kind, {"job-failed"})
            alerts = Alert.objects.filter(kind__in=kinds, raised_at__lte=run.finished_at)
            if not alerts.exclude(cleared_at__lt=run.started_at).exists():
                self.violate(f"{at:%a %d}: nobody was told that {run.kind} {run.status}: {run.error[:200]}")
        if at.weekday() == 5:
            archive = str(self.folder / f"{at:%Y-%m-%d}")
            for name, *arguments in (("export_dataset", "--out", archive), ("verify_export", archive)):
                output = self.command(name, *arguments, at=at)
                self.verify(name, at, output.code, output.stdout + output.stderr)
            program = [sys.executable, f"{archive}/verify_arena.py", archive]
            ran = subprocess.run(program, capture_output=True, text=True)
            self.verify("verify_arena.py", at, ran.returncode, ran.stdout + ran.stderr)

    def verify(self, name: str, at: datetime, code: int, output: str) -> None:
        self.verifications[name] += 1
        if code:
            self.violate(f"{at:%a %d}: {name} ended with {code}: {output[-2000:]}")

    def violate(self, line: str) -> None:
        self.violations.append(line)
        note("VIOLATION", line)

    def report(self, seconds: float, end: datetime) -> bool:
        """Prints the figures; True without a violation."""
        from agents.models import ModelCall, Receipt
        from markets.models import Market

        opened = [message for message in self.proxy.alerts if message["status"] == "open"]
        for (cause, kind), (since, until) in sorted(self.expected.items()):
            raised = [m["raised_at"] for m in opened if m["kind"] == kind]
            is_told = any(since <= datetime.fromisoformat(instant) <= until for instant in raised)
            if not is_told and end >= min(until, since + PATIENCE):
                self.violate(f"{cause}: no alert {kind} told of it")
        for market in Market.objects.filter(external_id__in=self.targets.voided).exclude(status="cancelled"):
            self.violate(f"{market}: voided by its venue, and {market.status} here")
        calls = Counter(ModelCall.objects.values_list("result", flat=True))
        calls["from outside"] = Receipt.objects.count()
        parts = {
            "commands": self.ran, "exit codes": self.codes, "faults": self.proxy.thrown, "answers": calls,
            "expected alerts": Counter(kind for _, kind in self.expected),
            "alerts": Counter(message["kind"] for message in opened), "verifications": self.verifications,
        }  # fmt: skip
        rows = []
        for part, counts in parts.items():
            rows.append({"": part, "of which": "all", "count": sum(counts.values()), "seconds": None})
            for name, count in sorted(counts.items()):
                took = round(self.seconds[name]) if part == "commands" else None
                rows.append({"": "", "of which": name, "count": count, "seconds": took})
        rows.append({"": "violations", "of which": "all", "count": len(self.violations), "seconds": round(seconds)})
        print_table(rows)
        return not self.violations


note = partial(print, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # leaves no database behind
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="arena-month-")))
        databases = stack.enter_context(DatabaseCopies(postgres_url(), folder))
        addresses = stack.enter_context(sandbox(options.seed))
        proxy = BreakingProxy(addresses["root"], options.seed)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        behind_proxy = {name: address.replace(addresses["root"], proxy.url) for name, address in addresses.items()}
        database = databases.fresh()
        prepare(databases.address(database), month_plan.settings(behind_proxy, proxy.url + ALERTS, folder))
        runner = CommandRunner(behind_proxy | {"root": addresses["root"]}, databases, lambda: None)
        month = Month(proxy, runner, database, folder)
        began = time.monotonic()
        month.play(options.days)
        is_sound = month.report(time.monotonic() - began, STARTS + options.days * DAY)
        from django.db import connections

        connections.close_all()
    return int(not is_sound)


def prepare(url: str, settings: Mapping[str, str]) -> None:
    """Sets up Django as in production, with these settings, and migrates the database."""
    os.environ |= settings
    set_up_production(url)
    from django.core.management import call_command

    with time_machine.travel(STARTS - 2 * DAY, tick=True):
        call_command("migrate", verbosity=0, stdout=io.StringIO())


if __name__ == "__main__":
    raise SystemExit(main())
