"""The leader of a leaderboard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Family


@dataclass(frozen=True, slots=True)
class Leader:
    """The first of a leaderboard; `rivals` counts the others whose rank range includes the first rank."""

    entry: Mapping[str, Any]
    family: Family | None
    rivals: int


def leader_of(entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]) -> Leader | None:
    """The leader among the ranked families; references and external agents are not ranked."""
    ranked = [e for e in entries if not e["external"] and not e.get("reference") and e["rank"] is not None]
    if not ranked:
        return None
    first = min(ranked, key=lambda entry: entry["rank"])
    rivals = sum(entry["rank_low"] in (1, None) for entry in ranked if entry is not first)
    return Leader(first, families.get(first["family"]), rivals)
