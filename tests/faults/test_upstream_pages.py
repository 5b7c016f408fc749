"""Lists that repeat themselves or never end, rows that come twice, and broken rows that stand side by side."""

import itertools
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from werkzeug import Request, Response

from agents.models import Position
from cohorts.models import Methodology
from foundation.models import Alert, Run
from markets.models import Market, Outcome, PriceObservation
from markets.services.prices import update_prices
from tests.commands import SUNDAY, run
from tests.faults.entry_points import bought_all
from tests.faults.upstream import Fault, answering, faulty
from tests.sandbox import Venue

pytestmark = [
    pytest.mark.usefixtures("retries_without_waits"),
    pytest.mark.slow,
    pytest.mark.thorough,
    pytest.mark.each_database,
]

RAIN, CUP = "Will it rain?", "Lakers or Celtics?"
HOUR = timedelta(hours=1)
LATER = SUNDAY + 6 * HOUR


def sync_of(pages: list[Any], settings: Any) -> Any:
    """A sync from a Gamma that answers with these pages, one after the other."""
    answers = [
        answering(200, {"markets": rows} | ({"next_cursor": str(number)} if number < len(pages) else {}))
        for number, rows in enumerate(pages, start=1)
    ]
    with faulty(Fault(answers[-1]), *answers[:-1]) as upstream:
        settings.GAMMA_BASE_URL = upstream.url
        return run("sync_markets", LATER)


# ── what comes twice ──────────────────────────────────────────────────────────────────────────────

DEARER = {"outcomePrices": '["0.90", "0.10"]', "question": "Something else?"}
BROKEN = {"outcomes": "null"}
TWICE = {
    # rows of the market, page by page: (created, skipped)
    "twice in a page": ([[{}, {}]], 0),
    "on two pages": ([[{}], [{}]], 0),
    "a hundred times": ([[{}] * 100], 0),
    "with another price": ([[{}, DEARER]], 0),
    "with another price on the next page": ([[{}], [DEARER]], 0),
    "good, then broken": ([[{}, BROKEN]], 1),
    "broken, then good": ([[BROKEN], [{}]], 1),
    "with its id as a number": ([[{}, {"id": 901}]], 0),
}


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "known"])
@pytest.mark.parametrize("case", TWICE)
def test_market_that_comes_twice_is_taken_once_as_it_came_first(
    venue: Venue, settings: Any, case: str, is_known: bool
) -> None:
    pages, skipped = TWICE[case]
    row = venue.market(RAIN)
    if is_known:
        run("sync_markets", SUNDAY)
    ran = sync_of([[row | change for change in page] for page in pages], settings)
    assert (ran.code, ran["skipped"]) == (0, skipped)
    assert (ran["created"], ran["updated"]) == ((0, 1) if is_known else (1, 0))
    assert Market.objects.get().question == RAIN
    assert list(Outcome.objects.values_list("price", flat=True)) == [Decimal("0.40"), Decimal("0.60")]
    assert PriceObservation.objects.count() == 2


def test_catalogue_without_a_market_fails_the_sync(venue: Venue, settings: Any) -> None:
    ran = sync_of([[]], settings)
    assert (ran.code, ran["seen"], ran.stderr) == (1, 0, "gamma: no market was returned\n")


def test_token_that_comes_twice_in_a_row_costs_the_row(venue: Venue) -> None:
    venue.market(RAIN, clobTokenIds='["7", "7"]')
    venue.market(CUP)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["skipped"]) == (0, 1, 1)
    assert "skipped 901: clobTokenIds: two outcomes share a token" in Run.objects.get().log_texts


def test_token_that_two_markets_claim_is_believed_of_the_one_whose_catalogue_price_it_fits(venue: Venue) -> None:
    bought_all(venue, RAIN, CUP)
    Outcome.objects.filter(market__question=CUP, side="YES").update(token_id=venue.tokens(RAIN)[0], quote="0.80")
    venue.midpoints[venue.tokens(RAIN)[0]] = "0.42"
    venue.books.clear()
    ran = run("take_snapshots", LATER)
    assert (ran.code, ran["priced"], ran["fallback_prices"]) == (0, 1, 1)
    prices = Outcome.objects.filter(side="YES").order_by("pk").values_list("price", "price_stale")
    assert list(prices) == [(Decimal("0.42"), False), (Decimal("0.40"), True)]


