"""The boards over every methodology and category as last computed, with no more of their reports than is asked for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from markets.fields import instant
from scoring.models import Leaderboard
from scoring.services.boards import ALL_METHODOLOGIES

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Board:
    """A board's entries by the slug of their family, and the parts of its report: None where it has none."""

    computed_at: datetime | None
    entries: Mapping[str, Entry]
    parts: Sequence[Any]


def overall(*parts: Sequence[str]) -> dict[tuple[str, str], Board]:
    """The boards by protocol and arm. `parts` are keys of their reports, one within the other.

    By hand: a report is long, and the ORM has the database open it anew for each part, which takes most of the time.
    """
    boards = f"{Leaderboard._meta.db_table} WHERE methodology = %s AND category = ''"
    if connection.vendor == "postgresql":
        # A copy is opened once, and OFFSET keeps the planner from putting the original in its place.
        boards = f"(SELECT *, report || '{{}}' AS opened FROM {boards} OFFSET 0) AS boards"  # noqa: S608 - our own names
        listed, part = "jsonb_build_array", "opened #> %s"
        paths: list[Any] = [list(keys) for keys in parts]
    else:
        listed, part = "json_array", "json_extract(report, %s)"
        paths = ["$" + "".join([f'."{key}"' for key in keys]) for keys in parts]
    told = f"{listed}({', '.join([part] * len(parts))})"
    sql = f"SELECT protocol, arm, computed_at, entries, {told} FROM {boards}"  # noqa: S608 - see above
    with connection.cursor() as cursor:
        cursor.execute(sql, [*paths, ALL_METHODOLOGIES])
        rows = cursor.fetchall()
    return {
        (protocol, arm): Board(
            instant(at), {entry["family"]: entry for entry in json.loads(entries)}, json.loads(found)
        )
        for protocol, arm, at, entries, found in rows
    }


def reliability(forecaster: str) -> Sequence[str]:
    """The keys of the bins of a forecaster's reliability."""
    return "curves", "reliability", "forecasters", forecaster
