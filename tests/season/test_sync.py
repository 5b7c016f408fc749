"""The catalogue's sync through its command: what it takes in, what it leaves out, what it never undoes."""

import json
import re
import socket
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from time import monotonic
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Position
from cohorts.management.commands import sync_markets as sync_command
from cohorts.models import Methodology
from foundation.models import Run
from markets.models import Market, Outcome, PriceObservation
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.sandbox import Venue

pytestmark = pytest.mark.usefixtures("retries_without_waits")

RAIN, CUP = "Will it rain?", "Lakers or Celtics?"
LATER = SUNDAY + timedelta(hours=6)


def market(question: str = RAIN) -> Market:
    return Market.objects.get(question=question)


def outcome(side: str, question: str = RAIN) -> Outcome:
    return Outcome.objects.get(market__question=question, side=side)


def test_catalogue_is_taken_in_once_and_synced_again_without_a_trace(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    first, again = run("sync_markets", SUNDAY), run("sync_markets", SUNDAY)
    assert [first[key] for key in ("seen", "created", "updated", "skipped", "closed")] == [2, 2, 0, 0, 0]
    assert [again[key] for key in ("seen", "created", "updated", "skipped", "closed")] == [2, 0, 2, 0, 0]
    assert (market().kind, market(CUP).kind) == ("binary", "multi")
    assert outcome("Celtics", CUP).price == Decimal("0.45")
    assert PriceObservation.objects.count() == 4
    run("sync_markets", LATER)
    assert PriceObservation.objects.count() == 4  # nothing moved: nothing to record
    venue.move(RAIN, Yes="0.41", No="0.59")
    run("sync_markets", LATER + timedelta(hours=1))
    assert PriceObservation.objects.count() == 6


def test_row_that_says_what_is_on_record_is_not_written_again(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    assert _written_by_a_sync(SUNDAY) == []
    venue.move(RAIN, Yes="0.41", No="0.59")
    assert _written_by_a_sync(SUNDAY) == ["outcome", "outcome"]  # what the venue quotes, and what is accepted
    assert (outcome("YES").price, outcome("Lakers", CUP).price) == (Decimal("0.41"), Decimal("0.55"))
    assert _written_by_a_sync(LATER) == ["market", "outcome", "outcome"]
    assert set(Market.objects.values_list("refreshed_at", flat=True)) == {LATER}


def _written_by_a_sync(at: datetime) -> list[str]:
    """The tables of the catalogue to whose rows a sync for an instant wrote, a statement each."""
    with CaptureQueriesContext(connection) as captured:
        run("sync_markets", at)
    updates = (re.search(r'UPDATE "markets_(market|outcome)"', query["sql"]) for query in captured)
    return [match[1] for match in updates if match]


def test_one_unusable_row_of_each_kind_costs_no_other_row(venue: Venue) -> None:
    """Outcomes "null", a string where a list belongs, prices as text, no id, no object at all."""
    for number in range(120):  # two pages
        venue.market(f"Question {number}?")
    rows = list(venue.rows.values())
    rows[3]["outcomes"] = "null"
    rows[50]["outcomePrices"] = "not json"
    rows[90]["outcomePrices"] = json.dumps(["lots", "few"])
    del rows[110]["id"]
    rows[119]["question"] = None
    venue.rows["rubbish"] = "a string where a market belongs"
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["seen"], ran["created"], ran["skipped"]) == (0, 121, 115, 6)
    assert Market.objects.count() == 115
    log = Run.objects.get().log_texts
    assert sum(line.startswith("skipped") for line in log) == 6
    assert any("904: outcomes" in line for line in log)


def test_missing_date_category_or_description_is_no_fault(venue: Venue) -> None:
    venue.market(RAIN, endDate=None, category=None, description=None, slug=None, events=None)
    assert run("sync_markets", SUNDAY)["skipped"] == 0
    assert market().closes_at is None


def test_row_that_turns_bad_overwrites_nothing(venue: Venue) -> None:
    row = venue.market(RAIN, description="The rules.", category="Weather", createdAt="2026-02-01T00:00:00Z")
    run("sync_markets", SUNDAY)
    row.update(
        description=None, category=None, endDate="soon", createdAt="2026-02-02T00:00:00Z", volume=None, volumeNum=None
    )
    row["outcomePrices"] = json.dumps(["NaN", "0.60"])
    assert run("sync_markets", LATER).code == 0
    stored = market()
    assert (stored.description, stored.category) == ("The rules.", "Weather")
    assert stored.closes_at is not None
    assert stored.created_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert stored.volume == Decimal(999_999)
    assert outcome("YES").price == Decimal("0.40")


def test_venue_that_dies_after_the_walk_is_named_once_and_not_for_each_market(venue: Venue) -> None:
    """A thousand followed markets and one dead venue are a few lines, not a thousand."""
    for number in range(12):
        venue.market(f"Question {number}?")
    run("sync_markets", SUNDAY)
    Market.objects.update(traded=True)
    venue.down.add("gamma")
    ran = run("sync_markets", LATER)
    assert ran.code == 1
    assert len(ran.stderr.strip().splitlines()) <= 5


def test_silent_venue_is_given_up_in_the_time_of_a_sync_and_leaves_the_next_its_share(
    venue: Venue, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.ARENA_SOURCES = ("polymarket", "kalshi")
    monkeypatch.setattr(sync_command, "VENUES_S", 3)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections and never answers
        settings.GAMMA_BASE_URL = settings.CLOB_BASE_URL = f"http://127.0.0.1:{silent.getsockname()[1]}"
        settings.KALSHI_BASE_URL = venue.server.url_for("/kalshi")
        venue.server.expect_request("/kalshi/events").respond_with_json({"events": [], "cursor": ""})
        started_at = monotonic()
        ran = run("sync_markets", SUNDAY)
    assert monotonic() - started_at < 3
    assert ran.code == 1
    assert "gamma: GET /markets/keyset did not finish within the 1.5 s for all requests" in ran.stderr
    assert "kalshi" not in ran.stderr


def test_yes_that_is_not_listed_first_keeps_its_own_price(venue: Venue) -> None:
    venue.market(RAIN, {"No": "0.70", "Yes": "0.30"})
    run("sync_markets", SUNDAY)
    assert (outcome("YES").price, outcome("NO").price) == (Decimal("0.30"), Decimal("0.70"))
    assert outcome("YES").token_id == venue.tokens(RAIN)[1]
    run("start_cohort", SUNDAY)
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    assert Position.objects.get().shares == Decimal(1000)


def test_outcomes_in_another_order_are_matched_by_token(venue: Venue) -> None:
    """Names, prices and tokens change places together between two calls."""
    row = venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    for name in ("outcomes", "outcomePrices", "clobTokenIds"):
        row[name] = json.dumps(json.loads(row[name])[::-1])
    run("sync_markets", LATER)
    assert (outcome("Lakers", CUP).price, outcome("Celtics", CUP).price) == (Decimal("0.55"), Decimal("0.45"))


def test_names_in_another_case_and_spacing_are_still_the_same_outcomes(venue: Venue) -> None:
    row = venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    row["outcomes"] = json.dumps([" LA KERS", "celtics "])
    row["outcomePrices"] = json.dumps(["0.56", "0.44"])
    assert run("sync_markets", LATER)["skipped"] == 0
    assert outcome("Lakers", CUP).price == Decimal("0.56")
    assert Outcome.objects.count() == 2


def test_outcomes_without_tokens_are_matched_by_their_index_however_they_are_spelt(venue: Venue) -> None:
    row = venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"}, clobTokenIds=None)
    run("sync_markets", SUNDAY)
    row.update(outcomes=json.dumps(["L.A. Lakers", "celtics"]), outcomePrices=json.dumps(["0.56", "0.44"]))
    assert run("sync_markets", LATER)["skipped"] == 0
    assert [outcome(side, CUP).price for side in ("Lakers", "Celtics")] == [Decimal("0.56"), Decimal("0.44")]


@pytest.mark.parametrize(
    "change",
    [
        {"clobTokenIds": '["1", "2"]', "outcomePrices": '["0.1", "0.9"]'},
        {
            "outcomes": '["Lakers", "Celtics", "Draw"]',
            "outcomePrices": '["0.1", "0.2", "0.7"]',
            "clobTokenIds": '["1", "2", "3"]',
        },
        {"outcomes": '["Lakers", "Celtics", "Draw"]', "outcomePrices": '["0.1", "0.9"]'},
    ],
    ids=["other tokens", "one more", "lists disagree"],
)
def test_outcomes_that_are_no_longer_the_same_are_left_alone(venue: Venue, change: dict[str, str]) -> None:
    row = venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    row.update(change, question="Something else?")
    assert run("sync_markets", LATER)["skipped"] == 1
    assert outcome("Lakers", CUP).price == Decimal("0.55")


def test_market_closed_upstream_closes_and_one_reopened_upstream_stays_closed(venue: Venue) -> None:
    """Nothing upstream reopens a market."""
    row = venue.market(RAIN)
    venue.market(CUP, {"Lakers": "0.55", "Celtics": "0.45"})
    run("sync_markets", SUNDAY)
    venue.close(RAIN)
    assert run("sync_markets", LATER)["closed"] == 1
    assert market().status == "closed"
    row.update(closed=False, acceptingOrders=True)
    run("sync_markets", LATER + timedelta(hours=1))
    assert (market().status, market().closed_at) == ("closed", LATER)
    assert any("is open again" in line for line in Run.objects.latest("pk").log_texts)


def test_settled_market_is_changed_by_nothing_upstream(venue: Venue) -> None:
    row = venue.market(RAIN)
    run("sync_markets", SUNDAY)
    venue.resolve(RAIN, "Yes")
    run("sync_markets", LATER)
    run("check_resolutions", LATER)
    before = Market.objects.filter(question=RAIN).values().get()
    row.update(closed=False, acceptingOrders=True, outcomePrices='["0", "1"]', question="What?", volumeNum=1)
    for command in ("sync_markets", "check_resolutions"):
        run(command, LATER + timedelta(hours=1))
    assert Market.objects.filter(question=RAIN).values().get() == before


def test_never_seen_market_that_is_closed_already_is_not_taken_in(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market(CUP, {"Lakers": "1", "Celtics": "0"}, closed=True)
    run("sync_markets", SUNDAY)
    assert [m.question for m in Market.objects.all()] == [RAIN]


def test_followed_market_is_refreshed_wherever_it_ranks(venue: Venue) -> None:
    """The walk ends at half again the universe's size; money on a market beyond it is still looked after."""
    Methodology.objects.update(universe_size=60)
    for number in range(100):
        venue.market(f"Question {number}?")
    run("sync_markets", SUNDAY)
    Market.objects.filter(question="Question 99?").update(traded=True)
    for number in range(10):  # newcomers push ten out of the one page that is walked
        venue.market(f"Newcomer {number}?", volumeNum=5_000_000)
    for hour in (1, 2):
        assert run("sync_markets", SUNDAY + timedelta(hours=hour)).code == 0
    assert market("Question 99?").refreshed_at == SUNDAY + timedelta(hours=2)
    assert market("Question 98?").refreshed_at == SUNDAY + timedelta(hours=1)  # looked up once when it fell out


def test_older_instant_is_a_replay_and_takes_nothing_from_the_network(venue: Venue) -> None:
    venue.market(RAIN)
    run("sync_markets", LATER)
    venue.move(RAIN, Yes="0.80", No="0.20")
    venue.requests.clear()
    ran = run("sync_markets", SUNDAY)
    assert (ran.code, ran["replay"], ran["updated"]) == (0, True, 0)
    assert venue.requests == []
    assert outcome("YES").price == Decimal("0.40")
