"""What the OpenAPI description says of all endpoints alike: headers, examples, and which fields may be left out."""

from threading import Lock
from typing import Any, ClassVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.views import SpectacularAPIView

from markets.rest import PROBLEM, Rows

HEADERS = {
    "ETag": ("The version of this answer; sent back as `If-None-Match`, it gets a 304 while nothing is new.", "string"),
    "Last-Modified": ("When anything may last have changed; left out while a job is at work.", "string"),
    "Retry-After": ("Seconds to wait.", "integer"),
}
EXAMPLES: dict[str, Any] = {
    "family": "gpt-5.1",
    "slug": "gpt-5.1",
    "display_name": "GPT-5.2",
    "provider": "OpenAI",
    "model_id": "openai/gpt-5.2",
    "release": "openai/gpt-5.2",
    "methodology": "v1",
    "version": "v1",
    "cohort": 1,
    "number": 1,
    "side": "YES",
    "winning_side": "YES",
    "question": "Will it rain in Lisbon on 30 June?",
    "category": "Weather",
    "brier": 0.1875,
    "score": 0.1875,
    "win_rate": 0.47,
    "return_percent": 3.25,
    "brier_ci": [0.14, 0.24],
    "return_ci": [-2.5, 9.0],
    "rank": 1,
}
BY_FORMAT = {"date-time": "2026-03-08T00:05:00Z", "decimal": "1250.00", "uri": "/api/v1/trades/?page=2"}


class Description(SpectacularAPIView):
    """The description of the API: put together once for a process, since it changes with the code alone."""

    _kept: ClassVar[dict[str, bytes]] = {}
    """As it is sent, by media type."""
    _making = Lock()
    """drf-spectacular loads what it knows of other packages in place: two threads at once break it."""

    def _get_schema_response(self, request: Any) -> HttpResponseBase:
        if request.GET.keys() - {"format"}:
            return super()._get_schema_response(request)  # type: ignore[no-any-return]
        renderer = request.accepted_renderer
        with self._making:
            if renderer.media_type not in self._kept:
                described = super()._get_schema_response(request).data
                self._kept[renderer.media_type] = renderer.render(described, renderer.media_type, {})
        filename = self._get_filename(request, None)
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        return HttpResponse(
            self._kept[renderer.media_type],
            content_type=f"{renderer.media_type}{charset}",
            headers={"Content-Disposition": f'inline; filename="{filename}"'},
        )


def completed(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """The description with all of that in it: a post-processing hook of drf-spectacular."""
    schemas = result["components"]["schemas"]
    result["components"]["headers"] = {
        name: {"description": text, "schema": {"type": kind}} for name, (text, kind) in HEADERS.items()
    }
    for operations in result["paths"].values():
        for operation in operations.values():
            _name_headers(operation["responses"])
            _share_problem(operation["responses"])
    schemas["Problem"] = PROBLEM
    for schema in schemas.values():
        _give_examples(schema)
        if "oneOf" in schema and all("$ref" in kind for kind in schema["oneOf"]):
            schema["anyOf"] = schema.pop("oneOf")  # with fields left out, a row may look like either
    for name in _thinned(generator):
        # `fields` may leave out any of them.
        schemas[name].pop("required", None)
    return result


def _name_headers(responses: dict[str, Any]) -> None:
    named = {"200": ("ETag", "Last-Modified"), "304": ("ETag", "Last-Modified"), "429": ("Retry-After",)}
    for status, names in named.items():
        if status in responses:
            responses[status]["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _share_problem(responses: dict[str, Any]) -> None:
    for response in responses.values():
        for content in response.get("content", {}).values():
            if content.get("schema") == PROBLEM:
                content["schema"] = {"$ref": "#/components/schemas/Problem"}


def _give_examples(schema: dict[str, Any]) -> None:
    for name, described in schema.get("properties", {}).items():
        types = described.get("type", [])
        example = EXAMPLES.get(name, BY_FORMAT.get(described.get("format", "")))
        if example is not None and _is_one(example, [types] if isinstance(types, str) else types):
            described["examples"] = [example]


def _is_one(example: Any, types: list[str]) -> bool:
    kinds = {str: "string", int: "integer", float: "number", list: "array"}
    return kinds[type(example)] in types


def _thinned(generator: Any) -> set[str]:
    """Names of the components whose fields `fields` can choose."""
    rows = set()
    for _, _, _, view in generator._get_paths_and_endpoints():
        if getattr(view, "thins", False):
            serializers = [view.serializer_class, *getattr(view, "other_serializer_classes", ())]
            if isinstance(view, Rows) and view.detail_serializer_class:
                serializers.append(view.detail_serializer_class)
            rows |= {serializer.__name__.removesuffix("Serializer") for serializer in serializers}
    return rows
