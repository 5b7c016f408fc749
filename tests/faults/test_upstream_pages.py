"""Lists that repeat themselves or never end, rows that come twice, and broken rows that stand side by side."""

import itertools
import json
import re
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

pytestmark = [pytest.mark.usefixtures("retries_without_waits"), pytest.mark.slow, pytest.mark.thorough]

RAIN, CUP = "Will it rain?", "Lakers or Celtics?"
HOUR = timedelta(hours=1)
LATER = SUNDAY + 6 * HOUR


# ── what comes twice ──────────────────────────────────────────────────────────────────────────────

DEARER = {"outcomePrices": '["0.90", "0.10"]', "question": "Something else?"}
BROKEN = {"outcomes": "null"}
TWICE: dict[str, tuple[list[Any], list[Any]]] = {
    # rows of a market on the first page and on the second
    "twice in a page": ([{}, {}], []),
    "on two pages": ([{}], [{}]),
    "a hundred times": ([{}] * 100, []),
    "with another price": ([{}, DEARER], []),
    "with another price on the next page": ([{}], [DEARER]),
    "good, then broken": ([{}, BROKEN], []),
    "broken, then good": ([BROKEN, {}], []),
}


def test_market_that_comes_twice_is_taken_once_as_it_came_first(venue: Venue, settings: Any) -> None:
    known = {f"{case}, known": rows for case, rows in TWICE.items()}
    for case in known:
        venue.market(case)
    run("sync_markets", SUNDAY)
    pages: tuple[list[Any], list[Any]] = ([], [])
    for case, rows in (known | TWICE).items():
        row = venue.row(case) if case in known else venue.market(case)
        for page, changes in zip(pages, rows, strict=True):
            page += [row | change for change in changes]
        pages[0].append(row | {"id": int(row["id"])})
    first, second = answering(200, {"markets": pages[0], "next_cursor": "2"}), answering(200, {"markets": pages[1]})
    with faulty(Fault(second), first) as upstream:
        settings.GAMMA_BASE_URL = upstream.url
        ran = run("sync_markets", LATER)
    assert (ran.code, ran["skipped"], ran["created"], ran["updated"]) == (0, 4, len(TWICE), len(TWICE))
    assert set(Market.objects.values_list("question", flat=True)) == {*TWICE, *known}
    assert set(Outcome.objects.values_list("side", "price")) == {("YES", Decimal("0.40")), ("NO", Decimal("0.60"))}
    assert PriceObservation.objects.count() == Outcome.objects.count()


def test_catalogue_without_a_market_fails_the_sync(venue: Venue) -> None:
    ran = run("sync_markets", LATER)
    assert (ran.code, ran["seen"], ran.stderr) == (1, 0, "gamma: no market was returned\n")


def test_token_that_two_markets_claim_is_believed_of_the_one_whose_catalogue_price_it_fits(venue: Venue) -> None:
    bought_all(venue, RAIN, CUP)
    Outcome.objects.filter(market__question=CUP, side="YES").update(token_id=venue.tokens(RAIN)[0], quote="0.80")
    venue.midpoints[venue.tokens(RAIN)[0]] = "0.42"
    venue.books.clear()
    ran = run("take_snapshots", LATER)
    assert (ran.code, ran["priced"], ran["fallback_prices"]) == (0, 1, 1)
    prices = Outcome.objects.filter(side="YES").order_by("pk").values_list("price", "price_stale")
    assert list(prices) == [(Decimal("0.42"), False), (Decimal("0.40"), True)]


@pytest.mark.each_database
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


@pytest.mark.each_database
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


def endless(venue: Venue, *, fresh: bool) -> None:
    """A catalogue whose every page has another cursor; its rows are new ones on each page, or for ever the same."""
    row = venue.market(RAIN)
    numbers = itertools.count(1)

    def page(request: Request) -> Response:
        number = next(numbers)
        first = 10 * number if fresh else 10
        rows = [row | {"id": str(first + place), "clobTokenIds": None} for place in range(3)]
        return Response(json.dumps({"markets": rows, "next_cursor": str(number % 50)}))

    venue.server.clear()
    venue.server.expect_request("/gamma/markets/keyset").respond_with_handler(page)


def test_catalogue_that_never_ends_keeps_its_rows_and_fails_in_one_line(venue: Venue) -> None:
    endless(venue, fresh=False)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["seen"]) == (1, 3, 3 * 51)
    assert ran.stderr == "gamma: the catalogue repeats its cursor '1'\n"


def test_catalogue_that_goes_on_and_on_is_left_when_there_is_enough(venue: Venue) -> None:
    Methodology.objects.update(universe_size=20)
    endless(venue, fresh=True)
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"]) == (0, 30)


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


def test_many_markets_are_looked_up_by_one_request_for_each_status_and_by_themselves_where_it_fails(
    venue: Venue,
) -> None:
    bought_and_resolved(venue)
    broken, removed_row = venue.row(MANY[5]), venue.row(MANY[6])
    broken["outcomes"] = "null"
    venue.gone.add(removed_row["id"])
    ran = run("check_resolutions", LATER)
    assert (ran["resolved"], Position.objects.open().count()) == (26, 4)
    single = [f"GET /gamma/markets/{row['id']}" for row in (broken, removed_row)]
    assert venue.requests == ["GET /gamma/markets/keyset"] * 2 + single
    lines = "\n".join(Run.objects.latest("pk").log_texts)
    assert broken["id"] in lines
    assert f"market {removed_row['id']} no longer exists at its venue" in lines


@pytest.mark.parametrize("status", [200, 500])
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


def test_closed_row_without_prices_closes_its_market_at_the_last_price(venue: Venue) -> None:
    bought_all(venue, RAIN)
    venue.close(RAIN, status="resolved")
    row = venue.row(RAIN)
    row["outcomePrices"] = '["-", "-"]'
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


def test_market_whose_names_changed_places_without_tokens_waits_for_a_person(venue: Venue) -> None:
    bought_all(venue, RAIN)
    venue.close(RAIN, "0", "1", status="resolved")
    venue.row(RAIN).update(outcomes='["No", "Yes"]', clobTokenIds=None)
    ran = run("check_resolutions", LATER)
    assert (ran.code, ran["resolved"], ran["waiting"]) == (0, 0, 1)
    assert (Position.objects.open().count(), Outcome.objects.get(side="YES").quote) == (1, Decimal("0.40"))
    assert any("waits: its outcomes have changed places" in line for line in Run.objects.latest("pk").log_texts)
