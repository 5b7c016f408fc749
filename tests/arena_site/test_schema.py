"""The OpenAPI document as a whole: what each of its operations, parameters and values must state."""

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from tests.arena_site.api_promises import PROMISES, openapi_document, promises


@pytest.fixture(scope="module")
def document() -> Any:
    return openapi_document()


def operations(document: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def schemas(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document that has a type, with its path."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str | list) and "in" not in node:
            yield path, node
        for name, inner in node.items():
            if name not in ("examples", "example"):
                yield from schemas(inner, f"{path}/{name}")
    elif isinstance(node, list):
        for index, inner in enumerate(node):
            yield from schemas(inner, f"{path}/{index}")


def missing_limits(schema: dict[str, Any]) -> set[str]:
    """The limits that a schema of this type must state and does not."""
    if "enum" in schema or "const" in schema:
        return set()
    limits_by_type = {
        "string": {"maxLength"},
        "integer": {"minimum", "maximum"},
        "number": {"minimum", "maximum"},
        "array": {"maxItems"},
    }
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {limit for type_name in types for limit in limits_by_type.get(type_name, ())} - schema.keys()


def test_api_keeps_its_promises(document: Any) -> None:
    """After a change of the API: `uv run python -m tests.arena_site.api_promises`."""
    assert promises(document) == PROMISES.read_text().splitlines()


def test_document_names_its_licence_contact_server_and_tags(document: Any) -> None:
    assert document["info"]["license"] == {"name": "MIT", "identifier": "MIT"}
    assert set(document["info"]["contact"]) == {"name", "url"}
    assert [server["url"] for server in document["servers"]] == ["/"]
    used_tags = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert [tag["name"] for tag in document["tags"]] == sorted(used_tags)


def test_every_operation_and_parameter_is_described(document: Any) -> None:
    for label, operation in operations(document):
        assert operation["summary"], label
        assert operation["description"], label
        assert len(operation["tags"]) == 1, label
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], f"{label} {parameter['name']}"


def test_every_component_and_property_is_described(document: Any) -> None:
    components = document["components"]["schemas"]
    rows = {name: component for name, component in components.items() if "properties" in component}
    undescribed = [name for name, component in rows.items() if not component.get("description")]
    undescribed += [
        f"{path}/{name}"
        for path, schema in schemas(document)
        for name, field in schema.get("properties", {}).items()
        if not field.get("description")
    ]
    assert undescribed == []
    assert [name for name, component in rows.items() if "Serializer" in component["description"]] == []
    assert rows["Run"]["properties"]["started_at"]["description"] == "Start by the real clock."


def test_every_number_text_and_list_has_limits(document: Any) -> None:
    assert {path: missing_limits(schema) for path, schema in schemas(document) if missing_limits(schema)} == {}


def test_orderings_and_statuses_are_enumerated(document: Any) -> None:
    choices = [
        (label, parameter["name"], parameter["schema"].get("items", parameter["schema"]))
        for label, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter["name"] in ("ordering", "status", "status__in")
    ]
    assert len(choices) > 30
    assert [(label, name) for label, name, schema in choices if not schema.get("enum")] == []
    assert document["components"]["schemas"]["RunStatus"]["enum"] == ["running", "succeeded", "failed", "lost"]


def test_every_example_is_valid(document: Any) -> None:
    examples = [(path, schema, sample) for path, schema in schemas(document) for sample in schema.get("examples", ())]
    for label, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for media in (media for body in bodies for media in body.get("content", {}).values()):
            examples += [(label, media["schema"], sample["value"]) for sample in media.get("examples", {}).values()]
    assert len(examples) > 100
    for place, schema, example in examples:
        rooted = {"components": document["components"], **schema}
        errors = Draft202012Validator(rooted, format_checker=FormatChecker()).iter_errors(example)
        assert [error.message for error in errors] == [], place
