"""Base of the API's views."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from foundation.rest.csv_renderer import CsvRenderer
from foundation.rest.negotiation import LateNegotiation
from foundation.rest.problems import Problem


class NegotiatedView(APIView):
    """A view whose 406 comes after all other errors of a read."""

    content_negotiation_class = LateNegotiation

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        error = getattr(request, "not_acceptable", None)
        if error is not None and response.status_code < HTTPStatus.BAD_REQUEST:
            response = Problem(HTTPStatus.NOT_ACCEPTABLE, str(error.detail))
        return super().finalize_response(request, response, *args, **kwargs)


class ListView(NegotiatedView):
    """A view set whose lists come in JSON and CSV, and all else in JSON."""

    renderer_classes = (JSONRenderer, CsvRenderer)

    def get_renderers(self) -> list[BaseRenderer]:
        formats = self.renderer_classes if getattr(self, "action", None) == "list" else self.renderer_classes[:1]
        return [renderer() for renderer in formats]

    def row_names(self) -> Sequence[str]:
        """The keys of a row, in their order."""
        raise NotImplementedError
