"""Values of the wrong type, as they stand in JSON, and rows in which they replace one field."""

import json
from typing import Any

ABSENT = "absent"
WRONG = [ABSENT, "null", "7", "true", '"x"', "[]", "{}", '""']
EVERY = " ".join(WRONG)


def replace_field(row: dict[str, Any], path: str, value: str) -> dict[str, Any]:
    """The row with the field at `path` set to a JSON value, or taken out."""
    head, _, tail = path.partition(".")
    if tail:
        inner = row[head]
        is_list = isinstance(inner, list)
        replaced = replace_field(inner[0] if is_list else inner, tail, value)
        return row | {head: [replaced] if is_list else replaced}
    fields = {key: field_value for key, field_value in row.items() if key != head}
    return fields if value == ABSENT else fields | {head: json.loads(value)}
