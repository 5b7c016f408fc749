"""The arena's signing keys: the one in use, their register and rotation, and the chain heads that they sign.

The private keys are in the settings, the public ones in the database. A receipt is signed by the key that was in use
when its answer was received, so that a reader can check it against the dates.
"""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction

from agents.models import Chain, DailyAnchor, Receipt, SigningKey
from agents.records import GENESIS, PROTOCOLS, RECEIPT
from agents.services.chain import lock_chain
from agents.signing import available_keys, has_lasting_key, sign
from foundation.json_lines import instant_text

ALERT = "signing-key"
ROTATE_AFTER = timedelta(days=365)


class SigningKeyMismatch(Exception):
    """The settings do not hold the key that is in use; the message says which one that is."""


class NoOtherKey(Exception):
    """There is no key to rotate to; the message says what to do."""


def fingerprint(public_key: str) -> str:
    """The id of a public key."""
    return hashlib.sha256(bytes.fromhex(public_key)).hexdigest()[:16]


def published_keys() -> list[dict[str, Any]]:
    """All keys with the dates of their use, the newest first; before the first receipt the one of the settings."""
    keys = list(SigningKey.objects.all()) or [_unsaved(next(iter(available_keys())))]
    rows = []
    for key in keys:
        row = {
            "id": key.fingerprint,
            "public_key": key.public_key,
            "from": key.began_at and instant_text(key.began_at),
            "to": key.ended_at and instant_text(key.ended_at),
        }
        rows.append(row)
    return rows


def key_of_heads(at: datetime) -> tuple[str, bytes]:
    """The public and the private key that sign chain heads: those in use, or the settings' where they lack these."""
    available = available_keys()
    key = SigningKey.objects.in_use(at)
    public_key = key.public_key if key is not None and key.public_key in available else next(iter(available))
    return public_key, available[public_key]


def key_of_receipts(at: datetime) -> tuple[SigningKey, bytes]:
    """The key in use at an instant, the first one registered now. Call it with the receipts' chain locked.

    Raises SigningKeyMismatch. An arena without a lasting key, which is one to try, registers each new key.
    """
    available = available_keys()
    key = SigningKey.objects.in_use(at)
    if key is None and not SigningKey.objects.exists():
        key = _unsaved(next(iter(available)))
        key.save()
    elif (key is None or key.public_key not in available) and not has_lasting_key():
        key = _succeed(SigningKey.objects.current(), next(iter(available)), at)
    if key is None or key.public_key not in available:
        raise SigningKeyMismatch(f"the settings lack the signing key in use, {key or 'none'}")
    return key, available[key.public_key]


def rotate_signing_key(*, at: datetime) -> tuple[SigningKey, bool]:
    """The settings' newest key, in use from `at` on, and whether it was not before. Raises NoOtherKey."""
    available = list(available_keys())
    with transaction.atomic():
        lock_chain(RECEIPT)
        current = SigningKey.objects.current()
        if current is None:
            current = _unsaved(available[0])
            current.save()
        if len(available) == 1 and current.public_key == available[0]:
            raise NoOtherKey(f"{current} is in use: set ARENA_NEXT_SIGNING_KEY to its successor and start again first")
        if current.public_key == available[-1]:
            return current, False
        if SigningKey.objects.filter(public_key=available[-1]).exists():
            raise NoOtherKey(f"{fingerprint(available[-1])} was in use before: make a new key")
        return _succeed(current, available[-1], at), True


def key_problem(key: SigningKey, now: datetime) -> str:
    """The fault of the key in use; empty without one."""
    if key.public_key not in available_keys() and has_lasting_key():
        return f"The settings hold another signing key than {key}, the one in use: answers of agents are not accepted."
    since = key.began_at or key.receipts.values_list("received_at", flat=True).first()
    if since is not None and now - since > ROTATE_AFTER:
        period = f"since {since:%-d %B %Y}, for over a year"
        return f"The signing key {key} has been in use {period}. It does not expire: rotate it."
    return ""


def _unsaved(public_key: str, began_at: datetime | None = None) -> SigningKey:
    return SigningKey(fingerprint=fingerprint(public_key), public_key=public_key, began_at=began_at)


def _succeed(current: SigningKey | None, public_key: str, at: datetime) -> SigningKey:
    """Ends the use of a key after its last receipt, and begins that of another."""
    assert current is not None
    last = Receipt.objects.filter(key=current).order_by("-received_at").values_list("received_at", flat=True)
    began = [current.began_at] if current.began_at else []
    begins_at = max([at, *(before + timedelta(microseconds=1) for before in [*last[:1], *began])])
    SigningKey.objects.filter(pk=current.pk).update(ended_at=begins_at)
    successor = _unsaved(public_key, begins_at)
    successor.save()
    return successor


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
