"""A venue made up here of a client and a registry entry alone, as docs/extend.md says, through every command."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from werkzeug import Response

from markets.models import Market, Outcome, Question
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
from tests.commands import run
from tests.markup import element, get_page
from tests.venue import SUNDAY, Venue

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
    """The almanac's questions, served over HTTP beside the other venues."""
    entry = Source(
        label="The Almanac",
        client=lambda: Almanac("almanac", venue.server.url_for("/almanac")),
        page_url=lambda external_id, slug: page_under("https://almanac.example/q", external_id),
        rule="by the answer in its print edition",
    )
    monkeypatch.setitem(SOURCES, "almanac", entry)
    settings.ARENA_SOURCES = ("polymarket", "almanac")
    listed: list[dict[str, Any]] = [
        {"id": "frost", "asks": "Will it freeze?", "chance": "0.30", "state": "open"},
        {"id": "", "state": "open"},
    ]
    catalogue = venue.server.expect_request("/almanac/questions")
    catalogue.respond_with_handler(lambda _: Response(json.dumps([row for row in listed if row["state"] == "open"])))
    single = venue.server.expect_request("/almanac/questions/frost")
    single.respond_with_handler(lambda _: Response(json.dumps(listed[0])))
    return listed


@pytest.mark.parametrize(
    ("answer", "status", "winner"), [("no", "resolved", "NO"), ("yes", "resolved", "YES"), ("perhaps", "closed", None)]
)
def test_third_venue_syncs_prices_is_shown_asked_and_settled(
    venue: Venue, rows: list[dict[str, Any]], client: Client, answer: str, status: str, winner: str | None
) -> None:
    venue.market("Will it rain?")
    assert (run("sync_markets", SUNDAY)["created"], run("sync_markets", SUNDAY)["skipped"]) == (2, 1)
    market = Market.objects.get(source="almanac")
    assert Outcome.objects.get(market=market, side="YES").price == Decimal("0.30")

    page = get_page(client, f"/markets/{market.pk}/")
    assert element(page, 'a[href="https://almanac.example/q/frost"]').text() == "The Almanac"
    assert client.get("/api/v1/markets/", {"source": "almanac"}).json()["count"] == 1

    run("run_forecasts", SUNDAY + DAY)
    assert Question.objects.get(source="almanac").text == "Will it freeze?"

    rows[0] |= {"state": "over", "answer": answer}
    run("check_resolutions", SUNDAY + 2 * DAY)
    market.refresh_from_db()
    assert (market.status, market.winning_side) == (status, winner)
    if winner:
        assert "by the answer in its print edition" in client.get(f"/markets/{market.pk}/").text
