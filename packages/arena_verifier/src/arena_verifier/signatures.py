"""The signature of the heads: Ed25519 of RFC 8032, verification alone."""

import hashlib
from functools import lru_cache

from arena_verifier.files import ArchiveTables
from arena_verifier.rows import Violations, canonical

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
CURVE = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
ROOT = pow(2, (PRIME - 1) // 4, PRIME)
Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T."""


def check_signature(archive: ArchiveTables, violations: Violations, key: str | None = None) -> None:
    """The heads of the manifest are signed, and by the expected key where one is given."""
    anchor = archive.json("anchor.json")
    statement = {name: value for name, value in anchor.items() if name not in ("public_key", "signature")}
    if anchor["chains"] != archive.manifest["chains"]:
        violations.append("anchor.json: it is about other heads than the manifest's")
    message = canonical(statement).encode()
    if not is_signed(bytes.fromhex(anchor["public_key"]), message, bytes.fromhex(anchor["signature"])):
        violations.append("anchor.json: its signature is not that of its key")
    if key is not None and key.lower() != anchor["public_key"]:
        violations.append(f"anchor.json: it is signed by {anchor['public_key']}")


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """True if the signature of a message is that of the owner of a public key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, committed = point_of(key), point_of(signature[:32])
    factor = int.from_bytes(signature[32:], "little")
    if owner is None or committed is None or factor >= ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % ORDER
    left_side, right_side = times(factor, base_point()), add(committed, times(challenge, owner))
    return all((left_side[i] * right_side[2] - right_side[i] * left_side[2]) % PRIME == 0 for i in (0, 1))


def add(first: Point, second: Point) -> Point:
    # RFC 8032, 5.1.4.
    a = (first[1] - first[0]) * (second[1] - second[0]) % PRIME
    b = (first[1] + first[0]) * (second[1] + second[0]) % PRIME
    t = 2 * first[3] * second[3] * CURVE % PRIME
    z = 2 * first[2] * second[2] % PRIME
    return (b - a) * (z - t) % PRIME, (z + t) * (b + a) % PRIME, (z - t) * (z + t) % PRIME, (b - a) * (b + a) % PRIME


@lru_cache(maxsize=8)
def doublings(point: Point) -> list[Point]:
    """A point times 1, 2, 4, …: of the base and of a key once for all signatures."""
    points = [point]
    while len(points) < 256:
        points.append(add(points[-1], points[-1]))
    return points


def times(factor: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    for double in doublings(point):
        if factor & 1:
            result = add(result, double)
        factor >>= 1
    return result


def point_of(encoded: bytes) -> Point | None:
    """The point of 32 bytes; None where they encode none."""
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    square = (y * y - 1) * pow(CURVE * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    x = x if (x * x - square) % PRIME == 0 else x * ROOT % PRIME
    if y >= PRIME or (x * x - square) % PRIME or (x == 0 and encoded[31] >> 7):
        return None
    x = PRIME - x if (x & 1) != encoded[31] >> 7 else x
    return x, y, 1, x * y % PRIME


def base_point() -> Point:
    point = point_of((4 * pow(5, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little"))
    assert point is not None
    return point
