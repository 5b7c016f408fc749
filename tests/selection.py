"""Tests that this run leaves out: deselected, counted and named at its end."""

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
    "nginx": ("nginx",),
    "systemd": ("systemd-analyze",),
}
"""The programs, the first that is here, that a marker needs. Packages of Debian have the same names."""
ALL = os.environ.get("ARENA_TESTS") == "all"
DATABASE_FIXTURES = {"db", "transactional_db", "django_db_setup", "migrated"}
NEED_A_SERVER = ("postgres", "postgres_only", "pgbouncer", "captured")
DESELECTED = pytest.StashKey[dict[str, list[str]]]()


def mark(item: pytest.Item) -> None:
    """Marks a test `sqlite_only` that can not fail on PostgreSQL alone."""
    if item.get_closest_marker("browser") or not differs_by_database(item):
        item.add_marker("sqlite_only")


def differs_by_database(item: pytest.Item) -> bool:
    """Whether a test can fail on one database and pass on the other: it needs the suite's.

    Thorough tests differ where processes meet, statements take values from outside, or SQL is the server's own.
    """
    if item.get_closest_marker("own_database"):
        return False
    if any(map(item.get_closest_marker, ("each_database", *NEED_A_SERVER))):
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


def program(marker: str) -> str | None:
    """The path of the program that the tests of a marker need."""
    return next(filter(None, map(shutil.which, PROGRAMS[marker])), None)


def missing() -> dict[str, str]:
    """For each marker whose tests cannot run here, what is missing."""
    marker, database = ("sqlite_only", "SQLite") if ON_POSTGRES else ("postgres_only", "PostgreSQL")
    reasons = {marker: f"run on {database} alone (see ARENA_TESTS_ON)"}
    if not ALL:
        reasons["thorough"] = "run in CI, or with ARENA_TESTS=all"
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
        for reason, tests in self.config.stash.get(DESELECTED, {}).items():
            terminalreporter.stats.setdefault("deselected", []).extend(map(_DeselectedTest, tests))
            terminalreporter.write_line(f"{len(tests)} tests {reason}", yellow=True)
