"""Rules for the OpenAPI schema: a summary, a description and limits for each operation, parameter and value."""

import re
from collections.abc import Iterator
from typing import Any

from arena_site.api_schema.descriptions import COMMON, COMPONENTS, PROPERTIES, TABLES_OF_COMPONENTS
from foundation.rest.filters import MAX_TEXT, MAX_VALUES
from foundation.rest.pagination import MAX_ADDRESS, MAX_COUNT
from scoring.exports.tables import TABLES

MAX_STORED_TEXT, MAX_ITEMS = 10_000_000, 1_000_000
MAX_NUMBER = 1e15
LIMITS_BY_FORMAT: dict[str, dict[str, Any]] = {
    "date": {"maxLength": 10},
    "date-time": {"maxLength": 40},
    "decimal": {"maxLength": 60, "pattern": r"^-?[0-9]+(\.[0-9]+)?$"},
    "uri": {"maxLength": MAX_ADDRESS},
}
LIMITS_BY_TYPE: dict[str, dict[str, Any]] = {
    "string": {"maxLength": MAX_STORED_TEXT},
    "integer": {"minimum": -MAX_COUNT, "maximum": MAX_COUNT},
    "number": {"minimum": -MAX_NUMBER, "maximum": MAX_NUMBER},
    "array": {"maxItems": MAX_ITEMS},
}
PATH_LIMITS = LIMITS_BY_TYPE | {"string": {"maxLength": MAX_TEXT}}
QUERY_LIMITS = LIMITS_BY_TYPE | {
    "string": {"minLength": 1, "maxLength": MAX_TEXT, "pattern": r"^[^\x00]*[^\x00\s][^\x00]*$"},
    "array": {"minItems": 1, "maxItems": MAX_VALUES},
}
"""As `check_parameters` has it: no text is empty."""


def describe_operation(path: str, operation: dict[str, Any]) -> None:
    """Adds the summary, the first sentence of the description, and what its parameters lack."""
    first = re.split(r"(?<=\.)\s", operation["description"])[0].rstrip(".").replace("\n", " ")
    kinds = {"list": " (list)", "retrieve": " (one)" if "{" in path else ""}
    operation["summary"] = first + kinds.get(operation["operationId"].rpartition("_")[2], "")
    for parameter in operation.get("parameters", ()):
        name, place = parameter["name"], parameter["in"]
        text = f"The row's `{name}`." if place == "path" else f"Only rows with this `{name}`."
        parameter.setdefault("description", text)
        for schema in subschemas(parameter["schema"]):
            add_limits(schema, PATH_LIMITS if place == "path" else QUERY_LIMITS)


def describe_component(name: str, component: dict[str, Any]) -> None:
    """Adds descriptions, those of the archive's data dictionary where they have none, and limits."""
    if name in COMPONENTS:
        component["description"] = COMPONENTS[name]
    elif name.startswith("Paginated"):
        component["description"] = "A page of a list."
    for schema in subschemas(component):
        add_limits(schema, LIMITS_BY_TYPE)
        for field, value in schema.get("properties", {}).items():
            if "description" not in value:
                value["description"] = _meaning(name, field)


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all those within it."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("prefixItems", ())]
    for word in ("anyOf", "oneOf", "allOf"):
        inner += schema.get(word, ())
    for word in ("items", "additionalProperties"):
        inner += [schema[word]] if isinstance(schema.get(word), dict) else []
    for subschema in inner:
        yield from subschemas(subschema)


def add_limits(schema: dict[str, Any], by_type: dict[str, dict[str, Any]]) -> None:
    """Adds the limits of its type and format that a schema does not state itself."""
    kinds = schema.get("type", ())
    if "enum" in schema or "const" in schema:
        return
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        limits = LIMITS_BY_FORMAT.get(schema.get("format", "")) or by_type.get(kind, {})
        if "pattern" in schema:
            limits = {word: limit for word, limit in limits.items() if word != "minLength"}
        for word, limit in limits.items():
            schema.setdefault(word, limit)


MEANINGS = {(table.name, column.name): column.meaning for table in TABLES for column in table.columns}


def _table(component: str) -> str:
    """The table of the archive whose columns a component has, by its name; many have none."""
    name = component.removesuffix("Detail")
    return TABLES_OF_COMPONENTS.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower() + "s")


def _meaning(component: str, field: str) -> str:
    """Raises LookupError for a property that nobody describes."""
    for name in (component, component.removesuffix("Detail")):
        if meaning := PROPERTIES.get(name, {}).get(field):
            return meaning
    meaning = MEANINGS.get((_table(component), field)) or COMMON.get(field)
    if meaning is None:
        raise LookupError(f"describe {field} of {component} by a help_text or in api_schema/descriptions.py")
    return meaning
