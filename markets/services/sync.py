"""Syncing markets: walks each source's catalogue, looks up tracked markets, stores them and accepts prices."""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import islice

from django.db.models import Max, Q, Sum

from foundation.failpoints import failpoint
from foundation.http import UpstreamError
from foundation.models import AlertItem
from foundation.services.alerts import clear_alert, listing, raise_alert
from markets.models import Market, Outcome
from markets.models.market import MarketQuerySet
from markets.pricing import PriceRule, has_tight_book
from markets.services.market_storage import FetchedMarkets, SyncReport, store_markets
from markets.services.prices import is_replay, update_prices
from markets.services.question_resolution import update_scheduled_closes
from markets.services.unreadable_markets import update_unreadable
from markets.services.venue_health import (
    alert_venue_down,
    clear_venue_down,
    clear_venues_not_asked,
    refresh_stale_prices,
)
from markets.sources.base import UNPRICED, Catalogue, CataloguePage, SkippedMarket, VenueMarket
from markets.sources.polymarket import Clob
from markets.sources.registry import TRADED_SOURCE

log = logging.getLogger(__name__)

DAY = timedelta(days=1)
GONE_ALERT = "market-gone"
MAX_CLOSED_AGE = 30 * DAY
"""The time after its close for which a market that nothing depends on is looked up."""
FEW = 20
"""So many markets at most are looked up by a request each, which tells of each one why it can not be read."""
MAX_FAILURES = 3
"""Consecutive failed lookups, after which one more market decides whether the venue is down."""
MAX_UNLISTED = 200
"""Markets looked up in one sync because the catalogue no longer lists them."""
CHANGES_OVERLAP = timedelta(minutes=15)
"""The time before the last reading from which changes are asked for: a source's clock may differ from ours."""
CHANGES_REFUSED = frozenset({400, 404, 405, 422, 500, 501})
"""Statuses with which a service answers parameters or paths that it does not know."""
MAX_REREAD = 1000
"""Markets of a source that are read again between two walks."""
Progress = Callable[[int, int], None]


def sync_markets(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    target: int,
    rule: PriceRule,
    progress: Progress = lambda *_: None,
) -> SyncReport:
    """Syncs each source's `target` largest open markets and all of its tracked markets.

    A source that fails is a failure in the report; the others are stored. Open questions close with their markets.
    """
    report = SyncReport(replay=is_replay(at))
    if report.replay:
        report.log.write("a replay: newer instants are recorded, so no service is asked")
        return report
    for catalogue in catalogues:
        failures = len(report.failures)
        fetched = _walk(catalogue, target, rule, at, report, progress)
        down = report.failures[failures:]
        _refresh(catalogue, fetched, at, report)
        if down:
            report.alerted += len(report.failures) - failures
            alert_venue_down(catalogue.service, down[0], at=at)
        else:
            clear_venue_down([catalogue.service], at=at)
        failpoint("sync.walked")
        if fetched.by_id:
            store_markets(fetched, at, report)
            failpoint("sync.stored")
        _tell_unreadable(fetched, at)
        if fetched.by_id:
            _accept_quotes(fetched, clob=clob, rule=rule, at=at, report=report)
            failpoint("sync.priced")
    update_scheduled_closes()
    clear_venues_not_asked([clob.service, *(catalogue.service for catalogue in catalogues)], at=at)
    refresh_stale_prices(at=at)
    if not report.seen and not report.failures:
        services = ", ".join(catalogue.service for catalogue in catalogues)
        report.failures.write(f"{services}: no market was returned")
    report.finish()
    return report


def refresh_markets(
    *, catalogue: Catalogue, markets: Iterable[Market], at: datetime, report: SyncReport
) -> dict[str, VenueMarket]:
    """Looks up and stores each of a venue's `markets`; returns them as the venue describes them, by external id."""
    fetched = FetchedMarkets(catalogue.source)
    _look_up(catalogue, markets, fetched, at, report)
    store_markets(fetched, at, report)
    _tell_unreadable(fetched, at)
    report.finish()
    return fetched.by_id


def _tell_unreadable(fetched: FetchedMarkets, at: datetime) -> None:
    update_unreadable(fetched.reading, fetched.by_id.keys() - fetched.reading.unreadable.keys(), at=at)


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────


