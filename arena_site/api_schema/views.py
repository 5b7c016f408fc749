"""The OpenAPI schema: its views, and the headers, examples and optional fields that all endpoints share."""

import re
from copy import deepcopy
from threading import Lock
from typing import Any, ClassVar

from csp.decorators import csp_update
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import get_lib_doc_excludes
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from agents.api.ledger import AgentRecordSerializer
from agents.api.tasks import TaskCostSerializer
from arena_site.api_schema.rules import describe_component, describe_operation
from foundation.rest.problems import PROBLEM_SCHEMA, PROBLEM_TYPE
from foundation.rest.serializers import ReadSerializer, StrictSerializer
from foundation.rest.viewsets import ReadOnlyViewSet

JSON, CSV = "application/json", "text/csv"
HEADERS = {
    "ETag": (
        "The version of this response; sent back as `If-None-Match`, it gets a 304 while nothing has changed.",
        "string",
    ),
    "Last-Modified": ("When anything may last have changed; absent while a job is running.", "string"),
    "Retry-After": ("Seconds to wait.", "integer"),
}
HEADER_LIMITS = {"string": {"maxLength": 200}, "integer": {"minimum": 0, "maximum": 86_400}}
MAX_FILE = 10**9
"""Characters of a page as CSV."""
PROBLEMS = {
    "400": "A wrong parameter or field, named.",
    "406": "Nothing that `Accept` names can be given.",
    "429": "Too many requests of this client; `Retry-After` gives the seconds to wait.",
    "500": "The server failed.",
    "503": "The database can not be reached, or the read took too long.",
}
"""Statuses that every operation may answer with."""
EXAMPLES: dict[str, Any] = {
    **dict.fromkeys(("family", "slug"), "gpt-5.1"),
    "display_name": "GPT-5.2",
    "provider": "OpenAI",
    **dict.fromkeys(("model_id", "release"), "openai/gpt-5.2"),
    **dict.fromkeys(("methodology", "version"), "v1"),
    **dict.fromkeys(("cohort", "number", "rank"), 1),
    **dict.fromkeys(("side", "winning_side"), "YES"),
    "question": "Will it rain in Lisbon on 30 June?",
    "category": "Weather",
    **dict.fromkeys(("brier", "score"), 0.1875),
    "win_rate": 0.47,
    "return_percent": 3.25,
    "brier_ci": [0.14, 0.24],
    "return_ci": [-2.5, 9.0],
}
EXAMPLES_BY_FORMAT = {"date-time": "2026-03-08T00:05:00Z", "decimal": "1250.00", "uri": "/api/v1/trades/?page=2"}


class CachedSchemaView(SpectacularAPIView):
    """The schema, generated once per process, since only the code can change it."""

    _rendered: ClassVar[dict[str, bytes]] = {}
    """The contents in each media type."""
    _generator_lock = Lock()
    """drf-spectacular loads its extensions in place, which two threads at once would break."""

    def _get_schema_response(self, request: Any) -> HttpResponseBase:
        if request.GET.keys() - {"format"}:
            return super()._get_schema_response(request)  # type: ignore[no-any-return]
        renderer = request.accepted_renderer
        with self._generator_lock:
            if renderer.media_type not in self._rendered:
                document = super()._get_schema_response(request).data
                self._rendered[renderer.media_type] = renderer.render(document, renderer.media_type, {})
        filename = self._get_filename(request, None)
        charset = f"; charset={renderer.charset}" if renderer.charset else ""
        return HttpResponse(
            self._rendered[renderer.media_type],
            content_type=f"{renderer.media_type}{charset}",
            headers={"Content-Disposition": f'inline; filename="{filename}"'},
        )


schema = CachedSchemaView.as_view()
# Swagger UI's stylesheet holds the images of its buttons.
docs = csp_update({"img-src": ["data:"]})(SpectacularSwaggerSplitView.as_view(url_name="schema"))


class AgentTokenScheme(OpenApiAuthenticationExtension):
    """The OpenAPI description of agent tokens."""

    target_class = "arena_site.authentication.AgentTokenAuthentication"
    name = "agentToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "The token that `register_agent` printed."}


