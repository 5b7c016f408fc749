"""Canonical records of completed tasks, and the hash chain over them. Needs no database.

The database and an export give the same record, and so the same hash: a record identifies rows by cohort, family, week
or the venue's id of a market, never by a primary key.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

TRADING, FORECAST = "trading", "forecast"
PROTOCOLS = (TRADING, FORECAST)
GENESIS = "0" * 64
"""The previous hash of a chain's first link."""


def trading_record(
    *,
    cohort: int,
    week: int,
    family: str,
    model: str,
    methodology: str,
    universe: str | None,
    prompt: str | None,
    answer: str | None,
    action: str,
    fallback: bool,
    trades: Sequence[Mapping[str, Any]],
    decided_at: str,
) -> dict[str, Any]:
    """The record of a decision.

    `universe`, `prompt` and `answer` are SHA-256; a trade has sequence, market, side, kind, shares, price and amount.
    """
    return {"protocol": TRADING, **locals(), "trades": [dict(trade) for trade in trades]}


def forecast_record(
    *,
    day: str,
    part: int,
    batch: int,
    arm: str,
    family: str,
    model: str,
    methodology: str,
    questions: str,
    prompt: str | None,
    answer: str | None,
    declined: bool,
    forecasts: Sequence[Mapping[str, Any]],
    made_at: str,
) -> dict[str, Any]:
    """The record of an elicitation.

    `questions` (of the day's set), `prompt` and `answer` are SHA-256; a forecast has the question's hash and the
    probabilities.
    """
    return {"protocol": FORECAST, **locals(), "forecasts": [dict(forecast) for forecast in forecasts]}


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_sha256(record: Mapping[str, Any]) -> str:
    return sha256(canonical(record))


def link_sha256(previous: str, record: str) -> str:
    """The hash of a link, over the previous link's hash and the hash of its record.

    It takes the record's hash, not its text, so that the chain can be verified without all records.
    """
    return sha256(f"{previous}\n{record}")


def instant_text(at: datetime) -> str:
    """An instant in UTC with microseconds always, so that texts sort in order of time."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
