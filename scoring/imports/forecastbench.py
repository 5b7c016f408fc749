"""ForecastBench: forecast files, scored by a resolution set, with a question set for titles and market prices.

Its own rules. Forecasts of several people in one file are one forecaster, their median per question and horizon. A
dataset question is one question per horizon, answered where the resolution date is the forecast's; a market question is
one question, whatever its date. A market that is not yet resolved is scored against its current price, a fraction.
Categories keep these three apart, as the published table does.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from scoring.imports.documents import document, listed
from scoring.imports.rows import (
    YES,
    Part,
    Reading,
    Row,
    Said,
    Titled,
    Unread,
    Unusable,
    gathered,
    price,
    probability,
    required,
    seconds,
    text,
)
from scoring.ranking.files import UnreadableFile

MARKET_SOURCES = frozenset({"infer", "manifold", "metaculus", "polymarket"})
DATASET, RESOLVED, UNRESOLVED = "dataset", "market, resolved", "market, unresolved"

Key = tuple[str, str | None]
"""A question and its horizon; a market question has none."""


@dataclass(slots=True)
class _Known:
    """What question and resolution sets say: outcomes and whether they are final, titles, market prices."""

    outcomes: dict[Key, tuple[float, bool]] = field(default_factory=dict)
    closed: dict[Key, str] = field(default_factory=dict)
    questions: dict[str, dict[str, Any]] = field(default_factory=dict)


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file of forecasts; the other files explain all of them."""
    forecasts, others, known = [], [], _Known()
    for file in files:
        content = document(file)
        if not isinstance(content, dict) or not {"forecasts", "resolutions", "questions"} & set(content):
            raise UnreadableFile(f"{file} is neither a forecast file, a resolution set nor a question set")
        if "forecasts" in content:
            forecasts.append(file)
        else:
            others.append(file)
            _learn(known, file, content)
    if not forecasts:
        raise UnreadableFile(f"{', '.join(map(str, files))}: none of them holds forecasts")
    return [Part((file, *others), partial(_read, file, known), fractional_outcomes=True) for file in forecasts]


def _learn(known: _Known, file: Path, content: dict[str, Any]) -> None:
    for place, record in listed(file, content.get("resolutions") or []):
        try:
            key = _key(record)
            if record.get("resolved_to") is None or record["resolved_to"] != record["resolved_to"]:
                continue  # annulled: NaN
            outcome = probability(required(record, "resolved_to"), "resolved_to")
        except Unusable as error:
            raise UnreadableFile(f"{file}, resolution {place}: {error}") from error
        known.outcomes[key] = (outcome, record.get("resolved") is True)
        if record.get("resolution_date"):
            known.closed[key] = record["resolution_date"]
    for place, record in listed(file, content.get("questions") or []):
        try:
            known.questions[_name(record)] = record
        except Unusable as error:
            raise UnreadableFile(f"{file}, question {place}: {error}") from error


def _name(record: Any) -> str:
    """A question's name: its source and id, or the ids and directions of a combination."""
    source, key = str(required(record, "source")), required(record, "id")
    return f"{source}:{key}" if isinstance(key, str) else f"{source}:{json.dumps([key, record.get('direction')])}"


def _key(record: Any) -> Key:
    name = _name(record)
    return name, None if record["source"] in MARKET_SOURCES else str(required(record, "resolution_date"))


def _read(file: Path, known: _Known) -> Reading:
    content = document(file)
    maker = text(content.get("model")) or file.stem
    items = content["forecasts"]
    titles: dict[str, Titled] = {}
    said = _medians if any(isinstance(item, dict) and item.get("user") for item in items) else _each
    reading = gathered(said(file, items, maker, known, titles), titles)
    reading.records = len(items)
    return reading


def _each(file: Path, items: Any, maker: str, known: _Known, titles: dict[str, Titled]) -> Iterator[Said]:
    for place, item in listed(file, items):
        try:
            yield _row(place, maker, _key(item), _stated(item), known, titles)
        except Unusable as error:
            yield Unread(place, str(error))


def _medians(file: Path, items: Any, maker: str, known: _Known, titles: dict[str, Titled]) -> Iterator[Said]:
    """The middle of what several people said, standing at the first of them."""
    stated: dict[Key, dict[str, float]] = {}
    first: dict[Key, int] = {}
    for place, item in listed(file, items):
        try:
            key, user, p = _key(item), str(required(item, "user")), _stated(item)
            if user in stated.setdefault(key, {}):
                raise Unusable(f"{user} has answered this question before")
        except Unusable as error:
            yield Unread(place, str(error))
        else:
            stated[key][user] = p
            first.setdefault(key, place)
    for key, answers in stated.items():
        if answers:
            yield _row(first[key], f"{maker} (median)", key, median(answers.values()), known, titles)


def _stated(item: Any) -> float:
    return probability(item.get("forecast"), "forecast")


def _row(line: int, forecaster: str, key: Key, p: float, known: _Known, titles: dict[str, Titled]) -> Row:
    name, horizon = key
    outcome, final = known.outcomes.get(key, (None, False))
    closed_at = seconds(known.closed.get(key, horizon), "resolution_date")
    described = known.questions.get(name, {})
    question = name if horizon is None else f"{name} by {horizon}"
    category = DATASET if horizon is not None else RESOLVED if final else UNRESOLVED
    title = text(described.get("question")) or ""
    titles.setdefault(question, Titled(question, title, category=category, closed_at=closed_at))
    market = price(described.get("freeze_datetime_value")) if horizon is None else None
    return Row(
        line, forecaster, question, YES, p, outcome,
        odds=market, event=name, category=category, closed_at=closed_at, exclusive=0.0,
    )  # fmt: skip
