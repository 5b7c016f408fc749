"""Leaderboards as pages and API read them: entries of a selection, agents' boards, risk, parts of current reports."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import connection

from agents.models import Family
from foundation.bulk import mappings_by, rows_by
from foundation.raw_sql import parse_timestamp
from scoring.constants import ALL_METHODOLOGIES, CLOSED, FORECAST, TRADING
from scoring.leaderboard_keys import Entry
from scoring.models import AgentsBoard, Leaderboard
from scoring.selectors.forecast_boards import forecast_board
from scoring.selectors.published_boards import published_board

PROTOCOLS = (TRADING, FORECAST)


def leaderboard_entries(
    protocol: str,
    *,
    methodology: str = ALL_METHODOLOGIES,
    arm: str = "",
    category: str = "",
    at: datetime | None = None,
    after_cutoff: bool = False,
) -> list[dict[str, Any]]:
    """The entries of a leaderboard: the current one, or with `at` the last one published by then."""
    if protocol == TRADING:
        return trading_board(methodology=methodology, category=category, at=at)[0]
    board = forecast_board(arm=arm, methodology=methodology, category=category, at=at, after_cutoff=after_cutoff)
    return list(map(dict, board.entries))


def trading_board(
    *, methodology: str = ALL_METHODOLOGIES, category: str = "", at: datetime | None = None
) -> tuple[list[dict[str, Any]], Sequence[Mapping[str, Any]]]:
    """The entries of a trading leaderboard, and the paired tests of the families' returns."""
    if at is not None:
        board = published_board(TRADING, at, methodology=methodology, category=category)
        return (board.entries, board.report.get("pairs", [])) if board else ([], [])
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    entries, pairs = stored.values_list("entries", "report__pairs").first() or ([], [])
    return category_entries(methodology, category) if category else entries, pairs or []


def category_entries(methodology: str, category: str) -> list[dict[str, Any]]:
    """The entries of the stored leaderboard, their SCORED fields narrowed to bets on markets of a category."""
    leaderboard = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    return narrowed_entries(leaderboard.values_list("entries", flat=True).first() or [], methodology, category)


def narrowed_entries(entries: Sequence[Entry], methodology: str, category: str) -> list[dict[str, Any]]:
    """Entries of a trading leaderboard, their SCORED fields narrowed to bets on markets of a category."""
    from scoring.selectors.scored_bets import scored_fields  # loads NumPy

    families = rows_by("slug", Family.objects.filter(slug__in=list(map(itemgetter("family"), entries))))
    scored = scored_fields(methodology, None, category, families.values())
    return [{**entry, **scored[families[entry["family"]].pk]} for entry in entries]


@dataclass(frozen=True, slots=True)
class StoredLeaderboard:
    """A leaderboard's entries by family slug, and the selected parts of its report, None where it has none."""

    computed_at: datetime | None
    entries: Mapping[str, Entry]
    parts: Sequence[Any]


def overall_leaderboards(*parts: Sequence[str]) -> dict[tuple[str, str], StoredLeaderboard]:
    """The leaderboards by protocol and arm. `parts` are paths of keys in their reports.

    SQL, since a report is long and the ORM has the database parse it anew for each part, which takes most of the time.
    """
    leaderboards = f"{Leaderboard._meta.db_table} WHERE methodology = %s AND category = ''"
    if connection.vendor == "postgresql":
        # A copy is decompressed once, and OFFSET keeps the planner from inlining the original.
        leaderboards = f"(SELECT *, report || '{{}}' AS opened FROM {leaderboards} OFFSET 0) AS leaderboards"  # noqa: S608 - our own names
        listed, part = "jsonb_build_array", "opened #> %s"
        paths: list[Any] = list(map(list, parts))
    else:
        listed, part = "json_array", "json_extract(report, %s)"
        paths = ["".join(["$", *map('."{}"'.format, keys)]) for keys in parts]
    parts_json = f"{listed}({', '.join([part] * len(parts))})"
    sql = f"SELECT protocol, arm, computed_at, entries, {parts_json} FROM {leaderboards}"  # noqa: S608 - see above
    with connection.cursor() as cursor:
        cursor.execute(sql, [*paths, ALL_METHODOLOGIES])
        rows = cursor.fetchall()
    stored = {}
    for protocol, arm, *columns in rows:
        at, entries, parts_of_report = columns
        entry_by_family = mappings_by("family", json.loads(entries))
        stored[protocol, arm] = StoredLeaderboard(parse_timestamp(at), entry_by_family, json.loads(parts_of_report))
    return stored


def reliability_path(forecaster: str) -> Sequence[str]:
    """The keys that lead to a forecaster's reliability bins in a report."""
    return "curves", "reliability", "forecasters", forecaster


def read_agents_board(protocol: str, *, track: str = CLOSED, at: datetime | None = None) -> AgentsBoard:
    """The board now, or the last one published by an instant; one without entries where there is none."""
    key = {"track": track, "protocol": protocol}
    if at is not None:
        board = published_board(protocol, at, track=track)
        if board is not None:
            return AgentsBoard(**key, computed_at=board.at, entries=board.entries, report=board.report)
        return AgentsBoard(**key, entries=[], report={})
    return AgentsBoard.objects.filter(**key).first() or AgentsBoard(**key, entries=[], report={})


class RiskFigures(NamedTuple):
    """The entries of a trading leaderboard with their figures of luck and risk, and the calendar weeks behind them."""

    rows: Sequence[Mapping[str, Any]]
    weeks: int
    at: datetime | None


def risk_figures(methodology: str) -> RiskFigures:
    """The figures of the stored leaderboard."""
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    return _figures(*stored.values_list("entries", "report__risk", "computed_at").first() or ([], None, None))


def _figures(entries: Sequence[Mapping[str, Any]], risk: Mapping[str, Any] | None, at: datetime | None) -> RiskFigures:
    if risk is None:
        return RiskFigures([], 0, at)
    return RiskFigures([{**entry, **risk["families"][entry["family"]]} for entry in entries], risk["weeks"], at)
