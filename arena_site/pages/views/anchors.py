"""Signed chain heads under `/.well-known/`: those of now, and the file of each day, which can be time-stamped."""

import hashlib
from datetime import date

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from agents.models import DailyAnchor
from agents.services.signing_keys import anchor, chain_heads, published_keys

DAYS = 31
"""The newest days that the document of now lists; the feed and the address of a day have all."""


@require_safe
def heads(request: HttpRequest) -> HttpResponse:
    """The heads of all chains now, signed over `at` and `chains`; all public keys; and the last days."""
    days = [
        {
            "day": day.day.isoformat(),
            "url": request.build_absolute_uri(daily_address(day)),
            "sha256": hashlib.sha256(day.contents).hexdigest(),
        }
        for day in DailyAnchor.objects.all()[:DAYS]
    ]
    document = anchor(heads=chain_heads(), at=timezone.now())
    more = {"algorithm": "Ed25519", "keys": published_keys(), "days": days}
    return JsonResponse({**document, **more}, json_dumps_params={"indent": 1})


@require_safe
def daily_heads(request: HttpRequest, day: str) -> HttpResponse:
    """The signed heads of a day: always the same bytes, whose SHA-256 can be time-stamped."""
    try:
        stored = DailyAnchor.objects.get(day=date.fromisoformat(day))
    except (ValueError, DailyAnchor.DoesNotExist):
        raise Http404("there is no anchor of that day") from None
    return HttpResponse(stored.contents, content_type="application/json")


def daily_address(stored: DailyAnchor) -> str:
    """The address of a day's file."""
    return reverse("daily-chain-heads", args=[stored.day.isoformat()])
