"""Storing markets as their venue describes them: new and closed ones, changed descriptions, categories and quotes."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import ROUND_DOWN, Decimal
from operator import attrgetter

from django.db import IntegrityError, transaction

from foundation.bulk import FieldValues, field_values, rows_by, update_changed
from foundation.run_log import FailureLines, ReportLines
from markets.models import Market, Outcome
from markets.models.market import NO, YES
from markets.services.prices import as_price
from markets.services.unreadable_markets import ReadingResult
from markets.sources.base import SkippedMarket, VenueMarket, VenueOutcome
from markets.sources.field_parsers import filled

TEXT_FIELDS = ("question", "condition_id", "slug", "description", "category", "event_id", "event_title", "option")
DESCRIPTION_FIELDS = (
    *TEXT_FIELDS, "event_exclusive", "volume", "volume_24h", "liquidity", "fee_rate", "fee_exponent", "fee_unknown",
    "closes_at", "over_since", "created_at", "accepts_orders", "oracle_status", "listed_at", "refreshed_at",
)  # fmt: skip
QUOTE_FIELDS = ("quote", "quote_at", "bid", "ask", "token_id")
CENT = Decimal("0.01")
MAX_LOGGED_SKIPS = 200
"""Skipped markets that the log names for each reason; of more it gives the number."""


class OutcomesChanged(ValueError):
    """The venue's outcomes of a market do not match the stored ones."""


@dataclass(slots=True)
class SyncReport:
    """The result of a sync: counts, a log of skipped and unusual markets, and failed requests."""

    seen: int = 0
    created: int = 0
    updated: int = 0
    closed: int = 0
    skipped: int = 0
    over: int = 0
    """Open markets of which the answer is public already."""
    replay: bool = False
    log: ReportLines = field(default_factory=ReportLines)
    failures: FailureLines = field(default_factory=FailureLines)
    alerted: int = 0
    """How many of the failures are those of a venue that is down, which is an alert of its own."""
    _skips: Counter[str] = field(default_factory=Counter)
    """Skipped markets by reason."""

    def skip(self, row: SkippedMarket) -> None:
        self.skipped += 1
        self._skips[row.reason] += 1
        if self._skips[row.reason] <= MAX_LOGGED_SKIPS:
            self.log.write(f"skipped {row.ref}: {row.reason}")

    def finish(self) -> None:
        """Logs how many markets were skipped beyond those that the log names."""
        for reason, count in self._skips.items():
            if count > MAX_LOGGED_SKIPS:
                self.log.write(f"skipped {count - MAX_LOGGED_SKIPS} more: {reason}")
        self._skips.clear()


@dataclass(slots=True)
class FetchedMarkets:
    """One source's answer: markets by external id, ids that its catalogue listed, and ids of unusable ones."""

    source: str
    by_id: dict[str, VenueMarket] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    unusable: set[str] = field(default_factory=set)
    listed_at: datetime | None = None
    """The walk that the listed markets count as shown by."""
    complete: bool = False
    """True if the whole catalogue was walked to its end."""
    reading: ReadingResult = field(init=False)

    def __post_init__(self) -> None:
        self.reading = ReadingResult(self.source)


def store_markets(fetched: FetchedMarkets, at: datetime, report: SyncReport) -> None:
    """Stores a source's markets in one transaction, once more if a concurrent sync created one of them first."""
    try:
        _upsert(fetched, at, report)
    except IntegrityError:
        _upsert(fetched, at, report)


