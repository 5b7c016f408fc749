"""Stored figures and computed ones: brought to one form, and compared."""

import json
import math
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder

TOLERANCE = 1e-9
"""Largest difference between two computations of one floating point number, relative and absolute."""


def to_json(value: Any) -> Any:
    """The value as a JSON field gives it back."""
    return json.loads(json.dumps(value, cls=DjangoJSONEncoder))


def is_same(stated: Any, computed: Any) -> bool:
    """Equality with a tolerance for floats, also inside lists and dicts."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        return stated.keys() == computed.keys() and all(is_same(stated[name], computed[name]) for name in stated)
    if isinstance(stated, list | tuple) and isinstance(computed, list | tuple):
        return len(stated) == len(computed) and all(map(is_same, stated, computed))
    if isinstance(stated, float) or isinstance(computed, float):
        if stated is None or computed is None:
            return stated is computed
        return math.isclose(stated, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(stated == computed)


def first_difference(stored: Any, due: Any, path: str = "") -> str | None:
    """The path of the first difference between two JSON values, and both parts; None where they are the same."""
    if isinstance(stored, dict) and isinstance(due, dict):
        parts = [(f"{path}.{key}", stored.get(key), due.get(key)) for key in {**due, **stored}]
    elif isinstance(stored, list) and isinstance(due, list) and len(stored) == len(due):
        parts = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(stored, due, strict=True))]
    else:
        return None if is_same(stored, due) else f"{path[1:]} is {stored!r}, should be {due!r}"
    return next(filter(None, (first_difference(own, other, inner) for inner, own, other in parts)), None)
