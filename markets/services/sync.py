"""The catalogue's sync: walks each venue, refreshes what money or a question depends on, upserts in bulk."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from django.db import IntegrityError, transaction

from markets.failpoints import reached
from markets.http import UpstreamError
from markets.models import Alert, Market, Outcome
from markets.models.market import NO, YES
from markets.pricing import PriceRule
from markets.services.marks import as_price, is_replay, mark_markets
from markets.services.writing import State, state, write_changes
from markets.sources.base import Catalogue, MarketRow, OutcomeRow, SkippedRow
from markets.sources.polymarket import Clob

UNFOLLOWED_PATIENCE = timedelta(days=30)
"""How long a closed market that nobody traded is asked about before it is left alone."""
PATIENCE = 3
"""Failures in a row after which looking up markets singly is in doubt."""
VANISHED_AT_MOST = 200
"""How many markets that fell out of the list are looked up singly in one sync."""
NAMED_AT_MOST = 200
"""How many rows that are left out for one reason are named by a sync; of more, only how many."""

DESCRIPTIVE = (
    "condition_id", "slug", "question", "description", "category", "event_id", "event_title", "event_exclusive",
    "option", "volume", "liquidity", "closes_at", "accepts_orders", "oracle_status", "listed_at", "refreshed_at",
)  # fmt: skip
QUOTED = ("quote", "quote_at", "bid", "ask", "token_id")


@dataclass(slots=True)
class SyncReport:
    """What a sync did. `log` names each row left out and each odd thing; `failures` what could not be had."""

    seen: int = 0
    created: int = 0
    updated: int = 0
    closed: int = 0
    skipped: int = 0
    replay: bool = False
    log: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    unnamed: Counter[str] = field(default_factory=Counter)
    """Rows left out beyond those that are named, by reason."""
    _named: Counter[str] = field(default_factory=Counter)

    def skip(self, row: SkippedRow) -> None:
        self.skipped += 1
        if self._named[row.reason] == NAMED_AT_MOST:
            self.unnamed[row.reason] += 1
            return
        self._named[row.reason] += 1
        self.log.append(f"skipped {row.ref}: {row.reason}")

    def end(self) -> None:
        """Says in one line each how many rows were left out besides those named."""
        self.log += [f"skipped {count} more: {reason}" for reason, count in self.unnamed.items()]
        self.unnamed.clear()


@dataclass(slots=True)
class _Heard:
    """One source's rows by external id; `listed` holds those that the open list named, `unusable` those in vain."""

    source: str
    rows: dict[str, MarketRow] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    whole: bool = True


