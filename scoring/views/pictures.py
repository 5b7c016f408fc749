"""Pictures of boards, for pages elsewhere that link here."""

from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.cache import get_conditional_response
from django.views.decorators.http import require_safe

from scoring.pictures import picture_of


@require_safe
def picture(request: HttpRequest, name: str) -> HttpResponse:
    """A board as a PNG of 1200 by 630."""
    found = picture_of(name, timezone.now())
    if found is None:
        raise Http404(f"there is no picture {name}")
    version, drawn = found
    etag = f'"{version}"'
    response = HttpResponse(drawn, content_type="image/png", headers={"ETag": etag, "Cache-Control": "max-age=600"})
    return get_conditional_response(request, etag=etag, response=response) or response  # type: ignore[return-value]
