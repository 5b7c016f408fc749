"""The frozen list of markets and prices that every agent of a week's run saw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from cohorts.models import Cohort
from markets.models import Outcome, Universe, UniverseEntry
from markets.models.market import NO

PER_PAGE = 100
LABELS: dict[str, str] = dict(Outcome.PriceSource.choices)


COLUMNS = (
    *("prices", "sources", "market_id", "position", "bettable", "open"),
    *("market__question", "market__category", "market__source", "market__external_id"),
)
"""What makes an `Entry`: prices and sources its sides, and the others follow in its order."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as a page shows it: a universe has hundreds."""

    sides: Sequence[tuple[str, str, str, bool]]
    market: int
    position: int
    bettable: bool
    open: bool
    question: str
    category: str
    source: str
    external_id: str


@require_safe
def universe(request: HttpRequest, pk: int) -> HttpResponse:
    """A week's universe: its fingerprint and its entries with the price of each side and where it came from."""
    universe = get_object_or_404(Universe.objects.defer("market_block"), pk=pk)
    entries = UniverseEntry.objects.filter(universe=universe).order_by("position")
    page = Paginator(entries.values_list(*COLUMNS), PER_PAGE).get_page(request.GET.get("page"))
    return render(
        request,
        "scoring/universe.html",
        {
            "universe": universe,
            "page": page,
            "entries": [Entry(_sides(prices, sources), *shown) for prices, sources, *shown in page.object_list],
            "cohorts": Cohort.objects.filter(decisions__universe=universe).distinct().order_by("number"),
        },
    )


def _sides(prices: Mapping[str, str], sources: Mapping[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Each side with its price, where that came from, and whether it was stale."""
    of = {side: sources.get(side) or {} for side in prices}
    return [
        (side, price, LABELS.get(str(of[side].get("source")), ""), bool(of[side].get("stale")))
        # In an order of our own: PostgreSQL keeps that of no JSON object.
        for side, price in sorted(prices.items(), key=lambda pair: (pair[0] == NO, pair[0]))
    ]


@require_safe
def entry(request: HttpRequest, pk: int, market: int) -> HttpResponse:
    """The way to one market's row among its universe's pages."""
    found = get_object_or_404(UniverseEntry, universe=pk, market=market)
    before = UniverseEntry.objects.filter(universe=pk, position__lt=found.position).count()
    page = before // PER_PAGE + 1
    return redirect(f"{reverse('universe', args=[pk])}?page={page}#market-{market}")
