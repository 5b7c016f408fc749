"""Manual settlements on a market's public page and in the API: outcome, time, reason and source."""

from datetime import timedelta

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from markets.models import Market
from tests.arena_site.dashboard.accounts import outcome_form, perform, sign_in
from tests.factories import WEEK, AgentFactory, MarketFactory, bet, resolve
from tests.markup import elements, get_page, section, visible_text

pytestmark = pytest.mark.django_db
NOW = WEEK + timedelta(days=3, minutes=40)
HOSTILE = "\"'><script>alert(1)</script>\u202eesrever"


@pytest.fixture
def unresolved() -> Market:
    """A closed market without a resolution, on which an agent bet."""
    market = MarketFactory(question="Did it happen?")
    bet(AgentFactory(), market)
    market.status, market.closed_at, market.accepts_orders = Market.Status.CLOSED, WEEK, False
    market.save()
    return market


def settle(market: Market, side: str, reason: str, source: str, action: str = "settle") -> None:
    answer = perform(sign_in("operator"), action, reason=reason, **outcome_form(market, side, source))
    assert answer.status_code == 302


def resolution(client: Client, market: Market) -> str:
    """The text of the market's section about its resolution."""
    return visible_text(section(get_page(client, f"/markets/{market.pk}/"), "resolution"))


def test_page_shows_outcome_time_reason_and_source(client: Client, unresolved: Market) -> None:
    assert "manual settlement" not in resolution(client, unresolved)
    settle(unresolved, "YES", "The venue forgot it.", "https://venue.example/1, read twice")
    text = resolution(client, unresolved)
    assert "Source manual settlement by an operator" in text
    assert (
        "Manual settlement 11 Mar 2026, 00:40 UTC : YES won, 1 position. Reason: The venue forgot it. "
        "Source: https://venue.example/1, read twice"
    ) in text
    assert "CLOB" not in text
    assert "operator" not in text.replace("an operator", "")  # the account's name is not public


def test_reversal_stands_beside_the_settlement(client: Client, unresolved: Market) -> None:
    settle(unresolved, "YES", "The venue forgot it.", "here")
    with time_machine.travel(NOW + timedelta(days=1), tick=False):
        settle(unresolved, "NO", "Misread.", "there", action="reverse")
        text = resolution(client, unresolved)
    assert text.index("00:40 UTC : YES won") < text.index("Manual reversal 12 Mar 2026, 00:40 UTC : NO won")
    assert "Reason: Misread. Source: there" in text


def test_text_by_an_operator_is_escaped(client: Client, unresolved: Market) -> None:
    settle(unresolved, "YES", HOSTILE, HOSTILE)
    node = section(get_page(client, f"/markets/{unresolved.pk}/"), "resolution")
    assert not elements(node, "script")
    assert [bdi.text() for bdi in elements(node, "bdi") if "esrever" in bdi.text()] == [HOSTILE, HOSTILE]


def test_refused_and_ineffective_actions_are_not_shown(client: Client, unresolved: Market) -> None:
    form = outcome_form(unresolved, None)
    assert perform(sign_in("viewer"), "settle", reason="let me", **form).status_code == 403
    resolve(unresolved, "YES", at=NOW)
    perform(sign_in("operator"), "settle", reason="too late", **form)
    text = resolution(client, unresolved)
    assert "by hand" not in text.lower()
    assert "CLOB" in text


def test_other_markets_show_none_and_open_ones_need_no_query(client: Client, unresolved: Market) -> None:
    settle(unresolved, "YES", "The venue forgot it.", "here")
    other_market = MarketFactory()
    resolve(other_market, "NO", at=NOW)
    assert "manual settlement" not in resolution(client, other_market).lower()
    with CaptureQueriesContext(connection) as captured:
        client.get(f"/markets/{MarketFactory(closed=True).pk}/")
    assert not [query for query in captured if "manualsettlement" in query["sql"]]


# ── by REST ───────────────────────────────────────────────────────────────────────────────────────


def test_api_gives_reason_and_source_of_a_manual_settlement(client: Client, unresolved: Market) -> None:
    settle(unresolved, "YES", "The venue forgot it.", HOSTILE)
    other_market = MarketFactory()
    bet(AgentFactory(), other_market)
    resolve(other_market, "YES", at=NOW)
    rows = {row["market"]: row for row in client.get("/api/v1/settlements/").json()["results"]}
    assert rows[unresolved.pk]["manual"] == {"reason": "The venue forgot it.", "source": HOSTILE}
    assert rows[other_market.pk]["manual"] is None
    assert client.get(f"/api/v1/settlements/{rows[unresolved.pk]['id']}/").json() == rows[unresolved.pk]


def test_reversal_does_not_make_the_settlement_a_manual_one(client: Client, unresolved: Market) -> None:
    resolve(unresolved, "YES", at=NOW)
    settle(unresolved, "NO", "Misread.", "there", action="reverse")
    (row,) = client.get("/api/v1/settlements/").json()["results"]
    assert row["manual"] is None


def test_manual_settlements_are_not_read_for_other_fields(client: Client, unresolved: Market) -> None:
    settle(unresolved, "YES", "The venue forgot it.", "here")
    with CaptureQueriesContext(connection) as captured:
        client.get("/api/v1/settlements/", {"fields": "id,market"})
    assert not [query for query in captured if "manualsettlement" in query["sql"]]
