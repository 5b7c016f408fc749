"""Signatures of chain heads and receipts: Ed25519 over canonical JSON. Anyone can verify one by its public key."""

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


def available_keys() -> dict[str, bytes]:
    """The private keys of the settings by their public ones in hex: the present one, then its successor if any."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    keys = {}
    for private_key in (_private_key(), settings.ARENA_NEXT_SIGNING_KEY):
        if private_key is not None:
            public_key = Ed25519PrivateKey.from_private_bytes(private_key).public_key()
            keys[public_key.public_bytes_raw().hex()] = private_key
    return keys


def sign(statement: Mapping[str, Any], private_key: bytes) -> str:
    """The signature over a statement as canonical JSON, in hex."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(private_key).sign(canonical(statement).encode()).hex()


def is_signed(document: Mapping[str, Any]) -> bool:
    """True if the document's signature is that of its own public key."""
    statement = {name: value for name, value in document.items() if name not in SIGNATURE_FIELDS}
    return is_signature(document.get("signature"), statement, document.get("public_key"))


def is_signature(signature: Any, statement: Mapping[str, Any], public_key: Any) -> bool:
    """True if a signature in hex is that of a public key's owner over the statement as canonical JSON."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
        key.verify(bytes.fromhex(signature), canonical(statement).encode())
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _private_key() -> bytes:
    """The 32 bytes of ARENA_SIGNING_KEY; without one, bytes that follow from SECRET_KEY."""
    key: bytes | None = settings.ARENA_SIGNING_KEY
    return key or hmac.digest(settings.SECRET_KEY.encode(), PURPOSE, hashlib.sha256)