def test_book_or_midpoint_that_stands_twice_counts_once(venue: Venue, settings: Any) -> None:
    bought_all(venue, RAIN)
    token = venue.tokens(RAIN)[0]
    book = {"asset_id": token, "bids": [{"price": "0.695"}], "asks": [{"price": "0.705"}]}
    midpoints = answering(200, f'{{"{token}": "0.10", "{token}": "0.70"}}'.encode())
    with faulty(Fault(answering(200, [book, book])), midpoints) as upstream:
        settings.CLOB_BASE_URL = upstream.url
        assert run("take_snapshots", LATER)["priced"] == 1
    assert Outcome.objects.get(side="YES").price == Decimal("0.70")


def test_two_that_mark_the_same_markets_at_once_record_each_price_once(venue: Venue) -> None:
    """Both have read the old price when the first one writes the new."""
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    Outcome.objects.filter(side="YES").update(quote="0.45", quote_at=LATER)
    one, second = (list(Market.objects.prefetch_related("outcomes")) for _ in range(2))
    for markets in (one, second):
        update_prices(markets, rule=Methodology.objects.current().price_rule, at=LATER, clob=None)
    assert PriceObservation.objects.filter(observed_at=LATER).count() == 2
    assert Outcome.objects.get(side="YES").price == Decimal("0.45")


def test_one_that_marked_by_what_it_read_before_leaves_its_verdict_on_record(venue: Venue) -> None:
    """What is stored and what was observed last never differ, in whatever order two processes write."""
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    before = list(Market.objects.prefetch_related("outcomes"))
    Outcome.objects.filter(side="YES").update(quote="0.45", quote_at=LATER)
    for markets in (list(Market.objects.prefetch_related("outcomes")), before):
        update_prices(markets, rule=Methodology.objects.current().price_rule, at=LATER, clob=None)
    last = PriceObservation.objects.filter(outcome__side="YES").order_by("pk").last()
    stored = Outcome.objects.get(side="YES")
    assert last is not None
    assert (stored.price, stored.price_stale) == (last.price, last.stale)


# ── what never ends ───────────────────────────────────────────────────────────────────────────────


def endless(venue: Venue, cursors: Iterator[Any], *, fresh: bool) -> None:
    """A catalogue whose every page has a cursor; its rows are new ones on each page, or for ever the same."""
    row = venue.market(RAIN)
    numbers = itertools.count(1)

    def page(request: Request) -> Response:
        number = next(numbers) if fresh else 1
        rows = [row | {"id": str(10 * number + place), "clobTokenIds": None} for place in range(3)]
        return Response(json.dumps({"markets": rows, "next_cursor": next(cursors)}))

    venue.server.clear()
    venue.server.expect_request("/gamma/markets/keyset").respond_with_handler(page)


@pytest.mark.parametrize(
    ("cursors", "pages", "message"),
    [
        (map(str, itertools.count(1)), 200, "the catalogue did not end within 200 pages"),
        (itertools.repeat("same"), 2, "the catalogue repeats its cursor 'same'"),
        (itertools.cycle(["a", "b"]), 3, "the catalogue repeats its cursor 'a'"),
        (itertools.repeat({"no": "cursor"}), 2, "the catalogue repeats its cursor"),
        (itertools.repeat("\0"), 2, "the catalogue repeats its cursor ''"),
        (itertools.repeat("\ud800\n\u2028"), 2, "the catalogue repeats its cursor"),
        (itertools.repeat("x" * 100_000), 1, "GET /markets/keyset could not be sent"),
    ],
    ids=["ever new", "the same", "in a circle", "no text", "NUL", "half a character", "endless itself"],
)
def test_catalogue_that_never_ends_keeps_its_rows_and_fails_in_one_line(
    venue: Venue, cursors: Iterator[Any], pages: int, message: str
) -> None:
    endless(venue, cursors, fresh=False)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["seen"]) == (1, 3, 3 * pages)
    assert ran.stderr.startswith(f"gamma: {message}")
    assert len(ran.stderr.strip().splitlines()) == 1


