"""Reading settled results again: a venue that says otherwise later is an alert, and an operator decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q
from django.db.models.functions import Coalesce

from agents.services.resolutions import Resolution, read_resolution
from foundation.http import UpstreamError
from foundation.models import AlertItem
from foundation.run_log import FailureLines, ReportLines
from foundation.services.alerts import clear_alert, raise_alert
from markets.models import Market
from markets.services.market_storage import OutcomesChanged
from markets.sources.base import Catalogue, SkippedMarket, Unresolved, VenueMarket
from markets.sources.registry import SOURCES

RESULT_CHANGED = "result-changed"
READ_AGAIN_FOR, READ_AGAIN_EVERY = timedelta(days=60), timedelta(days=7)
READ_AT_ONCE = 500
"""Results of a venue that are read again in one pass."""
OPEN_AGAIN = "open again"


@dataclass(slots=True)
class ReviewReport:
    """How many settled results were read again, and how many of them differ."""

    read: int = 0
    changed: int = 0
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)


def review_settled_results(catalogue: Catalogue, *, at: datetime) -> ReviewReport:
    """Reads a venue's results of the last 60 days that were not read for a week, and raises an alert for each change.

    Nothing else is changed: the market, its positions and its questions stay as they were settled.
    """
    report = ReviewReport()
    markets = _due_markets(catalogue.source, at)
    try:
        rows = catalogue.markets([market.external_id for market in markets]) if len(markets) > 1 else {}
        for market in markets:
            row = rows.get(market.external_id) or catalogue.market(market.external_id)
            Market.objects.filter(pk=market.pk).update(result_read_at=at)
            if row is None or isinstance(row, SkippedMarket):
                reason = row.reason if row else "no longer exists at its venue"
                report.log.write(f"settled market {market.external_id} can not be read again: {reason}")
                continue
            report.read += 1
            if (reading := _different_reading(market, row, catalogue)) is None:
                _clear(market, at)
            else:
                report.changed += 1
                report.log.write(f"market {market.external_id}: settled, and now {reading}", market=market.pk)
                _alert(market, reading, at)
    except UpstreamError as error:
        report.failures.write(str(error))
    return report


def _due_markets(source: str, at: datetime) -> Sequence[Market]:
    """The settled markets to read again, with their outcomes, those that were read longest ago first."""
    final = (Market.Status.RESOLVED, Market.Status.CANCELLED)
    settled = Market.objects.filter(source=source, status__in=final, resolved_at__gte=at - READ_AGAIN_FOR)
    last = at - READ_AGAIN_EVERY
    due = settled.filter(Q(result_read_at__lte=last) | Q(result_read_at=None, resolved_at__lte=last))
    due = due.select_related("winning_outcome").prefetch_related("outcomes")
    return list(due.order_by(Coalesce("result_read_at", "resolved_at"), "pk")[:READ_AT_ONCE])


def _different_reading(market: Market, row: VenueMarket, catalogue: Catalogue) -> str | None:
    """The venue's present reading of a settled market; None if it equals the stored result."""
    if not row.closed:
        return OPEN_AGAIN
    try:
        now = read_resolution(market, row, catalogue)
    except OutcomesChanged as error:
        return str(error)
    if isinstance(now, Unresolved):
        # A market that an operator settled because of this reason waits for it still.
        return None if now.reason == market.unresolved_reason else f"without a result: {now.reason}"
    settled = Resolution(market.winning_outcome)
    return None if now == settled else str(now)


def _alert(market: Market, reading: str, at: datetime) -> None:
    subject = f"{_key(market)}{reading}"[:200]
    if AlertItem.objects.filter(kind=RESULT_CHANGED, subject=subject).exists():
        return  # an acknowledged alert is not raised again
    label = SOURCES[market.source].label
    settled = f"{Resolution(market.winning_outcome)} on {market.resolved_at:%Y-%m-%d %H:%M} UTC"
    raise_alert(
        kind=RESULT_CHANGED,
        items={subject: market.question},
        message=f"{label} changed a result. {market.question}: settled as {settled}; now {reading}.",
        at=at,
        path=f"/markets/{market.pk}/",
        remedy="Nothing was changed. Read the venue and its source; if the settlement was wrong, reverse it on the "
        "dashboard with a reason. If it stands, acknowledge this.",
    )


def _clear(market: Market, at: datetime) -> None:
    """Clears the alerts of a market whose result is again, or after a reversal, what its venue says."""
    open_items = AlertItem.objects.filter(kind=RESULT_CHANGED, cleared_at=None, subject__startswith=_key(market))
    if subjects := list(open_items.values_list("subject", flat=True)):
        clear_alert(RESULT_CHANGED, subjects, at=at)


def _key(market: Market) -> str:
    """The beginning of the subjects of a market's alerts."""
    return f"{market.source} {market.external_id}: "
