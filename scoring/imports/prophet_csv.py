"""Prophet Arena's CSV: one prediction to a line, with the event's markets, their asks in cents, and what came true.

The format does not say whether an event's markets exclude each other. They are read as exclusive where exactly one came
true and everybody's probabilities sum to 1; otherwise each market is a two-way question, which is always well defined.
An event asked about on several occasions counts once: each submission is a question with its share of the weight.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from scoring.imports.rows import (
    Part,
    Reading,
    Row,
    Said,
    Titled,
    Unread,
    Unusable,
    distribution,
    gathered,
    price,
    probability,
    required,
    seconds,
    text,
)
from scoring.ranking.files import UnreadableFile

COLUMNS = ("event_ticker", "predictor_name", "prediction", "market_info", "market_outcome")
_CENTS = 100.0


@dataclass(slots=True)
class _Event:
    """What all lines of an event say together."""

    submissions: set[str] = field(default_factory=set)
    exclusive: bool = True


def parts(files: Sequence[Path]) -> list[Part]:
    """An import for each file."""
    return [Part((file,), partial(_read, file)) for file in files]


def _read(file: Path) -> Reading:
    events: dict[str, _Event] = {}
    for _, record in _records(file):
        try:
            event = events.setdefault(str(required(record, "event_ticker")), _Event())
            event.submissions.add(_question(record))
            outcomes = [outcome for outcome in _outcomes(record).values() if outcome is not None]
            apart = not outcomes or sum(outcomes) == 1
            event.exclusive &= apart and distribution(_vector(record).values())
        except Unusable:
            continue  # named when the rows are read
    titles: dict[str, Titled] = {}
    return gathered(_said(file, events, titles), titles)


def _records(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with file.open(newline="", encoding="utf-8-sig") as opened:
            reader = csv.DictReader(opened)
            if missing := [name for name in COLUMNS if name not in (reader.fieldnames or ())]:
                raise UnreadableFile(f"{file} has no column {', '.join(map(repr, missing))}")
            before = reader.line_num
            for record in reader:
                yield before + 1, record
                before = reader.line_num
    except OSError as error:
        raise UnreadableFile(f"{file}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"{file}: {error}") from error


def _said(file: Path, events: dict[str, _Event], titles: dict[str, Titled]) -> Iterator[Said]:
    for line, record in _records(file):
        try:
            yield from list(_rows(line, record, events, titles))
        except Unusable as error:
            yield Unread(line, str(error))


def _rows(line: int, record: dict[str, Any], events: dict[str, _Event], titles: dict[str, Titled]) -> Iterator[Row]:
    ticker, who = str(required(record, "event_ticker")), str(required(record, "predictor_name"))
    vector, outcomes, info = _vector(record), _outcomes(record), _json(record, "market_info")
    if unknown := [market for market in vector if market not in outcomes]:
        raise Unusable(f"market {unknown[0][:60]!r} has no outcome")
    if missing := [market for market in outcomes if market not in vector]:
        raise Unusable(f"market {missing[0][:60]!r} has no probability")
    event, question = events[ticker], _question(record)
    closed_at, category = seconds(record.get("close_time"), "close_time"), text(record.get("category"))
    titles.setdefault(
        question,
        Titled(question, str(record.get("title") or ""), tuple(outcomes), category=category or "", closed_at=closed_at),
    )
    for market, outcome in outcomes.items():
        quotes = _quotes(info, market)
        yield Row(
            line, who, question, market, vector[market], outcome,
            odds=price(quotes.get("yes_ask"), _CENTS),
            no_odds=price(quotes.get("no_ask"), _CENTS),
            event=ticker,
            category=category,
            closed_at=closed_at,
            weight=1 / len(event.submissions),
            exclusive=float(event.exclusive),
        )  # fmt: skip


def _quotes(info: dict[str, Any], market: str) -> dict[str, Any]:
    quotes = info.get(market)
    return quotes if isinstance(quotes, dict) else {}


def _question(record: dict[str, Any]) -> str:
    return str(record.get("submission_id") or required(record, "event_ticker"))


def _json(record: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        value = json.loads(required(record, name))
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unusable):
            raise
        raise Unusable(f"{name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise Unusable(f"{name} is no object")
    return value


def _vector(record: dict[str, Any]) -> dict[str, float]:
    return stated_vector(_json(record, "prediction").get("probabilities"))


def stated_vector(probabilities: Any) -> dict[str, float]:
    """Market to probability, of `[{"market", "probability"}]`. Raises Unusable."""
    if not isinstance(probabilities, list) or not probabilities:
        raise Unusable("the prediction holds no probabilities")
    vector: dict[str, float] = {}
    for item in probabilities:
        market = str(required(item, "market"))
        if market in vector:
            raise Unusable(f"market {market[:60]!r} is named twice")
        vector[market] = probability(item.get("probability"), f"the probability of {market[:60]!r}")
    return vector


def _outcomes(record: dict[str, Any]) -> dict[str, float | None]:
    """Market to 0 or 1; None for all of them while the event is open."""
    if not text(record.get("market_outcome")):
        return dict.fromkeys(_json(record, "market_info"))
    outcomes = _json(record, "market_outcome")
    if bad := [market for market, outcome in outcomes.items() if outcome not in (0, 1)]:
        raise Unusable(f"the outcome of market {bad[0][:60]!r} is neither 0 nor 1")
    return {market: float(outcome) for market, outcome in outcomes.items()}
