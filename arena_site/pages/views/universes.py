"""A universe: the frozen markets and prices that every agent of a week's run saw."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from arena_site.pages.lists import ListColumn, ListPage
from cohorts.models import Cohort
from markets.models import Outcome, Universe, UniverseEntry
from markets.models.market import NO

PER_PAGE = 100
LIST_COLUMNS = (
    ListColumn("No.", "number", "position", number=True),
    ListColumn("Market", "market", "market__question"),
    ListColumn("Prices and their sources"),
    ListColumn("State", "state", "open"),
)
LABELS: dict[str, str] = dict(Outcome.PriceSource.choices)
COLUMNS = (
    *("prices", "sources", "market_id", "position", "bettable", "open"),
    *("market__question", "market__category", "market__source", "market__external_id"),
)


@require_safe
def universe(request: HttpRequest, pk: int) -> HttpResponse:
    """A universe: its checksum, and its entries with the price of each side and its source."""
    universe = get_object_or_404(Universe.objects.defer("market_block"), pk=pk)
    entries = UniverseEntry.objects.filter(universe=universe).values_list(*COLUMNS, named=True)
    listing = ListPage(request, LIST_COLUMNS, "number", per_page=PER_PAGE)
    page = listing.page(entries)
    return render(
        request,
        "universe.html",
        {
            "universe": universe,
            "page": page,
            "listing": listing,
            "entries": [(entry, _sides(entry.prices, entry.sources)) for entry in page.object_list],
            "cohorts": Cohort.objects.filter(decisions__universe=universe).distinct().order_by("number"),
        },
    )


def _sides(prices: Mapping[str, str], sources: Mapping[str, Any]) -> list[tuple[str, str, str, bool]]:
    """The name, price, source and staleness of each side."""
    details = {side: sources.get(side) or {} for side in prices}
    return [
        (side, price, LABELS.get(str(details[side].get("source")), ""), bool(details[side].get("stale")))
        # Sorted, since PostgreSQL does not preserve the order of a JSON object.
        for side, price in sorted(prices.items(), key=lambda pair: (pair[0] == NO, pair[0]))
    ]


@require_safe
def universe_entry(request: HttpRequest, pk: int, market: int) -> HttpResponse:
    """Redirect to the row of a market on the right page of its universe."""
    entry = get_object_or_404(UniverseEntry, universe=pk, market=market)
    before = UniverseEntry.objects.filter(universe=pk, position__lt=entry.position).count()
    page = before // PER_PAGE + 1
    return redirect(f"{reverse('universe', args=[pk])}?page={page}#market-{market}")
