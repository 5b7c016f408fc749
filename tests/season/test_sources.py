"""Two venues side by side through the commands: Kalshi's markets are taken in, priced and ended, and its failures
are its own.
"""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import stamina

from cohorts.models import Methodology
from foundation.models import Alert, Run
from markets.models import Market, Outcome, PriceObservation, Universe
from markets.services import sync
from markets.sources.kalshi import client as kalshi_client
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.faults.upstream import TINY_TIMEOUT_S, misbehaving, silent
from tests.sandbox import Kalshi, Venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN, PREMIER = "Will it rain?", "Who will be the next premier?"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def at_kalshi(option: str) -> Market:
    return Market.objects.get(source="kalshi", option=option)


def yes(option: str) -> Outcome:
    return Outcome.objects.get(market__source="kalshi", market__option=option, side="YES")


def ask_about(*options: str) -> None:
    """As if a question stood on these markets."""
    assert Market.objects.filter(source="kalshi", option__in=options).update(has_questions=True) == len(options)


# ── the catalogue ─────────────────────────────────────────────────────────────────────────────────


def test_both_venues_are_taken_in(venue: Venue, kalshi: Kalshi) -> None:
    venue.market(RAIN)
    kalshi.event(PREMIER, "Ann", "Bo", volume=700)
    kalshi.event("Who wins the cup?", "Foxes", exclusive=False)
    kalshi.event("Will the bridge open?")
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["seen"], ran["created"], ran["skipped"]) == (0, 5, 5, 0)
    assert run("sync_markets", SUNDAY)["updated"] == 5
    ann = at_kalshi("Ann")
    assert (ann.kind, ann.event_id, ann.event_title, ann.event_exclusive) == ("binary", "KX1", PREMIER, True)
    assert (ann.category, ann.volume) == ("Politics", Decimal(700))
    assert at_kalshi("Foxes").event_exclusive is False
    quoted = yes("Ann")
    assert (quoted.price, quoted.bid, quoted.ask) == (Decimal("0.40"), Decimal("0.39"), Decimal("0.41"))
    assert (quoted.price_source, quoted.price_stale) == ("midpoint", False)


def test_polymarkets_options_and_exclusive_events_are_kept(venue: Venue) -> None:
    venue.market("Will Ann win?", groupItemTitle="Ann", negRisk=True)
    venue.market("Will Bo win?", groupItemTitle=" Bo ", events=[{"id": "e", "title": "Who?", "negRisk": False}])
    venue.market(RAIN)
    run("sync_markets", SUNDAY)
    stored = Market.objects.order_by("pk").values_list("option", "event_exclusive")
    assert list(stored) == [("Ann", True), ("Bo", False), ("", None)]
    venue.row("Will Ann win?").update(groupItemTitle=None, negRisk=None)
    run("sync_markets", SUNDAY + HOUR)
    assert stored[0] == ("Ann", True)


def test_without_its_name_among_the_sources_kalshi_is_not_asked(venue: Venue, kalshi: Kalshi, settings: Any) -> None:
    venue.market(RAIN)
    kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    settings.ARENA_SOURCES = ("polymarket",)
    kalshi.requests.clear()
    for command in ("sync_markets", "check_resolutions"):
        assert run(command, SUNDAY + HOUR).code == 0
    assert kalshi.requests == []


def test_largest_events_are_kept_whole_where_the_walk_has_no_order(venue: Venue, kalshi: Kalshi) -> None:
    Methodology.objects.update(universe_size=2)  # so three markets of each source
    for number in range(5):
        kalshi.event(f"Contest {number}?", "One", "Two", volume=100 + number)
    run("sync_markets", SUNDAY)
    assert set(Market.objects.values_list("event_title", flat=True)) == {"Contest 4?", "Contest 3?"}
    assert Market.objects.count() == 4


def test_market_that_is_no_longer_among_the_largest_is_kept_up_to_date(venue: Venue, kalshi: Kalshi) -> None:
    Methodology.objects.update(universe_size=1)
    (old,) = kalshi.event(PREMIER, "Ann", volume=10)
    run("sync_markets", SUNDAY)
    kalshi.event("Who wins the cup?", "Foxes", volume=9000)
    kalshi.quote(old, "0.6900", "0.7100")
    run("sync_markets", SUNDAY + HOUR)
    assert {market.option for market in Market.objects.all()} == {"Ann", "Foxes"}
    assert yes("Ann").price == Decimal("0.70")


