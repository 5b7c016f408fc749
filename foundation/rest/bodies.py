"""Bodies of requests: their type and length are checked before they are read."""

from http import HTTPStatus

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request

from foundation.rest.problems import Refused

JSON = "application/json"
DRAINED_BYTES, CHUNK_BYTES = 100_000_000, 65_536
"""A longer body is not read to its end, and its client may see a broken connection in place of the 413."""


def check_body(request: Request, most: int) -> None:
    """Refuses a body that is encoded or no JSON (415), of unstated length (411), or longer than `most` bytes (413)."""
    if encoding := request.META.get("HTTP_CONTENT_ENCODING"):
        raise UnsupportedMediaType(encoding, f"Content-Encoding {encoding[:40]!r} is not read: send the body as it is")
    if request.content_type.partition(";")[0].strip().lower() != JSON:
        raise UnsupportedMediaType(request.content_type)
    length = request.META.get("CONTENT_LENGTH") or ""
    # WSGI reads only what Content-Length states, so a chunked body would look empty.
    if not length.isdigit() or "HTTP_TRANSFER_ENCODING" in request.META:
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "the body's length must be stated in Content-Length")
    if int(length) > most:
        _drain(request, int(length))
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is longer than {most:,} bytes")


def _drain(request: Request, length: int) -> None:
    """Reads a refused body, so that a client that is still sending it gets the answer."""
    left = length if length <= DRAINED_BYTES else 0
    stream = request.META.get("wsgi.input")
    while left > 0 and stream is not None and (chunk := stream.read(min(left, CHUNK_BYTES))):
        left -= len(chunk)
