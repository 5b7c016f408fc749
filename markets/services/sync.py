"""Syncing markets: walks each source's catalogue, looks up tracked markets, upserts them and accepts prices."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from django.db import IntegrityError, transaction
from django.db.models import Max, Sum

from markets.foundation.bulk import FieldValues, field_values, update_changed
from markets.foundation.failpoints import failpoint
from markets.foundation.http import UpstreamError
from markets.models import Alert, Market, Outcome
from markets.models.market import NO, YES, MarketQuerySet
from markets.pricing import PriceRule, has_tight_book
from markets.services.prices import as_price, is_replay, update_prices
from markets.sources.base import UNPRICED, Catalogue, CataloguePage, SkippedMarket, VenueMarket, VenueOutcome
from markets.sources.polymarket import Clob
from markets.sources.registry import TRADED_SOURCE

MAX_CLOSED_AGE = timedelta(days=30)
"""The time after its close for which a market that nothing depends on is looked up."""
MAX_FAILURES = 3
"""Consecutive failed lookups, after which one more market decides whether the venue is down."""
MAX_VANISHED = 200
"""Markets looked up in one sync because the catalogue no longer lists them."""
CHANGES_OVERLAP = timedelta(minutes=15)
"""The time before the last reading from which changes are asked for: a source's clock may differ from ours."""
MAX_KNOWN = 1000
"""Markets of a source that are read again between two walks."""
MAX_LOGGED_SKIPS = 200
"""Skipped markets that the log names for each reason; of more it gives the number."""

DESCRIPTION_FIELDS = (
    "condition_id", "slug", "question", "description", "category", "event_id", "event_title", "event_exclusive",
    "option", "volume", "liquidity", "closes_at", "accepts_orders", "oracle_status", "listed_at", "refreshed_at",
)  # fmt: skip
QUOTE_FIELDS = ("quote", "quote_at", "bid", "ask", "token_id")

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class SyncReport:
    """The result of a sync: counts, a log of skipped and unusual markets, and failed requests."""

    seen: int = 0
    created: int = 0
    updated: int = 0
    closed: int = 0
    skipped: int = 0
    replay: bool = False
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    _skips: Counter[str] = field(default_factory=Counter)
    """Skipped markets by reason."""

    def skip(self, row: SkippedMarket) -> None:
        self.skipped += 1
        self._skips[row.reason] += 1
        if self._skips[row.reason] <= MAX_LOGGED_SKIPS:
            self.log.append(f"skipped {row.ref}: {row.reason}")

    def finish(self) -> None:
        """Logs how many markets were skipped beyond those that the log names."""
        for reason, count in self._skips.items():
            if count > MAX_LOGGED_SKIPS:
                self.log.append(f"skipped {count - MAX_LOGGED_SKIPS} more: {reason}")
        self._skips.clear()


@dataclass(slots=True)
class _FetchedMarkets:
    """One source's answer: markets by external id, ids that its catalogue listed, and ids of unusable ones."""

    source: str
    by_id: dict[str, VenueMarket] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    listed_at: datetime | None = None
    """The walk that the listed markets count as shown by."""
    whole: bool = False
    """True if the whole catalogue was walked to its end."""


def sync_markets(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    target: int,
    rule: PriceRule,
    progress: Progress = lambda done, of: None,
) -> SyncReport:
    """Syncs each source's `target` largest open markets and all of its tracked markets.

    A source that fails is a failure in the report; the others are stored.
    """
    report = SyncReport(replay=is_replay(at))
    if report.replay:
        report.log.append("a replay: newer instants are recorded, so no service is asked")
        return report
    for catalogue in catalogues:
        fetched = _walk(catalogue, target, rule, at, report, progress)
        _refresh(catalogue, fetched, at, report)
        failpoint("sync.walked")
        if fetched.by_id:
            _store(fetched, at, report)
            failpoint("sync.stored")
            _accept_quotes(fetched, clob=clob, rule=rule, at=at, report=report)
            failpoint("sync.priced")
    if not report.seen and not report.failures:
        services = ", ".join(catalogue.service for catalogue in catalogues)
        report.failures.append(f"{services}: no market was returned")
    report.finish()
    return report


def refresh_markets(
    *, catalogue: Catalogue, markets: Iterable[Market], at: datetime, report: SyncReport
) -> dict[str, VenueMarket]:
    """Looks up and stores each of a venue's `markets`; returns them as the venue describes them, by external id."""
    fetched = _FetchedMarkets(catalogue.source)
    _look_up(catalogue, markets, fetched, at, report)
    if fetched.by_id:
        _store(fetched, at, report)
    report.finish()
    return fetched.by_id


