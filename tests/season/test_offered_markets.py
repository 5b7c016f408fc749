"""Markets of which the answer is public, templates and midpoints of other books, by commands alone."""

import csv
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.models import Trade
from markets.models import Market, Outcome, QuestionEntry, Universe
from tests.answers import GPT, bet, sell
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.markup import get_page, visible_text
from tests.sandbox import Kalshi, Venue

DAY, WEEK = timedelta(days=1), timedelta(weeks=1)
RAIN, PLAYED = "Will it rain?", "Will A win on 2026-03-07?"
PROPOSED = {"umaResolutionStatus": "proposed", "umaResolutionStatuses": '["proposed"]'}
STARTED = {"gameStartTime": "2026-03-07 17:00:00+00", "outcomePrices": '["0.001", "0.999"]', "bestAsk": 0.001}
OVER: list[dict[str, Any]] = [PROPOSED, {"ended": True}, STARTED]


@pytest.fixture(autouse=True)
def _one_model(venue: Venue) -> None:
    line_up(GPT)


def bettable() -> set[str]:
    entries = Universe.objects.latest("pk").entries.filter(bettable=True)
    return set(entries.values_list("market__question", flat=True))


def asked() -> set[str]:
    return set(QuestionEntry.objects.values_list("question__text", flat=True))


def test_what_is_over_or_proposed_is_neither_bettable_nor_asked_and_is_counted(venue: Venue) -> None:
    venue.market(RAIN)
    for place, fields in enumerate(OVER):
        venue.market(f"{PLAYED} {place}", **fields)
    assert run("sync_markets", SUNDAY)["over"] == len(OVER)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    run("run_forecasts", DECISION)
    assert bettable() == {RAIN}
    assert asked() == {RAIN}
    assert set(Market.objects.values_list("status", flat=True)) == {"active"}


def test_market_whose_nominal_end_has_passed_is_bettable_and_not_asked(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market("Will the bank cut thrice?", endDate="2025-10-07T00:00:00Z")
    venue.market("Will it close now?", endDate=DECISION.isoformat())
    venue.start_first_cohort()
    venue.says(GPT, bet("Will the bank cut thrice?", "YES", 300))
    assert run("run_decisions", DECISION)["trades"] == 1
    run("run_forecasts", DECISION)
    assert bettable() == {RAIN, "Will the bank cut thrice?", "Will it close now?"}
    assert asked() == {RAIN}


def test_held_market_that_is_proposed_can_be_sold_and_not_bet_on(venue: Venue) -> None:
    venue.market(RAIN)
    venue.market("Will it snow?")
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300), bet(RAIN, "YES", 300), sell(RAIN, 100))
    run("run_decisions", DECISION)
    venue.row(RAIN).update(PROPOSED)
    run("sync_markets", SUNDAY + WEEK)
    assert run("run_decisions", DECISION + WEEK)["trades"] == 0
    assert bettable() == {"Will it snow?"}
    assert run("run_decisions", DECISION + WEEK + timedelta(hours=1))["trades"] == 1
    assert Trade.objects.latest("pk").kind == "SELL"


def test_market_that_is_proposed_no_more_is_offered_again(venue: Venue) -> None:
    venue.market(RAIN, **PROPOSED)
    run("sync_markets", SUNDAY)
    venue.row(RAIN).update(umaResolutionStatus=None, umaResolutionStatuses="[]")
    run("sync_markets", SUNDAY + DAY)
    assert Market.objects.get().over_since is None


EVENT = {"id": "race", "title": "Who wins?", "negRisk": True}


def play_event(venue: Venue, **fields: Any) -> None:
    """Asks on a Sunday about rain and an event of three, of which one market gets `fields` before the freeze."""
    venue.market(RAIN)
    for name in ("Ann", "Bob", "Cid"):
        venue.market(f"Will {name} win?", events=[EVENT], groupItemTitle=name, negRisk=True)
    run("sync_markets", SUNDAY - DAY)
    venue.row("Will Ann win?").update(fields)
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_forecasts", DECISION)


def test_exclusive_event_is_not_asked_while_one_of_its_markets_is_over(venue: Venue) -> None:
    play_event(venue, events=[EVENT | {"ended": True}])
    assert asked() == {RAIN}


