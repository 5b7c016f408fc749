"""The verification of Ed25519 signatures (RFC 8032), with the standard library alone."""

import hashlib

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, _P - 2, _P) % _P
_ROOT = pow(2, (_P - 1) // 4, _P)

Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T."""


def is_signed(key: bytes, message: bytes, signature: bytes) -> bool:
    """True if the signature of a message is that of the owner of a public key."""
    if len(key) != 32 or len(signature) != 64:
        return False
    owner, committed = _point_of(key), _point_of(signature[:32])
    factor = int.from_bytes(signature[32:], "little")
    if owner is None or committed is None or factor >= _ORDER:
        return False
    challenge = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % _ORDER
    one, other = _times(factor, _base()), _add(committed, _times(challenge, owner))
    return all((one[i] * other[2] - other[i] * one[2]) % _P == 0 for i in (0, 1))


def _add(one: Point, other: Point) -> Point:
    a, b = (one[1] - one[0]) * (other[1] - other[0]) % _P, (one[1] + one[0]) * (other[1] + other[0]) % _P
    c, d = 2 * one[3] * other[3] * _D % _P, 2 * one[2] * other[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(factor: int, point: Point) -> Point:
    result = (0, 1, 1, 0)
    while factor:
        if factor & 1:
            result = _add(result, point)
        point, factor = _add(point, point), factor >> 1
    return result


def _point_of(encoded: bytes) -> Point | None:
    """The point of 32 bytes; None where they encode none."""
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    square = (y * y - 1) * pow(_D * y * y + 1, _P - 2, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    x = x if (x * x - square) % _P == 0 else x * _ROOT % _P
    if y >= _P or (x * x - square) % _P or (x == 0 and encoded[31] >> 7):
        return None
    x = _P - x if (x & 1) != encoded[31] >> 7 else x
    return x, y, 1, x * y % _P


def _base() -> Point:
    point = _point_of((4 * pow(5, _P - 2, _P) % _P).to_bytes(32, "little"))
    assert point is not None
    return point
