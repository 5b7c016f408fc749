"""Markers set by path, and tests that this machine cannot run: deselected, counted and named at the end of the run."""

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.captured import CAPTURED
from tests.databases import ON_POSTGRES

TESTS = Path(__file__).parent
PROGRAMS = {
    "browser": ("chromium-headless-shell", "chromium"),  # the shell takes two thirds of the processor time
    "redis": ("redis-server",),
    "pgbouncer": ("pgbouncer",),
}
"""The programs, the first that is here, that the tests of a marker need; Debian's packages have the same names."""
SLOW = (
    "season/test_demo.py",
    "faults/test_kills.py",
    "faults/test_answer_storage.py",
    "season/test_sandbox_faults.py",
    "faults/test_clock.py",
    "faults/test_queue.py",
    "faults/test_concurrent_commands.py",
    "arena_site/test_schemathesis.py",
    "arena_site/test_arena_start.py",
    "faults/test_upstream.py",
    "faults/test_upstream_answers.py",
    "faults/test_upstream_fields.py",
    "faults/test_upstream_pages.py",
    "faults/test_readers.py",
    "faults/test_slow_clients.py",
    "faults/test_outages.py",
    "season/test_year.py",
    "arena_site/test_postgres_pool.py",
    "arena_site/test_pgbouncer.py",
    "benchmarks/test_generator.py",
    "agent_kit/test_run.py",
    "agent_kit/test_live_arena.py",
    "season/test_figures_of_every_page.py",  # plays the season, for which the others that read it would wait
    "season/test_sealed_answers.py",
    "arena_site/test_settings.py",
    "forecast_rank/ranking/test_plots.py",
    "scoring/exports/test_proofs.py",  # makes the archives
    "browser/test_accessibility.py",
    "arena_site/test_admin.py",
    "browser/test_dashboard.py",
    "season/test_settlement.py",
    "season/test_forecasts.py",
    "browser/test_pages.py",
    "arena_site/dashboard/test_actions.py",
    "season/test_decisions.py",
    "season/test_voided_options.py",
    "scoring/test_forecast_leaderboards.py",
    "scoring/exports/test_standalone_verifier.py",
    "scoring/exports/test_verification.py",
    "scoring/exports/test_rehearse.py",
    "arena_site/test_backup.py",
    "arena_site/test_api_lists.py",
    "arena_site/test_api.py",
    "arena_site/test_reads_write_nothing.py",
    "scoring/test_past_leaderboards.py",
    "scoring/test_datasets.py",
    "agents/test_receipts.py",
    "arena_site/test_record.py",
    "arena_site/pages/test_board_pages.py",
    "arena_site/test_doctor.py",
    "arena_site/test_reads.py",
    "scoring/test_agents_boards.py",
    "season/test_figures_of_records.py",
    "season/test_figures_of_comparisons.py",
    "season/test_figures_of_agents.py",
    "season/test_figures_of_leaderboards.py",
    "season/test_figures_of_methodologies.py",
    "season/test_same_number.py",
    "browser/test_admin.py",
    "arena_site/test_sandbox.py",
    "arena_site/test_migrations.py",
    "agent_kit/test_evaluate.py",
    "forecast_rank/metrics/test_irt.py",
    "scoring/exports/test_export_dataset.py",
    "scoring/test_snapshot_cost.py",
)
"""The files that take longest, in the order in which they run, first of all."""
THOROUGH = (
    "agent_kit/test_live_arena.py",
    "agent_kit/test_run.py",
    "arena_site/test_arena_start.py",
    "arena_site/test_image.py",
    "arena_site/test_pgbouncer.py",
    "arena_site/test_postgres_pool.py",
    "arena_site/test_schemathesis.py",
    "benchmarks/test_generator.py",
    "faults/test_answer_storage.py",
    "faults/test_clock.py",
    "faults/test_concurrent_commands.py",
    "faults/test_kills.py",
    "faults/test_outages.py",
    "faults/test_queue.py",
    "faults/test_readers.py",
    "faults/test_slow_clients.py",
    "faults/test_upstream.py",
    "faults/test_upstream_answers.py",
    "faults/test_upstream_fields.py",
    "faults/test_upstream_pages.py",
    "season/test_demo.py",
    "season/test_sandbox_faults.py",
    "season/test_year.py",
)
"""Kills, clocks, clusters, memory, whole demos, servers that hang, made-up requests: in CI, not by `pytest` alone.

Single tests of other files have the marker `thorough`.
"""
ALL = os.environ.get("ARENA_TESTS") == "all"
THOROUGH_REASON = "run in CI, or with ARENA_TESTS=all"
OWN_DATABASE = (
    "arena_site/test_arena_start.py",
    "arena_site/test_image.py",
    "arena_site/test_settings.py",
    "faults/test_answer_storage.py",
    "season/test_demo.py",
    "scoring/exports/test_standalone_verifier.py",
    "scoring/exports/test_proofs.py",
    "scoring/exports/test_rehearse.py",
)
"""Tests of files and processes that have a database of their own, whatever the suite runs on."""
ON_EACH_DATABASE = (
    "arena_site/test_backup.py",
    "arena_site/test_migrations.py",
    "arena_site/test_schemathesis.py",
    "faults/",
)
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup", "migrated"}
NEED_A_SERVER = ("postgres", "postgres_only", "pgbouncer", "captured")
DESELECTED = pytest.StashKey[dict[str, list[str]]]()


