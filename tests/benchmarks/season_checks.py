"""Checks of a long season: a ledger that adds up, no week unrecorded, tables and process no bigger than predicted."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from io import StringIO
from typing import TYPE_CHECKING

from django.core.management import call_command
from django.db import models
from django_q.conf import Conf

from agents.models import Agent, Decision, ModelCall, Position, Settlement
from cohorts.models import Cohort, MissedWeek
from scoring.services.retention import DAY, FAILED_RUNS, HOURLY, PRICES_FINE, RUNS
from venue_sandbox.catalogue import Market, load_season
from venue_sandbox.editions import extend_season

if TYPE_CHECKING:
    from tests.benchmarks.year import Week, Year

MEMORY_MAY_GROW = 1.3
"""From week 10 to the end."""
ROWS_MAY_GROW = 1.25
"""What a week adds to a table that is kept for ever, later over earlier. Editions of six weeks are not all alike."""
TIME_MAY_GROW = 2.0
"""Processor time of the last ten weeks over that of the first ten, in four of which cohorts were still few."""
DESCRIPTORS_MAY_GROW = 2
ROUGHLY = 1.02
FILLED_BY = 5
"""Weeks until as many cohorts decide as ever will."""
ROUNDS = 6
"""Weeks after which the sandbox's season recurs: fewer tell nothing about a trend."""


def violations(year: "Year", *, starts: datetime, ends: datetime, grid: timedelta) -> list[str]:
    """A line for each check that the played season failed."""
    return [
        *ledger_violations(ends),
        *unrecorded_weeks(starts, ends),
        *decision_violations(ends),
        *process_growth(year.weeks),
        *table_growth(year.weeks),
        *tables_beyond_prediction(year.weeks[-1].rows, predicted_rows(year, starts=starts, ends=ends, grid=grid)),
    ]


def ledger_violations(ends: datetime) -> Iterator[str]:
    """The lines that `verify_ledger` prints before its summary."""
    output = StringIO()
    with suppress(SystemExit):
        call_command("verify_ledger", at=ends, json=True, stdout=output, stderr=StringIO())
    yield from (f"ledger: {violation}" for violation in output.getvalue().splitlines()[:-1])


