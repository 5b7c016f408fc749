"""What the arena does about the known pitfalls of evaluating forecasters."""

from collections import Counter

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from scoring.pitfalls import GUARDED, PARTLY, UNGUARDED, pitfalls


@require_safe
def pitfalls_page(request: HttpRequest) -> HttpResponse:
    """Each pitfall with what is done and a figure."""
    rows = pitfalls()
    counts = Counter(pitfall.guard for pitfall in rows)
    sentence = (
        f"Of {len(rows)} pitfalls the arena guards against {counts[GUARDED]}, partly against {counts[PARTLY]}, and "
        f"not against {counts[UNGUARDED]}."
    )
    return render(request, "pitfalls.html", {"pitfalls": rows, "sentence": sentence})
