"""Canonical JSON and hashes, as in the arena's archives."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """Canonical JSON: sorted keys, no blanks, ASCII, the shortest form of floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def sha256(value: Any) -> str:
    """The SHA-256 of a value's canonical JSON, in hex."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text from outside. Raises ValueError, also for what canonical JSON can not hold."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite_float)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large a number")
    return number


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
