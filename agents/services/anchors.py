"""Signed chain heads, to be kept outside: those of now, and one record a day."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agents.models import Chain, DailyAnchor
from agents.records import GENESIS, PROTOCOLS, RECEIPT
from agents.services.signing_keys import key_of_heads
from agents.signing import sign
from foundation.json_lines import instant_text

Heads = dict[str, dict[str, Any]]


def chain_heads() -> Heads:
    """The length and head of each chain by its protocol."""
    heads: Heads = {protocol: {"length": 0, "head": GENESIS} for protocol in (*PROTOCOLS, RECEIPT)}
    return heads | {chain.protocol: {"length": chain.length, "head": chain.head} for chain in Chain.objects.all()}


def anchor(*, heads: Mapping[str, Any], at: datetime) -> dict[str, Any]:
    """Chain heads at an instant, signed."""
    statement = {"at": instant_text(at), "chains": dict(heads)}
    public_key, private_key = key_of_heads(at)
    return {**statement, "public_key": public_key, "signature": sign(statement, private_key)}


def record_daily_anchor(document: Mapping[str, Any], *, at: datetime) -> DailyAnchor:
    """The day's anchor: the first one of the day, which others may have kept or stamped."""
    day = at.astimezone(UTC).date()
    return DailyAnchor.objects.get_or_create(day=day, defaults={"document": dict(document), "made_at": at})[0]