def _walk(
    catalogue: Catalogue, target: int, rule: PriceRule, at: datetime, report: SyncReport, progress: Progress
) -> FetchedMarkets:
    """A source's changes if it states them and was walked on this day already, else its catalogue."""
    fetched = FetchedMarkets(catalogue.source, listed_at=at)
    markets = Market.objects.filter(source=catalogue.source)
    walked, smallest = markets.aggregate(newest=Max("listed_at"))["newest"], Decimal(-1)
    stored = set(markets.unsettled().values_list("external_id", flat=True))
    try:
        changes = None
        if not catalogue.by_volume and walked is not None and walked.date() == at.date():
            changes = _changes(catalogue, markets, report)
        if changes is not None:
            fetched.listed_at, smallest = walked, _smallest_event(markets, walked, target)
        for page in catalogue.catalogue() if changes is None else changes:
            _add(page, fetched, rule, report)
            progress(min(len(fetched.by_id), target), target)
            if not catalogue.by_volume:
                _keep_largest(fetched, target, stored, above=smallest)
            elif len(fetched.by_id) >= target:
                break
        fetched.complete = changes is None
    except UpstreamError as error:
        report.failures.write(str(error))
        if not catalogue.by_volume:
            # As of an earlier day, so that the next sync walks the catalogue again.
            fetched.listed_at = walked or at - DAY
    return fetched


def _changes(catalogue: Catalogue, markets: MarketQuerySet, report: SyncReport) -> Sequence[CataloguePage] | None:
    """Pages of the markets that changed and of those to read again; None if the venue has no list of changes.

    Sync reads again the markets that something depends on, those that the last walk did not show, and the largest.
    """
    since = markets.newest_instant()
    assert since is not None, "a source that was walked has been read"
    unsettled = markets.tracked() | markets.filter(status=Market.Status.ACTIVE)
    reread = unsettled.order_by("-has_questions", "-traded", "listed_at", "-volume", "pk")[:MAX_REREAD]
    try:
        return catalogue.changes(since - CHANGES_OVERLAP, list(reread.values_list("external_id", flat=True)))
    except UpstreamError as error:
        if error.status not in CHANGES_REFUSED:
            raise
        warning = (
            f"{error}: its changes can not be listed, so its whole catalogue is read by each sync. "
            f"Sync less often, or take {catalogue.source} out of ARENA_SOURCES, until its client is adapted."
        )
        log.warning(warning, extra={"reason": str(error)})
        report.log.write(warning)
        return None


def _smallest_event(markets: MarketQuerySet, walked: datetime, target: int) -> Decimal:
    """The volume of the smallest event that the walk selected, which a new one must exceed; -1 if there is room."""
    selected = markets.filter(listed_at=walked)
    if selected.count() < target:
        return Decimal(-1)
    volumes = selected.order_by().values("event_id").annotate(total=Sum("volume")).values_list("total", flat=True)
    return min(volumes)


def _add(page: CataloguePage, fetched: FetchedMarkets, rule: PriceRule, report: SyncReport) -> None:
    skipped = list(page.skipped)
    for row in page.rows:
        if not row.closed and not _is_priced(row, rule):
            reason = f"{UNPRICED} within {rule.maximum_spread:f}"
            skipped.append(SkippedMarket(row.external_id, reason, excluded=True))
            continue
        fetched.by_id.setdefault(row.external_id, row)
        if not row.closed:
            fetched.listed.add(row.external_id)
    for skip in skipped:
        report.skip(skip)
        fetched.unusable.add(skip.ref)
        if not skip.excluded:
            fetched.reading.unreadable[skip.ref] = skip.reason
            fetched.reading.listed_unreadable += 1
    fetched.reading.rows += len(page.rows) + len(page.skipped)
    report.seen += len(page.rows) + len(page.skipped)


def _is_priced(row: VenueMarket, rule: PriceRule) -> bool:
    return any(outcome.price is not None or has_tight_book(rule, outcome.bid, outcome.ask) for outcome in row.outcomes)


def _keep_largest(fetched: FetchedMarkets, target: int, stored: Set[str], *, above: Decimal) -> None:
    """Drops all but stored markets and the largest events of more volume than `above`, whole until `target` markets."""
    selected = stored & fetched.by_id.keys()
    events: defaultdict[str, list[VenueMarket]] = defaultdict(list)
    for row in fetched.by_id.values():
        if not row.closed:
            events[row.event_id or row.external_id].append(row)
    ranked = []
    for key, event in events.items():
        ranked.append((-sum(row.volume for row in event), key))
    ranked.sort()
    room = target
    for volume, key in ranked:
        if room <= 0 or -volume <= above:
            break
        selected |= {row.external_id for row in events[key]}
        room -= len(events[key])
    fetched.by_id = {external_id: row for external_id, row in fetched.by_id.items() if external_id in selected}


# ── single markets ────────────────────────────────────────────────────────────────────────────────


