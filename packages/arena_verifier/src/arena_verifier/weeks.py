"""Returns by calendar week: the changes of a portfolio's value from Sunday to Sunday."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from arena_verifier.rows import ZERO, Tables

WEEK, LEAST_WEEK = timedelta(weeks=1), timedelta(days=1)
"""A week, and the least part of one that is a trial of its own."""
SNAPSHOT_MARKS = "snapshot marks"


def weekly_returns(tables: Tables) -> dict[int, dict[datetime, float]]:
    """Each agent's return by week, in per cent: changes of its value from Sunday to Sunday, the last up to now."""
    marks, returns = snapshot_marks(tables)[0], {}
    for pk, (start, end) in agent_spans(tables).items():
        agent = tables.by("agents")[pk]
        values = {sunday: total for sunday, (_, total) in marks.get(pk, {}).items()}
        returns[pk] = split_return(start, end, values.get, agent["total_value"], agent["starting_balance"])
    return returns


def agent_spans(tables: Tables) -> dict[int, tuple[datetime, datetime]]:
    """The start of each agent's cohort, and its completion, else the agent's newest snapshot."""
    newest, spans = snapshot_marks(tables)[1], {}
    for pk, agent in tables.by("agents").items():
        cohort = tables.by("cohorts", "number")[agent["cohort"]]
        start, completed = datetime.fromisoformat(cohort["week_start"]), cohort["completed_at"]
        spans[pk] = start, datetime.fromisoformat(completed) if completed else newest.get(pk, start)
    return spans


def snapshot_marks(tables: Tables) -> tuple[dict[int, dict[datetime, Any]], dict[int, datetime]]:
    """Each agent's last snapshot of each week, by the Sunday that ends it, and the time of its newest one."""
    if SNAPSHOT_MARKS not in tables.cache:
        marks: dict[int, dict[datetime, tuple[datetime, Decimal]]] = defaultdict(dict)
        newest: dict[int, datetime] = {}
        for row in tables.rows("snapshots"):
            pk, at = row["agent"], datetime.fromisoformat(row["taken_at"])
            sunday = week_end(at)
            marks[pk][sunday] = max(marks[pk].get(sunday, (at, ZERO)), (at, row["total_value"]))
            newest[pk] = max(newest.get(pk, at), at)
        tables.cache[SNAPSHOT_MARKS] = marks, newest
    return tables.cache[SNAPSHOT_MARKS]  # type: ignore[no-any-return]


def marked_sundays(start: datetime, end: datetime) -> Iterator[datetime]:
    """The Sundays at which the weeks of a span end, without its last one, which lasts for LEAST_WEEK at least."""
    sunday = start + WEEK
    while end - sunday >= LEAST_WEEK:
        yield sunday
        sunday += WEEK


def split_return(
    start: datetime, end: datetime, mark: Callable[[datetime], Decimal | None], value: Decimal, balance: Decimal
) -> dict[datetime, float]:
    """An agent's return by week, in per cent of its starting balance: the changes of its value from Sunday to Sunday.

    `mark` gives the value by a Sunday's 00:00 UTC; None where there is none, as if nothing had changed since. The last
    week ends now; what changed in less than LEAST_WEEK belongs to the week before, and a younger cohort has no week.
    """
    returns: dict[datetime, float] = {}
    sunday, before = start, balance
    for next_sunday in marked_sundays(start, end):
        total = mark(next_sunday)
        after = before if total is None else total
        returns[sunday] = float((after - before) / balance * 100)
        sunday, before = next_sunday, after
    if end - sunday >= LEAST_WEEK:
        returns[sunday] = float((value - before) / balance * 100)
    return returns


def week_end(at: datetime) -> datetime:
    """The Sunday, 00:00, at which the week of an instant ends; a Sunday's 00:00 is the end of its week."""
    before = at - timedelta(microseconds=1)
    midnight = before.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=(midnight.weekday() + 1) % 7) + WEEK


def instant_text(at: datetime) -> str:
    """An instant in UTC as archives hold it."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
