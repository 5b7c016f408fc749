"""Delivery of responses: their headers, compression of those without a secret, and 304 for a client that has one."""

import gzip
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware, re_accepts_gzip
from django.middleware.http import ConditionalGetMiddleware
from django.utils import timezone
from django.utils.cache import patch_vary_headers, set_response_etag
from django.utils.http import http_date

from arena_site.middleware import ADMIN, API, READS, SUBMISSIONS
from arena_site.middleware.last_change import last_change

ROWS = "/api/v1/"
TEXT_TYPES = ("text/", "application/json", "image/svg")

_compressed_files: dict[tuple[str, str, str], bytes] = {}
"""Static files, compressed once by each process."""

UNUSED = (
    "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media", "fullscreen",
    "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
    "publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED)


class Compression(GZipMiddleware):
    """gzip for responses without a secret: none of the admin, none that depends on a cookie or sets one.

    Where a page repeats user input beside a secret, the compressed length gives the secret away (BREACH).
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # type: ignore[override]
        if _is_text_file(request, response):
            response = _whole_file(request, cast(FileResponse, response))
            if response.has_header("Content-Encoding"):
                return response
        varies = response.get("Vary", "").lower()
        # Parts of a file are counted in its own bytes.
        ranged = response.has_header("Accept-Ranges") or response.has_header("Content-Range")
        if ranged or request.path_info.startswith(ADMIN) or "cookie" in varies or response.cookies:
            return response
        return super().process_response(request, response)  # type: ignore[arg-type]


def _whole_file(request: HttpRequest, file: FileResponse) -> HttpResponse:
    """A static file as a response that has a length, compressed for whom can read that."""
    headers = dict(file.items())
    if not re_accepts_gzip.search(request.META.get("HTTP_ACCEPT_ENCODING", "")):
        response = HttpResponse(file.getvalue(), headers=headers)
    else:
        version = (request.path_info, headers.get("Last-Modified", ""), headers.get("ETag", ""))
        content = _compressed_files.get(version)
        if content is None:  # threads that meet here compress the same bytes
            content = _compressed_files[version] = gzip.compress(file.getvalue(), mtime=0)
        headers |= {"Content-Encoding": "gzip", "Content-Length": str(len(content))}
        if etag := headers.get("ETag"):
            headers["ETag"] = f"W/{etag.removeprefix('W/')}"
        response = HttpResponse(content, headers=headers)
    patch_vary_headers(response, ("Accept-Encoding",))
    file.close()
    return response


def _is_text_file(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether it is a static file of text, whole: WhiteNoise compresses only what `collectstatic` has copied."""
    is_whole = request.method == "GET" and response.status_code == HTTPStatus.OK
    is_text = response.get("Content-Type", "").startswith(TEXT_TYPES)
    return is_whole and is_text and request.path_info.startswith("/static/")


class ConditionalReads(ConditionalGetMiddleware):
    """304 for a client that has the response already, made anew or cached, by the ETag that it has by then.

    A HEAD gets the headers alone: some servers log a warning about a body.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # type: ignore[override]
        answer: HttpResponseBase = super().process_response(request, response)  # type: ignore[arg-type]
        if request.method == "HEAD" and isinstance(answer, HttpResponse) and answer.content:
            answer.headers.setdefault("Content-Length", str(len(answer.content)))
            answer.content = b""
        return answer

    def needs_etag(self, response: HttpResponseBase) -> bool:  # type: ignore[override]
        return False


class ResponseHeaders:
    """ETags of successful reads, before compression changes the bytes, and the time of the last change of the API's.

    Also forbids the browser features that no page uses, to injected code too, and embedding by other sites.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        # Submission responses are for one agent alone and hold for minutes: not to be cached.
        is_public_read = request.method in READS and not path.startswith((ADMIN, SUBMISSIONS))
        # Before the rows are read: a change in between makes the response newer than it says, never older.
        changed = last_change(timezone.now()) if is_public_read and path.startswith(ROWS) else None
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", PERMISSIONS)
        resource_policy = "cross-origin" if _is_embeddable(request) else "same-origin"
        response.setdefault("Cross-Origin-Resource-Policy", resource_policy)
        if not is_public_read or response.status_code != HTTPStatus.OK or response.streaming:
            return response
        if path.startswith(API):
            # To be cached, but revalidated each time: without this, a browser guesses how long it need not ask.
            response["Cache-Control"] = "no-cache"
        if changed is not None:
            response["Last-Modified"] = http_date(changed.timestamp())
        if not response.has_header("ETag") and "no-store" not in response.get("Cache-Control", ""):
            set_response_etag(response)
        return response


def _is_embeddable(request: HttpRequest) -> bool:
    """Whether other sites may embed it: the API's data, archives, share images, files of charts and feeds."""
    return request.path_info.startswith((API, "/data/", "/og/", "/feeds/")) or "/charts/" in request.path_info
