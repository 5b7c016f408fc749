"""Rows of the arena's tables, and lines about those that contradict others."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

Row = dict[str, Any]
ZERO, CENT, MICROSHARE = Decimal(0), Decimal("0.01"), Decimal("0.000001")
TOLERANCE = 1e-9
MAX_VALUE_LENGTH = 120
EVIDENCE = "evidence"
"""The table of snippets, which older archives do not have."""
ROW_NAMES = {
    "brier_scores": "of trade {trade}", "chain": "{protocol} link {sequence}", "question_batches": "batch {id}",
    "forecast_scores": "of forecast {forecast}", "journal": "no. {sequence} of agent {agent}",
    "prices": "of outcome {outcome} at {observed_at}", "question_options": "the outcome of question {id}",
    "question_sets": "set {id}", "refused_forecasts": "entry {entry} of call {call}",
    "snapshots": "agent {agent} at {taken_at}",
}  # fmt: skip
"""How lines name a row; by its table and id where nothing is said."""


class Violations(list[str]):
    """The violations so far, a line each."""

    def note(self, table: str, row: Row, words: str) -> None:
        """Adds what a row has against it."""
        self.append(f"{table}: {row_name(table, row)} {words}")

    def differ(self, table: str, row: Row, figures: Row) -> None:
        """Adds a line for each computed figure of a row that differs from the one that it states."""
        self.extend(mismatches(f"{table}: {row_name(table, row)}", row, figures))


class Tables:
    """The arena's tables, wherever their rows are: decimals, integers, floats, booleans, JSON; times as text."""

    is_window = False
    is_whole = True

    def __init__(self) -> None:
        self.cache: dict[Any, Any] = {}

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table, one at a time."""
        raise NotImplementedError

    def methodologies(self) -> list[Row]:
        raise NotImplementedError

    def table_names(self) -> list[str]:
        raise NotImplementedError

    def heads(self) -> dict[str, tuple[int, str]]:
        """The length and the last hash of each chain, as published."""
        raise NotImplementedError

    def made_at(self) -> str:
        """The instant at which the tables were read, as text."""
        raise NotImplementedError

    def by(self, table: str, key: str = "id") -> dict[Any, Row]:
        """The rows of a table by a key of theirs, read once."""
        if (table, key) not in self.cache:
            self.cache[table, key] = {row[key]: row for row in self.rows(table)}
        return self.cache[table, key]

    def grouped(self, table: str, key: str) -> dict[Any, list[Row]]:
        groups = defaultdict(list)
        for row in self.rows(table):
            groups[row[key]].append(row)
        return groups

    def methodology(self, version: str) -> Row:
        if "methodologies" not in self.cache:
            self.cache["methodologies"] = {row["version"]: row for row in self.methodologies()}
        return self.cache["methodologies"][version]

    def board_condition(self) -> str:
        """The condition of the boards over all versions: that of the newest published one with a forecast protocol."""
        published = [row for row in self.methodologies() if row["forecast"] and row["published_at"]]
        newest = max(published, key=lambda row: row["published_at"], default=None)
        if newest is None:
            return ""
        rules = newest["forecast"]
        board: str = rules["arms"][0] if "arms" in rules else rules["board_condition"] or rules["conditions"][0]["name"]
        return board

    def counts_in(self, arm: str, entry: Row) -> bool:
        """Whether an entry counts in an arm: frozen before the close, and no evidence shown states the outcome."""
        question_set = self.by("question_sets")[entry["question_set"]]
        if not is_before_close(self.by("questions")[entry["question"]], question_set["frozen_at"]):
            return False
        if EVIDENCE not in self.cache:
            snippets = self.rows(EVIDENCE) if EVIDENCE in self.table_names() else ()
            self.cache[EVIDENCE] = {row["entry"] for row in snippets if row["states_outcome"]}
        if entry["id"] not in self.cache[EVIDENCE]:
            return True
        rules = self.methodology(question_set["methodology"])["forecast"]
        return "evidence" not in condition_of(rules, arm)["blocks"]

    def rules_of(self, agent: int) -> Row:
        """The methodology of an agent's cohort."""
        cohort = self.by("cohorts", "number")[self.by("agents")[agent]["cohort"]]
        return self.methodology(cohort["methodology"])


def is_before_close(question: Row, at: str) -> bool:
    """Whether an instant lies before a question's close: as its venue states it, or where it is seen closed before."""
    return all(question[close] is None or question[close] > at for close in ("closes_at", "closed_at"))


def condition_of(rules: Row, arm: str) -> Row:
    """The condition of an arm; where a methodology names arms, the first shows prices and the other does not."""
    if "arms" in rules:
        return {"blocks": ["rules", "prices"] if arm == rules["arms"][0] else ["rules"], "tools": None}
    condition: Row = next(row for row in rules["conditions"] if row["name"] == arm)
    return condition


def row_name(table: str, row: Row) -> str:
    return ROW_NAMES.get(table, table.removesuffix("s") + " {id}").format(**row)


def mismatches(name: str, row: Row, figures: Row) -> Iterator[str]:
    """A line for each computed figure that differs from the one that a row states."""
    if figures.items() <= row.items():
        return  # the quick way, for nearly all of millions of rows
    for column, value in figures.items():
        if not same(row[column], value):
            yield f"{name} states {column} {shortened(row[column])}, computed is {shortened(value)}"


def shortened(value: Any) -> str:
    text = str(value)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}…"


def same(first: Any, second: Any) -> bool:
    """Equality, of floating point numbers up to 1e-9, also inside lists and objects."""
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) or isinstance(second, float):
        if first is None or second is None:
            return first is second
        return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(first == second)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII, the shortest form of floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def plain(number: Decimal) -> str:
    """A decimal without an exponent or trailing zeros."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, ROUND_HALF_EVEN)
