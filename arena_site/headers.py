"""What every answer tells a browser besides the content policy, which django-csp sends."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

UNUSED = (
    "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media", "fullscreen",
    "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
    "publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED)


class Permissions:
    """Forbids pages, and whatever might ever be smuggled into one, what no page of ours uses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response.setdefault("Permissions-Policy", PERMISSIONS)
        response.setdefault("Cross-Origin-Resource-Policy", "cross-origin" if _for_all(request) else "same-origin")
        return response


def _for_all(request: HttpRequest) -> bool:
    """May other sites show it? The API's data and what describes a page elsewhere: pictures and feeds."""
    return request.path_info.startswith(("/api/", "/og/", "/feeds/"))