def sync_markets(
    *,
    catalogues: Sequence[Catalogue],
    clob: Clob,
    at: datetime,
    target: int,
    rule: PriceRule,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> SyncReport:
    """Brings every source up to `at`: its `target` largest open markets, and all that are followed or asked about.

    A source that fails is a failure in the report; the others are stored all the same.
    """
    report = SyncReport(replay=is_replay(at))
    if report.replay:
        report.log.append("a replay: newer instants are on record, so nothing is taken from the network")
        return report
    for catalogue in catalogues:
        heard = _walk(catalogue, target, report, progress)
        _refresh(catalogue, heard, at, report)
        reached("sync.walked")
        if heard.rows:
            _store(heard, at, report)
            reached("sync.stored")
            _accept_unfollowed(heard, clob=clob, rule=rule, at=at, report=report)
            reached("sync.priced")
    if not report.seen and not report.failures:
        services = ", ".join(catalogue.service for catalogue in catalogues)
        report.failures.append(f"{services}: not a single market was given")
    report.end()
    return report


def refresh_markets(
    *, catalogue: Catalogue, markets: Iterable[Market], at: datetime, report: SyncReport
) -> dict[str, MarketRow]:
    """Asks the venue about each of its `markets`, stores what it says, and returns the rows by external id."""
    heard = _Heard(catalogue.source)
    _ask_singly(catalogue, markets, heard, at, report)
    if heard.rows:
        _store(heard, at, report)
    report.end()
    return heard.rows


def _walk(catalogue: Catalogue, target: int, report: SyncReport, progress: Callable[[int, int], None]) -> _Heard:
    heard = _Heard(catalogue.source)
    try:
        for page in catalogue.catalogue():
            for left_out in page.skipped:
                report.skip(left_out)
                heard.unusable.add(left_out.ref)
            for row in page.rows:
                if row.external_id in heard.rows:
                    continue
                heard.rows[row.external_id] = row
                heard.listed.add(row.external_id)
            report.seen += len(page.rows) + len(page.skipped)
            progress(min(len(heard.rows), target), target)
            if catalogue.by_volume and len(heard.rows) >= target:
                break
    except UpstreamError as error:
        heard.whole = False
        report.failures.append(str(error))
    if not catalogue.by_volume:
        _keep_largest(heard, target)
    return heard


def _keep_largest(heard: _Heard, target: int) -> None:
    """Leaves the rows of the largest events, whole, until there are `target`, and of markets already on record."""
    known = Market.objects.filter(source=heard.source).unsettled().values_list("external_id", flat=True)
    kept = set(known) & heard.rows.keys()
    events: defaultdict[str, list[MarketRow]] = defaultdict(list)
    for row in heard.rows.values():
        if not row.closed:
            events[row.event_id or row.external_id].append(row)
    room = target
    for _, rows in sorted(events.items(), key=lambda one: (-sum(row.volume for row in one[1]), one[0])):
        if room <= 0:
            break
        kept |= {row.external_id for row in rows}
        room -= len(rows)
    heard.rows = {external_id: row for external_id, row in heard.rows.items() if external_id in kept}


def _refresh(catalogue: Catalogue, heard: _Heard, at: datetime, report: SyncReport) -> None:
    """Looks up what the walk did not show: awaited markets, closed ones, those that fell out of the list."""
    ours = Market.objects.filter(source=heard.source).unsettled()
    wanted = list(ours.awaited())
    if heard.whole:
        others = ours.filter(followed=False, asked=False)
        wanted += others.filter(status=Market.Status.CLOSED, closed_at__gt=at - UNFOLLOWED_PATIENCE)
        newest = ours.order_by("-listed_at").exclude(listed_at=None).values_list("listed_at", flat=True).first()
        if newest is not None:
            were_listed = others.filter(status=Market.Status.ACTIVE, listed_at=newest)
            wanted += [m for m in were_listed if m.external_id not in heard.listed][:VANISHED_AT_MOST]
    named = heard.rows.keys() | heard.unusable
    _ask_singly(catalogue, [m for m in wanted if m.external_id not in named], heard, at, report)


def _ask_singly(
    catalogue: Catalogue, markets: Iterable[Market], heard: _Heard, at: datetime, report: SyncReport
) -> None:
    waiting, in_a_row = deque(markets), 0
    gone = set(Alert.objects.filter(kind="market-gone", cleared_at=None).values_list("subject", flat=True))
    while waiting:
        # So many failures are a venue that is down, or as many broken markets side by side: the last of all tells.
        market = waiting.pop() if in_a_row == PATIENCE else waiting.popleft()
        try:
            row = catalogue.market(market.external_id)
        except UpstreamError as error:
            in_a_row += 1
            if in_a_row > PATIENCE:  # one line for all, not one for each
                left = f"{len(waiting)} were not asked"
                report.failures.append(f"{catalogue.service}: gave up on looking up markets singly, {left}")
                return
            report.failures.append(str(error))
            continue
        in_a_row = 0
        report.seen += 1
        if row is None:
            report.log.append(f"market {market.external_id} is gone from its venue")
            if market.followed or market.asked:
                Alert.objects.raise_once(
                    "market-gone", market.external_id, f"Gone from its venue: {market.question}", at
                )
        elif isinstance(row, SkippedRow):
            report.skip(row)
        else:
            if market.external_id in gone:
                Alert.objects.clear("market-gone", market.external_id, at)
            heard.rows[row.external_id] = row


def _store(heard: _Heard, at: datetime, report: SyncReport) -> None:
    """Upserts everything heard in one transaction; a concurrent sync that created a row first is met halfway."""
    counted = (report.created, report.updated, report.closed, report.skipped, len(report.log))
    for last_try in (False, True):
        try:
            with transaction.atomic():
                _upsert(heard, at, report)
            return
        except IntegrityError:
            if last_try:
                raise
            report.created, report.updated, report.closed, report.skipped, lines = counted
            del report.log[lines:]


def _upsert(heard: _Heard, at: datetime, report: SyncReport) -> None:
    known = {
        market.external_id: market
        for market in Market.objects.filter(source=heard.source, external_id__in=heard.rows).prefetch_related(
            "outcomes"
        )
    }
    new: list[Market] = []
    met: list[Market] = []
    closing: list[int] = []
    new_outcomes: list[Outcome] = []
    met_outcomes: list[Outcome] = []
    described: dict[int, State] = {}
    quoted: dict[int, State] = {}
    for external_id, row in heard.rows.items():
        market = known.get(external_id)
        if market is None:
            if row.closed:
                continue  # never seen open: nothing of ours can depend on it
            market = Market(source=heard.source, external_id=external_id, first_seen_at=at)
            matched = list(zip(_new_outcomes(market, row), row.outcomes, strict=True))
            new.append(market)
            new_outcomes += [outcome for outcome, _ in matched]
        else:
            if market.is_final:
                continue  # nothing upstream reopens or changes a settled market
            try:
                matched = match_outcomes(list(market.outcomes.all()), row.outcomes)
            except OutcomesChanged as error:
                report.skip(SkippedRow(external_id, str(error)))
                continue
            met.append(market)
            met_outcomes += [outcome for outcome, _ in matched]
            described[market.pk] = state(market, DESCRIPTIVE)
            quoted |= {outcome.pk: state(outcome, QUOTED) for outcome, _ in matched}
            if market.status == Market.Status.CLOSED and not row.closed:
                report.log.append(f"market {external_id} reads open again upstream; it stays closed here")
            if market.status == Market.Status.ACTIVE and row.closed:
                closing.append(market.pk)
        for outcome, quote in matched:
            _quote(outcome, quote, at)
        _describe(market, row, listed=external_id in heard.listed, at=at)
    # In one order, whatever the venue's: two syncs at once then queue for rows instead of locking each other out.
    new.sort(key=lambda market: market.external_id)
    Market.objects.bulk_create(new, batch_size=200)
    Outcome.objects.bulk_create(new_outcomes, batch_size=500)
    write_changes(Market, met, described, DESCRIPTIVE)
    write_changes(Outcome, met_outcomes, quoted, QUOTED)
    # By compare-and-swap: a settlement that was quicker must not be undone by what was read before it.
    report.closed += Market.objects.filter(pk__in=closing, status=Market.Status.ACTIVE).update(
        status=Market.Status.CLOSED, closed_at=at
    )
    report.created += len(new)
    report.updated += len(met)


class OutcomesChanged(ValueError):
    """A row's outcomes are not those on record."""


def match_outcomes(known: list[Outcome], rows: tuple[OutcomeRow, ...]) -> list[tuple[Outcome, OutcomeRow]]:
    """Pairs stored outcomes with a row's: by token where both name them, else by index, never by name.

    A row without tokens whose names have changed places is refused: nothing tells whether its prices have too.
    """
    if len(known) != len(rows):
        raise OutcomesChanged(f"has {len(rows)} outcomes, {len(known)} are on record")
    tokens = {outcome.token_id: outcome for outcome in known if outcome.token_id}
    if len(tokens) == len(known) and all(row.token_id for row in rows):
        if {row.token_id for row in rows} != set(tokens):
            raise OutcomesChanged("its tokens are not those on record")
        return [(tokens[row.token_id or ""], row) for row in rows]
    in_order = sorted(known, key=lambda outcome: outcome.index)
    places = {outcome.name.casefold(): outcome.index for outcome in in_order}
    if any(places.get(row.name.casefold(), row.index) != row.index for row in rows):
        raise OutcomesChanged("its outcomes have changed places, and no tokens tell which is which")
    return list(zip(in_order, rows, strict=True))


def side_of(name: str, *, binary: bool) -> str:
    """What a bet calls an outcome: YES or NO on a binary market, else its name."""
    return {"yes": YES, "no": NO}[name.casefold()] if binary else name


def _new_outcomes(market: Market, row: MarketRow) -> list[Outcome]:
    binary = sorted(outcome.name.casefold() for outcome in row.outcomes) == ["no", "yes"]
    market.kind = Market.Kind.BINARY if binary else Market.Kind.MULTI
    return [
        Outcome(
            market=market,
            index=o.index,
            name=o.name,
            side=side_of(o.name, binary=binary),
            token_id=o.token_id or "",
        )
        for o in row.outcomes
    ]


def _quote(outcome: Outcome, row: OutcomeRow, at: datetime) -> None:
    if row.price is not None:
        outcome.quote, outcome.quote_at = as_price(row.price), at
    outcome.bid = None if row.bid is None else as_price(row.bid)
    outcome.ask = None if row.ask is None else as_price(row.ask)
    outcome.token_id = outcome.token_id or row.token_id or ""


def _describe(market: Market, row: MarketRow, *, listed: bool, at: datetime) -> None:
    """Takes over what the row says; what it leaves out stays as it was."""
    market.question = row.question
    for name in ("condition_id", "slug", "description", "category", "event_id", "event_title", "option"):
        setattr(market, name, getattr(row, name) or getattr(market, name))
    if row.event_exclusive is not None:
        market.event_exclusive = row.event_exclusive
    cents = Decimal("0.01")
    # Volume only grows: zero means that the row leaves it out.
    market.volume = row.volume.quantize(cents, rounding=ROUND_DOWN) or market.volume
    if row.liquidity is not None:
        market.liquidity = row.liquidity.quantize(cents, rounding=ROUND_DOWN)
    market.closes_at = row.closes_at or market.closes_at
    market.accepts_orders = row.accepts_orders
    market.oracle_status = row.oracle_status or ""
    market.refreshed_at = at
    if listed:
        market.listed_at = at


def _accept_unfollowed(heard: _Heard, *, clob: Clob, rule: PriceRule, at: datetime, report: SyncReport) -> None:
    """Accepts the venue's quotes of markets on which no money stands; a jump at Polymarket is put to the CLOB.

    Followed markets are marked by snapshots and freezes alone, so that an agent's value moves at known instants.
    """
    markets = list(
        Market.objects.open()
        .filter(source=heard.source, external_id__in=list(heard.rows), followed=False)
        .prefetch_related("outcomes")
    )
    doubtful: list[Market] = []
    plain: list[Market] = []
    for market in markets:
        jumped = market.source == Market.Source.POLYMARKET and any(
            o.price is not None and o.quote is not None and abs(o.quote - o.price) > rule.gamma_tolerance
            for o in market.outcomes.all()
        )
        (doubtful if jumped else plain).append(market)
    mark_markets(plain, rule=rule, at=at, clob=None)
    if doubtful:
        marks = mark_markets(doubtful, rule=rule, at=at, clob=clob)
        report.failures += marks.failures
        report.log += [f"market {m.external_id} jumped: its price was put to the CLOB" for m in doubtful]
