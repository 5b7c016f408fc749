"""Freezing a universe: its markets, their order and prices, and its fingerprint."""

import json
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from agents.models import Position
from cohorts.models import Methodology
from markets.models import Market, Universe
from markets.services.universes import NoMarkets, freeze_universe
from markets.sources.polymarket import Clob
from tests.commands import DECISION, SUNDAY, run
from tests.factories import WEEK, AgentFactory, MarketFactory, bet
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db
FROZEN = WEEK + timedelta(minutes=5)


def freeze(size: int = 500, holdings: Sequence[Market] = (), at: Any = FROZEN, **more: Any) -> Universe:
    options: dict[str, Any] = {"week_start": WEEK, "methodology": "v1", "clob": None} | more
    rule = Methodology.objects.current().price_rule
    return freeze_universe(size=size, rule=rule, held_ids=[m.pk for m in holdings], at=at, **options)


def external_ids(universe: Universe, *, bettable: bool = True) -> list[str]:
    return list(universe.entries.filter(bettable=bettable).values_list("market__external_id", flat=True))


def test_the_largest_markets_by_volume_are_in_ties_by_id() -> None:
    for external_id, volume in (("20", 5), ("9", 7), ("10", 5), ("100", 5), ("7", 1), ("8", 9)):
        MarketFactory(external_id=external_id, volume=Decimal(volume))
    assert external_ids(freeze(size=5)) == ["8", "9", "10", "20", "100"]


@pytest.mark.parametrize(
    ("prices", "qualifies"),
    [
        ({"YES": "0.40", "NO": "0.60"}, True),
        ({"YES": "0.0001", "NO": "0.9999"}, True),
        ({"YES": "0", "NO": "1"}, False),
        ({"YES": None, "NO": None}, False),
        ({"A": "0.5", "B": "0.5", "C": "0"}, True),
        ({"A": "1", "B": "0.3", "C": "0"}, False),
        ({"A": "0.5", "B": "0.5", "C": None}, False),
    ],
)
def test_market_qualifies_with_all_prices_known_and_two_strictly_inside(
    prices: dict[str, str | None], qualifies: bool
) -> None:
    MarketFactory(external_id="1", prices=prices, volume=9)
    MarketFactory(external_id="2", volume=8)
    assert external_ids(freeze()) == (["1", "2"] if qualifies else ["2"])


def test_unusable_markets_at_the_top_make_room_for_the_next_ones() -> None:
    for number in range(4):
        MarketFactory(prices={"YES": None, "NO": None}, volume=100 + number)
    MarketFactory(external_id="1", volume=1)
    assert external_ids(freeze(size=1)) == ["1"]


def test_closed_and_order_refusing_markets_are_out() -> None:
    MarketFactory(external_id="1")
    MarketFactory(closed=True)
    MarketFactory(accepts_orders=False)
    assert external_ids(freeze()) == ["1"]


def test_markets_that_the_newest_walk_did_not_show_are_out() -> None:
    walked = WEEK - timedelta(hours=1)
    MarketFactory(external_id="1", listed_at=walked)
    MarketFactory(listed_at=walked - timedelta(hours=2), volume=10**9)
    MarketFactory(listed_at=None, volume=10**9)
    assert external_ids(freeze()) == ["1"]


def test_held_market_outside_the_top_is_priced_and_sellable_but_never_bettable() -> None:
    top, held_market, closed = (
        MarketFactory(volume=9),
        MarketFactory(volume=1),
        MarketFactory(closed=True, closed_at=WEEK),
    )
    universe = freeze(size=1, holdings=[top, held_market, closed])
    assert external_ids(universe) == [top.external_id]
    second = {entry.market_id: entry for entry in universe.entries.filter(bettable=False)}
    assert second.keys() == {held_market.pk, closed.pk}
    assert (second[held_market.pk].open, second[closed.pk].open) == (True, False)
    assert second[held_market.pk].prices == second[closed.pk].prices == {"YES": "0.4", "NO": "0.6"}
    assert str(held_market.pk) not in [json.loads(line)[0] for line in universe.market_block.splitlines()]