@transaction.atomic
def _upsert(fetched: FetchedMarkets, at: datetime, report: SyncReport) -> None:
    """Creates and updates markets, then adds to the report, of which nothing is to remain where that fails."""
    stored = Market.objects.filter(source=fetched.source, external_id__in=fetched.by_id).prefetch_related("outcomes")
    markets = rows_by("external_id", stored)
    outcomes: list[Outcome] = []
    markets_before: dict[int, FieldValues] = {}
    for market in markets.values():
        outcomes += market.outcomes.all()
        markets_before[market.pk] = field_values(market, DESCRIPTION_FIELDS)
    outcomes_before = {outcome.pk: field_values(outcome, QUOTE_FIELDS) for outcome in outcomes}
    created: list[Market] = []
    created_outcomes: list[Outcome] = []
    closing: list[int] = []
    skipped: list[SkippedMarket] = []
    reopened: list[str] = []
    updated = 0
    public_answers: Counter[str] = Counter()
    for external_id, row in fetched.by_id.items():
        if external_id not in markets:
            if row.closed:
                continue  # never seen open, so nothing depends on it
            market = Market(source=fetched.source, external_id=external_id, first_seen_at=at)
            new_outcomes = list(_new_outcomes(market, row))
            pairs = list(zip(new_outcomes, row.outcomes, strict=True))
            created.append(market)
            created_outcomes += new_outcomes
        else:
            market = markets[external_id]
            if market.is_final:
                continue  # a final market never changes
            try:
                pairs = match_outcomes(list(market.outcomes.all()), row.outcomes)
            except OutcomesChanged as error:
                skipped.append(SkippedMarket(external_id, str(error)))
                fetched.reading.unreadable[external_id] = str(error)
                market.refreshed_at = at
                continue
            updated += 1
            if market.status == Market.Status.CLOSED and not row.closed:
                reopened.append(external_id)
            if market.status == Market.Status.ACTIVE and row.closed:
                closing.append(market.pk)
        if reason := row.public_answer(at):
            public_answers[reason] += 1
        for outcome, quote in pairs:
            _set_quote(outcome, quote, at)
        _set_description(market, row, at)
        if external_id in fetched.listed:
            market.listed_at = fetched.listed_at
    # In one order whatever the venue's, so that two syncs wait for each other instead of deadlocking.
    created.sort(key=lambda market: market.external_id)
    created_outcomes.sort(key=lambda outcome: (outcome.market.external_id, outcome.index))
    Market.objects.bulk_create(created, batch_size=200)
    Outcome.objects.bulk_create(created_outcomes, batch_size=500)
    update_changed(markets.values(), markets_before, DESCRIPTION_FIELDS)
    update_changed(outcomes, outcomes_before, QUOTE_FIELDS)
    # Compare-and-swap: a settlement since the market was read must not be undone.
    active = Market.objects.filter(pk__in=closing, status=Market.Status.ACTIVE)
    report.closed += active.update(status=Market.Status.CLOSED, closed_at=at)
    for reason, number in public_answers.items():
        report.over += number
        report.log.write(f"neither bettable nor asked, since {reason}: {number}")
    report.created += len(created)
    report.updated += updated
    for skip in skipped:
        report.skip(skip)
    for external_id in reopened:
        report.log.write(f"market {external_id} is open again at its venue; it stays closed here")


def match_outcomes(stored: list[Outcome], rows: tuple[VenueOutcome, ...]) -> list[tuple[Outcome, VenueOutcome]]:
    """Pairs stored outcomes with the venue's: by token if all have one, else by index.

    Raises OutcomesChanged if names have changed places and there are no tokens: prices may have moved with them.
    """
    if len(stored) != len(rows):
        raise OutcomesChanged(f"has {len(rows)} outcomes, {len(stored)} are stored")
    by_token, tokens = rows_by("token_id", stored), list(map(attrgetter("token_id"), rows))
    if len(by_token) == len(stored) and all(by_token) and all(tokens):
        if set(tokens) != by_token.keys():
            raise OutcomesChanged("its tokens differ from the stored ones")
        return list(zip(map(by_token.__getitem__, tokens), rows, strict=True))
    ordered = sorted(stored, key=attrgetter("index"))
    places = {outcome.name.casefold(): outcome.index for outcome in ordered}
    for row in rows:
        if places.get(row.name.casefold(), row.index) != row.index:
            raise OutcomesChanged("its outcomes have changed places and have no tokens to identify them")
    return list(zip(ordered, rows, strict=True))