def _walk(
    catalogue: Catalogue, target: int, rule: PriceRule, at: datetime, report: SyncReport, progress: Progress
) -> _FetchedMarkets:
    """A source's changes if it states them and was walked on this day already, else its catalogue."""
    fetched = _FetchedMarkets(catalogue.source, listed_at=at)
    markets = Market.objects.filter(source=catalogue.source)
    newest = markets.aggregate(walked=Max("listed_at"), read=Max("refreshed_at"))
    stored = set(markets.unsettled().values_list("external_id", flat=True))
    walked, smallest = newest["walked"], Decimal(-1)
    try:
        changes = None
        if not catalogue.by_volume and walked is not None and walked.date() == at.date():
            changes = catalogue.changes(newest["read"] - CHANGES_OVERLAP, _known(markets, walked))
        if changes is not None:
            fetched.listed_at, smallest = walked, _smallest_event(markets, walked, target)
        for page in catalogue.catalogue() if changes is None else changes:
            _add(page, fetched, rule, report)
            progress(min(len(fetched.by_id), target), target)
            if not catalogue.by_volume:
                _keep_largest(fetched, target, stored, above=smallest)
            elif len(fetched.by_id) >= target:
                break
        fetched.whole = changes is None
    except UpstreamError as error:
        report.failures.append(str(error))
        if not catalogue.by_volume:
            # As of an earlier day, so that the next sync walks the catalogue again.
            fetched.listed_at = walked or at - timedelta(days=1)
    return fetched


def _known(markets: MarketQuerySet, walked: datetime) -> list[str]:
    """The ids of the markets to read again between two walks: those that something depends on, then the largest."""
    wanted = markets.tracked() | markets.unsettled().filter(status=Market.Status.ACTIVE, listed_at=walked)
    ordered = wanted.order_by("-has_questions", "-traded", "-volume", "pk")
    return list(ordered.values_list("external_id", flat=True)[:MAX_KNOWN])


def _smallest_event(markets: MarketQuerySet, walked: datetime, target: int) -> Decimal:
    """The volume of the smallest event that the walk selected, which a new one must exceed; -1 if there is room."""
    selected = markets.filter(listed_at=walked)
    if selected.count() < target:
        return Decimal(-1)
    volumes = selected.order_by().values("event_id").annotate(total=Sum("volume")).values_list("total", flat=True)
    return min(volumes)


def _add(page: CataloguePage, fetched: _FetchedMarkets, rule: PriceRule, report: SyncReport) -> None:
    for skipped in page.skipped:
        report.skip(skipped)
        fetched.unusable.add(skipped.ref)
    for row in page.rows:
        if not row.closed and not _is_priced(row, rule):
            report.skip(SkippedMarket(row.external_id, f"{UNPRICED} within {rule.maximum_spread:f}"))
            fetched.unusable.add(row.external_id)
            continue
        fetched.by_id.setdefault(row.external_id, row)
        if not row.closed:
            fetched.listed.add(row.external_id)
    report.seen += len(page.rows) + len(page.skipped)


def _is_priced(row: VenueMarket, rule: PriceRule) -> bool:
    return any(o.price is not None or has_tight_book(rule, o.bid, o.ask) for o in row.outcomes)


def _keep_largest(fetched: _FetchedMarkets, target: int, stored: Set[str], *, above: Decimal) -> None:
    """Drops all but stored markets and the largest events of more volume than `above`, whole until `target` markets."""
    selected = stored & fetched.by_id.keys()
    events: defaultdict[str, list[VenueMarket]] = defaultdict(list)
    for row in fetched.by_id.values():
        if not row.closed:
            events[row.event_id or row.external_id].append(row)
    ranked = sorted((-sum(row.volume for row in event), key) for key, event in events.items())
    room = target
    for volume, key in ranked:
        if room <= 0 or -volume <= above:
            break
        selected |= {row.external_id for row in events[key]}
        room -= len(events[key])
    fetched.by_id = {external_id: row for external_id, row in fetched.by_id.items() if external_id in selected}


def _refresh(catalogue: Catalogue, fetched: _FetchedMarkets, at: datetime, report: SyncReport) -> None:
    """Looks up markets that the walk did not show: tracked, recently closed, and no longer listed ones."""
    unsettled = Market.objects.filter(source=fetched.source).unsettled()
    wanted = list(unsettled.tracked())
    if fetched.whole:
        others = unsettled.filter(traded=False, has_questions=False)
        wanted += others.filter(status=Market.Status.CLOSED, closed_at__gt=at - MAX_CLOSED_AGE)
        newest = unsettled.order_by("-listed_at").exclude(listed_at=None).values_list("listed_at", flat=True).first()
        if newest is not None:
            last_listed = others.filter(status=Market.Status.ACTIVE, listed_at=newest)
            wanted += [m for m in last_listed if m.external_id not in fetched.listed][:MAX_VANISHED]
    returned = fetched.by_id.keys() | fetched.unusable
    _look_up(catalogue, [m for m in wanted if m.external_id not in returned], fetched, at, report)