def _refresh(catalogue: Catalogue, fetched: FetchedMarkets, at: datetime, report: SyncReport) -> None:
    """Looks up markets that the walk did not show: tracked, recently closed, and no longer listed ones."""
    unsettled = Market.objects.filter(source=fetched.source).unsettled()
    ids = fetched.by_id.keys() | fetched.unusable
    markets = list(unsettled.tracked())
    if fetched.complete:
        untracked = unsettled.filter(traded=False, has_questions=False)
        markets += untracked.filter(status=Market.Status.CLOSED, closed_at__gt=at - MAX_CLOSED_AGE)
        # Markets of the walk before; and markets not read for a day, because more than MAX_UNLISTED may leave at once.
        # The one that was looked up longest ago comes first, so that none that stays waits behind others that stay.
        newest = unsettled.aggregate(newest=Max("listed_at"))["newest"]
        missing = untracked.filter(Q(listed_at=newest) | Q(refreshed_at__lte=at - DAY), status=Market.Status.ACTIVE)
        unlisted = (market for market in missing.order_by("refreshed_at", "pk") if market.external_id not in ids)
        markets += islice(unlisted, MAX_UNLISTED)
    _look_up(catalogue, [market for market in markets if market.external_id not in ids], fetched, at, report)


def _look_up(
    catalogue: Catalogue, markets: Iterable[Market], fetched: FetchedMarkets, at: datetime, report: SyncReport
) -> None:
    waiting, failures = deque(markets), 0
    listed = _listed(catalogue, waiting, report)
    missing: list[Market] = []
    while waiting:
        # After so many failures the venue is down, or neighbours are broken: the last market of all distinguishes them.
        market = waiting.pop() if failures == MAX_FAILURES else waiting.popleft()
        try:
            row = listed.get(market.external_id) or catalogue.market(market.external_id)
        except UpstreamError as error:
            failures += 1
            if failures > MAX_FAILURES:
                report.failures.write(f"{catalogue.service}: gave up looking up markets, {len(waiting)} not requested")
                break
            report.failures.write(str(error))
            continue
        failures = 0
        report.seen += 1
        if row is None or isinstance(row, SkippedMarket):
            Market.objects.filter(pk=market.pk).update(refreshed_at=at)
        if row is None:
            report.log.write(f"market {market.external_id} no longer exists at its venue", market=market.pk)
            if market.traded or market.has_questions:
                missing.append(market)
        elif isinstance(row, SkippedMarket):
            report.skip(row)
            if not row.excluded:
                fetched.reading.unreadable[market.external_id] = row.reason
        else:
            fetched.by_id[row.external_id] = row
    _alert_gone(missing, fetched.by_id.keys(), at)


def _listed(catalogue: Catalogue, markets: Collection[Market], report: SyncReport) -> dict[str, VenueMarket]:
    """The rows of many markets that the venue's list by id gives, by id; few markets are left to single requests."""
    if len(markets) <= FEW:
        return {}
    try:
        return catalogue.markets([market.external_id for market in markets])
    except UpstreamError as error:
        report.log.write(f"{error}: each market is looked up by a request of its own")
        return {}


def _alert_gone(missing: Sequence[Market], ids: Set[str], at: datetime) -> None:
    """Raises one alert for the markets that their venue no longer knows, and clears those that it knows again."""
    missed = AlertItem.objects.filter(kind=GONE_ALERT, cleared_at=None).values_list("subject", flat=True)
    clear_alert(GONE_ALERT, ids & set(missed), at=at)
    if missing:
        raise_alert(
            kind=GONE_ALERT,
            items={market.external_id: market.question for market in missing},
            message=f"No longer exists at its venue: {listing([market.question for market in missing])}",
            at=at,
            path=f"/markets/{missing[0].pk}/",
            remedy="Read the venue; if the market is gone for good, cancel it manually on the dashboard.",
            urgent=False,
        )


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def _accept_quotes(fetched: FetchedMarkets, *, clob: Clob, rule: PriceRule, at: datetime, report: SyncReport) -> None:
    """Accepts the catalogue's quotes of untraded markets; a quote that jumped is checked against the CLOB.

    Traded markets are priced by snapshots and freezes alone, so that an agent's value moves at known instants.
    """
    untraded = Market.objects.open().filter(source=fetched.source, external_id__in=list(fetched.by_id), traded=False)
    jumped: list[Market] = []
    unchanged: list[Market] = []
    for market in untraded.prefetch_related("outcomes"):
        is_traded = market.source == TRADED_SOURCE
        has_jumped = is_traded and any(map(partial(_has_jumped, rule=rule), market.outcomes.all()))
        (jumped if has_jumped else unchanged).append(market)
    update_prices(unchanged, rule=rule, at=at, clob=None)
    if jumped:
        report.failures.write_all(update_prices(jumped, rule=rule, at=at, clob=clob).failures)
        for market in jumped:
            report.log.write(f"market {market.external_id}: price jump, checked against the CLOB", market=market.pk)


def _has_jumped(outcome: Outcome, rule: PriceRule) -> bool:
    if outcome.price is None or outcome.quote is None:
        return False
    return abs(outcome.quote - outcome.price) > rule.jump_tolerance