def test_catalogue_that_goes_on_and_on_is_left_when_there_is_enough(venue: Venue) -> None:
    Methodology.objects.update(universe_size=20)
    endless(venue, map(str, itertools.count(1)), fresh=True)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"]) == (0, 30)


def test_old_list_that_repeats_its_first_page_for_ever_is_given_up(venue: Venue) -> None:
    row = venue.market(RAIN)
    venue.server.clear()
    venue.server.expect_request("/gamma/markets").respond_with_json([row])
    venue.server.expect_request("/gamma/markets/keyset").respond_with_data("", status=404)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"]) == (1, 1)
    assert ran.stderr.strip() == "gamma: the catalogue did not end within 200 pages"


# ── broken rows side by side ──────────────────────────────────────────────────────────────────────


def test_markets_whose_look_ups_fail_keep_no_other_from_being_settled(venue: Venue, settings: Any) -> None:
    """Four broken ones in a row look like a venue that is down; the last of all tells that it is not."""
    questions = [f"Question {number}?" for number in range(8)]
    bought_all(venue, *questions)
    for question in questions:
        venue.resolve(question, "Yes")
    broken = {venue.row(questions[number])["id"] for number in (0, 1, 2, 3, 5)}

    def look_up(request: Request) -> Response:
        return (
            Response("", 500)
            if request.path.rsplit("/", 1)[1] in broken
            else venue.respond(request, request.path.replace("/odd", "/gamma"))
        )

    venue.server.expect_request(re.compile("^/odd/markets/")).respond_with_handler(look_up)
    settings.GAMMA_BASE_URL = venue.server.url_for("/odd")
    ran = run("check_resolutions", LATER)
    assert (ran.code, ran["resolved"]) == (1, 3)
    assert len(ran.stderr.strip().splitlines()) == 5
    assert Position.objects.open().count() == 5


def test_venue_that_fails_for_all_is_asked_about_four_and_named_in_four_lines(venue: Venue) -> None:
    bought_all(venue, *(f"Question {number}?" for number in range(20)))
    venue.down.add("gamma")
    venue.requests.clear()
    ran = run("check_resolutions", LATER)
    assert (ran.code, ran["checked"]) == (1, 0)
    assert len(set(venue.requests)) == 4
    lines = ran.stderr.strip().splitlines()
    assert len(lines) == 4
    assert lines[-1] == "gamma: gave up looking up markets, 16 not requested"


# ── many markets ──────────────────────────────────────────────────────────────────────────────────

MANY = [f"Question {number}?" for number in range(30)]


def bought_and_resolved(venue: Venue) -> None:
    """Positions on many markets, of which all but two resolve."""
    bought_all(venue, *MANY)
    for question in MANY[2:]:
        venue.resolve(question, "Yes")
    venue.requests.clear()


def test_many_markets_are_looked_up_by_one_request_for_each_status(venue: Venue) -> None:
    bought_and_resolved(venue)
    ran = run("check_resolutions", LATER)
    assert (ran.code, ran["checked"], ran["resolved"]) == (0, 30, 28)
    assert Position.objects.open().count() == 2
    assert venue.requests == ["GET /gamma/markets/keyset"] * 2


def test_market_that_the_list_lacks_or_breaks_is_looked_up_by_itself(venue: Venue) -> None:
    bought_and_resolved(venue)
    broken, removed_row = venue.row(MANY[5]), venue.row(MANY[6])
    broken["outcomes"] = "null"
    venue.gone.add(removed_row["id"])
    ran = run("check_resolutions", LATER)
    assert (ran["resolved"], Position.objects.open().count()) == (26, 4)
    assert venue.requests[2:] == [f"GET /gamma/markets/{row['id']}" for row in (broken, removed_row)]
    lines = "\n".join(Run.objects.latest("pk").log_texts)
    assert broken["id"] in lines
    assert f"market {removed_row['id']} no longer exists at its venue" in lines


