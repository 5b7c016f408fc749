"""Canonical JSON of records, and the hash chains over them. Needs no database."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from typing import Any

TRADING, FORECAST, ARCHIVE, BOARD = "trading", "forecast", "archive", "board"
PROTOCOLS = (TRADING, FORECAST, ARCHIVE, BOARD)
"""The chains of links."""
RECEIPT = "receipt"
"""The chain of receipts, which are their own links."""
GENESIS = "0" * 64
"""The previous hash of a chain's first link."""


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def new_nonce() -> str:
    """32 random bytes in hex: a hash that covers them tells nothing of the rest, however short that is."""
    return secrets.token_hex(32)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_sha256(record: Mapping[str, Any]) -> str:
    return sha256(canonical(record))


def link_sha256(previous: str, record: str) -> str:
    """The hash of a link, over the previous link's hash and the hash of its record.

    It takes the record's hash, not its text, so that the chain can be verified without all records.
    """
    return sha256(f"{previous}\n{record}")
