"""Compressed static files without collectstatic: WhiteNoise only serves compressed files found on disk."""

import gzip
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_http_date_safe
from whitenoise.middleware import WhiteNoiseMiddleware

COMPRESSIBLE = (".css", ".js", ".mjs", ".svg", ".json", ".map", ".txt")
MIN_BYTES = 1000
"""Smaller files gain nothing from compression."""
MAX_CACHED_FILES = 100


class CompressedStaticFiles(WhiteNoiseMiddleware):
    """Serves text files with gzip where the client accepts it; each process compresses a file at its first request."""

    @staticmethod
    def serve(static_file: Any, request: HttpRequest) -> HttpResponse:
        response: Any = WhiteNoiseMiddleware.serve(static_file, request)
        path = Path(getattr(static_file, "alternatives", [(None, "")])[-1][1])
        if path.suffix not in COMPRESSIBLE or "Content-Encoding" in response:
            return response
        patch_vary_headers(response, ["Accept-Encoding"])
        accepts_gzip = "gzip" in request.META.get("HTTP_ACCEPT_ENCODING", "")
        length = int(response.get("Content-Length") or 0)
        if request.method != "GET" or response.status_code != HTTPStatus.OK or not accepts_gzip or length < MIN_BYTES:
            return response
        body = _compressed(path, parse_http_date_safe(response["Last-Modified"]))
        headers = {name: value for name, value in response.items() if name.lower() != "content-length"}
        response.close()
        return HttpResponse(body, headers=headers | {"Content-Encoding": "gzip", "Content-Length": str(len(body))})


@lru_cache(maxsize=MAX_CACHED_FILES)
def _compressed(path: Path, changed: int | None) -> bytes:
    """The compressed file; `changed` invalidates the cache."""
    return gzip.compress(path.read_bytes(), mtime=0)
