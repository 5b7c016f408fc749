"""Who is first on a board, in a sentence's worth of facts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.models import Family


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who is first on a board, and how many others could be as well."""

    entry: Mapping[str, Any]
    family: Family | None
    rivals: int


def verdict_of(entries: Sequence[Mapping[str, Any]], families: Mapping[str, Family]) -> Verdict | None:
    """The first of those that are ranked: families, neither references nor external agents."""
    ranked = [e for e in entries if not e["external"] and not e.get("reference") and e["rank"] is not None]
    if not ranked:
        return None
    leader = min(ranked, key=lambda entry: entry["rank"])
    rivals = sum(entry["rank_low"] in (1, None) for entry in ranked if entry is not leader)
    return Verdict(leader, families.get(leader["family"]), rivals)
