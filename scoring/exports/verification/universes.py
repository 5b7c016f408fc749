"""Universes and question sets: their hashes."""

import hashlib
import json
from collections.abc import Iterable, Iterator

from scoring.exports.verification.archive_reader import Archive


def check_universes(archive: Archive) -> Iterator[str]:
    """The hash of each universe and question set follows from its entries."""
    for universe, entries in archive.grouped("universe_entries", "universe").items():
        lines = []
        for entry in sorted(entries, key=lambda entry: entry["position"]):
            market = archive.markets[entry["market"]]
            fields = [entry["position"], market["source"], market["external_id"], entry["bettable"], entry["open"]]
            lines.append(json.dumps([*fields, sorted(map(list, entry["prices"].items()))], ensure_ascii=True))
        if _digest(lines) != archive.universes[universe]["sha256"]:
            yield f"universes: universe {universe} has another hash than its entries"
    hashes = {row["id"]: row["options_sha256"] for row in archive.rows("questions")}
    sets = archive.by_id("question_sets")
    for number, entries in archive.grouped("question_entries", "question_set").items():
        lines = [
            json.dumps([e["position"], hashes[e["question"]], e["reason"], e["prices"]], sort_keys=True)
            for e in sorted(entries, key=lambda entry: entry["position"])
        ]
        if _digest(lines) != sets[number]["sha256"]:
            yield f"question_sets: set {number} has another hash than its entries"


def _digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
