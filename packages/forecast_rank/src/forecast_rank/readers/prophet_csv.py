"""Prophet Arena's CSV: one prediction to a line, with the event's markets, their asks in cents, and the outcomes.

The format does not say whether an event's markets are exclusive. They are read as exclusive if exactly one resolved YES
and all forecasters' probabilities sum to 1; otherwise each market is a binary question, which is always well defined.
An event with several submissions counts once: each submission is a question with an equal share of the weight.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from forecast_rank.readers.csv_records import read_csv_records
from forecast_rank.readers.records import (
    InvalidRecord,
    LongFormRow,
    ParsedFile,
    QuestionDescription,
    collect_rows,
    label,
    parse_price,
    parse_probability,
    parse_records,
    parse_time,
    required_field,
    sums_to_one,
)

COLUMNS = ("event_ticker", "predictor_name", "prediction", "market_info", "market_outcome")
_CENTS = 100.0

Descriptions = dict[str, QuestionDescription]


@dataclass(slots=True)
class _Event:
    """Facts that all lines of an event share."""

    submissions: set[str] = field(default_factory=set)
    exclusive: bool = True


def read(file: Path) -> ParsedFile:
    events: dict[str, _Event] = {}
    for _, record in read_csv_records(file, COLUMNS):
        try:
            event = events.setdefault(str(required_field(record, "event_ticker")), _Event())
            event.submissions.add(_question(record))
            outcomes = [outcome for outcome in _outcomes(record).values() if outcome is not None]
            apart = not outcomes or sum(outcomes) == 1
            event.exclusive &= apart and sums_to_one(_vector(record).values())
        except InvalidRecord:
            continue  # named when the rows are read
    descriptions: Descriptions = {}
    return collect_rows(
        parse_records(read_csv_records(file, COLUMNS), partial(_rows, events, descriptions)), descriptions
    )


def _rows(
    events: dict[str, _Event], descriptions: Descriptions, line: int, record: dict[str, Any]
) -> Iterator[LongFormRow]:
    ticker, forecaster = str(required_field(record, "event_ticker")), str(required_field(record, "predictor_name"))
    vector, outcomes, info = _vector(record), _outcomes(record), _json(record, "market_info")
    if unknown := [market for market in vector if market not in outcomes]:
        raise InvalidRecord(f"market {unknown[0][:60]!r} has no outcome")
    if missing := [market for market in outcomes if market not in vector]:
        raise InvalidRecord(f"market {missing[0][:60]!r} has no probability")
    event, question = events[ticker], _question(record)
    closed_at, category = parse_time(record.get("close_time"), "close_time"), label(record.get("category"))
    title = next((text for market in outcomes if (text := label(_quotes(info, market).get("title")))), "")
    descriptions.setdefault(
        question,
        QuestionDescription(question, title, tuple(outcomes), category=category or "", closed_at=closed_at),
    )
    for market, outcome in outcomes.items():
        quotes = _quotes(info, market)
        yield LongFormRow(
            line, forecaster, question, market, vector[market], outcome,
            odds=parse_price(quotes.get("yes_ask"), _CENTS),
            no_odds=parse_price(quotes.get("no_ask"), _CENTS),
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
    return str(record.get("submission_id") or required_field(record, "event_ticker"))


def _json(record: dict[str, Any], name: str) -> dict[str, Any]:
    try:
        value = json.loads(required_field(record, name))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidRecord):
            raise
        raise InvalidRecord(f"{name} is not valid JSON") from None
    if not isinstance(value, dict):
        raise InvalidRecord(f"{name} is no object")
    return value


def _vector(record: dict[str, Any]) -> dict[str, float]:
    return stated_vector(_json(record, "prediction").get("probabilities"))


def stated_vector(probabilities: Any) -> dict[str, float]:
    """Market to probability, of `[{"market", "probability"}]`. Raises InvalidRecord."""
    if not isinstance(probabilities, list) or not probabilities:
        raise InvalidRecord("the prediction holds no probabilities")
    vector: dict[str, float] = {}
    for item in probabilities:
        market = str(required_field(item, "market"))
        if market in vector:
            raise InvalidRecord(f"market {market[:60]!r} is named twice")
        vector[market] = parse_probability(item.get("probability"), f"the probability of {market[:60]!r}")
    return vector


def _outcomes(record: dict[str, Any]) -> dict[str, float | None]:
    """Outcome of each market, 0 or 1; None for all of them while the event is open."""
    if not label(record.get("market_outcome")):
        return dict.fromkeys(_json(record, "market_info"))
    outcomes = _json(record, "market_outcome")
    if bad := [market for market, outcome in outcomes.items() if outcome not in (0, 1)]:
        raise InvalidRecord(f"the outcome of market {bad[0][:60]!r} is neither 0 nor 1")
    return {market: float(outcome) for market, outcome in outcomes.items()}