def _new_outcomes(market: Market, row: VenueMarket) -> Iterable[Outcome]:
    """The outcomes of a new market, whose sides are YES and NO on a binary one, else the outcomes' names."""
    sides = {"yes": YES, "no": NO}
    binary = sorted(outcome.name.casefold() for outcome in row.outcomes) == ["no", "yes"]
    market.kind = Market.Kind.BINARY if binary else Market.Kind.MULTI
    for quote in row.outcomes:
        side = sides[quote.name.casefold()] if binary else quote.name
        yield Outcome(market=market, index=quote.index, name=quote.name, side=side, token_id=quote.token_id or "")


def _set_quote(outcome: Outcome, row: VenueOutcome, at: datetime) -> None:
    if row.price is not None:
        outcome.quote = as_price(row.price)
    if row.price is not None or (row.bid is not None and row.ask is not None):
        outcome.quote_at = at
    outcome.bid, outcome.ask = as_price(row.bid), as_price(row.ask)
    outcome.token_id = outcome.token_id or row.token_id or ""


def _set_description(market: Market, row: VenueMarket, at: datetime) -> None:
    """Copies the venue's description to the market; missing values stay as they were."""
    for name in TEXT_FIELDS:
        setattr(market, name, getattr(row, name) or getattr(market, name))
    market.category = canonical_category(market.category)
    if row.event_exclusive is not None:
        market.event_exclusive = row.event_exclusive
    # Volume never falls: zero means that the row has no volume.
    market.volume = row.volume.quantize(CENT, rounding=ROUND_DOWN) or market.volume
    if row.volume_24h is not None:
        market.volume_24h = row.volume_24h.quantize(CENT, rounding=ROUND_DOWN)
    if row.liquidity is not None:
        market.liquidity = row.liquidity.quantize(CENT, rounding=ROUND_DOWN)
    market.description = filled(market.description)  # as an earlier version may have stored it
    market.fee_rate, market.fee_exponent, market.fee_unknown = row.fee_rate, row.fee_exponent, row.fee_unknown
    if market.status == Market.Status.ACTIVE and not row.closed:
        market.over_since = (market.over_since or at) if row.public_answer(at) else None
    market.closes_at = row.closes_at or market.closes_at
    market.created_at = market.created_at or row.created_at
    market.accepts_orders = row.accepts_orders
    market.oracle_status = row.oracle_status or ""
    market.refreshed_at = at


NAMES_BY_CATEGORY = {
    "Business": ("Companies",),
    "Crypto": ("Cryptocurrency", "Cryptocurrencies", "NFTs"),
    "Culture": ("Entertainment", "Pop Culture"),
    "Economy": ("Economics",),
    "Finance": ("Financials",),
    "Health": ("Coronavirus",),
    "Politics": (
        *("Elections", "Global Elections", "Global Politics", "Midterms", "US Election", "US Elections"),
        *("US Politics", "World Elections"),
    ),
    "Science": ("Science and Technology",),
    "Sports": (
        *("Basketball", "Champions League", "Chess", "EPL", "La Liga", "NBA", "NBA Playoffs", "Olympics"),
        *("Premier League", "Soccer"),
    ),
    "Tech": ("Technology",),
    "Weather": ("Climate", "Climate and Weather"),
}
"""By category, other names of the same subject, or of a part of it: categories and tags of Polymarket and Kalshi."""


def canonical_category(name: str) -> str:
    """The category that a venue's name stands for; a name that is not listed stands for itself."""
    return _CATEGORIES.get(_key(name), name)


def _key(name: str) -> str:
    """The name without the differences that carry no meaning: `Pop-Culture ` is `pop culture`."""
    return " ".join(name.replace("-", " ").replace("&", " and ").split()).casefold()


_CATEGORIES: dict[str, str] = {}
for _category, _synonyms in NAMES_BY_CATEGORY.items():
    for _name in (_category, *_synonyms):
        _CATEGORIES[_key(_name)] = _category
