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


def is_same(stored: Any, computed: Any) -> bool:
    """Equality with a tolerance for floats, also inside lists and dicts."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        return stored.keys() == computed.keys() and all(is_same(stored[name], computed[name]) for name in stored)
    if isinstance(stored, list | tuple) and isinstance(computed, list | tuple):
        return len(stored) == len(computed) and all(map(is_same, stored, computed))
    if isinstance(stored, float) or isinstance(computed, float):
        if stored is None or computed is None:
            return stored is computed
        return math.isclose(stored, computed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(stored == computed)


def first_difference(stored: Any, computed: Any, path: str = "") -> str | None:
    """The path of the first difference between two JSON values, and both parts; None where they are the same."""
    if isinstance(stored, dict) and isinstance(computed, dict):
        parts = [(f"{path}.{key}", stored.get(key), computed.get(key)) for key in {**computed, **stored}]
    elif isinstance(stored, list) and isinstance(computed, list) and len(stored) == len(computed):
        parts = [(f"{path}[{place}]", *pair) for place, pair in enumerate(zip(stored, computed, strict=True))]
    else:
        return None if is_same(stored, computed) else f"{path[1:]} is {stored!r}, should be {computed!r}"
    return next(
        filter(
            None, (first_difference(stored_part, computed_part, inner) for inner, stored_part, computed_part in parts)
        ),
        None,
    )
