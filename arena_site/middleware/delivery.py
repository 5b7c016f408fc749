"""Response delivery: conditional GET, the time of the last change, compression of what holds no secret, and headers."""

from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from typing import cast

from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.middleware.http import ConditionalGetMiddleware
from django.utils import timezone
from django.utils.cache import set_response_etag
from django.utils.http import http_date

from agents.models.sealed_rows import read_seals
from arena_site.middleware.last_change import last_change

API = "/api/"
ROWS = "/api/v1/"
READS = ("GET", "HEAD")
ADMIN = "/admin/"
SUBMISSIONS = "/api/v1/submissions/"

TEXT_TYPES = ("text/", "application/json", "image/svg")

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
            file = cast(FileResponse, response)  # read whole: a stream that is compressed has no Content-Length
            response = HttpResponse(file.getvalue(), headers=dict(file.items()))
            file.close()
        varies = response.get("Vary", "").lower()
        # Parts of a file are counted in its own bytes.
        ranged = response.has_header("Accept-Ranges") or response.has_header("Content-Range")
        if ranged or request.path_info.startswith(ADMIN) or "cookie" in varies or response.cookies:
            return response
        return super().process_response(request, response)  # type: ignore[arg-type]


def _is_text_file(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Whether it is a static file of text, whole: WhiteNoise compresses only what `collectstatic` has copied."""
    is_whole = request.method == "GET" and response.status_code == HTTPStatus.OK
    is_text = response.get("Content-Type", "").startswith(TEXT_TYPES)
    return is_whole and is_text and request.path_info.startswith("/static/")


class EntityTags(ConditionalGetMiddleware):
    """ETags of successful reads, computed before compression changes the bytes."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:  # type: ignore[override]
        if request.method not in READS or request.path_info.startswith((ADMIN, SUBMISSIONS)):
            return response
        if response.status_code == HTTPStatus.OK and self.needs_etag(response) and not response.has_header("ETag"):  # type: ignore[arg-type]
            set_response_etag(response)
        return response


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


class ApiReads:
    """Last-Modified and revalidation for reads of the API."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Submission responses are for one agent alone and hold for minutes: not to be cached.
        path = request.path_info
        if not path.startswith(API) or path.startswith(SUBMISSIONS) or request.method not in READS:
            return self.get_response(request)
        # Before the rows are read: a change in between makes the response newer than it says, never older.
        changed = last_change(timezone.now()) if path.startswith(ROWS) else None
        response = self.get_response(request)
        if response.status_code != HTTPStatus.OK or response.streaming:
            return response
        # To be cached, but revalidated each time: without this, a browser guesses how long it need not ask.
        response["Cache-Control"] = "no-cache"
        if changed is not None:
            if read_seals():  # a second earlier: when they end, a client that holds this response asks anew
                changed -= timedelta(seconds=1)
            response["Last-Modified"] = http_date(changed.timestamp())
        return response


class PermissionsPolicy:
    """Forbids the browser features that no page uses, also to injected code, and embedding by other sites."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", PERMISSIONS)
        response.setdefault(
            "Cross-Origin-Resource-Policy", "cross-origin" if _is_embeddable(request) else "same-origin"
        )
        return response


def _is_embeddable(request: HttpRequest) -> bool:
    """Whether other sites may embed it: the API's data, archives, share images, files of charts and feeds."""
    return request.path_info.startswith(("/api/", "/data/", "/og/", "/feeds/")) or "/charts/" in request.path_info
