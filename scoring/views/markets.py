"""Markets: what can be bet on, at which prices, and who holds what."""

from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from agents.models import Position
from markets.models import Market
from scoring.views.holdings import holdings

PER_PAGE = 50


@require_safe
def markets(request: HttpRequest) -> HttpResponse:
    """Every market by volume, a page at a time, all or those of one status."""
    status = request.GET.get("status", "")
    if status and status not in Market.Status.values:
        raise Http404(f"status={status}: must be one of {', '.join(Market.Status.values)}")
    rows = Market.objects.select_related("winning_outcome").prefetch_related("outcomes")
    if status:
        rows = rows.filter(status=status)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    held: dict[int, int] = dict(
        Position.objects.open()
        .filter(market__in=[market.pk for market in page])
        .order_by()
        .values_list("market")
        .annotate(holders=Count("agent", distinct=True))
    )
    context: dict[str, Any] = {"page": page, "status": status, "statuses": Market.Status.values, "held": held}
    return render(request, "scoring/markets.html", context)


@require_safe
def market(request: HttpRequest, pk: int) -> HttpResponse:
    """One market: its sides with price, time and source, its resolution, and every position on it."""
    market = get_object_or_404(Market.objects.select_related("winning_outcome"), pk=pk)
    positions = Position.objects.filter(market=market).select_related(
        "agent__family", "agent__cohort", "market", "outcome", "settlement"
    )
    held, past = holdings(positions)
    return render(
        request,
        "scoring/market.html",
        {
            "market": market,
            "outcomes": market.outcomes.annotate(
                bought=Count("trades", filter=Q(trades__kind="BUY")),
            ),
            "held": held,
            "past": past,
        },
    )
