"""Leaderboards as pages and API read them: entries of a selection, agents' boards, risk, parts of current reports."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection

from foundation.bulk import mappings_by
from foundation.raw_sql import parse_timestamp
from scoring.constants import AGENT_PERIODS, ALL_METHODOLOGIES, CLOSED, FORECAST, TRADING
from scoring.leaderboard_keys import Entry
from scoring.models import AgentsBoard, Leaderboard
from scoring.selectors.competition import last_competition_index

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
    """The entries of a leaderboard: the stored ones if there are any, else computed for the category or the instant."""
    if after_cutoff:
        from scoring.selectors.forecast_boards import forecast_board

        board = forecast_board(arm=arm, methodology=methodology, category=category, at=at, after_cutoff=True)
        return list(map(dict, board.entries))
    arm = "" if protocol == TRADING else arm or last_competition_index().conditions.board(methodology, at)
    if protocol == TRADING and (at is not None or category):
        from scoring.services.trading_leaderboards import category_entries, trading_leaderboard

        if at is None:
            return category_entries(methodology, category)
        return trading_leaderboard(methodology, at=at, category=category).entries
    if at is not None:
        from scoring.services.forecast_panels import Selection
        from scoring.services.past_leaderboards import past_forecast_contents

        return past_forecast_contents(Selection(arm, methodology, at), category).entries
    leaderboards = Leaderboard.objects.filter(protocol=protocol, methodology=methodology, arm=arm, category=category)
    return leaderboards.values_list("entries", flat=True).first() or []


def trading_board(
    *, methodology: str = ALL_METHODOLOGIES, category: str = "", at: datetime | None = None
) -> tuple[list[dict[str, Any]], Sequence[Mapping[str, Any]]]:
    """The entries of a trading leaderboard, and the paired tests of the families' returns."""
    if at is not None:
        from scoring.services.trading_leaderboards import trading_leaderboard

        contents = trading_leaderboard(methodology, at=at, category=category)
        return contents.entries, contents.report["pairs"]
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    entries, pairs = stored.values_list("entries", "report__pairs").first() or ([], [])
    if category:
        entries = leaderboard_entries(TRADING, methodology=methodology, category=category)
    return entries, pairs or []


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


ALL_TIME = next(iter(AGENT_PERIODS))


def read_agents_board(
    protocol: str, *, track: str = CLOSED, period: str = ALL_TIME, at: datetime | None = None
) -> AgentsBoard:
    """The board now or as of an instant; one without entries, not stored, where no agent is in the track."""
    rows = AgentsBoard.objects.filter(track=track, protocol=protocol, period=period)
    if at is not None:
        rows = rows.filter(computed_at=at)  # the stored board is the one as of its own instant
    if stored := rows.first():
        return stored
    key = {"track": track, "protocol": protocol, "period": period}
    if at is None:
        return AgentsBoard(**key, entries=[], report={})
    from scoring.services.agents_boards import BoardKey, agents_board  # loads NumPy

    board = agents_board(BoardKey(**key), at=at, past=True)
    return AgentsBoard(**key, computed_at=at, **board._asdict())


class RiskFigures(NamedTuple):
    """The entries of a trading leaderboard with their figures of luck and risk, and the calendar weeks behind them."""

    rows: Sequence[Mapping[str, Any]]
    weeks: int
    at: datetime | None


def risk_figures(methodology: str, *, at: datetime | None = None) -> RiskFigures:
    """The figures of the stored leaderboard, or computed for a past instant."""
    if at is not None:
        from scoring.services.trading_leaderboards import board_risk, trading_leaderboard

        contents = trading_leaderboard(methodology, at=at)
        return _figures(contents.entries, board_risk(contents, methodology, at), at)
    stored = Leaderboard.objects.filter(protocol=TRADING, methodology=methodology, arm="", category="")
    return _figures(*stored.values_list("entries", "report__risk", "computed_at").first() or ([], None, None))


def _figures(entries: Sequence[Mapping[str, Any]], risk: Mapping[str, Any] | None, at: datetime | None) -> RiskFigures:
    if risk is None:
        return RiskFigures([], 0, at)
    return RiskFigures([{**entry, **risk["families"][entry["family"]]} for entry in entries], risk["weeks"], at)
