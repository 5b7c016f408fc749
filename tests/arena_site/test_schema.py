"""The OpenAPI document as a whole: what each of its operations, parameters and values must state."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, FormatChecker

from tests.arena_site.test_api import SCHEMA


@pytest.fixture(scope="module")
def document() -> Any:
    return yaml.load(SCHEMA.read_text(), yaml.CSafeLoader)


def operations(document: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def schemas(node: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document that has a type, with its place."""
    if isinstance(node, dict):
        if isinstance(node.get("type"), str | list) and "in" not in node:
            yield where, node
        for name, inner in node.items():
            if name not in ("examples", "example"):
                yield from schemas(inner, f"{where}/{name}")
    elif isinstance(node, list):
        for place, inner in enumerate(node):
            yield from schemas(inner, f"{where}/{place}")


def lacking(schema: dict[str, Any]) -> set[str]:
    """The limits that a schema should state and does not."""
    if "enum" in schema or "const" in schema:
        return set()
    needed = {
        "string": {"maxLength"},
        "integer": {"minimum", "maximum"},
        "number": {"minimum", "maximum"},
        "array": {"maxItems"},
    }
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return {limit for kind in kinds for limit in needed.get(kind, ())} - schema.keys()


def test_document_names_its_licence_contact_server_and_tags(document: Any) -> None:
    assert document["info"]["license"] == {"name": "MIT", "identifier": "MIT"}
    assert set(document["info"]["contact"]) == {"name", "url"}
    assert [server["url"] for server in document["servers"]] == ["/"]
    used = {tag for _, operation in operations(document) for tag in operation["tags"]}
    assert [tag["name"] for tag in document["tags"]] == sorted(used)


def test_every_operation_and_parameter_is_described(document: Any) -> None:
    for label, operation in operations(document):
        assert operation["summary"], label
        assert operation["description"], label
        assert len(operation["tags"]) == 1, label
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], f"{label} {parameter['name']}"


def test_every_property_is_described(document: Any) -> None:
    bare = [
        f"{where}/{name}"
        for where, schema in schemas(document)
        for name, field in schema.get("properties", {}).items()
        if not field.get("description")
    ]
    assert bare == []


def test_every_number_text_and_list_has_limits(document: Any) -> None:
    assert {where: lacking(schema) for where, schema in schemas(document) if lacking(schema)} == {}


def test_orderings_and_statuses_are_enumerated(document: Any) -> None:
    named = [
        (label, parameter["name"], parameter["schema"].get("items", parameter["schema"]))
        for label, operation in operations(document)
        for parameter in operation.get("parameters", ())
        if parameter["name"] in ("ordering", "status", "status__in")
    ]
    assert len(named) > 30
    assert [(label, name) for label, name, schema in named if not schema.get("enum")] == []
    assert document["components"]["schemas"]["RunStatus"]["enum"] == ["running", "succeeded", "failed", "lost"]


def test_every_example_is_valid(document: Any) -> None:
    examples = [(where, schema, each) for where, schema in schemas(document) for each in schema.get("examples", ())]
    for label, operation in operations(document):
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for media in (media for body in bodies for media in body.get("content", {}).values()):
            examples += [(label, media["schema"], each["value"]) for each in media.get("examples", {}).values()]
    assert len(examples) > 100
    for where, schema, example in examples:
        rooted = {"components": document["components"], **schema}
        errors = Draft202012Validator(rooted, format_checker=FormatChecker()).iter_errors(example)
        assert [error.message for error in errors] == [], where
