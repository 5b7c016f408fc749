"""Verification of the stored leaderboards: each is computed from the facts and compared.

A current leaderboard is not compared while its job has yet to reach what has changed, or to run for the first time.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from agents.models import JournalEntry, Position
from arena_verifier.rows import same
from cohorts.models import Cohort
from foundation.bulk import rows_by
from foundation.clock import now
from foundation.models import Run
from markets.models import Universe
from markets.services.cache_versions import Scope, current_versions, renew_versions
from scoring.constants import ALL_METHODOLOGIES, FORECAST, TRADING
from scoring.leaderboard_keys import LeaderboardKey, first_difference, to_json
from scoring.models import (
    AgentsBoard,
    BrierScore,
    Leaderboard,
    QuestionDifficulty,
    Snapshot,
)
from scoring.selectors.forecast_panels import Selection
from scoring.services.agents_boards import BoardKey, agents_board
from scoring.services.forecast_inputs import inputs_version, is_current, is_fitted
from scoring.services.forecast_leaderboards import (
    compute_forecast_leaderboards,
    leaderboard_selections,
    store_difficulties,
    stored_leaderboards,
)
from scoring.services.trading_leaderboards import (
    LeaderboardContents,
    compute_trading_leaderboards,
    store_leaderboards,
)

TRADING_JOBS = ("take_snapshots", "run_decisions", "check_resolutions", "compute_scores", "start_cohort")
"""Commands that change portfolios first and the trading leaderboards last."""


def leaderboard_drift(*, at: datetime, repair: bool = False) -> Iterator[str]:
    """A line for each current leaderboard that differs from what is computed; with `repair`, that is stored."""
    yield from _trading_drift(at=at, repair=repair)
    for selection, versions in leaderboard_selections():
        yield from _forecast_drift(selection, versions, at=at, repair=repair)


def _trading_drift(*, at: datetime, repair: bool) -> Iterator[str]:
    version = current_versions().get(Scope.LEADERBOARDS)
    computed = compute_trading_leaderboards()
    stored = {}
    for row in Leaderboard.objects.filter(protocol=TRADING):
        stored[LeaderboardKey(TRADING, row.methodology, row.arm, row.category)] = row
    if not stored:
        return
    computed_at = min(map(attrgetter("computed_at"), stored.values()))
    if _have_portfolios_changed(computed_at) or _have_costs_changed(stored, computed):
        return
    if current_versions().get(Scope.LEADERBOARDS) != version:
        return  # they were stored anew meanwhile
    for key in sorted(stored.keys() | computed.keys()):
        yield from _compare(key, stored.get(key), computed.get(key), at=at, repair=repair)


def _have_portfolios_changed(since: datetime) -> bool:
    """True if cash, prices, scores, snapshots or seals are newer than an instant, or a job works on them."""
    newer: tuple[QuerySet[Any], ...] = (
        Run.objects.under_way(timezone.now()).filter(kind__in=TRADING_JOBS),
        JournalEntry.objects.filter(occurred_at__gt=since),
        Position.objects.open().filter(outcome__price_at__gt=since),
        BrierScore.objects.filter(scored_at__gt=since),
        Snapshot.objects.filter(taken_at__gt=since),
        Cohort.objects.filter(voided_at__gt=since),
        Universe.objects.filter(sealed_until__gt=since, sealed_until__lte=now()),
    )
    return any(map(QuerySet.exists, newer))


def _have_costs_changed(
    stored: Mapping[LeaderboardKey, Leaderboard], computed: Mapping[LeaderboardKey, LeaderboardContents]
) -> bool:
    """True if families' costs are no longer those that the stored leaderboard was computed from.

    Calls bear the time of the clock, so that no instant tells which of them it knows.
    """
    overall = LeaderboardKey(TRADING, ALL_METHODOLOGIES)
    return overall in stored and stored[overall].report.get("costs") != computed[overall].report["costs"]


def _forecast_drift(selection: Selection, versions: list[str], *, at: datetime, repair: bool) -> Iterator[str]:
    """The drift of an arm's leaderboards of every category, those of earlier inputs left out."""
    inputs = inputs_version(selection)
    by_version, leaderboard = {}, None
    for version in versions:
        by_version[version] = rows_by("category", stored_leaderboards(selection.arm, version))
        leaderboard = leaderboard or by_version[version].get("")
    if leaderboard is None or not is_current("", leaderboard.report.get("inputs"), inputs):
        return
    slow = is_fitted(leaderboard, inputs)
    computed, difficulties = compute_forecast_leaderboards(selection, inputs, leaderboard, at=at, slow=slow)
    computed[""].report["fitted_at"] = leaderboard.report.get("fitted_at")
    if slow and versions[0] == ALL_METHODOLOGIES:
        yield from _difficulty_drift(selection.arm, difficulties, repair=repair)
    for version, stored in by_version.items():
        for category in sorted(stored.keys() | computed.keys()):
            row = stored.get(category)
            is_gone = category and category not in inputs["categories"]
            if row is None or is_gone or is_current(category, row.report.get("inputs"), inputs):
                key = LeaderboardKey(FORECAST, version, selection.arm, category)
                yield from _compare(key, row, computed.get(category), at=at, repair=repair)


def _difficulty_drift(arm: str, computed: list[QuestionDifficulty], *, repair: bool) -> Iterator[str]:
    """A line for each question of an arm whose stored difficulty is not the fitted one."""
    figures = attrgetter("difficulty", "difficulty_se", "discrimination", "discrimination_se")
    stored = {row.question_id: figures(row) for row in QuestionDifficulty.objects.filter(arm=arm)}
    fitted = {row.question_id: figures(row) for row in computed}
    is_wrong = False
    for pk in sorted(stored.keys() | fitted.keys()):
        if not same(stored.get(pk), fitted.get(pk)):
            is_wrong = True
            yield f"difficulty of question {pk} {arm} is {stored.get(pk)}, should be {fitted.get(pk)}"
    if is_wrong and repair:
        store_difficulties(arm, computed)


def _compare(
    key: LeaderboardKey, stored: Leaderboard | None, computed: LeaderboardContents | None, *, at: datetime, repair: bool
) -> Iterator[str]:
    difference: str | None = "is missing" if stored is None else "is of nothing that resolved"
    if stored is not None and computed is not None:
        difference = first_difference({"entries": stored.entries, "report": stored.report}, to_json(computed._asdict()))
    if difference is None:
        return
    yield f"leaderboard {' '.join(filter(None, key))}: {difference}"
    if repair and computed is not None:
        store_leaderboards({key: computed}, at=at)
    elif repair and stored is not None:
        with transaction.atomic():
            stored.delete()
            renew_versions(Scope.LEADERBOARDS)


def agents_board_drift(*, at: datetime, repair: bool = False) -> Iterator[str]:
    """A line for each board of external agents that differs from what is computed; with `repair`, that is stored."""
    for row in AgentsBoard.objects.all():
        key, computed_at = BoardKey(row.track, row.protocol), row.computed_at
        computed = agents_board(key)
        if row.report.get("inputs") != to_json(computed.report["inputs"]):
            continue  # the next job adds what came since
        if key.protocol == TRADING and _have_portfolios_changed(computed_at):
            continue
        difference = first_difference({"entries": row.entries, "report": row.report}, to_json(computed._asdict()))
        if difference is not None:
            yield f"board of agents, {row}: {difference}"
            if repair:
                store_leaderboards({key: computed}, at=computed_at, model=AgentsBoard)
