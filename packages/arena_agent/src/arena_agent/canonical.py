"""Canonical JSON and hashes, as in the arena's archives."""

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no blanks, ASCII, the shortest form of floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
