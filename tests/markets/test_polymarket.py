"""Gamma and the CLOB over HTTP: walking the catalogue, pricing tokens, and rows that are not what they should be."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from foundation.http import UpstreamError
from markets.sources.base import CataloguePage, SkippedMarket, TopOfBook, VenueMarket
from markets.sources.polymarket import Clob, Gamma, WinningToken
from markets.sources.polymarket.parsing import parse_event, parse_market

pytestmark = pytest.mark.usefixtures("retries_without_waits")


def raw(**fields: Any) -> dict[str, Any]:
    """A market as Gamma sends it; a field given as ... is left out."""
    market: dict[str, Any] = {
        "id": "1204",
        "question": "Will it rain?",
        "outcomes": '["Yes", "No"]',
        "outcomePrices": '["0.43", "0.57"]',
        "clobTokenIds": '["71", "52"]',
        "active": True,
        "closed": False,
    }
    return {key: value for key, value in (market | fields).items() if value is not ...}


def row(**fields: Any) -> VenueMarket:
    parsed = parse_market(raw(**fields), "row 1")
    assert isinstance(parsed, VenueMarket), parsed
    return parsed


def skipped(**fields: Any) -> SkippedMarket:
    parsed = parse_market(raw(**fields), "row 1")
    assert isinstance(parsed, SkippedMarket), parsed
    return parsed


@pytest.fixture
def gamma(httpserver: HTTPServer) -> Iterator[Gamma]:
    with Gamma(httpserver.url_for("/"), timeout_s=5) as gamma:
        yield gamma


@pytest.fixture
def clob(httpserver: HTTPServer) -> Iterator[Clob]:
    with Clob(httpserver.url_for("/"), timeout_s=5, retries=1) as clob:
        yield clob


def ids(pages: list[CataloguePage]) -> list[str]:
    return [row.external_id for page in pages for row in page.rows]


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────


def test_catalogue_follows_the_cursor_to_the_page_that_has_none(httpserver: HTTPServer, gamma: Gamma) -> None:
    def page(request: Request) -> Response:
        following = {None: ("1", "c1"), "c1": ("2", "c2"), "c2": ("3", None)}
        market, cursor = following[request.args.get("after_cursor")]
        body = {"$schema": "x", "markets": [raw(id=market)]} | ({"next_cursor": cursor} if cursor else {})
        return Response(json.dumps(body))

    httpserver.expect_request("/markets/keyset").respond_with_handler(page)
    pages = list(gamma.catalogue(page_limit=500))
    assert ids(pages) == ["1", "2", "3"]
    assert [page.cursor for page in pages] == ["c1", "c2", None]
    first = httpserver.log[0][0].args
    assert (first["limit"], first["order"], first["ascending"], first["closed"]) == (
        "100",
        "volumeNum",
        "false",
        "false",
    )


def test_catalogue_asks_for_no_page_that_nobody_wants(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_json({"markets": [raw()], "next_cursor": "c"})
    assert ids([next(gamma.catalogue())]) == ["1204"]
    assert len(httpserver.log) == 1


def test_malformed_rows_are_skipped_by_name_and_the_others_stay(httpserver: HTTPServer, gamma: Gamma) -> None:
    rows = [raw(id="1"), raw(id="2", outcomes="null"), raw(id=...), "rubbish", raw(id=5)]
    httpserver.expect_request("/markets/keyset").respond_with_json({"markets": rows})
    (page,) = gamma.catalogue()
    assert ids([page]) == ["1", "5"]
    assert page.skipped == (
        SkippedMarket("2", "outcomes: 'null' is not a list"),
        SkippedMarket("first page, row 3", "no id"),
        SkippedMarket("first page, row 4", "'rubbish' is not a market"),
    )


@pytest.mark.parametrize("answer", ["{}", '{"markets": "none"}', "17", '"[]"'])
def test_page_that_is_no_page_is_an_error(httpserver: HTTPServer, gamma: Gamma, answer: str) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_data(answer)
    with pytest.raises(UpstreamError, match="gamma: GET /markets/keyset answered no list of markets"):
        list(gamma.catalogue())


@pytest.mark.parametrize(
    ("status", "message"), [(404, "not found"), (405, "no"), (503, "keyset pagination is not configured")]
)
def test_without_keyset_the_old_list_is_walked_until_it_is_empty(
    httpserver: HTTPServer, gamma: Gamma, status: int, message: str
) -> None:
    def page(request: Request) -> Response:
        offset = int(request.args["offset"])
        return Response(json.dumps([raw(id=n) for n in (1, 2, 3)[offset : offset + 2]]))

    httpserver.expect_request("/markets/keyset").respond_with_json({"error": message}, status=status)
    httpserver.expect_request("/markets").respond_with_handler(page)
    pages = list(gamma.catalogue())
    assert ids(pages) == ["1", "2", "3"]
    assert [page.cursor for page in pages] == ["2", "3", None]


def test_old_list_ends_where_it_may_not_be_walked_deeper(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_data("", status=404)
    httpserver.expect_request("/markets", query_string={**QUERY, "offset": "0"}).respond_with_json([raw()])
    httpserver.expect_request("/markets").respond_with_json({"error": "offset too large"}, status=422)
    assert ids(list(gamma.catalogue())) == ["1204"]


QUERY = {"limit": "100", "order": "volumeNum", "ascending": "false", "closed": "false", "include_tag": "true"}


@pytest.mark.parametrize(("status", "message"), [(503, "try later"), (500, "oops"), (422, "order not valid")])
def test_other_failures_of_keyset_are_failures(httpserver: HTTPServer, gamma: Gamma, status: int, message: str) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_json({"error": message}, status=status)
    httpserver.expect_request("/markets").respond_with_json([raw()])
    with pytest.raises(UpstreamError, match=message):
        list(gamma.catalogue())


@pytest.mark.parametrize(
    ("cursors", "pages", "message"),
    [
        (map(str, itertools.count(1)), 20, "the catalogue did not end within 20 pages"),
        (itertools.repeat("same"), 2, "the catalogue repeats its cursor 'same'"),
        (itertools.cycle(["a", "b"]), 3, "the catalogue repeats its cursor 'a'"),
        (itertools.repeat({"no": "cursor"}), 2, "the catalogue repeats its cursor"),
        (itertools.repeat("\0"), 2, "the catalogue repeats its cursor ''"),
        (itertools.repeat("\ud800\n\u2028"), 2, "the catalogue repeats its cursor"),
        (itertools.repeat("x" * 100_000), 1, "GET /markets/keyset could not be sent"),
    ],
    ids=["ever new", "the same", "in a circle", "no text", "NUL", "half a character", "endless itself"],
)
def test_catalogue_that_never_ends_is_given_up(
    httpserver: HTTPServer, gamma: Gamma, cursors: Iterator[Any], pages: int, message: str
) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_handler(
        lambda _: Response(json.dumps({"markets": [raw()], "next_cursor": next(cursors)}))
    )
    walked: list[CataloguePage] = []
    with pytest.raises(UpstreamError) as caught:
        walked.extend(gamma.catalogue(max_pages=20))
    assert caught.value.reason.startswith(message)
    assert len(walked) == pages


def test_old_list_that_repeats_its_first_page_is_given_up(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/keyset").respond_with_data("", status=404)
    httpserver.expect_request("/markets").respond_with_json([raw()])
    with pytest.raises(UpstreamError, match="the catalogue did not end within 20 pages"):
        list(gamma.catalogue(max_pages=20))


def test_market_is_found_by_id(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/1204").respond_with_json(raw(closed=True))
    market = gamma.market("1204")
    assert isinstance(market, VenueMarket)
    assert market.closed


@pytest.mark.parametrize("status", [404, 422])
def test_unknown_market_is_none(httpserver: HTTPServer, gamma: Gamma, status: int) -> None:
    httpserver.expect_request("/markets/9").respond_with_json({"error": "id is invalid"}, status=status)
    assert gamma.market("9") is None


def test_market_that_is_another_is_not_taken_for_it(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/9").respond_with_json(raw())
    assert gamma.market("9") == SkippedMarket("9", "answered with another market, 1204")


@contextmanager
def keyset_server(answer: Callable[[Request], Response]) -> Iterator[Gamma]:
    """A client of a server that answers several lists by id at a time."""
    with HTTPServer(threaded=True) as server:
        server.expect_request("/markets/keyset").respond_with_handler(answer)
        with Gamma(server.url_for("/"), timeout_s=5) as gamma:
            yield gamma


def test_many_markets_are_listed_by_their_ids_several_lists_at_a_time() -> None:
    ids, together = [str(number) for number in range(1000, 1350)], Barrier(4)

    def answer(request: Request) -> Response:
        ids_in_request, closed = request.args.getlist("id"), request.args["closed"] == "true"
        if not closed:
            together.wait(timeout=4)  # until all four batches are under way
        rows = [raw(id=key, closed=closed) for key in (*ids_in_request, "7") if closed == (int(key) % 2 == 0)]
        return Response(json.dumps({"markets": rows}))

    with keyset_server(answer) as gamma:
        markets = gamma.markets(ids)
    assert sorted(markets) == ids  # "7" was not looked up
    assert [markets[key].closed for key in ids[:2]] == [True, False]


def test_after_a_refused_list_no_further_one_is_requested() -> None:
    requests: list[str] = []

    def refuse(request: Request) -> Response:
        requests.append(request.args["closed"])
        return Response("no", 400)

    with keyset_server(refuse) as gamma, pytest.raises(UpstreamError, match="400"):
        gamma.markets([str(number) for number in range(10_000)])
    assert 1 <= len(requests) < 50  # of a hundred lists


def test_id_can_not_reach_another_path(httpserver: HTTPServer, gamma: Gamma) -> None:
    httpserver.expect_request("/markets/../events").respond_with_data("", status=404)
    assert gamma.market("../events") is None
    assert httpserver.log[0][0].environ["REQUEST_URI"].startswith("/markets/..%2Fevents?")


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def test_row_holds_what_gamma_said() -> None:
    full = row(
        conditionId="0xabc",
        slug="rain",
        description="Line one.\r\nLine two.\x00",
        category=" Weather ",
        events=[{"id": 77, "title": "Storms"}],
        volume="1.5",
        volumeNum=Decimal("1834211.25"),
        liquidity="12.5",
        endDate="2026-06-30T00:00:00Z",
        createdAt="2026-01-02T03:04:05.678901Z",
        bestBid=Decimal("0.42"),
        bestAsk=Decimal("0.44"),
        umaResolutionStatus="Proposed",
    )
    yes, no = full.outcomes
    assert (yes.index, yes.name, yes.token_id, yes.price) == (0, "Yes", "71", Decimal("0.43"))
    assert (no.index, no.name, no.token_id, no.price) == (1, "No", "52", Decimal("0.57"))
    assert (yes.bid, yes.ask) == (Decimal("0.42"), Decimal("0.44"))
    assert (no.bid, no.ask) == (Decimal("0.56"), Decimal("0.58"))
    assert (full.condition_id, full.slug, full.category) == ("0xabc", "rain", "Weather")
    assert full.description == "Line one.\nLine two."
    assert (full.event_id, full.event_title) == ("77", "Storms")
    assert (full.volume, full.liquidity) == (Decimal("1834211.25"), Decimal("12.5"))
    assert full.closes_at == datetime(2026, 6, 30, tzinfo=UTC)
    assert full.created_at == datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    assert full.oracle_status == "proposed"
    assert full.is_open


def test_bare_row_is_a_row() -> None:
    bare = row(clobTokenIds=..., active=..., closed=...)
    assert [outcome.token_id for outcome in bare.outcomes] == [None, None]
    assert (bare.is_open, bare.closes_at, bare.category, bare.volume) == (True, None, "", Decimal(0))
    assert (bare.liquidity, bare.oracle_status, bare.event_id, bare.created_at) == (None, None, None, None)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"id": ...}, "no id"),
        ({"id": " "}, "no id"),
        ({"id": True}, "no id"),
        ({"id": "9" * 121}, "no id"),
        ({"question": ...}, "no question"),
        ({"question": "\x00 \n"}, "no question"),
        ({"question": ["Will it?"]}, "no question"),
        ({"outcomes": ...}, "outcomes: missing"),
        ({"outcomes": None}, "outcomes: missing"),
        ({"outcomes": "null"}, "outcomes: 'null' is not a list"),
        ({"outcomes": "Yes, No"}, "outcomes: 'Yes, No' is not a list"),
        ({"outcomes": '"Yes"'}, "outcomes: '\"Yes\"' is not a list"),
        ({"outcomes": {"Yes": 1}}, "outcomes: {'Yes': 1} is not a list"),
        ({"outcomes": ["Yes"]}, "outcomes: fewer than two in ['Yes']"),
        ({"outcomes": ["Yes", " Yes"]}, "outcomes: a name twice in ['Yes', ' Yes']"),
        ({"outcomes": ["Yes", ""]}, "outcomes: an empty or endless name in ['Yes', '']"),
        ({"outcomes": ["Yes", None]}, "outcomes: an empty or endless name in ['Yes', None]"),
        ({"outcomePrices": ...}, "outcomePrices: missing"),
        ({"outcomePrices": None}, "outcomePrices: missing"),
        ({"outcomePrices": "0.5"}, "outcomePrices: '0.5' is not a list"),
        ({"outcomePrices": ["NaN", "2"]}, "outcomePrices: none usable in ['NaN', '2']"),
        ({"outcomePrices": []}, "outcomePrices: none usable in []"),
        ({"outcomePrices": ["1"]}, "lengths disagree: 2 outcomes, 1 outcomePrices, 2 clobTokenIds"),
        ({"clobTokenIds": ["1"]}, "lengths disagree: 2 outcomes, 2 outcomePrices, 1 clobTokenIds"),
        ({"clobTokenIds": ["1", "1"]}, "clobTokenIds: two outcomes share a token"),
        ({"version": "v2", "positionIds": ["1"]}, "lengths disagree: 2 outcomes, 2 outcomePrices, 1 positionIds"),
        ({"version": "v2", "positionIds": ["1", "1"]}, "positionIds: two outcomes share a token"),
        ({"version": "v3"}, "version: 'v3' is unknown"),
        ({"version": ""}, "version: '' is unknown"),
        ({"version": 3}, "version: 3 is unknown"),
        ({"version": True}, "version: True is unknown"),
        ({"closed": "maybe"}, "closed: 'maybe' is neither true nor false"),
        ({"active": False}, "placeholder: neither active nor closed"),
        ({"active": False, "closed": ..., "outcomePrices": ...}, "placeholder: neither active nor closed"),
    ],
)
def test_unusable_row_is_skipped_and_says_why(fields: dict[str, Any], reason: str) -> None:
    assert skipped(**fields).reason == reason


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({}, ["71", "52"]),
        ({"version": None}, ["71", "52"]),
        ({"version": "v1", "positionIds": ["8", "9"]}, ["71", "52"]),
        ({"version": "v2", "positionIds": ["8", "9"]}, ["8", "9"]),
        ({"version": 2, "positionIds": ["8", "9"]}, ["8", "9"]),
        ({"version": "2", "positionIds": ["8", "9"]}, ["8", "9"]),
        ({"version": "V2", "positionIds": ["8", "9"], "clobTokenIds": ...}, ["8", "9"]),
        ({"version": "v2"}, [None, None]),
    ],
)
def test_token_ids_are_chosen_by_version_not_by_presence(fields: dict[str, Any], tokens: list[str | None]) -> None:
    assert [outcome.token_id for outcome in row(**fields).outcomes] == tokens


@pytest.mark.parametrize("value", ["", "x", "NaN", "Infinity", "1.01", "-0.1", None, True, [], "0.5.5", "٠.٥", "1_0"])
def test_one_bad_price_costs_only_its_outcome(value: object) -> None:
    assert [side.price for side in row(outcomePrices=[value, "0.57"]).outcomes] == [None, Decimal("0.57")]


@pytest.mark.parametrize("prices", [..., None, "n/a", "[]", '["-", "-"]'])
def test_closed_row_needs_no_prices(prices: Any) -> None:
    assert [side.price for side in row(closed=True, outcomePrices=prices).outcomes] == [None, None]


def test_prices_are_exact_in_every_form() -> None:
    assert [side.price for side in row(outcomePrices=[0, Decimal("0.30")]).outcomes] == [0, Decimal("0.30")]
    assert row(outcomePrices=[0.1, 0.9]).outcomes[0].price == Decimal("0.1")
    residue = "0.0000007842500518538720444181103088163532"
    price = row(outcomePrices=[residue, "1"], closed=True).outcomes[0].price
    assert price is not None
    assert f"{price:f}" == residue


@pytest.mark.parametrize(
    ("fields", "is_open"),
    [
        ({"closed": "true"}, False),
        ({"closed": "False"}, True),
        ({"closed": ...}, True),
        ({"closed": None}, True),
        ({"acceptingOrders": False}, False),
        ({"acceptingOrders": "false"}, False),
        ({"acceptingOrders": True, "enableOrderBook": False}, True),
        ({"enableOrderBook": False}, False),
        ({"acceptingOrders": "perhaps"}, True),
    ],
)
def test_open_is_what_is_neither_closed_nor_refuses_orders(fields: dict[str, Any], is_open: bool) -> None:
    assert row(**fields).is_open is is_open


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-06-04 00:34:19+00", datetime(2026, 6, 4, 0, 34, 19, tzinfo=UTC)),
        ("2026-06-04T00:34:19.123456789Z", datetime(2026, 6, 4, 0, 34, 19, 123456, tzinfo=UTC)),
        ("2026-06-04T02:34:19.5+02:00", datetime(2026, 6, 4, 0, 34, 19, 500000, tzinfo=UTC)),
        ("2026-06-04T00:00:00+00:00:00", datetime(2026, 6, 4, tzinfo=UTC)),
        ("2026-06-04", datetime(2026, 6, 4, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59-05:00", None),
        ("soon", None),
        ("", None),
        (1780000000, None),
        (None, None),
    ],
)
def test_times_are_read_in_every_form_or_are_none(text: object, expected: datetime | None) -> None:
    assert row(endDate=text).closes_at == expected


@pytest.mark.parametrize(
    ("fields", "category"),
    [
        ({"tags": [{"label": "All"}, {"label": "", "slug": "economy"}]}, "economy"),
        ({"category": "Art", "tags": [{"label": "Chess"}]}, "Art"),
        ({"events": [{"tags": [{"label": "EPL"}], "category": "Sports"}]}, "EPL"),
        ({"events": [{"category": "Sports"}]}, "Sports"),
        ({"tags": ["Crypto", 7]}, "Crypto"),
        ({"tags": "Crypto", "events": "none"}, ""),
        ({"category": "x" * 500}, "x" * 120),
    ],
)
def test_category_is_the_rows_own_or_its_tags_or_its_events(fields: dict[str, Any], category: str) -> None:
    assert row(**fields).category == category


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"umaResolutionStatus": "resolved", "umaResolutionStatuses": '["disputed"]'}, "resolved"),
        ({"umaResolutionStatuses": '["proposed", "Disputed"]'}, "disputed"),
        ({"umaResolutionStatuses": "[]"}, None),
        ({"umaResolutionStatuses": "rubbish", "umaResolutionStatus": None}, None),
    ],
)
def test_oracle_status_falls_back_to_its_history(fields: dict[str, Any], status: str | None) -> None:
    assert row(**fields).oracle_status == status


STARTED = {"gameStartTime": "2026-03-07 17:00:00+00", "events": [{"id": "9", "ended": None, "live": False}]}
PINNED = {"outcomePrices": '["0.001", "0.999"]', "bestBid": None, "bestAsk": 0.001}


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"umaResolutionStatus": "proposed", "umaResolutionStatuses": '["proposed"]'}, "the oracle says proposed"),
        ({"umaResolutionStatus": "disputed"}, "the oracle says disputed"),
        ({"umaResolutionStatuses": '["proposed", "disputed"]'}, "the oracle says disputed"),
        ({"events": [{"id": "9", "ended": True}]}, "over by its venue's word"),
        ({"ended": True}, "over by its venue's word"),
        (STARTED | PINNED, "started, and its prices are final"),
        (STARTED, ""),
        (PINNED, ""),
        ({"umaResolutionStatus": ""}, ""),
        ({"umaResolutionStatus": "resolved", "closed": True}, ""),
    ],
)
def test_answer_of_an_open_market_is_public_by_its_oracle_its_venue_or_its_price(
    fields: dict[str, Any], reason: str
) -> None:
    assert row(**fields).public_answer(datetime(2026, 3, 8, tzinfo=UTC)) == reason


@pytest.mark.parametrize("blank", ["|| Count ||", "{{count}}", "[date]", "<<team>>"])
def test_template_with_a_blank_is_no_question_of_an_open_market_and_no_rules(blank: str) -> None:
    excluded = skipped(question=f"Will {blank} happen?")
    assert (excluded.reason, excluded.excluded) == ("question: a template with an unfilled blank", True)
    assert row(question=f"Will {blank} happen?", closed=True).question == ""
    assert row(description=f"Resolves by {blank}.", groupItemTitle=blank).description == ""


@pytest.mark.parametrize(
    ("fields", "volume"),
    [
        ({"volume": "12.5"}, "12.5"),
        ({"volumeNum": 0, "volume": "9"}, "0"),
        ({"volumeNum": "NaN", "volume": "9"}, "9"),
        ({"volumeNum": "-1"}, "0"),
        ({"volumeNum": "1e99"}, "0"),
        ({"volumeNum": math.nan, "volume": "9"}, "9"),
        ({"volumeNum": "9" * 5000, "volume": "9"}, "9"),
        ({"volumeNum": Decimal("0." + "3" * 5000), "volume": "9"}, "9"),
    ],
)
def test_volume_is_a_sane_amount_or_zero(fields: dict[str, Any], volume: str) -> None:
    assert row(**fields).volume == Decimal(volume)


def test_text_from_outside_stays_on_its_line() -> None:
    market = row(question=" Will\nMARKETS\u2028\x00[1] \ud800win? ", outcomes=["Yes\x07", 2024])
    assert market.question == "Will MARKETS [1] \ufffdwin?"
    assert [outcome.name for outcome in market.outcomes] == ["Yes", "2024"]


def test_only_two_outcomes_mirror_their_quotes() -> None:
    three = row(outcomes=["A", "B", "C"], outcomePrices=["0.2", "0.3", "0.5"], clobTokenIds=[], bestBid="0.1")
    assert [(side.bid, side.ask) for side in three.outcomes] == [(Decimal("0.1"), None), (None, None), (None, None)]


def test_event_hands_its_name_and_tags_to_its_markets() -> None:
    event = {
        "id": "9",
        "title": "Cup",
        "tags": [{"label": "Soccer"}],
        "markets": [raw(), raw(id=None), raw(active=False)],
    }
    first, second, third = parse_event(event)
    assert isinstance(first, VenueMarket)
    assert (first.event_id, first.event_title, first.category) == ("9", "Cup", "Soccer")
    assert second == SkippedMarket("9, market 2", "no id")
    assert third == SkippedMarket("1204", "placeholder: neither active nor closed", excluded=True)
    assert parse_event({"id": 3}) == [SkippedMarket("3", "markets: None is not a list")]
    assert parse_event("x", "row 4") == [SkippedMarket("row 4", "'x' is not an event")]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["[1]", "null", "{}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from([*raw(), "events", "tags", "endDate", "volume", "bestBid"]), JSON, max_size=4))
def test_no_json_crashes_the_parser(fields: dict[str, Any]) -> None:
    parsed = parse_market(raw() | fields, "row 1")
    assert isinstance(parsed, VenueMarket | SkippedMarket)
    if isinstance(parsed, VenueMarket):
        assert any(outcome.price is not None for outcome in parsed.outcomes)


# ── the order book ────────────────────────────────────────────────────────────────────────────────


def test_midpoints_come_in_batches_and_bad_ones_are_named(httpserver: HTTPServer, clob: Clob) -> None:
    def answer(request: Request) -> Response:
        tokens = [one["token_id"] for one in request.json]
        odd = {"1": "NaN", "2": "1.5", "3": True, "4": None, "5": 0.25}
        return Response(json.dumps({t: odd.get(t, "0.0655") for t in tokens if t != "6"}))

    httpserver.expect_request("/midpoints", method="POST").respond_with_handler(answer)
    midpoints = clob.midpoints([str(n) for n in (*range(1, 1102), 1)])
    assert [len(request.json) for request, _ in httpserver.log] == [500, 500, 101]
    assert midpoints.failed == []
    assert midpoints.rejected == {
        "1": "midpoint: 'NaN' is not a number",
        "2": "midpoint: '1.5' is outside [0, 1]",
        "3": "midpoint: True is not a number",
        "4": "midpoint: None is not a number",
        "6": "no midpoint in the answer",
    }
    assert (midpoints.values["5"], midpoints.values["1101"], len(midpoints.values)) == (
        Decimal("0.25"),
        Decimal("0.0655"),
        1096,
    )


def test_failed_batch_costs_no_other_batch_its_prices(httpserver: HTTPServer, clob: Clob) -> None:
    def answer(request: Request) -> Response:
        tokens = [one["token_id"] for one in request.json]
        return Response("", status=500) if "0" in tokens else Response(json.dumps(dict.fromkeys(tokens, "0.5")))

    httpserver.expect_request("/midpoints", method="POST").respond_with_handler(answer)
    midpoints = clob.midpoints(map(str, range(501)))
    assert midpoints.values == {"500": Decimal("0.5")}
    assert midpoints.failed == ["clob: POST /midpoints answered 500: no message (500 tokens)"]


@pytest.mark.parametrize("status", [400, 404, 405])
def test_without_the_batch_tokens_are_asked_one_by_one(httpserver: HTTPServer, clob: Clob, status: int) -> None:
    httpserver.expect_request("/midpoints", method="POST").respond_with_data("", status=status)
    httpserver.expect_request("/midpoint", query_string="token_id=1").respond_with_json({"mid": "0.0005"})
    httpserver.expect_request("/midpoint", query_string="token_id=2").respond_with_json({"mid_price": "0.4"})
    httpserver.expect_request("/midpoint", query_string="token_id=3").respond_with_json(
        {"error": "No orderbook exists for the requested token id"}, status=404
    )
    midpoints = clob.midpoints(["1", "2", "3"])
    assert midpoints.values == {"1": Decimal("0.0005"), "2": Decimal("0.4")}
    assert midpoints.rejected == {"3": "GET /midpoint answered 404: No orderbook exists for the requested token id"}


def test_asking_one_by_one_ends_when_the_service_is_down(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/midpoints", method="POST").respond_with_data("", status=405)
    httpserver.expect_request("/midpoint").respond_with_data("", status=502)
    midpoints = clob.midpoints(map(str, range(100)))
    assert len(httpserver.log) == 1 + 3 * 2  # the batch, then three tokens, each tried twice
    assert midpoints.failed[-1] == "clob: GET /midpoint failed 3 times: 97 tokens not asked"


def test_answer_of_another_form_is_a_failure(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/midpoints", method="POST").respond_with_json([])
    assert clob.midpoints(["1"]).failed == ["clob: POST /midpoints answered [] (1 tokens)"]


def test_no_tokens_make_no_request(httpserver: HTTPServer, clob: Clob) -> None:
    assert clob.midpoints([]).values == clob.books([]).values == {}
    assert httpserver.log == []


def level(price: str, size: str = "5") -> dict[str, str]:
    return {"price": price, "size": size}


def test_best_of_a_book_is_the_best_in_any_order(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/books", method="POST").respond_with_json(
        [
            {"asset_id": "2", "bids": [], "asks": [level("0.9"), level("0.001")]},
            {
                "asset_id": "1",
                "bids": [level("0.1"), level("0.4"), level("0.45", "0")],
                "asks": [level("0.5"), level("0.7")],
            },
            {"asset_id": "2", "bids": [], "asks": [level("0.001")]},
            {"asset_id": "3", "bids": [level("7")]},
            {"asset_id": "4", "bids": "many"},
            "rubbish",
        ]
    )
    books = clob.books(["1", "2", "3", "4", "5"])
    assert books.values == {
        "1": TopOfBook("1", Decimal("0.4"), Decimal("0.5")),
        "2": TopOfBook("2", None, Decimal("0.001")),
    }
    assert books.rejected == {
        "3": "book: '7' is outside [0, 1]",
        "4": "book: bids 'many' is not a list of levels",
        "5": "no book in the answer",
    }


def test_books_fall_back_to_single_ones(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/books", method="POST").respond_with_data("", status=404)
    httpserver.expect_request("/book", query_string="token_id=1").respond_with_json(
        {"bids": [level("0.2")], "asks": None}
    )
    assert clob.books(["1"]).values == {"1": TopOfBook("1", Decimal("0.2"), None)}


@pytest.mark.parametrize(
    ("flags", "winner"),
    [
        ([True, False], WinningToken("11", "Lakers")),
        ([False, "true"], WinningToken("22", "Celtics")),
        ([False, False], None),
        ([True, True], None),
        ([1, None], None),
    ],
)
def test_winner_is_the_only_flag(
    httpserver: HTTPServer, clob: Clob, flags: list[object], winner: WinningToken | None
) -> None:
    tokens = [
        {"token_id": 11, "outcome": "Lakers", "winner": flags[0]},
        {"token_id": "22", "outcome": "Celtics", "winner": flags[1]},
    ]
    httpserver.expect_request("/markets/0xabc").respond_with_json({"tokens": tokens})
    assert clob.winner("0xabc") == winner


def test_unknown_or_nameless_market_has_no_winner(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/markets/0xabc").respond_with_json({"error": "market not found"}, status=404)
    assert clob.winner("0xabc") is None
    assert clob.winner("") is None


def test_market_without_tokens_is_an_error(httpserver: HTTPServer, clob: Clob) -> None:
    httpserver.expect_request("/markets/0xabc").respond_with_json({"tokens": "none"})
    with pytest.raises(UpstreamError, match="clob: GET /markets/0xabc answered no list of tokens"):
        clob.winner("0xabc")
