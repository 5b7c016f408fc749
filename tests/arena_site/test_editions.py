"""Extended seasons: the fixture unchanged, then editions of their own with enough open markets."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import httpx
import pytest

from venue_sandbox.catalogue import Market, ResolutionKind, Season, load_season
from venue_sandbox.editions import EDITION, FIXTURE_WEEKS, extend_season
from venue_sandbox.exchange import Exchange
from venue_sandbox.http_messages import zulu
from venue_sandbox.server import Addresses, running

WEEK = timedelta(weeks=1)
QWEN = "qwen/qwen3-235b-a22b-2507"


@pytest.fixture(scope="module")
def fixture() -> Season:
    return load_season()


@pytest.fixture(scope="module")
def year(fixture: Season) -> Season:
    return extend_season(fixture, 52)


def open_at(season: Season, at: datetime) -> list[Market]:
    return [market for market in season.markets if market.lists <= at < market.closes]


def test_as_long_as_the_fixture_lasts_the_season_is_the_fixtures(fixture: Season) -> None:
    assert extend_season(fixture, FIXTURE_WEEKS) == extend_season(fixture, 1) == fixture
    assert open_at(fixture, fixture.starts + (FIXTURE_WEEKS - 1) * WEEK)
    assert not open_at(fixture, fixture.starts + FIXTURE_WEEKS * WEEK)


def test_first_edition_of_a_long_season_is_the_fixtures_own(fixture: Season, year: Season) -> None:
    assert year.events[: len(fixture.events)] == fixture.events


def test_every_week_of_a_year_has_about_as_many_open_markets(year: Season) -> None:
    counts = [len(open_at(year, year.starts + week * WEEK)) for week in range(53)]
    assert min(counts) >= 110
    assert max(counts) <= 170


@pytest.mark.parametrize(
    "name",
    [
        lambda market: market.id,
        lambda market: market.question,
        lambda market: market.slug,
        lambda market: market.condition_id,
        lambda market: market.tokens,
    ],
)
def test_no_two_markets_of_a_year_share_a_name(year: Season, name: Callable[[Market], object]) -> None:
    assert max(Counter(map(name, year.markets)).values()) == 1


def test_events_hold_their_own_markets_and_groups_one_race(year: Season) -> None:
    assert len({event.id for event in year.events}) == len(year.events)
    for event in year.events:
        assert {market.event_id for market in event.markets} == {event.id}
        assert not event.exclusive or len({market.race for market in event.markets}) == 1


def test_special_resolutions_recur_in_each_edition(fixture: Season, year: Season) -> None:
    size = len(fixture.markets)
    for number in range(len(year.markets) // size):
        edition = year.markets[number * size : (number + 1) * size]
        assert Counter(market.resolution for market in edition) == Counter(
            market.resolution for market in fixture.markets
        )
        for copy, first in zip(edition, fixture.markets, strict=True):
            later = number * EDITION
            assert (copy.lists, copy.closes) == (first.lists + later, first.closes + later)
            for ours, theirs in ((copy.absent, first.absent), (copy.one_sided, first.one_sided)):
                assert (ours and ours[0]) == (theirs and theirs[0] + later)
                assert (ours is None) == (theirs is None)
                assert ours is None or ours[1] > ours[0]


def test_an_edition_turns_out_otherwise_and_another_seed_otherwise_again(fixture: Season, year: Season) -> None:
    size = len(fixture.markets)

    def winners(season: Season, seed: int, number: int) -> list[int]:
        exchange = Exchange(season, seed)
        plain = (m for m in season.markets[number * size : number * size + 40] if m.resolution is ResolutionKind.PLAIN)
        return [exchange.winner(market) for market in plain]

    assert winners(year, 0, 0) == winners(fixture, 0, 0)
    assert winners(year, 0, 1) == winners(extend_season(fixture, 30), 0, 1)
    assert winners(year, 0, 0) != winners(year, 0, 1) != winners(year, 1, 1)


@contextmanager
def turned_to(addresses: Addresses, at: datetime) -> Iterator[httpx.Client]:
    with httpx.Client(timeout=30) as http:
        http.post(addresses.clock, json={"now": zulu(at)}).raise_for_status()
        yield http


def listed(addresses: Addresses, at: datetime) -> str:
    """The first page of what is open then."""
    with turned_to(addresses, at) as http:
        return http.get(f"{addresses.gamma}/markets/keyset", params={"limit": 100, "order": "volumeNum"}).text


def asked(addresses: Addresses, at: datetime) -> int:
    """How the model that is sometimes down answers then."""
    body = {"model": QWEN, "messages": [{"role": "user", "content": "hello"}]}
    with turned_to(addresses, at) as http:
        return http.post(f"{addresses.openrouter}/chat/completions", json=body).status_code


def test_a_running_sandbox_serves_weeks_beyond_the_fixture_and_the_same_ones_again(fixture: Season) -> None:
    late = fixture.starts + 13 * WEEK
    pages = []
    for _ in range(2):
        with running(seed=3, weeks=16) as addresses:
            pages.append(listed(addresses, late))
    assert pages[0] == pages[1]
    assert "(edition 3)" in pages[0]
    with running(seed=3) as addresses:
        assert listed(addresses, late) == '{"markets": []}'


def test_each_market_of_a_group_has_its_own_id(year: Season) -> None:
    group = max(year.events[: len(year.events) // 2], key=lambda event: len(event.markets))
    with running(weeks=52) as addresses, turned_to(addresses, group.markets[0].closes - WEEK) as http:
        for market in group.markets:
            row = http.get(f"{addresses.gamma}/markets/{market.id}").json()
            assert (row["id"], row["question"]) == (market.id, market.question)
            assert row["events"][0]["id"] == group.id
        assert http.get(f"{addresses.gamma}/markets/1").status_code == 404


def test_a_model_is_down_in_the_same_weeks_of_every_edition(fixture: Season) -> None:
    with running(weeks=16) as addresses:
        statuses = [asked(addresses, fixture.starts + week * WEEK) for week in range(16)]
    down = {1: 503, 3: 503}
    assert statuses == [down.get(week % 6, 200) for week in range(16)]