def undescribed_bases() -> list[type]:
    """Base classes whose docstrings describe no endpoint and no row."""
    return [*get_lib_doc_excludes(), ReadSerializer, StrictSerializer, AgentRecordSerializer, TaskCostSerializer]


def apply_descriptions(endpoints: list[Any]) -> list[Any]:
    """Pre-processing hook of drf-spectacular: applies the options that views stored with `extend_schema`."""
    for *_, method, callback in endpoints:
        handler = getattr(callback.cls, getattr(callback, "actions", {}).get(method.lower(), method.lower()))
        if options := vars(handler).pop("schema_options", None):
            extend_schema(**options)(handler)
    return endpoints


def add_shared_parts(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Post-processing hook of drf-spectacular: adds the shared headers, examples and the problem schema."""
    result = deepcopy(result)  # its parts are constants, of the framework and ours
    schemas = result["components"]["schemas"]
    result["components"]["headers"] = {
        name: {"description": text, "schema": HEADER_LIMITS[kind] | {"type": kind}}
        for name, (text, kind) in HEADERS.items()
    }
    tags: set[str] = set()
    for path, operations in result["paths"].items():
        for operation in operations.values():
            describe_operation(path, operation)
            _add_problems(operation["responses"])
            _add_headers(operation["responses"])
            tags.update(operation["tags"])
    schemas["Problem"] = deepcopy(PROBLEM_SCHEMA)
    result["tags"] = [{"name": tag} for tag in sorted(tags)]
    for component_name, component in schemas.items():
        _add_examples(component)
        describe_component(component_name, component)
        if "oneOf" in component and all("$ref" in kind for kind in component["oneOf"]):
            component["anyOf"] = component.pop("oneOf")  # with fields left out, a row may match both
    for name in _components_with_fields(generator):
        # The parameter `fields` may leave out any of them.
        schemas[name].pop("required", None)
    return result


def _add_headers(responses: dict[str, Any]) -> None:
    header_names = {"200": ("ETag", "Last-Modified"), "304": ("ETag", "Last-Modified"), "429": ("Retry-After",)}
    for status, names in header_names.items():
        if status in responses:
            responses[status]["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _add_problems(responses: dict[str, Any]) -> None:
    """Adds the statuses of all operations, and gives every problem its media type and the shared schema."""
    for status, description in PROBLEMS.items():
        responses.setdefault(status, {"description": description, "content": {JSON: {"schema": PROBLEM_SCHEMA}}})
    for response in responses.values():
        content = response.get("content", {})
        if CSV in content:
            content[CSV] = {
                "schema": {
                    "type": "string",
                    "maxLength": MAX_FILE,
                    "description": "A header of the fields, and a line for each row.",
                }
            }
        if content.get(JSON, {}).get("schema") == PROBLEM_SCHEMA:
            content[PROBLEM_TYPE] = content.pop(JSON) | {"schema": {"$ref": "#/components/schemas/Problem"}}


def _add_examples(component: dict[str, Any]) -> None:
    for name, field in component.get("properties", {}).items():
        types = field.get("type", [])
        example = EXAMPLES.get(name, EXAMPLES_BY_FORMAT.get(field.get("format", "")))
        fits = _matches_type(example, [types] if isinstance(types, str) else types)
        if fits and re.search(field.get("pattern", ""), str(example)):
            field["examples"] = [example]


def _matches_type(example: Any, types: list[str]) -> bool:
    kinds = {str: "string", int: "integer", float: "number", list: "array"}
    return kinds.get(type(example)) in types


def _components_with_fields(generator: Any) -> set[str]:
    """Names of the components of endpoints with the parameter `fields`."""
    rows = set()
    for *_, view in generator._get_paths_and_endpoints():
        if getattr(view, "takes_fields", False):
            serializers = [view.serializer_class, *getattr(view, "other_serializer_classes", ())]
            if isinstance(view, ReadOnlyViewSet) and view.detail_serializer_class:
                serializers.append(view.detail_serializer_class)
            rows |= {serializer.__name__.removesuffix("Serializer") for serializer in serializers}
    return rows