# ── what changed ──────────────────────────────────────────────────────────────────────────────────


def test_catalogue_is_walked_once_a_day_and_what_changed_is_read_in_between(venue: Venue, kalshi: Kalshi) -> None:
    kalshi.event(PREMIER, "Ann", "Bo")
    kalshi.event("Who wins the cup?", "Foxes")
    run("sync_markets", SUNDAY)
    for event in kalshi.events.values():
        event["updated"] = int((SUNDAY - DAY).timestamp())
    kalshi.quote(kalshi.markets["KX1-0"], "0.6900", "0.7100")
    kalshi.end([kalshi.markets["KX1-1"]], "closed")
    kalshi.event("Will the bridge open?", volume=50)
    kalshi.requests.clear()
    ran = run("sync_markets", SUNDAY + HOUR)
    assert (ran.code, ran["seen"], ran["created"], ran["updated"], ran["closed"]) == (0, 4, 1, 3, 1)
    assert kalshi.requests == ["GET /kalshi/trade-api/v2/events", "GET /kalshi/trade-api/v2/markets"]
    assert (yes("Ann").price, at_kalshi("Ann").question) == (Decimal("0.70"), f"{PREMIER} – Ann")
    assert at_kalshi("Bo").status == "closed"
    assert set(Market.objects.listed("kalshi").values_list("event_id", flat=True)) == {"KX1", "KX2", "KX3"}

    kalshi.requests.clear()
    run("sync_markets", SUNDAY + DAY)
    assert "GET /kalshi/trade-api/v2/markets" not in kalshi.requests
    assert set(Market.objects.listed("kalshi").values_list("listed_at", flat=True)) == {SUNDAY + DAY}


def test_new_event_smaller_than_those_selected_waits_for_the_next_walk(venue: Venue, kalshi: Kalshi) -> None:
    Methodology.objects.update(universe_size=1)
    kalshi.event(PREMIER, "Ann", volume=500)
    run("sync_markets", SUNDAY)
    kalshi.event("Will the bridge open?", "Open", volume=400)
    kalshi.event("Who wins the cup?", "Foxes", volume=600)
    run("sync_markets", SUNDAY + HOUR)
    assert {market.option for market in Market.objects.all()} == {"Ann", "Foxes"}


def test_venue_that_refuses_such_requests_is_walked_each_time_with_one_warning(
    venue: Venue, kalshi: Kalshi, caplog: pytest.LogCaptureFixture
) -> None:
    (row,) = kalshi.event(PREMIER, "Ann")
    kalshi.refused.add("/kalshi/trade-api/v2/events?min_updated_ts")
    run("sync_markets", SUNDAY)
    kalshi.quote(row, "0.5900", "0.6100")
    for event in kalshi.events.values():
        event["updated"] = int((SUNDAY - DAY).timestamp())
    ran = run("sync_markets", SUNDAY + HOUR)
    assert (ran.code, ran["updated"], yes("Ann").price) == (0, 1, Decimal("0.60"))
    assert at_kalshi("Ann").listed_at == SUNDAY + HOUR
    (warning,) = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warning == (
        "kalshi: GET /events answered 400: bad_request: its changes can not be listed, so its whole catalogue is read "
        "by each sync. Sync less often, or take kalshi out of ARENA_SOURCES, until its client is adapted."
    )
    assert Run.objects.latest("pk").log_texts.count(warning) == 1