def test_exclusive_event_is_asked_without_a_market_that_has_lost(venue: Venue) -> None:
    play_event(venue, closed=True, outcomePrices='["0", "1"]', umaResolutionStatus="resolved")
    entry = QuestionEntry.objects.exclude(question__text=RAIN).get()
    assert set(entry.question.options.values_list("name", flat=True)) == {"Bob", "Cid", "None of these"}


def test_market_says_on_its_page_in_the_api_and_in_archives_since_when_it_is_over(venue: Venue, tmp_path: Path) -> None:
    venue.market(RAIN)
    venue.market(PLAYED)
    run("sync_markets", SUNDAY)
    venue.row(RAIN).update(PROPOSED)
    venue.row(PLAYED).update(ended=True)
    run("sync_markets", SUNDAY + DAY)
    run("sync_markets", SUNDAY + 2 * DAY)
    since = "since 9 Mar 2026, 00:00 UTC : it can be held and sold, but neither bet on nor asked about."
    for question, state in ((RAIN, "Its result is with the oracle ( proposed )"), (PLAYED, "Over at its venue")):
        market = Market.objects.get(question=question)
        assert f"{state} {since}" in visible_text(get_page(Client(), f"/markets/{market.pk}/"), ".intro")
        assert Client().get(f"/api/v1/markets/{market.pk}/").json()["over_since"] == "2026-03-09T00:00:00Z"
    venue.resolve(RAIN, "Yes")
    run("sync_markets", SUNDAY + 3 * DAY)
    assert run("export_dataset", SUNDAY + 3 * DAY, out=tmp_path / "archive", format=["csv"]).code == 0
    with (tmp_path / "archive" / "csv" / "markets.csv").open() as file:
        states = {row["question"]: (row["status"], row["over_since"]) for row in csv.DictReader(file)}
    since = "2026-03-09T00:00:00.000000Z"
    assert states == {RAIN: ("closed", since), PLAYED: ("active", since)}
    assert run("verify_export", SUNDAY + 3 * DAY, str(tmp_path / "archive")).code == 0


def test_midpoint_of_another_book_is_not_frozen(venue: Venue) -> None:
    venue.market(RAIN, {"Yes": "0.50", "No": "0.50"})
    venue.start_first_cohort()
    yes, no = venue.tokens(RAIN)
    venue.midpoints[yes], venue.midpoints[no] = "0.70", "0.30"
    venue.books[yes] = venue.books[no] = ("0.48", "0.52")
    venue.says(GPT, bet(RAIN, "NO", 300))
    run("run_decisions", DECISION)
    assert Universe.objects.get().entries.get().prices == {"YES": "0.5", "NO": "0.5"}
    run("take_snapshots", SUNDAY + DAY)
    assert set(Outcome.objects.values_list("price", flat=True)) == {Decimal("0.5")}


def test_template_is_no_question_and_no_rules_at_either_venue(venue: Venue, kalshi: Kalshi) -> None:
    blank = "{{count}}"
    venue.market(RAIN, description=f"Resolves by {blank}.")
    venue.market(f"Will {blank} happen?")
    (nameless,) = kalshi.event("", "At least 6")
    nameless.update(title="", rules_primary=f"If launches are above {blank}, then Yes.")
    (titled,) = kalshi.event("Will launches rise?")
    titled.update(rules_primary="If launches rise, then Yes.", rules_secondary=f"See {blank}.")
    assert run("sync_markets", SUNDAY)["skipped"] == 2
    stored = dict(Market.objects.values_list("question", "description"))
    assert stored == {RAIN: "", "Will launches rise?": ""}


def test_held_market_whose_question_becomes_a_template_is_settled_all_the_same(venue: Venue) -> None:
    row = venue.market(RAIN)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    venue.resolve(RAIN, "Yes")
    row["question"] = "Will {{it}} rain?"
    assert run("check_resolutions", SUNDAY + DAY)["resolved"] == 1
    assert Market.objects.get().question == RAIN


def test_fee_that_can_not_be_read_is_unknown_and_its_trades_are_counted_out(venue: Venue) -> None:
    venue.market(RAIN, feesEnabled=True, feeSchedule={"rate": 0.04})
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 300))
    run("run_decisions", DECISION)
    run("compute_scores", SUNDAY + DAY)
    (entry,) = Client().get("/api/v1/leaderboard/?protocol=trading").json()["results"]
    assert (entry["return_after_costs"], entry["liquidation_value"], entry["trades_without_book"]) == (None, None, 1)
