"""A venue made up here of a client and a registry entry alone, as docs/extend.md says, through every command."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from werkzeug import Response

from foundation.models import Alert
from markets.models import Market, Outcome, Question, QuestionSet
from markets.services.questions import venues_by_turn
from markets.sources.base import (
    Catalogue,
    CataloguePage,
    SkippedMarket,
    Source,
    Unresolved,
    VenueMarket,
    VenueOutcome,
    VenueResolution,
    page_under,
)
from markets.sources.field_parsers import line, or_none, price
from markets.sources.registry import SOURCES
from tests.answers import GPT
from tests.commands import DECISION, SUNDAY, run
from tests.factories import line_up
from tests.markup import element, get_page
from tests.sandbox import Venue

DAY = timedelta(days=1)


def parse(raw: Any, ref: str) -> VenueMarket | SkippedMarket:
    if not isinstance(raw, dict) or not line(raw.get("id")):
        return SkippedMarket(ref, "no id")
    yes = or_none(price)(raw.get("chance"))
    return VenueMarket(
        external_id=line(raw["id"]),
        question=line(raw.get("asks")),
        outcomes=(VenueOutcome(0, "Yes", None, yes), VenueOutcome(1, "No", None, None if yes is None else 1 - yes)),
        closed=raw.get("state") != "open",
        result=line(raw.get("answer")),
        volume=Decimal(5000),
    )


class Almanac(Catalogue):
    source = "almanac"
    by_volume = False

    def catalogue(self) -> Iterator[CataloguePage]:
        rows = [parse(raw, f"row {n}") for n, raw in enumerate(self.get_json("/questions"), start=1)]
        yield CataloguePage.of(rows, None)

    def market(self, external_id: str) -> VenueMarket | SkippedMarket | None:
        raw = self.find_json(f"/questions/{external_id}")
        return None if raw is None else self.with_id(external_id, parse(raw, external_id))

    def resolution(self, row: VenueMarket) -> VenueResolution | Unresolved:
        winner = next((outcome for outcome in row.outcomes if outcome.name.casefold() == row.result), None)
        return VenueResolution(winner) if winner else Unresolved(f"the almanac says {row.result or 'nothing'}")


@pytest.fixture
def rows(venue: Venue, settings: Any, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The almanac's questions, served over HTTP beside Polymarket's one market."""
    line_up(GPT)
    venue.market("Will it rain?")
    entry = Source(
        label="The Almanac",
        client=lambda: Almanac("almanac", venue.server.url_for("/almanac")),
        page_url=lambda external_id, slug: page_under("https://almanac.example/q", external_id),
        rule="by the answer in its print edition",
        services=("almanac",),
    )
    monkeypatch.setitem(SOURCES, "almanac", entry)
    settings.ARENA_SOURCES = ("polymarket", "almanac")
    listed: list[dict[str, Any]] = [
        {"id": "frost", "asks": "Will it freeze?", "chance": "0.30", "state": "open"},
        {"id": "thaw", "asks": "Will it thaw?", "chance": "0.60", "state": "open"},
        {"id": "", "state": "open"},
    ]
    catalogue = venue.server.expect_request("/almanac/questions")
    catalogue.respond_with_handler(lambda _: Response(json.dumps([row for row in listed if row["state"] == "open"])))
    for row in listed[:2]:
        single = venue.server.expect_request(f"/almanac/questions/{row['id']}")
        single.respond_with_handler(lambda _, row=row: Response(json.dumps(row)))
    return listed


def test_third_venue_syncs_prices_is_shown_asked_and_settled(
    venue: Venue, rows: list[dict[str, Any]], client: Client
) -> None:
    assert (run("sync_markets", SUNDAY)["created"], run("sync_markets", SUNDAY)["skipped"]) == (3, 1)
    market = Market.objects.get(source="almanac", external_id="frost")
    assert Outcome.objects.get(market=market, side="YES").price == Decimal("0.30")

    page = get_page(client, f"/markets/{market.pk}/")
    assert element(page, 'a[href="https://almanac.example/q/frost"]').text() == "The Almanac"
    assert client.get("/api/v1/markets/", {"source": "almanac"}).json()["count"] == 2

    run("run_forecasts", SUNDAY + 2 * DAY)
    assert set(Question.objects.values_list("source", "text")) == {
        ("almanac", "Will it freeze?"), ("almanac", "Will it thaw?"),
    }  # fmt: skip

    rows[0] |= {"state": "over", "answer": "no"}
    rows[1] |= {"state": "over", "answer": "perhaps"}
    run("check_resolutions", SUNDAY + 3 * DAY)
    results = {
        market.external_id: (market.status, market.winning_side)
        for market in Market.objects.exclude(source="polymarket")
    }
    assert results == {"frost": ("resolved", "NO"), "thaw": ("closed", None)}
    assert "by the answer in its print edition" in client.get(f"/markets/{market.pk}/").text


@pytest.mark.usefixtures("retries_without_waits")
def test_third_venue_that_can_not_be_read_is_an_alert(
    venue: Venue, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = replace(SOURCES["almanac"], client=lambda: Almanac("almanac", "http://127.0.0.1:9"))
    monkeypatch.setitem(SOURCES, "almanac", unreachable)
    assert run("sync_markets", SUNDAY).code == 1
    alert = Alert.objects.get()
    assert (alert.kind, alert.names) == ("venue-down", ["The Almanac (almanac)"])
    assert "ALMANAC_BASE_URL" in alert.remedy


def venues_of_sets() -> list[tuple[datetime, int, set[str]]]:
    """The day, the part and the venues of the questions of each question set."""
    sets = QuestionSet.objects.order_by("day", "part")
    return [(row.day, row.part, {entry.question.source for entry in row.entries.all()}) for row in sets]


def test_question_set_draws_on_one_venue_the_universes_first_and_then_in_turn(
    venue: Venue, rows: list[dict[str, Any]]
) -> None:
    run("sync_markets", SUNDAY)
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    run("run_forecasts", SUNDAY + timedelta(hours=2))
    for days in (1, 2):
        assert run("run_forecasts", SUNDAY + days * DAY, dry_run=True)["questions"] == 1
        run("run_forecasts", SUNDAY + days * DAY)
    assert [part for _, part, _ in venues_of_sets()] == [0, 0, 0]
    assert [venues for _, _, venues in venues_of_sets()] == [{"polymarket"}, {"polymarket"}, {"almanac"}]


def test_venue_without_a_usable_price_leaves_its_day_to_the_next(venue: Venue, rows: list[dict[str, Any]]) -> None:
    rows[0]["chance"] = rows[1]["chance"] = "1.00"
    run("sync_markets", SUNDAY)
    run("run_forecasts", SUNDAY + 2 * DAY)
    assert venues_of_sets() == [(SUNDAY + 2 * DAY, 0, {"polymarket"})]


def test_every_venue_has_its_turn() -> None:
    assert venues_by_turn([], SUNDAY, None) == []
    assert venues_by_turn(["one"], SUNDAY, None) == ["one"]
    turns = [venues_by_turn(["a", "b", "c"], SUNDAY + days * DAY, None) for days in range(3)]
    assert sorted(turn[0] for turn in turns) == ["a", "b", "c"]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns)
