"""Signatures of chain heads: Ed25519 over canonical JSON. Anyone can verify one with the published public key."""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from django.conf import settings

from agents.records import canonical

PURPOSE = b"forecaster arena: signatures of chain heads"
SIGNATURE_FIELDS = ("public_key", "signature")


NO_LASTING_KEY = "SECRET_KEY is not set: the archive would be signed with a key that nobody can check later"


def has_lasting_key() -> bool:
    """Whether the key outlives this process: without the two settings it follows from a random SECRET_KEY."""
    return settings.SECRET_KEY_IS_SET or settings.ARENA_SIGNING_KEY is not None


def signed(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The statement with the arena's public key and its signature, both in hex, over the rest as canonical JSON."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.from_private_bytes(_private_key())
    signature = key.sign(canonical(statement).encode())
    return {**statement, "public_key": key.public_key().public_bytes_raw().hex(), "signature": signature.hex()}


def is_signed(document: Mapping[str, Any]) -> bool:
    """True if the document's signature is that of its own public key."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    statement = {name: value for name, value in document.items() if name not in SIGNATURE_FIELDS}
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(document["public_key"]))
        key.verify(bytes.fromhex(document["signature"]), canonical(statement).encode())
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def _private_key() -> bytes:
    """The 32 bytes of ARENA_SIGNING_KEY; without one, bytes that follow from SECRET_KEY."""
    key: bytes | None = settings.ARENA_SIGNING_KEY
    return key or hmac.digest(settings.SECRET_KEY.encode(), PURPOSE, hashlib.sha256)