def test_a_week_and_methodology_have_one_universe() -> None:
    MarketFactory()
    first = freeze()
    MarketFactory(volume=10**9)
    again = freeze(at=FROZEN + timedelta(hours=3))
    assert (again.pk, again.sha256, again.frozen_at) == (first.pk, first.sha256, FROZEN)
    assert freeze(methodology="v2").pk != first.pk
    assert freeze(week_start=WEEK + timedelta(weeks=1)).pk != first.pk


def test_the_fingerprint_covers_prices_positions_and_markets() -> None:
    market = MarketFactory(external_id="1")
    small = MarketFactory(external_id="2", volume=1)
    fingerprints = [freeze().sha256, freeze(methodology="same").sha256]
    assert fingerprints[0] == fingerprints[1]
    fingerprints.append(freeze(methodology="second list", size=1, holdings=[small]).sha256)
    market.outcomes.filter(side="YES").update(quote=Decimal("0.4000000001"), price=Decimal("0.4000000001"))
    fingerprints.append(freeze(methodology="price").sha256)
    Market.objects.filter(pk=small.pk).update(status="closed", closed_at=WEEK)
    fingerprints.append(freeze(methodology="closed").sha256)
    assert len(set(fingerprints)) == 4


def test_prices_are_shown_unrounded_and_stored_as_shown() -> None:
    MarketFactory(prices={"YES": "0.0000300001", "NO": "0.9999699999"})
    universe = freeze()
    assert universe.entries.get().prices == {"YES": "0.0000300001", "NO": "0.9999699999"}
    walked = json.loads(universe.market_block.splitlines()[1], parse_float=Decimal)[3]
    assert walked == {"YES": Decimal("0.0000300001"), "NO": Decimal("0.9999699999")}


def test_a_freeze_without_a_qualifying_market_is_refused() -> None:
    MarketFactory(prices={"YES": "1", "NO": "0"})
    with pytest.raises(NoMarkets, match="run sync_markets first"):
        freeze()
    assert not Universe.objects.exists()


def test_replayed_freeze_takes_the_prices_known_at_its_instant(venue: Venue) -> None:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    venue.move("Will it rain?", Yes="0.50", No="0.50")
    run("sync_markets", SUNDAY + timedelta(hours=2))
    venue.requests.clear()
    with Clob(venue.server.url_for("/clob")) as clob:
        universe = freeze(at=SUNDAY + timedelta(hours=1), clob=clob)
    assert universe.entries.get().prices == {"YES": "0.4", "NO": "0.6"}
    assert venue.requests == []


def test_frozen_price_is_the_midpoint_and_no_is_its_complement(venue: Venue) -> None:
    venue.market("Will it rain?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    venue.quote(venue.tokens("Will it rain?")[0], "0.4305")
    venue.requests.clear()
    assert run("run_decisions", DECISION).code == 0
    assert Universe.objects.get().entries.get().prices == {"YES": "0.4305", "NO": "0.5695"}
    assert [request for request in venue.requests if request.startswith("POST /clob")] == [
        "POST /clob/midpoints",
        "POST /clob/books",  # within which the midpoint has to lie
        "POST /clob/books",  # captured whole
    ]


@pytest.mark.forged_record
def test_a_universe_includes_the_holdings_of_every_cohort(venue: Venue) -> None:
    """A run for one cohort freezes for all, so the markets that other cohorts hold must be sellable too."""
    Methodology.objects.update(universe_size=1)
    venue.market("Big?")
    venue.market("Small?")
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("start_cohort", SUNDAY + timedelta(weeks=1))
    bet(AgentFactory(cohort__number=7), Market.objects.get(question="Small?"))
    at = DECISION + timedelta(weeks=1)
    run("sync_markets", at)
    run("run_decisions", at, cohort=2)
    universe = Universe.objects.get(week_start=SUNDAY + timedelta(weeks=1))
    assert list(universe.entries.values_list("market__question", "bettable")) == [("Big?", True), ("Small?", False)]
    assert Position.objects.get().market.question == "Small?"
