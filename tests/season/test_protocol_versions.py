"""Markets of Polymarket's second protocol: priced by their position ids, and waiting once they have closed."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from foundation.models import Alert, Run
from markets.models import Market, Outcome, UniverseEntry
from tests.answers import GPT, bet
from tests.commands import DECISION, SUNDAY, run
from tests.markup import element, get_page
from tests.sandbox import Venue

RAIN, SNOW = "Will it rain?", "Will it snow?"
DAY = timedelta(days=1)


def test_v2_market_is_bet_on_at_its_own_book_and_waits_after_its_close(venue: Venue, client: Client) -> None:
    venue.market(RAIN, version="v2", positionIds=["77", "78"], clobTokenIds='["1", "2"]')
    venue.quote("77", "0.45")
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 500))
    assert run("run_decisions", DECISION)["trades"] == 1
    yes = Outcome.objects.get(side="YES")
    assert (yes.token_id, yes.price, yes.price_source) == ("77", Decimal("0.45"), "midpoint")

    venue.resolve(RAIN, "Yes")
    for day in (1, 5):
        ran = run("check_resolutions", SUNDAY + day * DAY)
        assert (ran.code, ran["resolved"], ran["waiting"]) == (0, 0, 1)
    market = Market.objects.get()
    assert market.status == "closed"
    assert (
        "Polymarket has not documented how a Protocol V2 market shows its resolution"
        in element(get_page(client, f"/markets/{market.pk}/"), "p.intro").text()
    )
    assert Alert.objects.get(kind="closed-unresolved").subject == market.external_id


@pytest.mark.parametrize("fields", [{"version": "v3"}, {"version": "v3", "positionIds": ["77", "78"]}])
def test_version_that_is_unknown_is_counted_and_enters_no_universe(venue: Venue, fields: dict[str, Any]) -> None:
    venue.market(SNOW)
    venue.market(RAIN, **fields)
    ran = run("sync_markets", SUNDAY)
    assert (ran["created"], ran["skipped"]) == (1, 1)
    assert "skipped 902: version: 'v3' is unknown" in Run.objects.get().log_texts
    run("start_cohort", SUNDAY)
    run("run_decisions", DECISION)
    assert [entry.market.question for entry in UniverseEntry.objects.all()] == [SNOW]