def unrecorded_weeks(starts: datetime, ends: datetime) -> Iterator[str]:
    """Weeks without a cohort that nobody recorded, cohorts that are over and do not know it."""
    cohort_weeks = set(Cohort.objects.values_list("week_start", flat=True))
    missed = set(MissedWeek.objects.values_list("week_start", flat=True))
    for number in range((ends - starts) // timedelta(weeks=1)):
        week = starts + timedelta(weeks=number)
        if week not in cohort_weeks | missed:
            yield f"week of {week:%Y-%m-%d}: no cohort, and not recorded as missed"
    holding = set(Position.objects.open().values_list("agent__cohort", flat=True))
    for cohort in Cohort.objects.active().select_related("methodology"):
        if cohort.decisions_end_at <= ends and cohort.pk not in holding:
            yield f"cohort {cohort.number}: its weeks are over, nobody holds anything, and it is not completed"


def decision_violations(ends: datetime) -> Iterator[str]:
    """Decisions made twice, carried out twice, never ended or never made."""
    times = models.Count("pk")
    twice = Decision.objects.order_by().values("agent", "week").annotate(times=times).filter(times__gt=1)
    for row in twice:
        yield f"agent {row['agent']}: {row['times']} decisions for week {row['week']}"
    answers = ModelCall.objects.filter(result=ModelCall.Result.ANSWERED, late=False).order_by()
    for row in answers.values("decision").annotate(times=times).filter(times__gt=1):
        yield f"decision {row['decision']}: {row['times']} answers were carried out"
    unfinished = Decision.objects.exclude(status__in=(Decision.Status.COMPLETED, Decision.Status.MISSED))
    for decision in unfinished.filter(universe__frozen_at__lt=ends - DAY):
        yield f"decision {decision.pk} of agent {decision.agent_id}: {decision.status} though its window is over"
    for cohort in Cohort.objects.select_related("methodology"):
        due_weeks = min(cohort.decision_week(ends - DAY), cohort.methodology.decision_weeks)
        active_agents = cohort.agents.exclude(status=Agent.Status.BANKRUPT)
        for agent in active_agents.annotate(made=models.Count("decisions")).exclude(made=due_weeks):
            yield f"{agent} in cohort {cohort.number}: {agent.made} decisions, {due_weeks} were due"


def process_growth(weeks: "Sequence[Week]") -> Iterator[str]:
    """Memory, descriptors, connections and time that grew more than allowed."""
    earlier, last = early(weeks), weeks[-1]
    if last.resident > earlier.resident * MEMORY_MAY_GROW:
        grown = last.resident / earlier.resident
        yield f"memory: {grown:.2f} times that of week {earlier.number}, {MEMORY_MAY_GROW} are allowed"
    if last.descriptors > earlier.descriptors + DESCRIPTORS_MAY_GROW:
        yield f"descriptors: {last.descriptors} at the end, {earlier.descriptors} in week {earlier.number}"
    if last.connections > earlier.connections:
        yield f"connections: {last.connections} at the end, {earlier.connections} in week {earlier.number}"
    first, late = (sum(sum(week.processor.values()) for week in part) for part in first_and_last(weeks))
    if len(weeks) >= FILLED_BY + 2 * ROUNDS and late > first * TIME_MAY_GROW:
        yield f"time: the last weeks take {late / first:.2f} times the first ones', {TIME_MAY_GROW} are allowed"


def early(weeks: "Sequence[Week]") -> "Week":
    """The week with which the end is compared: the tenth, by which everything has been loaded once."""
    return weeks[min(10, len(weeks)) - 1]


def first_and_last(weeks: "Sequence[Week]") -> "tuple[Sequence[Week], Sequence[Week]]":
    """The first ten and the last ten weeks, or halves of what there is."""
    length = max(1, min(10, len(weeks) // 2))
    return weeks[:length], weeks[-length:]


def rows_a_week(weeks: "Sequence[Week]", table: str) -> tuple[float, float] | None:
    """Rows that a week adds to a table: in ten weeks once all cohorts play, in the last ten; None if there are few."""
    length = min(10, (len(weeks) - FILLED_BY) // 2)
    if length < ROUNDS:
        return None
    rows = [week.rows[table] for week in weeks]
    early = rows[FILLED_BY + length - 1] - rows[FILLED_BY - 1]
    late = rows[-1] - rows[-1 - length]
    return early / length, late / length


def table_growth(weeks: "Sequence[Week]") -> Iterator[str]:
    """Tables kept for ever that a week adds more and more to."""
    for table in PERMANENT_TABLES:
        change = rows_a_week(weeks, table)
        if change and change[1] > max(change[0], 1) * ROWS_MAY_GROW:
            yield f"{table}: {change[1]:.0f} rows a week at the end, {change[0]:.0f} before: more than level"


PERMANENT_TABLES = (
    "agents_agent",
    "agents_decision",
    "agents_instruction",
    "agents_journalentry",
    "agents_modelcall",
    "agents_position",
    "agents_settlement",
    "agents_trade",
    "cohorts_cohort",
    "foundation_alert",
    "markets_market",
    "markets_outcome",
    "markets_universe",
    "markets_universeentry",
    "scoring_brierscore",
)
"""Tables that grow by as much every week."""


def predicted_rows(year: "Year", *, starts: datetime, ends: datetime, grid: timedelta) -> dict[str, int]:
    """How many rows each table may have at most, from what was played and what is kept for how long."""
    weeks = (ends - starts) // timedelta(weeks=1)
    agents = sum(len(cohort.agents.all()) for cohort in Cohort.objects.prefetch_related("agents"))
    season = extend_season(load_season(), weeks)
    listed = [market for market in season.markets if market.lists <= ends]
    deciding = sum(min(FILLED_BY, weeks - number) for number in range(weeks))
    return {
        "cohorts_cohort": weeks,
        "agents_agent": agents,
        "agents_decision": deciding * agents // weeks,
        "markets_universe": weeks,
        "markets_market": len(listed),
        "markets_outcome": sum(len(market.outcomes) for market in listed),
        "foundation_run": _runs(year.runs, year.pruned_at),
        "markets_priceobservation": _prices(listed, year.pruned_at, starts, ends, grid),
        "scoring_snapshot": _snapshots(year.pruned_at, ends, grid),
        "scoring_leaderboard": 2,
        "django_q_task": Conf.SAVE_LIMIT + sum(year.failures.values()),
        "django_q_ormq": 0,
    }


def tables_beyond_prediction(rows: dict[str, int], predicted: dict[str, int]) -> Iterator[str]:
    """Tables that hold more than what was played and what is kept for how long allow."""
    for table, most in predicted.items():
        if rows[table] > most * ROUGHLY:
            yield f"{table}: {rows[table]} rows, {most} were predicted"


def _runs(runs: Sequence[tuple[datetime, bool]], pruned_at: datetime) -> int:
    return sum(at >= pruned_at - (FAILED_RUNS if failed else RUNS) for at, failed in runs)


def _snapshots(pruned_at: datetime, ends: datetime, grid: timedelta) -> int:
    """One for each agent and instant until its cohort's end, and the closing one; one a day of the old."""
    rows = 0
    for cohort in Cohort.objects.prefetch_related("agents"):
        at, snapshot_count = cohort.week_start, 1
        while at <= (cohort.completed_at or ends):
            snapshot_count += at >= pruned_at - HOURLY or at.hour == 0
            at += grid
        rows += snapshot_count * len(cohort.agents.all())
    return rows


def _prices(listed: Sequence[Market], pruned_at: datetime, starts: datetime, ends: datetime, grid: timedelta) -> int:
    """As if every look at an outcome of an open market had shown a change; a day's last one of the old."""
    fine = max(pruned_at - PRICES_FINE, starts)

    def looks(market: Market) -> int:
        days, passes = _overlap(market, starts, fine) // DAY, _overlap(market, fine, ends) // grid
        return len(market.outcomes) * (days + passes + 2)

    return sum(map(looks, listed))


def _overlap(market: Market, start: datetime, end: datetime) -> timedelta:
    return max(min(market.closes, end) - max(market.lists, start), timedelta(0))


def tally() -> dict[str, object]:
    """What became of the season's cohorts, decisions and calls."""

    def by(model: type[models.Model], column: str) -> dict[str, int]:
        rows = model._default_manager.order_by().values_list(column).annotate(models.Count("pk"))
        return {str(name): int(count) for name, count in rows}

    return {
        "cohorts": by(Cohort, "status"),
        "decisions": by(Decision, "status"),
        "fallback_holds": Decision.objects.filter(fallback=True).count(),
        "calls": by(ModelCall, "result"),
        "settlements": by(Settlement, "kind"),
    }