def test_market_that_closed_is_seen_within_a_day_however_many_left_the_list(
    venue: Venue, kalshi: Kalshi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more markets than one sync looks up, the others are read with what changed."""
    monkeypatch.setattr(sync, "MAX_UNLISTED", 1)
    rows = [row for number in range(3) for row in kalshi.event(f"Contest {number}?", f"Option {number}")]
    run("sync_markets", SUNDAY)
    kalshi.end(rows, "closed")
    kalshi.event("Will the bridge open?")
    assert run("sync_markets", SUNDAY + DAY)["closed"] == 1
    assert run("sync_markets", SUNDAY + DAY + HOUR)["closed"] == 2


def test_market_that_closed_is_seen_within_a_day_where_each_sync_walks(
    venue: Venue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "MAX_UNLISTED", 1)
    for number in range(3):
        venue.market(f"Contest {number}?")
    run("sync_markets", SUNDAY)
    for number in range(3):
        venue.close(f"Contest {number}?")
    venue.market(RAIN)
    closed = [run("sync_markets", SUNDAY + DAY + hours * HOUR)["closed"] for hours in range(4)]
    assert closed == [1, 1, 1, 0]


@pytest.mark.parametrize("fault", ["gone", "unusable", "other outcomes", "unusable in the list"])
def test_markets_that_can_not_be_read_do_not_hold_up_the_others(
    venue: Venue, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(sync, "MAX_UNLISTED", 1)
    venue.market(RAIN)
    broken, other_market = venue.market("Contest 1?"), venue.market("Contest 2?")
    run("sync_markets", SUNDAY)
    venue.close("Contest 1?")
    venue.close("Contest 2?")
    if fault == "gone":
        venue.gone.add(broken["id"])
    elif fault == "unusable":
        broken["question"] = ""
    elif fault == "other outcomes":
        broken["clobTokenIds"] = '["7", "8"]'
    else:
        broken.update(closed=False, outcomePrices="[]")
    closed = [run("sync_markets", SUNDAY + DAY + hours * HOUR)["closed"] for hours in range(2)]
    assert sum(closed) == 1
    assert Market.objects.get(external_id=other_market["id"]).status == "closed"


def test_walk_that_failed_is_repeated_by_the_next_sync(venue: Venue, kalshi: Kalshi) -> None:
    for number in range(5):
        kalshi.event(f"Contest {number}?", "One")
    kalshi.down.add("/kalshi/trade-api/v2/events?cursor")
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"]) == (1, 2)
    kalshi.down.clear()
    assert run("sync_markets", SUNDAY + HOUR)["created"] == 3
    assert Market.objects.listed("kalshi").count() == 5


def test_market_that_left_the_live_tier_is_settled_from_the_historical_one(venue: Venue, kalshi: Kalshi) -> None:
    rows = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    ask_about("Ann")
    kalshi.end(rows, "finalized", "yes", "1.0000")
    kalshi.historical["KX1-0"] = kalshi.markets.pop("KX1-0")
    ran = run("check_resolutions", SUNDAY + 100 * DAY)
    assert (ran.code, ran["resolved"], at_kalshi("Ann").winning_side) == (0, 1, "YES")


def test_sync_between_walks_reads_little_however_much_is_listed_or_changed(
    venue: Venue, kalshi: Kalshi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kalshi_client, "CHANGED_BYTES", 200_000)
    Methodology.objects.update(universe_size=50)  # so the events with the largest 75 markets are kept
    for number in range(80):
        event = kalshi.event(f"Contest {number}?", *(f"Option {option}" for option in range(10)), volume=number)
        for row in event:
            row["rules_primary"] = "It resolves to Yes if so. " * 40
        kalshi.events[event[0]["event_ticker"]]["updated"] = int((SUNDAY - DAY).timestamp())
    kalshi.page_cap = 20
    run("sync_markets", SUNDAY)
    assert Market.objects.filter(source="kalshi").count() == 80
    assert kalshi.sent > 1_000_000
    for events in (0, 80):
        for ticker in list(kalshi.events)[:events]:
            kalshi.events[ticker]["updated"] = int(SUNDAY.timestamp())
        kalshi.sent = 0
        assert run("sync_markets", SUNDAY + timedelta(minutes=5))["updated"] == 80
        assert 0 < kalshi.sent < 500_000


# ── prices ────────────────────────────────────────────────────────────────────────────────────────


def test_kalshis_own_book_is_its_price_however_far_it_jumps(venue: Venue, kalshi: Kalshi) -> None:
    (row,) = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    kalshi.quote(row, "0.9300", "0.9500", "0.4000")
    venue.requests.clear()
    run("sync_markets", SUNDAY + HOUR)
    assert (yes("Ann").price, yes("Ann").price_source) == (Decimal("0.94"), "midpoint")
    assert Outcome.objects.get(market__option="Ann", side="NO").price == Decimal("0.06")
    assert not any("clob" in request for request in venue.requests)


def test_without_a_tight_book_the_last_trade_counts_unless_it_jumps(venue: Venue, kalshi: Kalshi) -> None:
    (row,) = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    kalshi.quote(row, "0.3000", "0.6000", "0.4500")
    run("sync_markets", SUNDAY + HOUR)
    assert (yes("Ann").price, yes("Ann").price_source, yes("Ann").price_stale) == (Decimal("0.45"), "trade", False)
    kalshi.quote(row, "0.0000", "0.0100", "0.9000")
    run("sync_markets", SUNDAY + 2 * HOUR)
    assert (yes("Ann").price, yes("Ann").price_source, yes("Ann").price_stale) == (Decimal("0.45"), "retained", True)
    latest = PriceObservation.objects.filter(outcome=yes("Ann")).order_by("observed_at").last()
    assert latest is not None
    assert "far from the last accepted price" in latest.reason


def test_market_without_a_price_is_left_out_and_costs_no_price_on_record(venue: Venue, kalshi: Kalshi) -> None:
    (row,) = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    kalshi.quote(row, "0.0000", "0.0000")
    kalshi.event("Who wins the cup?", "Foxes")[0].update(last_price_dollars="0.0000", yes_bid_dollars="0.0000")
    ran = run("sync_markets", SUNDAY + HOUR)
    assert (ran.code, ran["skipped"], Market.objects.count()) == (0, 2, 1)
    assert yes("Ann").price == Decimal("0.40")
    assert any("KX2-0: no price" in line for line in Run.objects.latest("pk").log_texts)


def test_thousand_rows_left_out_for_one_reason_are_not_a_thousand_lines(venue: Venue, kalshi: Kalshi) -> None:
    kalshi.page_cap = 200
    for row in kalshi.event(PREMIER, *(f"Candidate {number}" for number in range(1000))):
        kalshi.quote(row, "0.0000", "0.0000")
    assert run("sync_markets", SUNDAY)["skipped"] == 1000
    log = Run.objects.get().log_texts
    assert len(log) == 201
    assert log[-1].startswith("skipped 800 more: no price")


# ── the trading protocol stays Polymarket's ───────────────────────────────────────────────────────


def test_universe_holds_no_market_of_kalshis(venue: Venue, kalshi: Kalshi) -> None:
    line_up(GPT)
    venue.market(RAIN)
    kalshi.event(PREMIER, "Ann", volume=10_000_000)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 500))
    assert run("run_decisions", DECISION)["trades"] == 1
    assert [entry.market.question for entry in Universe.objects.get().entries.all()] == [RAIN]


# ── the end ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("status", "result", "pays", "ends_as"),
    [
        ("finalized", "no", "0.0000", "resolved"),
        ("finalized", "scalar", "0.6400", "cancelled"),
        ("determined", "yes", None, "closed"),
    ],
)
def test_only_the_terminal_status_with_a_result_ends_a_market(
    venue: Venue, kalshi: Kalshi, status: str, result: str, pays: str | None, ends_as: str
) -> None:
    rows = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    ask_about("Ann")
    kalshi.end(rows, status, result, pays)
    ran = run("check_resolutions", SUNDAY + DAY)
    market = at_kalshi("Ann")
    assert (ran.code, market.status) == (0, ends_as)
    assert (ran["resolved"], ran["cancelled"], ran["waiting"]) == tuple(
        int(ends_as == word) for word in ("resolved", "cancelled", "closed")
    )
    if ends_as == "resolved":
        assert market.winning_side == result.upper()


def test_nothing_upstream_takes_an_end_back(venue: Venue, kalshi: Kalshi) -> None:
    rows = kalshi.event(PREMIER, "Ann", "Bo")
    run("sync_markets", SUNDAY)
    ask_about("Ann", "Bo")
    kalshi.end(rows[:1], "finalized", "yes", "1.0000")
    kalshi.end(rows[1:], "closed")
    run("check_resolutions", SUNDAY + DAY)
    for row in rows:
        row.update(status="active", result="", settlement_value_dollars=None)
        kalshi.quote(row, "0.2000", "0.2200")
    for command in ("sync_markets", "check_resolutions"):
        run(command, SUNDAY + DAY + HOUR)
    assert (at_kalshi("Ann").status, at_kalshi("Ann").winning_side) == ("resolved", "YES")
    assert at_kalshi("Bo").status == "closed"


def test_asked_market_is_looked_up_wherever_it_ranks_until_it_is_final(venue: Venue, kalshi: Kalshi) -> None:
    rows = kalshi.event(PREMIER, "Ann", "Bo")
    run("sync_markets", SUNDAY)
    ask_about("Ann")
    kalshi.end(rows, "closed")  # the event leaves the list
    run("sync_markets", SUNDAY + HOUR)
    assert at_kalshi("Ann").status == at_kalshi("Bo").status == "closed"
    kalshi.requests.clear()
    run("sync_markets", SUNDAY + 40 * DAY)
    assert kalshi.requests == [
        "GET /kalshi/trade-api/v2/events",
        "GET /kalshi/trade-api/v2/markets/KX1-0",
    ]  # nobody waits for Bo any more
    kalshi.end(rows, "finalized", "no", "0.0000")
    run("check_resolutions", SUNDAY + 40 * DAY)
    assert at_kalshi("Ann").winning_side == "NO"


def test_asked_market_closed_for_three_days_raises_an_alarm(venue: Venue, kalshi: Kalshi) -> None:
    rows = kalshi.event(PREMIER, "Ann")
    run("sync_markets", SUNDAY)
    ask_about("Ann")
    kalshi.end(rows, "disputed", "yes")
    for day in (1, 5):
        run("check_resolutions", SUNDAY + day * DAY)
    assert (Alert.objects.get().kind, Alert.objects.get().subject) == ("closed-unresolved", "KX1-0")


# ── one venue's failure is its own ────────────────────────────────────────────────────────────────


@pytest.fixture
def season(venue: Venue, kalshi: Kalshi) -> list[dict[str, Any]]:
    """A week in which money is on Polymarket's rain and a question stands on Kalshi's premier."""
    line_up(GPT)
    venue.market(RAIN)
    rows = kalshi.event(PREMIER, "Ann")
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 500))
    run("run_decisions", DECISION)
    ask_about("Ann")
    return rows


def test_kalshi_that_is_down_fails_each_job_and_stops_nothing_of_polymarkets(
    venue: Venue, kalshi: Kalshi, season: list[dict[str, Any]]
) -> None:
    kalshi.down.add("kalshi")
    venue.market("Will it snow?")
    ran = run("sync_markets", SUNDAY + DAY)
    assert (ran.code, ran["created"], ran["updated"]) == (1, 1, 1)
    assert ran.stderr.startswith("kalshi: ")
    assert len(ran.stderr.strip().splitlines()) <= 2
    assert at_kalshi("Ann").refreshed_at == SUNDAY
    venue.resolve(RAIN, "Yes")
    settled = run("check_resolutions", SUNDAY + DAY)
    assert (settled.code, settled["resolved"], settled["positions_settled"]) == (1, 1, 1)
    assert settled.stderr.startswith("kalshi: ")
    kalshi.down.clear()
    assert run("sync_markets", SUNDAY + 2 * DAY).code == 0
    assert at_kalshi("Ann").refreshed_at == SUNDAY + 2 * DAY


def test_polymarket_that_is_down_does_not_stop_kalshi(
    venue: Venue, kalshi: Kalshi, season: list[dict[str, Any]]
) -> None:
    venue.down.add("gamma")
    kalshi.quote(season[0], "0.5900", "0.6100")
    ran = run("sync_markets", SUNDAY + DAY)
    assert (ran.code, ran["updated"], yes("Ann").price) == (1, 1, Decimal("0.60"))
    kalshi.end(season, "finalized", "yes", "1.0000")
    ran = run("check_resolutions", SUNDAY + DAY)
    assert (ran.code, ran["resolved"], at_kalshi("Ann").status) == (1, 1, "resolved")


@pytest.mark.thorough
def test_kalshi_that_never_answers_is_given_up_and_polymarket_is_served_first(
    venue: Venue, kalshi: Kalshi, season: list[dict[str, Any]], settings: Any
) -> None:
    venue.resolve(RAIN, "Yes")
    # That a silent venue is asked again is for the client's own tests.
    with stamina.set_testing(True, attempts=1), misbehaving(silent) as settings.KALSHI_BASE_URL:
        settings.ARENA_VENUE_TIMEOUT_S = TINY_TIMEOUT_S * 10
        synced = run("sync_markets", SUNDAY + DAY)
        settled = run("check_resolutions", SUNDAY + DAY)
    assert (synced.code, synced["closed"]) == (1, 1)
    assert (settled.code, settled["resolved"], settled["positions_settled"]) == (1, 1, 1)
    assert "did not finish within" in settled.stderr


def test_garbage_from_kalshi_is_named_row_by_row_and_costs_no_other_row(venue: Venue, kalshi: Kalshi) -> None:
    venue.market(RAIN)
    kalshi.event(PREMIER, "Ann", "Bo", "Cy")
    kalshi.markets["KX1-1"].update(status=["active"], yes_bid_dollars={"a": 1})
    kalshi.markets["KX1-2"]["ticker"] = "KXMVESPORTS-1"
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["created"], ran["skipped"]) == (0, 2, 2)
    log = "\n".join(Run.objects.get().log_texts)
    assert "KX1-1: status:" in log
    assert "KXMVESPORTS-1: multivariate" in log
