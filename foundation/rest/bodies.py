"""Bodies of requests: their type and length are checked before they are read."""

from http import HTTPStatus

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request

from foundation.rest.problems import Refused

JSON = "application/json"


def check_body(request: Request, most: int) -> None:
    """Refuses a body that is no JSON (415), of unstated length (411), or longer than `most` bytes (413)."""
    if request.content_type.partition(";")[0].strip().lower() != JSON:
        raise UnsupportedMediaType(request.content_type)
    length = request.META.get("CONTENT_LENGTH") or ""
    # WSGI reads only what Content-Length states, so a chunked body would look empty.
    if not length.isdigit() or "HTTP_TRANSFER_ENCODING" in request.META:
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "the body's length must be stated in Content-Length")
    if int(length) > most:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {most:,} bytes")
