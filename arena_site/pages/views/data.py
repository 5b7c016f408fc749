"""Public archives: their list, and their files with byte ranges."""

import json
import re
from http import HTTPStatus
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.http import parse_http_date_safe
from django.views.decorators.http import require_safe
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Response, SlicedFile, StaticFile

from scoring.exports.public_archives import RETENTION_RULE, published_archives, published_days, published_file

TYPES = {
    "csv": "text/csv; charset=utf-8", "json": "application/json", "jsonl": "application/jsonl; charset=utf-8",
    "md": "text/markdown; charset=utf-8", "parquet": "application/vnd.apache.parquet", "whl": "application/zip",
    "py": "text/x-python; charset=utf-8", "zip": "application/zip",
}  # fmt: skip
NO_BYTES = re.compile(r"bytes=\s*-0+", re.ASCII)


class RangedFile(StaticFile):  # type: ignore[misc]
    """A file of which parts can be read; WhiteNoise refuses a part of one byte, and takes the last 0 bytes for all."""

    def get_range_response(self, range_header: str, base_headers: Any, file: Any) -> Any:
        size = int(dict(base_headers)["Content-Length"])
        if NO_BYTES.fullmatch(range_header.strip()):
            return self.get_range_not_satisfiable_response(file, size)
        start, end = self.get_byte_range(range_header, size)
        if start != end or start >= size:
            return super().get_range_response(range_header, base_headers, file)
        headers = dict(base_headers) | {"Content-Length": "1", "Content-Range": f"bytes {start}-{end}/{size}"}
        return Response(HTTPStatus.PARTIAL_CONTENT, list(headers.items()), file and SlicedFile(file, start, end))


@require_safe
def archives(request: HttpRequest) -> HttpResponse:
    """The public archives with sizes, hashes and terms, the tables of the newest, and how to cite it."""
    days = published_days()
    manifest = json.loads(published_file(days[0], "manifest.json").read_text()) if days else {"files": {}}
    tables = []
    for name, facts in sorted(manifest["files"].items()):
        if name.startswith("parquet/"):
            tables.append({"name": name.partition("/")[2].removesuffix(".parquet"), **facts})
    home = request.build_absolute_uri("/")
    return render(
        request, "data.html", {"archives": published_archives(), "tables": tables, "rule": RETENTION_RULE, "home": home}
    )


@require_safe
def archive_file(request: HttpRequest, day: str, name: str = "") -> HttpResponse:
    """The zip file of a day or of the newest, or a file in it: whole, or the byte range that the client asks for."""
    days = published_days()
    day = days[0] if days and day == "latest" else day
    if day not in days or not (path := published_file(day, name)).is_file():
        raise Http404
    return serve_file(request, path)


def serve_file(request: HttpRequest, path: Path) -> HttpResponse:
    """A file, whole or the byte range that the client asks for."""
    headers = [
        ("Content-Type", TYPES.get(path.suffix[1:], "text/plain; charset=utf-8")),
        ("Accept-Ranges", "bytes"), ("Cache-Control", "no-cache"), ("Access-Control-Allow-Origin", "*"),
        ("ETag", f'"{path.stat().st_mtime_ns:x}-{path.stat().st_size:x}"'),
    ]  # fmt: skip
    file = RangedFile(str(path), headers)
    if condition := request.headers.get("If-Range"):
        dated = parse_http_date_safe(condition)
        if condition != file.etag and (dated is None or dated != int(path.stat().st_mtime)):
            request.META.pop("HTTP_RANGE", None)
    response: HttpResponse = WhiteNoiseMiddleware.serve(file, request)
    return response