@pytest.mark.parametrize("status", [200, 400, 500])
def test_venue_without_a_list_by_id_is_asked_for_each_market(venue: Venue, settings: Any, status: int) -> None:
    """One that ignores the ids answers with markets that nobody asked for."""
    bought_and_resolved(venue)
    other_market = venue.market("Another?")
    del venue.rows[other_market["id"]]

    def look_up(request: Request) -> Response:
        listed = request.path.endswith("/keyset")
        return (
            Response(json.dumps({"markets": [other_market]}), status)
            if listed
            else venue.respond(request, request.path.replace("/odd", "/gamma"))
        )

    venue.server.expect_request(re.compile("^/odd/markets/")).respond_with_handler(look_up)
    settings.GAMMA_BASE_URL = venue.server.url_for("/odd")
    ran = run("check_resolutions", LATER)
    assert (ran.code, ran["checked"], ran["resolved"]) == (0, 30, 28)
    assert not Market.objects.filter(question="Another?").exists()


# ── rows that close ───────────────────────────────────────────────────────────────────────────────

PRICELESS = {"absent": ..., "null": None, "no list": "n/a", "empty": "[]", "unreadable": '["-", "-"]'}


@pytest.mark.parametrize("prices", PRICELESS.values(), ids=PRICELESS)
def test_closed_row_without_prices_closes_its_market_at_the_last_price(venue: Venue, prices: Any) -> None:
    bought_all(venue, RAIN)
    venue.close(RAIN, status="resolved")
    row = venue.row(RAIN)
    if prices is ...:
        del row["outcomePrices"]
    else:
        row["outcomePrices"] = prices
    ran = run("sync_markets", LATER)
    assert (ran.code, ran["closed"], ran["skipped"]) == (0, 1, 0)
    assert list(Outcome.objects.values_list("price", "quote")) == [(Decimal("0.40"),) * 2, (Decimal("0.60"),) * 2]
    assert run("take_snapshots", LATER).code == 0
    waiting = run("check_resolutions", LATER)
    assert (waiting.code, waiting["waiting"], waiting["resolved"], waiting["cancelled"]) == (0, 1, 0, 0)
    assert "market 901 waits: a final price is missing" in Run.objects.latest("pk").log_texts
    run("check_resolutions", LATER + timedelta(hours=73))
    assert Alert.objects.get().kind == "closed-unresolved"
    row["outcomePrices"] = '["1", "0"]'
    assert run("check_resolutions", LATER + timedelta(hours=74))["resolved"] == 1


def test_priceless_row_that_was_never_seen_open_is_left_alone(venue: Venue, settings: Any) -> None:
    row = venue.market(RAIN, closed=True, outcomePrices=None)
    ran = sync_of([[row]], settings)
    assert (ran.code, ran["created"], ran["skipped"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("names", "prices", "resolved"),
    [
        (["Yes", "No"], ["1", "0"], 1),
        ([" YES", "no "], ["1", "0"], 1),
        (["It will", "It will not"], ["1", "0"], 1),
        (["No", "Yes"], ["0", "1"], 0),
        (["NO", "Maybe"], ["0", "1"], 0),
    ],
    ids=["as on record", "in other letters", "in other words", "in another order", "one in another place"],
)
def test_without_tokens_a_row_whose_names_changed_places_settles_nothing(
    venue: Venue, names: list[str], prices: list[str], resolved: int
) -> None:
    bought_all(venue, RAIN)
    venue.close(RAIN, *prices, status="resolved")
    venue.row(RAIN).update(outcomes=json.dumps(names), clobTokenIds=None)
    ran = run("check_resolutions", LATER)
    assert (ran["resolved"], Position.objects.open().count()) == (resolved, 1 - resolved)
    assert Outcome.objects.get(side="YES").quote == (1 if resolved else Decimal("0.40"))
