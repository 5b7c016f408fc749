"""The headers Permissions-Policy and Cross-Origin-Resource-Policy."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

UNUSED = (
    "accelerometer", "autoplay", "browsing-topics", "camera", "display-capture", "encrypted-media", "fullscreen",
    "geolocation", "gyroscope", "magnetometer", "microphone", "midi", "payment", "picture-in-picture",
    "publickey-credentials-get", "screen-wake-lock", "usb", "xr-spatial-tracking",
)  # fmt: skip
PERMISSIONS = ", ".join(f"{feature}=()" for feature in UNUSED)


class PermissionsPolicy:
    """Forbids the browser features that no page uses, also to injected code."""

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
    """Whether other sites may embed it: the API's data, share images and feeds."""
    return request.path_info.startswith(("/api/", "/og/", "/feeds/"))