def mark(item: pytest.Item) -> None:
    """Marks a test `slow`, `thorough`, `browser` or `sqlite_only` by its file."""
    path = item.path.relative_to(TESTS).as_posix()
    if path in SLOW:
        item.add_marker("slow")
    if path in THOROUGH:
        item.add_marker("thorough")
    if path.startswith("browser/"):
        item.add_marker("browser")
    if path.startswith("browser/") or not differs_by_database(item, path):
        item.add_marker("sqlite_only")


def differs_by_database(item: pytest.Item, path: str) -> bool:
    """Whether a test can fail on one database and pass on the other: it needs the suite's.

    Thorough tests differ where processes meet, statements take values from outside, or SQL is the server's own.
    """
    if path.startswith(OWN_DATABASE):
        return False
    if path.startswith(ON_EACH_DATABASE) or any(map(item.get_closest_marker, NEED_A_SERVER)):
        return True
    if item.get_closest_marker("thorough"):
        return False
    return bool(item.get_closest_marker("django_db") or DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())))


def chosen(choice: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """The cases of a parametrised test, of which those that are not of the choice are thorough."""
    parameters = []
    for case in cases:
        marks = [] if case in choice else [pytest.mark.thorough]
        values = case if isinstance(case, tuple) else (case,)
        parameters.append(pytest.param(*values, marks=marks))
    return parameters


def one_per_rule(cases: Iterable[Any], rule: Callable[[Any], Hashable]) -> list[Any]:
    """The cases of a parametrised test; those of a rule of which there has been one already are thorough."""
    cases = list(cases)
    return chosen(some_of_each(cases, rule, 1), cases)


def sample_and_all(items: Iterable[Any], rule: Callable[[Any], Hashable]) -> list[Any]:
    """The two cases of a test that loops over items: the first item of each rule and, thorough, all items."""
    items = list(items)
    sample = pytest.param(some_of_each(items, rule, 1), id="one-of-each")
    return [sample, pytest.param(items, id="all", marks=pytest.mark.thorough)]


EVERY = sys.maxsize
some_or_every = pytest.mark.parametrize(
    "of_each", [pytest.param(2, id="some"), pytest.param(EVERY, id="every", marks=pytest.mark.thorough)]
)
"""For a test that walks over pages or rows: how many of each kind it takes."""


def some_of_each(items: Iterable[Any], kind: Callable[[Any], Hashable], most: int) -> list[Any]:
    """The first `most` items of each kind, in their order."""
    counts = Counter[Hashable]()
    selection = []
    for item in items:
        counts[kind(item)] += 1
        if counts[kind(item)] <= most:
            selection.append(item)
    return selection


def examples(number: int) -> int:
    """How many examples a property is tried on: a sixth of them where the thorough tests are left out."""
    return number if ALL else max(5, number // 6)


def is_ignored(path: Path) -> bool:
    """Whether a file is not even read: its tests are thorough, and each worker collects all files."""
    return not ALL and path in [TESTS / name for name in THOROUGH]


def program(marker: str) -> str | None:
    """The path of the program that the tests of a marker need."""
    return next(filter(None, map(shutil.which, PROGRAMS[marker])), None)


def missing() -> dict[str, str]:
    """For each marker whose tests cannot run here, what is missing."""
    marker, database = ("sqlite_only", "SQLite") if ON_POSTGRES else ("postgres_only", "PostgreSQL")
    reasons = {marker: f"run on {database} alone (see ARENA_TESTS_ON)"}
    if not ALL:
        reasons["thorough"] = THOROUGH_REASON
    if not CAPTURED.is_dir():
        reasons["captured"] = f"compare with captured files, which are not here ({CAPTURED})"
    for marker, (name, *_) in PROGRAMS.items():
        if program(marker) is None and os.environ.get("CI") != "true":  # under CI they fail
            reasons[marker] = f"need {name}, which is not here (apt-get install {name})"
    return reasons


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Removes from `items` the tests for which something is missing."""
    removed: dict[str, list[str]] = {}
    selected, reasons = [], missing()
    for item in items:
        reason = next((reason for marker, reason in reasons.items() if item.get_closest_marker(marker)), None)
        if reason is None:
            selected.append(item)
        else:
            removed.setdefault(reason, []).append(item.nodeid)
    items[:] = selected
    config.stash[DESELECTED] = removed


@dataclass
class _DeselectedTest:
    """Stands for a test in the counts of the closing line."""

    nodeid: str


class Summary:
    """Reports the deselected tests, also when pytest-xdist's workers collected them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["deselected"] = self.config.stash.get(DESELECTED, {})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Each worker collects the whole suite.
        self.config.stash[DESELECTED] = getattr(node, "workeroutput", {}).get("deselected", {})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not ALL:
            terminalreporter.write_line(f"{len(THOROUGH)} files {THOROUGH_REASON}", yellow=True)
        for reason, tests in self.config.stash.get(DESELECTED, {}).items():
            terminalreporter.stats.setdefault("deselected", []).extend(map(_DeselectedTest, tests))
            terminalreporter.write_line(f"{len(tests)} tests {reason}", yellow=True)
