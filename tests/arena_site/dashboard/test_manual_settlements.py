"""A market's public page and the API say that its end was given by hand: which, when, why and by what source."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from markets.models import Market
from tests.arena_site.dashboard.accounts import perform, sign_in
from tests.factories import WEEK, AgentFactory, MarketFactory, bet, resolve

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(days=3, minutes=40)
HOSTILE = "\"'><script>alert(1)</script>\u202eesrever"


@pytest.fixture(autouse=True)
def _at_night() -> Any:
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def stuck() -> Market:
    """A closed market without an end, on which an agent bet."""
    market = MarketFactory(question="Did it happen?")
    bet(AgentFactory(), market)
    market.status, market.closed_at, market.accepts_orders = Market.Status.CLOSED, WEEK, False
    market.save()
    return market


def settle(market: Market, side: str, reason: str, source: str, act: str = "settle") -> None:
    outcome = market.outcomes.get(side=side)
    end = {"market": market.pk, "result": f"outcome-{outcome.pk}", "source": source}
    assert perform(sign_in("operator"), act, reason=reason, **end).status_code == 302


def resolution(client: Client, market: Market) -> str:
    page = client.get(f"/markets/{market.pk}/").content.decode()
    (section,) = re.findall(r'<section aria-labelledby="resolution">.*?</section>', page, flags=re.S)
    return section


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def test_the_page_says_who_ended_it_when_why_and_by_what_source(client: Client, stuck: Market) -> None:
    assert "by hand" not in resolution(client, stuck)
    settle(stuck, "YES", "The venue forgot it.", "https://venue.example/1, read twice")
    said = words(resolution(client, stuck))
    assert "Source an operator, by hand" in said
    assert (
        "By hand 11 Mar 2026, 00:40 UTC : Settled: YES won; 1 positions paid. Why: The venue forgot it. "
        "Source: https://venue.example/1, read twice"
    ) in said
    assert "CLOB" not in said
    assert "operator</" not in resolution(client, stuck)  # the account's name is nobody's business


def test_a_reversal_stands_beside_what_it_reversed(client: Client, stuck: Market) -> None:
    settle(stuck, "YES", "The venue forgot it.", "here")
    with time_machine.travel(NOW + timedelta(days=1), tick=False):
        settle(stuck, "NO", "Misread.", "there", act="reverse")
        said = words(resolution(client, stuck))
    assert said.index("Settled: YES won") < said.index("12 Mar 2026, 00:40 UTC : Reversed: NO won")
    assert "Why: Misread. Source: there" in said


def test_what_an_operator_typed_is_text(client: Client, stuck: Market) -> None:
    settle(stuck, "YES", HOSTILE, HOSTILE)
    section = resolution(client, stuck)
    assert "<script" not in section
    assert section.count("&lt;script&gt;alert(1)") == 2
    assert len(re.findall(r"<bdi>[^<]*\u202eesrever</bdi>", section)) == 2


def test_what_changed_nothing_or_was_refused_is_not_told(client: Client, stuck: Market) -> None:
    end = {"market": stuck.pk, "result": "cancelled", "source": "x"}
    assert perform(sign_in("viewer"), "settle", reason="let me", **end).status_code == 403
    resolve(stuck, "YES", at=NOW)
    perform(sign_in("operator"), "settle", reason="too late", **end)
    said = words(resolution(client, stuck))
    assert "by hand" not in said.lower()
    assert "CLOB" in said


def test_other_markets_say_nothing_of_it_and_those_without_an_end_ask_nothing(client: Client, stuck: Market) -> None:
    settle(stuck, "YES", "The venue forgot it.", "here")
    other = MarketFactory()
    resolve(other, "NO", at=NOW)
    assert "by hand" not in resolution(client, other).lower()
    with CaptureQueriesContext(connection) as asked:
        client.get(f"/markets/{MarketFactory(closed=True).pk}/")
    assert not [query for query in asked if "auditentry" in query["sql"]]


# ── by REST ───────────────────────────────────────────────────────────────────────────────────────


def test_the_api_says_why_and_by_what_source_a_position_was_settled_by_hand(client: Client, stuck: Market) -> None:
    settle(stuck, "YES", "The venue forgot it.", HOSTILE)
    other = MarketFactory()
    bet(AgentFactory(), other)
    resolve(other, "YES", at=NOW)
    rows = {row["market"]: row for row in client.get("/api/v1/settlements/").json()["results"]}
    assert rows[stuck.pk]["manual"] == {"reason": "The venue forgot it.", "source": HOSTILE}
    assert rows[other.pk]["manual"] is None
    assert client.get(f"/api/v1/settlements/{rows[stuck.pk]['id']}/").json() == rows[stuck.pk]


def test_a_reversal_does_not_make_the_settlement_it_corrects_one_by_hand(client: Client, stuck: Market) -> None:
    resolve(stuck, "YES", at=NOW)
    settle(stuck, "NO", "Misread.", "there", act="reverse")
    (row,) = client.get("/api/v1/settlements/").json()["results"]
    assert row["manual"] is None


def test_who_does_not_ask_for_it_does_not_have_the_audit_log_read(client: Client, stuck: Market) -> None:
    settle(stuck, "YES", "The venue forgot it.", "here")
    with CaptureQueriesContext(connection) as asked:
        client.get("/api/v1/settlements/", {"fields": "id,market"})
    assert not [query for query in asked if "auditentry" in query["sql"]]
