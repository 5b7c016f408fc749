"""Canonical JSON of records, and the hash chains over them. Needs no database."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

TRADING, FORECAST, ARCHIVE = "trading", "forecast", "archive"
PROTOCOLS = (TRADING, FORECAST, ARCHIVE)
"""The chains of links."""
RECEIPT = "receipt"
"""The chain of receipts, which are their own links."""
GENESIS = "0" * 64
"""The previous hash of a chain's first link."""


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
