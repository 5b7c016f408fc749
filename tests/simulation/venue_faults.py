"""What a venue may do between two steps of a world: lie, vanish, reopen, change its shape, close and resolve."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.sandbox import Venue

SHAPES: list[tuple[str, Any]] = [
    ("version", "v9"),
    ("outcomes", "null"),
    ("outcomePrices", 3),
    ("endDate", "soon"),
    ("volumeNum", None),
]
"""Fields of a row, and values that no parser expects."""


def _question(venue: Venue, dice: Random) -> str:
    return str(dice.choice(list(venue.rows.values()))["question"])


def _is_open(venue: Venue, question: str) -> bool:
    """Whether a market is open, and its row can be read."""
    row = venue.row(question)
    return not row["closed"] and row["outcomes"] != "null"


def moves(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    if not _is_open(venue, question):
        return f"{question} stays closed"
    price = round(dice.uniform(0.05, 0.95), 2)
    venue.move(question, Yes=f"{price:.2f}", No=f"{1 - price:.2f}")
    return f"{question} moves to {price:.2f}"


def resolves(venue: Venue, dice: Random) -> str:
    question, winner = _question(venue, dice), dice.choice(["Yes", "No"])
    if not _is_open(venue, question):
        return f"{question} stays closed"
    venue.resolve(question, winner)
    return f"{question} resolves as {winner}"


def cancels(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    if not _is_open(venue, question):
        return f"{question} stays closed"
    venue.cancel(question)
    return f"{question} is cancelled"


def closes_unclear(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    if _is_open(venue, question):
        venue.close(question, "0.99", "0.01", status=dice.choice(["proposed", "disputed", None]))
    return f"{question} closes at .99 without a final signal"


def reopens(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    venue.row(question).update(closed=False, acceptingOrders=True, umaResolutionStatus=None)
    venue.move(question, Yes="0.45", No="0.55")
    return f"{question} opens again"


def resolves_otherwise(venue: Venue, dice: Random) -> str:
    closed = [row for row in venue.rows.values() if row["closed"]]
    if not closed:
        return "no result to change"
    row = dice.choice(closed)
    if not isinstance(row["outcomePrices"], str):
        return f"{row['question']} has no prices to change"
    row["outcomePrices"] = json.dumps(list(reversed(json.loads(row["outcomePrices"]))))
    return f"{row['question']} changes its result"


def vanishes(venue: Venue, dice: Random) -> str:
    key = dice.choice(list(venue.rows))
    venue.gone ^= {key}
    return f"market {key} {'vanishes' if key in venue.gone else 'is back'}"


def lies_about_a_price(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    lie = dice.choice(["0", "1", "NaN", "0.999", "-3", "x", ""])
    token = dice.choice(venue.tokens(question))
    venue.midpoints[token] = lie
    return f"the midpoint of {question} is {lie!r}"


def empties_a_book(venue: Venue, dice: Random) -> str:
    question = _question(venue, dice)
    for token in venue.tokens(question):
        venue.quote(token, None)
    return f"the book of {question} is empty"


def changes_a_shape(venue: Venue, dice: Random) -> str:
    row = dice.choice(list(venue.rows.values()))
    field, value = dice.choice(SHAPES)
    row[field] = value
    return f"{row['question']} has {field} {value!r}"


def regains_its_shape(venue: Venue, dice: Random) -> str:
    for row in venue.rows.values():
        row.pop("version", None)
        row.update(outcomes='["Yes", "No"]', endDate="2026-06-30T00:00:00Z", events=[{"id": f"e{row['id']}"}])
        row.update(volumeNum=float(row["volume"]))
        if not isinstance(row["outcomePrices"], str):
            row["outcomePrices"] = '["0.40", "0.60"]'
    return "every row can be read again"


def goes_down_or_comes_up(venue: Venue, dice: Random) -> str:
    if venue.down:
        venue.down.clear()
        return "every service is up"
    service = dice.choice(["gamma", "clob", "openrouter"])
    venue.down.add(service)
    return f"{service} is down"


VENUE_FAULTS: tuple[Callable[[Venue, Random], str], ...] = (
    *(moves, moves, moves, resolves, resolves, cancels, closes_unclear, reopens, resolves_otherwise, vanishes),
    *(lies_about_a_price, empties_a_book, changes_a_shape, regains_its_shape, regains_its_shape),
    *(goes_down_or_comes_up, goes_down_or_comes_up),
)


def heal(venue: Venue, dice: Random) -> None:
    """Brings everything back, and resolves every market."""
    venue.gone.clear()
    venue.down.clear()
    regains_its_shape(venue, dice)
    for row in venue.rows.values():
        if not row["closed"] or "1" not in json.loads(row["outcomePrices"]):
            venue.resolve(row["question"], dice.choice(["Yes", "No"]))
        row.update(umaResolutionStatus="resolved")
