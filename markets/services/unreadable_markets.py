"""Markets that their venue lists in a form that can not be read: since when, and their alert."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from foundation.services.alerts import clear_alert, clear_others, listing, raise_alert
from markets.models import Market
from markets.sources.registry import SOURCES

CATALOGUE_UNREADABLE = "catalogue-unreadable"
TOLERATED_SHARE = 0.05
"""Of a venue's rows: fewer are faults of single rows, which the log names."""
REASONS_SHOWN = 3


@dataclass(slots=True)
class ReadingResult:
    """What came of reading a venue's rows: how many its catalogue gave, and the unreadable ones by id, with why."""

    source: str
    rows: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)
    listed_unreadable: int = 0
    """Unreadable ones among `rows`."""

    @property
    def is_alarming(self) -> bool:
        return self.listed_unreadable > TOLERATED_SHARE * self.rows

    @property
    def reasons(self) -> str:
        """The most common reasons, with how many rows each has."""
        common = Counter(self.unreadable.values()).most_common(REASONS_SHOWN)
        return "; ".join(f"{reason} ({number})" for reason, number in common)


def update_unreadable(result: ReadingResult, read: Collection[str], *, at: datetime) -> None:
    """Stores since when each stored market can not be read, and raises or clears the alert of its venue.

    `read` are the ids of the markets that could be read. An alert is about the venue, if more than the tolerated share
    of its rows is unreadable, and about each market that is held or asked about.
    """
    markets = Market.objects.filter(source=result.source)
    read_again = set(markets.filter(unreadable_since__isnull=False).values_list("external_id", flat=True)) & {*read}
    if read_again:
        markets.filter(external_id__in=read_again).update(unreadable_since=None)
    if result.unreadable:
        newly = markets.unsettled().filter(external_id__in=list(result.unreadable), unreadable_since=None)
        newly.update(unreadable_since=at)
    items = _items(result)
    kept = [*items, result.source] if not result.rows else list(items)
    clear_others(CATALOGUE_UNREADABLE, kept, at=at, subject=result.source)
    if items:
        _raise(result, items, at)


def _items(result: ReadingResult) -> dict[str, str]:
    """The venue, if its share is alarming, and the markets that something depends on, by the alert's subjects."""
    items = {}
    if result.rows and result.is_alarming:
        items[result.source] = f"{SOURCES[result.source].label}'s catalogue"
    dependent = Market.objects.tracked().filter(source=result.source, unreadable_since__isnull=False)
    for market in dependent.only("source", "external_id", "question").order_by("pk"):
        items[f"{market.source} {market.external_id}"] = market.question
    return items


def _raise(result: ReadingResult, items: Mapping[str, str], at: datetime) -> None:
    label = SOURCES[result.source].label
    sentences = []
    if result.source in items:
        sentences.append(f"{result.listed_unreadable} of {result.rows} rows of {label} can not be read.")
    markets = [name for subject, name in items.items() if subject != result.source]
    if markets:
        sentences.append(f"Held or asked, and unreadable at {label}: {listing(markets)}.")
    if result.reasons:
        sentences.append(f"Why: {result.reasons}.")
    raise_alert(
        kind=CATALOGUE_UNREADABLE,
        subject=result.source,
        items=items,
        message=" ".join(sentences),
        at=at,
        path="/admin/foundation/run/?kind=sync_markets",
        remedy=f"The log of the last sync_markets names each row. {label} may have changed its format: its parser "
        "(markets/sources) has to learn the new word. What is held keeps its last price meanwhile; after 72 hours "
        "it can be settled manually.",
    )


def clear_unreadable(markets: Collection[Market], *, at: datetime) -> None:
    """Clears settled markets from the alert of their venue."""
    subjects = [f"{market.source} {market.external_id}" for market in markets]
    clear_alert(CATALOGUE_UNREADABLE, subjects, at=at)
