"""Images that social networks show beside a link to the arena."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from arena_site.pages.share_images import share_image as drawn_image


@require_safe
def share_image(request: HttpRequest, name: str) -> HttpResponse:
    """A leaderboard as a PNG of 1200 by 630 pixels."""
    found = drawn_image(name, timezone.now())
    if found is None:
        raise Http404(f"there is no image {name}")
    version, png = found
    etag = f'"{version}"'
    response = HttpResponse(png, content_type="image/png", headers={"ETag": etag, "Cache-Control": "max-age=600"})
    return get_conditional_response(request, etag=etag, response=response) or response  # type: ignore[return-value]