def _look_up(
    catalogue: Catalogue, markets: Iterable[Market], fetched: _FetchedMarkets, at: datetime, report: SyncReport
) -> None:
    waiting, failures = deque(markets), 0
    gone = set(Alert.objects.filter(kind="market-gone", cleared_at=None).values_list("subject", flat=True))
    while waiting:
        # After so many failures the venue is down, or neighbours are broken: the last market of all distinguishes them.
        market = waiting.pop() if failures == MAX_FAILURES else waiting.popleft()
        try:
            row = catalogue.market(market.external_id)
        except UpstreamError as error:
            failures += 1
            if failures > MAX_FAILURES:
                report.failures.append(f"{catalogue.service}: gave up looking up markets, {len(waiting)} not requested")
                return
            report.failures.append(str(error))
            continue
        failures = 0
        report.seen += 1
        if row is None:
            report.log.append(f"market {market.external_id} no longer exists at its venue")
            if market.traded or market.has_questions:
                Alert.objects.raise_once(
                    "market-gone", market.external_id, f"No longer exists at its venue: {market.question}", at
                )
        elif isinstance(row, SkippedMarket):
            report.skip(row)
        else:
            if market.external_id in gone:
                Alert.objects.clear("market-gone", market.external_id, at)
            fetched.by_id[row.external_id] = row


def _store(fetched: _FetchedMarkets, at: datetime, report: SyncReport) -> None:
    """Upserts a source's markets in one transaction, once more if a concurrent sync created one of them first."""
    before = (report.created, report.updated, report.closed, report.skipped, len(report.log))
    for last_try in (False, True):
        try:
            with transaction.atomic():
                _upsert(fetched, at, report)
            return
        except IntegrityError:
            if last_try:
                raise
            report.created, report.updated, report.closed, report.skipped, lines = before
            del report.log[lines:]


def _upsert(fetched: _FetchedMarkets, at: datetime, report: SyncReport) -> None:
    stored = Market.objects.filter(source=fetched.source, external_id__in=fetched.by_id).prefetch_related("outcomes")
    known = {market.external_id: market for market in stored}
    created: list[Market] = []
    updated: list[Market] = []
    closing: list[int] = []
    created_outcomes: list[Outcome] = []
    updated_outcomes: list[Outcome] = []
    market_values: dict[int, FieldValues] = {}
    outcome_values: dict[int, FieldValues] = {}
    for external_id, row in fetched.by_id.items():
        market = known.get(external_id)
        if market is None:
            if row.closed:
                continue  # never seen open, so nothing depends on it
            market = Market(source=fetched.source, external_id=external_id, first_seen_at=at)
            pairs = list(zip(_new_outcomes(market, row), row.outcomes, strict=True))
            created.append(market)
            created_outcomes += [outcome for outcome, _ in pairs]
        else:
            if market.is_final:
                continue  # a final market never changes
            try:
                pairs = match_outcomes(list(market.outcomes.all()), row.outcomes)
            except OutcomesChanged as error:
                report.skip(SkippedMarket(external_id, str(error)))
                continue
            updated.append(market)
            updated_outcomes += [outcome for outcome, _ in pairs]
            market_values[market.pk] = field_values(market, DESCRIPTION_FIELDS)
            outcome_values |= {outcome.pk: field_values(outcome, QUOTE_FIELDS) for outcome, _ in pairs}
            if market.status == Market.Status.CLOSED and not row.closed:
                report.log.append(f"market {external_id} is open again at its venue; it stays closed here")
            if market.status == Market.Status.ACTIVE and row.closed:
                closing.append(market.pk)
        for outcome, quote in pairs:
            _set_quote(outcome, quote, at)
        _set_description(market, row, at=at)
        if external_id in fetched.listed:
            market.listed_at = fetched.listed_at
    # In one order whatever the venue's, so that two syncs wait for each other instead of deadlocking.
    created.sort(key=lambda market: market.external_id)
    Market.objects.bulk_create(created, batch_size=200)
    Outcome.objects.bulk_create(created_outcomes, batch_size=500)
    update_changed(Market, updated, market_values, DESCRIPTION_FIELDS)
    update_changed(Outcome, updated_outcomes, outcome_values, QUOTE_FIELDS)
    # Compare-and-swap: a settlement since the market was read must not be undone.
    report.closed += Market.objects.filter(pk__in=closing, status=Market.Status.ACTIVE).update(
        status=Market.Status.CLOSED, closed_at=at
    )
    report.created += len(created)
    report.updated += len(updated)


