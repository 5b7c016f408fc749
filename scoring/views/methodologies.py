"""The rules, as they are frozen in the methodology's row."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from cohorts.models import Methodology

# Appendix B of the source's scoring document.
BRIER_BANDS = (
    ("0.00", "Perfect"),
    ("0.00 to 0.10", "Excellent"),
    ("0.10 to 0.20", "Good"),
    ("0.20 to 0.25", "Fair (at or near random)"),
    ("0.25 to 0.40", "Poor"),
    ("0.40 and above", "Very poor"),
)
RETURN_BANDS = (
    ("above +50 %", "Exceptional"),
    ("+20 % to +50 %", "Excellent"),
    ("+5 % to +20 %", "Good"),
    ("−5 % to +5 %", "Neutral"),
    ("−20 % to −5 %", "Poor"),
    ("below −20 %", "Very poor"),
)


@require_safe
def methodology(request: HttpRequest, version: str | None = None) -> HttpResponse:
    """A published version of the rules, in full; without a version the one that new cohorts get."""
    published = Methodology.objects.filter(published_at__isnull=False).prefetch_related("cohorts")
    current = Methodology.objects.current()
    shown = get_object_or_404(published, version=version or current.version)
    return render(
        request,
        "scoring/methodology.html",
        {
            "methodology": shown,
            "current": current,
            "versions": published.order_by("published_at", "pk"),
            "maximum_bet_percent": shown.maximum_bet_fraction * 100,
            "retry_hours": shown.retry_window.total_seconds() / 3600,
            "notes": (
                ("System prompt", shown.system_prompt),
                ("User prompt", shown.user_prompt),
                ("Note after a malformed answer", shown.malformed_note),
                ("Note after an answer of which nothing could be carried out", shown.refused_note),
            ),
            "bands": (("Brier score", BRIER_BANDS), ("Return", RETURN_BANDS)),
        },
    )
