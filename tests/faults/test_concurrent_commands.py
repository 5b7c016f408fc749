"""The same command started by four processes at the same instant leaves the same ledger as a single run."""

from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from tests.commands import CommandOutput
from tests.faults.ledger_state import differences
from tests.faults.processes import FIRST_WEEK, LINE_UP, SECOND_SUNDAY, CommandRunner, Step

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.each_database]

PROCESSES = 4
SEASON: list[Step] = [*FIRST_WEEK[:3], *SECOND_SUNDAY]
"""The first cohort's first decisions, and the Sunday after."""

COUNTS = {
    "run_decisions": ("asked", "trades"),
    "run_forecasts": ("asked", "recorded"),
    "check_resolutions": ("resolved", "cancelled", "positions_settled"),
}
"""Counts of commands' summaries; all processes together count each row once."""


class Season:
    """Two Sundays from an empty database, each command run by one process or by several at once."""

    def __init__(self, arena: CommandRunner, processes: int) -> None:
        name = arena.migrated(LINE_UP)
        self.ends: dict[Step, list[CommandOutput]] = {
            step: arena.run_concurrently(name, step, processes) for step in SEASON
        }
        self.ledger: dict[str, Any] = arena.ledger(name)
        self.rows: dict[str, Any] = arena.read(name, _rows)
        arena.database.drop(name)

    def total(self, command: str, key: str) -> int:
        ends = [end for (_, name), ends in self.ends.items() if name.split()[0] == command for end in ends]
        return sum(end.summary[key] for end in ends)


def _rows() -> dict[str, Any]:
    """Rows beside the ledger: calls per model, enrolled agents, payouts."""
    from agents.models import Agent, ModelCall, Settlement
    from cohorts.models import Cohort
    from markets.models import Market
    from scoring.models import Snapshot

    calls = ModelCall.objects.values_list(
        "decision__agent__cohort__number", "decision__agent__family__slug", "decision__week",
        "elicitation__batch__question_set__day", "elicitation__batch__number", "elicitation__batch__arm",
        "elicitation__family__slug", "attempt", "result",
    )  # fmt: skip
    return {
        "cohorts": list(Cohort.objects.order_by("number").values_list("number", "week_start", "status")),
        "agents": Counter(Agent.objects.values_list("cohort__number", "family__slug")),
        "calls": Counter(calls),
        "late calls": ModelCall.objects.filter(late=True).count(),
        "markets": Market.objects.count(),
        "payouts": Counter(Settlement.objects.values_list("position", flat=True)),
        "snapshots": Counter(Snapshot.objects.values_list("agent", "taken_at")),
    }


@pytest.fixture(scope="module")
def alone(arena: CommandRunner) -> Season:
    season = Season(arena, 1)
    assert season.ledger["trades"]
    assert season.ledger["settlements"]
    assert season.ledger["violations"] == []
    return season


@pytest.fixture(scope="module")
def together(arena: CommandRunner) -> Season:
    return Season(arena, PROCESSES)


def test_concurrent_runs_leave_the_ledger_of_a_single_run(alone: Season, together: Season) -> None:
    assert differences(alone.ledger, together.ledger) == []


def test_no_process_fails_where_a_lone_one_would_not(alone: Season, together: Season) -> None:
    exit_codes: dict[tuple[datetime, str], set[int]] = {}
    for step, ends in together.ends.items():
        (lone,) = alone.ends[step]
        worse = [end for end in ends if end.code not in (0, lone.code)]
        assert worse == [], f"{step[1]} at {step[0]}"
        exit_codes[step] = {end.code for end in ends}
    # What fails for one is reported by whoever met it.
    assert {step for step, codes in exit_codes.items() if 1 in codes} == {
        step for step, (lone,) in alone.ends.items() if lone.code == 1
    }
    complaints = " ".join(end.stderr for ends in together.ends.values() for end in ends)
    assert "locked" not in complaints
    assert "deadlock" not in complaints


def test_nothing_is_done_or_counted_twice(alone: Season, together: Season) -> None:
    assert together.rows["cohorts"] == alone.rows["cohorts"]
    assert set(together.rows["agents"].values()) == {1}
    assert together.total("start_cohort", "created") == 2
    assert together.rows["markets"] == alone.rows["markets"]
    assert together.rows["calls"] == alone.rows["calls"], "somebody was asked more often than by a lone run"
    assert together.rows["late calls"] == 0
    assert together.ledger["answers bought twice"] == []
    assert set(together.rows["payouts"].values()) == {1}
    assert set(together.rows["snapshots"].values()) == {1}
    assert sum(together.rows["snapshots"].values()) == sum(alone.rows["snapshots"].values())
    for command, keys in COUNTS.items():
        for key in keys:
            assert together.total(command, key) == alone.total(command, key), (command, key)
