"""The canonical record of what a model did, and the hash chain over such records. Needs no database.

Whoever has the rows, an export or the tables, makes the same record of them and so the same hash. Rows are named by
what they are (cohort, family, week, the venue's id of a market), never by ids of one database.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

TRADING, FORECAST = "trading", "forecast"
PROTOCOLS = (TRADING, FORECAST)
GENESIS = "0" * 64
"""What stands before the first link of a chain."""


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
    """What an agent decided in a week: whom, at which prices, after which prompt and answer, and what was executed.

    `universe`, `prompt` and `answer` are SHA-256; trades name sequence, market, side, kind, shares, price and amount.
    """
    return {"protocol": TRADING, **locals(), "trades": [dict(trade) for trade in trades]}


def forecast_record(
    *,
    day: str,
    part: int,
    sheet: int,
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
    """What a release answered to a sheet of questions: forecasts name the question's hash and the probabilities.

    `questions` (of the day's set), `prompt` and `answer` are SHA-256.
    """
    return {"protocol": FORECAST, **locals(), "forecasts": [dict(forecast) for forecast in forecasts]}


def canonical(value: Any) -> str:
    """JSON that is the same for the same value: keys in order, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_sha256(record: Mapping[str, Any]) -> str:
    return sha256(canonical(record))


def link_sha256(previous: str, record: str) -> str:
    """The hash of a link: over the hash before it and the hash of its record.

    Over the record's hash, not its text, so that the chain can be followed where some records are left out.
    """
    return sha256(f"{previous}\n{record}")


def instant_text(at: datetime) -> str:
    """An instant in UTC, always to the microsecond, so that texts sort as instants do."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