class OutcomesChanged(ValueError):
    """The venue's outcomes of a market do not match the stored ones."""


def match_outcomes(known: list[Outcome], rows: tuple[VenueOutcome, ...]) -> list[tuple[Outcome, VenueOutcome]]:
    """Pairs stored outcomes with the venue's: by token if all have one, else by index.

    Raises OutcomesChanged if names have changed places and there are no tokens: prices may have moved with them.
    """
    if len(known) != len(rows):
        raise OutcomesChanged(f"has {len(rows)} outcomes, {len(known)} are stored")
    tokens = {outcome.token_id: outcome for outcome in known if outcome.token_id}
    if len(tokens) == len(known) and all(row.token_id for row in rows):
        if {row.token_id for row in rows} != set(tokens):
            raise OutcomesChanged("its tokens differ from the stored ones")
        return [(tokens[row.token_id or ""], row) for row in rows]
    ordered = sorted(known, key=lambda outcome: outcome.index)
    places = {outcome.name.casefold(): outcome.index for outcome in ordered}
    if any(places.get(row.name.casefold(), row.index) != row.index for row in rows):
        raise OutcomesChanged("its outcomes have changed places and have no tokens to identify them")
    return list(zip(ordered, rows, strict=True))


def side_of(name: str, *, binary: bool) -> str:
    """The side of an outcome: YES or NO on a binary market, else its name."""
    return {"yes": YES, "no": NO}[name.casefold()] if binary else name


def _new_outcomes(market: Market, row: VenueMarket) -> list[Outcome]:
    binary = sorted(outcome.name.casefold() for outcome in row.outcomes) == ["no", "yes"]
    market.kind = Market.Kind.BINARY if binary else Market.Kind.MULTI
    return [
        Outcome(
            market=market, index=o.index, name=o.name, side=side_of(o.name, binary=binary), token_id=o.token_id or ""
        )
        for o in row.outcomes
    ]


def _set_quote(outcome: Outcome, row: VenueOutcome, at: datetime) -> None:
    if row.price is not None:
        outcome.quote = as_price(row.price)
    if row.price is not None or (row.bid is not None and row.ask is not None):
        outcome.quote_at = at
    outcome.bid, outcome.ask = as_price(row.bid), as_price(row.ask)
    outcome.token_id = outcome.token_id or row.token_id or ""


def _set_description(market: Market, row: VenueMarket, *, at: datetime) -> None:
    """Copies the venue's description to the market; missing values stay as they were."""
    for name in ("question", "condition_id", "slug", "description", "category", "event_id", "event_title", "option"):
        setattr(market, name, getattr(row, name) or getattr(market, name))
    if row.event_exclusive is not None:
        market.event_exclusive = row.event_exclusive
    cents = Decimal("0.01")
    # Volume never falls: zero means that the row has no volume.
    market.volume = row.volume.quantize(cents, rounding=ROUND_DOWN) or market.volume
    if row.liquidity is not None:
        market.liquidity = row.liquidity.quantize(cents, rounding=ROUND_DOWN)
    market.closes_at = row.closes_at or market.closes_at
    market.accepts_orders = row.accepts_orders
    market.oracle_status = row.oracle_status or ""
    market.refreshed_at = at


def _accept_quotes(fetched: _FetchedMarkets, *, clob: Clob, rule: PriceRule, at: datetime, report: SyncReport) -> None:
    """Accepts the catalogue's quotes of untraded markets; a quote that jumped is checked against the CLOB.

    Traded markets are priced by snapshots and freezes alone, so that an agent's value moves at known instants.
    """
    untraded = Market.objects.open().filter(source=fetched.source, external_id__in=list(fetched.by_id), traded=False)
    jumped: list[Market] = []
    others: list[Market] = []
    for market in untraded.prefetch_related("outcomes"):
        has_jumped = market.source == TRADED_SOURCE and any(
            o.price is not None and o.quote is not None and abs(o.quote - o.price) > rule.jump_tolerance
            for o in market.outcomes.all()
        )
        (jumped if has_jumped else others).append(market)
    update_prices(others, rule=rule, at=at, clob=None)
    if jumped:
        report.failures += update_prices(jumped, rule=rule, at=at, clob=clob).failures
        report.log += [f"market {m.external_id}: price jump, checked against the CLOB" for m in jumped]
