"""The current leaderboards over all methodologies and categories, with selected parts of their reports."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from markets.foundation.raw_sql import parse_timestamp
from scoring.constants import ALL_METHODOLOGIES
from scoring.models import Leaderboard

Entry = Mapping[str, Any]


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
        paths: list[Any] = [list(keys) for keys in parts]
    else:
        listed, part = "json_array", "json_extract(report, %s)"
        paths = ["$" + "".join([f'."{key}"' for key in keys]) for keys in parts]
    parts_json = f"{listed}({', '.join([part] * len(parts))})"
    sql = f"SELECT protocol, arm, computed_at, entries, {parts_json} FROM {leaderboards}"  # noqa: S608 - see above
    with connection.cursor() as cursor:
        cursor.execute(sql, [*paths, ALL_METHODOLOGIES])
        rows = cursor.fetchall()
    return {
        (protocol, arm): StoredLeaderboard(
            parse_timestamp(at), {entry["family"]: entry for entry in json.loads(entries)}, json.loads(parts_of_report)
        )
        for protocol, arm, at, entries, parts_of_report in rows
    }


def reliability_path(forecaster: str) -> Sequence[str]:
    """The path of the bins of a forecaster's reliability."""
    return "curves", "reliability", "forecasters", forecaster
