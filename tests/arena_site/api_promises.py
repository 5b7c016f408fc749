"""The promises of the API, `docs/api-promises.txt`: a line a path with its parameters and the fields of its answer.

`uv run python -m tests.arena_site.api_promises` renews the file.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROMISES = Path(__file__).resolve().parents[2] / "docs" / "api-promises.txt"
MEDIA = "application/json"


def openapi_document() -> Any:
    """The document as the site generates it, with every warning an error."""
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.settings import spectacular_settings
    from drf_spectacular.validation import validate_schema

    with GENERATOR_STATS.silence():
        document = spectacular_settings.DEFAULT_GENERATOR_CLASS().get_schema(request=None, public=True)
    assert not GENERATOR_STATS, GENERATOR_STATS.emit_summary()
    validate_schema(document)
    return document


def promises(document: Any) -> list[str]:
    """A line a path and method: `GET /api/v1/trades/ ? agent cohort … > id agent …`."""
    lines = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parameters = sorted(parameter["name"] for parameter in operation.get("parameters", ()))
            fields = sorted(set(_answer_fields(document, operation)))
            lines.append(f"{method.upper()} {path} ? {' '.join(parameters)} > {' '.join(fields)}")
    return lines


def _answer_fields(document: Any, operation: Any) -> Iterator[str]:
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            yield from _fields(document, response.get("content", {}).get(MEDIA, {}).get("schema", {}), "", ())


def _fields(document: Any, schema: Any, prefix: str, outer: tuple[str, ...]) -> Iterator[str]:
    reference = schema.get("$ref")
    if reference in outer:
        return
    if reference:
        name = reference.rpartition("/")[2]
        yield from _fields(document, document["components"]["schemas"][name], prefix, (*outer, reference))
    for alternative in (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ())):
        yield from _fields(document, alternative, prefix, outer)
    if isinstance(schema.get("items"), dict):
        yield from _fields(document, schema["items"], f"{prefix}[]", outer)
    for name, field in schema.get("properties", {}).items():
        yield f"{prefix}.{name}".removeprefix(".")
        yield from _fields(document, field, f"{prefix}.{name}", outer)


if __name__ == "__main__":
    import os

    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    PROMISES.write_text("\n".join(promises(openapi_document())) + "\n")
