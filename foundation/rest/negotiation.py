"""Content negotiation: 406 for an `Accept` that can not be met, 415 for a body of another type."""

from typing import Any

from rest_framework.exceptions import NotAcceptable, ValidationError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

ANYTHING = "*/*"
FORMAT_PARAMETER = "format"
"""The query parameter that selects a format, whatever `Accept` says."""


class StrictNegotiation(BaseContentNegotiation):
    """The format that `format` names, else the best one by the weights of `Accept`, which the framework ignores."""

    def select_parser(self, request: Request, parsers: Any) -> Any:
        return DefaultContentNegotiation().select_parser(request, parsers)

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if name := request.query_params.get(FORMAT_PARAMETER, "").strip():
            return _by_name(name, renderers)
        if request.headers.get("Accept", ANYTHING).strip() in ("", ANYTHING):
            return renderers[0], renderers[0].media_type
        by_type = {renderer.media_type: renderer for renderer in renderers}
        try:
            # The request that the framework wraps, whose accepted types are Django's.
            preferred = request._request.get_preferred_type(list(by_type))
        except ValueError:
            preferred = None
        if preferred is None:
            raise NotAcceptable(f"nothing that Accept names is offered; offered: {', '.join(by_type)}")
        return by_type[preferred], preferred


class LateNegotiation(StrictNegotiation):
    """Leaves a 406 to the end of a read, so that a wrong path, method or parameter is named first."""

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        if request.method not in request.parser_context["view"].allowed_methods:
            return renderers[0], renderers[0].media_type  # a 405, whatever `format` says
        try:
            return super().select_renderer(request, renderers, format_suffix)
        except NotAcceptable as error:
            if request.method not in SAFE_METHODS:
                raise
            request.not_acceptable = error  # type: ignore[attr-defined]
            return renderers[0], renderers[0].media_type


def _by_name(name: str, renderers: Any) -> Any:
    for renderer in renderers:
        if renderer.format == name:
            return renderer, renderer.media_type
    formats = ", ".join(dict.fromkeys(renderer.format for renderer in renderers))
    raise ValidationError({FORMAT_PARAMETER: [f"{name} is unknown; known are {formats}"]})
