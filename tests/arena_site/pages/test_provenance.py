"""Pages link every number to its sources: trades, prices, forecasts, hashes."""

import hashlib
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from agents.models import Forecast, RefusedForecast
from arena_site.pages.formulas import FROZEN
from arena_site.pages.views import agents as agent_views
from arena_site.pages.views import universes
from cohorts.models import Methodology
from markets.models import Market
from markets.services.question_resolution import resolve_questions
from scoring.services.scores import compute_scores
from tests.factories import (
    WEEK,
    AgentFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    PriceObservationFactory,
    QuestionFactory,
    UniverseFactory,
    ask,
    bet,
    chain_all,
    resolve,
)  # fmt: skip
from tests.markup import count_queries, element, elements, get_page, links, section, table_row, table_rows, visible_text

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
GPT, GROK = "gpt-5.1", "grok-4"


# --- an agent -------------------------------------------------------------------------------------------


def test_an_agent_counts_its_positions_by_state_and_names_the_largest_share(client: Client) -> None:
    agent = AgentFactory(slug=GPT)
    won, loser, waiting, open_one = (MarketFactory(question=f"{name}?") for name in ("Won", "Lost", "Waiting", "Held"))
    for market in (won, loser, waiting, open_one):
        bet(agent, market, amount="100.00")
    resolve(won, "YES", at=WEEK + DAY)
    resolve(loser, "NO", at=WEEK + DAY)
    Market.objects.filter(pk=waiting.pk).update(status="closed", closed_at=WEEK + DAY)
    page = get_page(client, f"/cohorts/1/{GPT}/")
    assert "1 open 1 awaiting resolution 1 won 1 lost" in visible_text(section(page, "positions"))
    assert "Largest single position: +$150.00, 300 % of the P/L, on Won?" in visible_text(page)
    assert "+$50.00 realized, $0.00 unrealized" in visible_text(page)


def test_decisions_of_an_agent_name_their_markets_and_stakes(client: Client) -> None:
    agent = AgentFactory(slug=GPT)
    bet(agent, MarketFactory(question="Will it hail?"), amount="123.00")
    text = visible_text(section(get_page(client, f"/cohorts/1/{GPT}/"), "decisions"))
    assert "$123.00 on YES : Will it hail?" in text


def test_positions_beyond_the_first_are_a_link_away(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_views, "POSITIONS_SHOWN", 1)
    agent = AgentFactory(slug=GPT)
    for name in ("First", "Second", "Third"):
        bet(agent, MarketFactory(question=f"{name}?"), amount="100.00")
    page, full = get_page(client, f"/cohorts/1/{GPT}/"), get_page(client, f"/cohorts/1/{GPT}/?all")
    assert "2 more: show every position" in visible_text(page)
    assert "Third?" not in visible_text(section(page, "positions"))
    assert "Third?" in visible_text(section(full, "positions"))
    assert "more:" not in visible_text(section(full, "positions"))


def test_a_week_counts_its_trades_and_what_was_rejected(client: Client) -> None:
    trade = bet(AgentFactory(slug=GPT), MarketFactory())
    call = ModelCallFactory(decision=trade.decision)
    for _ in range(2):
        InstructionFactory(call=call)
    page = section(get_page(client, f"/cohorts/1/{GPT}/"), "decisions")
    question = trade.position.market.question
    assert table_row(page, "Week 1").startswith(f"Week 1 BET 1 $500.00 on YES : {question} 2 ")
    assert f"/decisions/{trade.decision_id}/#instructions" in links(page)


def test_the_mean_of_an_agents_trades_is_its_brier_score(client: Client) -> None:
    agent = AgentFactory(slug=GPT)
    markets = []
    for amount, side in (("1250.00", "YES"), ("875.00", "NO")):
        markets.append(MarketFactory(question=f"Will {side} win?"))
        bet(agent, markets[-1], side, amount)
    for market in markets:
        resolve(market, "YES", at=WEEK + DAY)
    compute_scores(at=WEEK + DAY)
    page = get_page(client, f"/cohorts/1/{GPT}/trades/")
    scores = [float(cells[-1].split()[-1]) for cells in table_rows(page)[1:]]
    mean = sum(scores) / 2
    assert (
        f"The mean of the bet-sizing scores below is {mean:.3f}, over 2 resolved purchases; 50.0 % of them won."
        in visible_text(page)
    )
    to_trades = elements(get_page(client, f"/cohorts/1/{GPT}/"), 'a[href="/cohorts/1/gpt-5.2/trades/"]')
    assert f"{mean:.3f}" in map(visible_text, to_trades)


# --- a decision -----------------------------------------------------------------------------------------


def test_a_trades_price_leads_to_what_was_observed_and_to_its_entry(client: Client) -> None:
    market = MarketFactory(question="Will it rain?")
    PriceObservationFactory(
        outcome=market.outcomes.get(side="YES"), observed_at=WEEK, price=Decimal("0.40"), midpoint=Decimal("0.405"),
        gamma=Decimal("0.41"), bid=Decimal("0.39"), ask=Decimal("0.42"), reason="midpoint agrees with Gamma",
    )  # fmt: skip
    PriceObservationFactory(outcome=market.outcomes.get(side="YES"), observed_at=WEEK + DAY, reason="after the freeze")
    trade = bet(AgentFactory(slug=GPT), market, amount="500.00")
    page = section(get_page(client, f"/decisions/{trade.decision_id}/"), "trades")
    assert table_row(page, "midpoint agrees") == (
        "YES Will it rain? 40.0 % No. 1 40.5 % 41.0 % 39.0 % / 42.0 % 8 Mar 2026, 00:00 UTC midpoint agrees with Gamma"
    )
    assert "after the freeze" not in visible_text(page)
    link = f"/universes/{trade.decision.universe_id}/{market.pk}/"
    assert link in links(page)
    assert client.get(link)["Location"] == f"/universes/{trade.decision.universe_id}/?page=1#market-{market.pk}"


# --- a universe -----------------------------------------------------------------------------------------


def test_a_universe_lists_its_entries_with_the_source_of_each_price(client: Client) -> None:
    market = MarketFactory(question="Will it rain?")
    universe = UniverseFactory()
    page = get_page(client, f"/universes/{universe.pk}/")
    assert universe.sha256 in visible_text(page)
    assert "YES 40.0 % Gamma price NO 60.0 % Gamma price open" in table_row(page, "Will it rain?")
    get_page(client, f"/universes/{universe.pk}/{market.pk + 1}/", status=404)


def test_an_entry_is_found_on_its_page(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(universes, "PER_PAGE", 2)
    markets = MarketFactory.create_batch(5)
    universe = UniverseFactory()
    address = client.get(f"/universes/{universe.pk}/{markets[4].pk}/")["Location"]
    assert address == f"/universes/{universe.pk}/?page=3#market-{markets[4].pk}"
    assert element(get_page(client, address), f"#market-{markets[4].pk}")


# --- a market -------------------------------------------------------------------------------------------


def test_a_refused_price_stands_with_its_reason(client: Client) -> None:
    outcome = MarketFactory().outcomes.get(side="YES")
    PriceObservationFactory(outcome=outcome, stale=True, reason="midpoint 0.9 refused: far from Gamma")
    page = get_page(client, f"/markets/{outcome.market_id}/")
    assert "stale midpoint 0.9 refused: far from Gamma" in table_row(page, "refused")


def test_a_market_without_prices_or_trades_says_so(client: Client) -> None:
    market = MarketFactory(prices={"YES": None, "NO": None}, source="kalshi")
    text = visible_text(get_page(client, f"/markets/{market.pk}/"))
    assert "No accepted price yet" in text
    assert "Agents trade only on Polymarket" in text
    assert "None" not in text


@pytest.mark.parametrize(("status", "words"), [("YES", "YES : each share paid $1.00"), (None, "was refunded")])
def test_final_market_shows_its_result_and_the_source_of_it(client: Client, status: str | None, words: str) -> None:
    market = MarketFactory(oracle_status="resolved")
    bet(AgentFactory(slug=GPT), market, amount="400.00")
    resolve(market, status, at=WEEK + DAY)
    text = visible_text(section(get_page(client, f"/markets/{market.pk}/"), "resolution"))
    assert words in text
    assert "Status at the venue: resolved" in text
    assert ("+$600.00 of all agents" if status else "$0.00 of all agents") in text


def test_venue_is_linked_only_if_the_slug_is_safe(client: Client, settings: Any) -> None:
    settings.ARENA_DEMO = False
    good, bad = MarketFactory(slug="will-it-rain"), MarketFactory(slug="javascript:alert(1)")
    assert "https://polymarket.com/market/will-it-rain" in links(get_page(client, f"/markets/{good.pk}/"))
    assert not [link for link in links(get_page(client, f"/markets/{bad.pk}/")) if "javascript:" in link]
    settings.ARENA_DEMO = True  # its markets are at no venue
    assert "the venue has no such page" in visible_text(get_page(client, f"/markets/{good.pk}/"))


# --- a question, a forecast ------------------------------------------------------------------------------


def test_a_forecast_shows_prompt_answer_refusals_and_its_place_in_the_chain(client: Client) -> None:
    question = QuestionFactory()
    forecast = ask(question, {GPT: [0.7, 0.3]}).forecasts.get()
    other_question = ask(QuestionFactory(text="Another?"))
    RefusedForecast.objects.create(
        call=forecast.call, entry=other_question, stated={}, reason="YES: 2 is outside [0, 1]"
    )
    chain_all()
    page = get_page(client, f"/forecasts/{forecast.pk}/")
    blocks = [block.text() for block in elements(page, "pre")]
    task = forecast.elicitation
    assert blocks[:2] == [task.system_prompt, forecast.call.user_prompt]
    assert hashlib.sha256(blocks[-1].encode()).hexdigest() == task.link.record_sha256
    assert "refused Another? YES: 2 is outside [0, 1]" in visible_text(section(page, "calls"))
    assert table_row(page, "70.0 %") == "YES 40.0 % – 0.7 70.0 %"
    assert "GPT-5.2 has its reasons." in visible_text(page)
    for block in elements(page, "pre"):
        block.decompose()
    assert "None" not in visible_text(page)


def test_question_charts_forecasts_by_day_and_shows_refusals(client: Client) -> None:
    question = QuestionFactory()
    for day in range(3):
        entry = ask(question, {GPT: [0.5 + day / 10, 0.5 - day / 10]}, day=WEEK + day * DAY)
    RefusedForecast.objects.create(call=entry.forecasts.get().call, entry=entry, stated={}, reason="no sum of 1")
    page = get_page(client, f"/questions/{question.pk}/")
    drawn = section(page, "over-days")
    assert table_row(drawn, "9 Mar") == "9 Mar 2026, 00:00 UTC 40.0 % 60.0 %"
    assert "no sum of 1" in visible_text(section(page, "forecasts"))
    assert "10 Mar 2026" in visible_text(section(page, "forecasts"))
    assert "8 Mar 2026 ," not in visible_text(section(page, "forecasts"))  # only the latest two days stand whole


def test_of_many_options_the_likeliest_is_drawn_until_one_happened(client: Client) -> None:
    question = QuestionFactory(markets=[MarketFactory(prices={"Ada": "0.2", "Bo": "0.5", "Cy": "0.3"})])
    for day in range(2):
        ask(question, {GPT: [0.1, 0.6, 0.3]}, day=WEEK + day * DAY)
    assert "Bo , with the market’s prices" in visible_text(
        section(get_page(client, f"/questions/{question.pk}/"), "over-days")
    )
    resolve(question.market, "Cy", at=WEEK + 2 * DAY)
    resolve_questions(at=WEEK + 2 * DAY)
    assert "Cy , with the market’s prices" in visible_text(
        section(get_page(client, f"/questions/{question.pk}/"), "over-days")
    )


def test_question_of_one_day_has_no_chart(client: Client) -> None:
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    assert not elements(get_page(client, f"/questions/{question.pk}/"), "section[aria-labelledby=over-days]")


def test_a_forecast_page_costs_the_same_queries_whatever_its_batch_holds(client: Client) -> None:
    forecast = ask(QuestionFactory(), {GPT: [0.7, 0.3]}).forecasts.get()

    few = count_queries(client, f"/forecasts/{forecast.pk}/")
    for _ in range(3):
        entry = ask(QuestionFactory(), {GROK: [0.5, 0.5]})
        RefusedForecast.objects.create(call=forecast.call, entry=entry, stated={}, reason="no")
    assert count_queries(client, f"/forecasts/{forecast.pk}/") == few <= 10


# --- families --------------------------------------------------------------------------------------------


def test_a_family_shows_its_forecasts_and_its_calibration(client: Client) -> None:
    for number in range(3):
        question = QuestionFactory()
        ask(question, {GPT: [0.7, 0.3]})
        forecast = ask(question, {GPT: [0.6, 0.4]}, arm="blind").forecasts.first()
        resolve(question.options.first().outcome.market, "YES" if number else "NO")
        resolve_questions(at=WEEK + 30 * DAY)
    compute_scores(at=WEEK + 30 * DAY)
    page = get_page(client, f"/models/{GPT}/")
    forecasts = section(page, "forecasts")
    brier = (2 * 0.3**2 + 0.7**2) / 3
    assert f"{brier:.3f}" in table_row(element(forecasts, "table.board"), "with the market’s prices")
    assert "70.0 % 80.0 % 70.0 % 66.7 %" in visible_text(forecasts, "#calibration table")
    assert len(elements(forecasts, "#calibration .diagram")) == 2
    assert f"/forecasts/{forecast.pk}/" in links(section(page, "latest-forecasts"))


def test_a_family_shows_its_newest_forecasts_first(client: Client) -> None:
    for number in (3, 5, 4, 1):
        ask(QuestionFactory(), {GPT: [0.7, 0.3], GROK: [0.5, 0.5]}, day=WEEK + number * DAY)
    forecasts = Forecast.objects.filter(family__slug=GPT)
    page = section(get_page(client, f"/models/{GPT}/"), "latest-forecasts")
    newest_first = [f"/forecasts/{pk}/" for pk in forecasts.order_by("-made_at").values_list("pk", flat=True)]
    assert [link for link in links(page) if link.startswith("/forecasts/")] == newest_first
    assert len(newest_first) == 4


# --- rules, errors, nothing yet --------------------------------------------------------------------------


def test_every_frozen_score_is_typeset_or_needs_no_formula(client: Client) -> None:
    scoring = {name for rules in Methodology.objects.all() for name in rules.scoring}
    in_words = {"rounding", "marking", "references", "weights", "samples", "spread", "conditions"}
    assert scoring - FROZEN.keys() == in_words
    assert FROZEN.keys() <= scoring
    page = get_page(client, "/methodology/v2/")
    for name in FROZEN:
        assert elements(page, f"#score-{name} math"), name


def test_formulas_hold_the_constants_of_their_own_version(client: Client) -> None:
    rules = Methodology.objects.get(version="v2")
    rules.pk, rules.version, rules.maximum_bet_fraction = None, "v9", Decimal("0.1250")
    rules.save()
    assert "0.125" in [number.text() for number in elements(get_page(client, "/methodology/v9/"), "mn")]
    assert "0.25 × cash before the bet" in visible_text(get_page(client, "/methodology/v1/"))


def test_the_known_limits_stand_on_the_rules_page(client: Client) -> None:
    text = visible_text(section(get_page(client, "/methodology/v1/"), "limits"))
    limits = ("no depth", "not a proper score", "under the same name", "15 minutes after the freeze", "at most 2/n")
    for words in limits:
        assert words in text


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/cohorts/", "No cohort has started yet. The next one starts on"),
        ("/markets/", "No markets yet."),
        (f"/models/{GPT}/", "No cohort yet. It takes part from the next cohort on."),
        (f"/models/{GPT}/", "No scored forecasts yet."),
        ("/about/", "no decisions yet"),
    ],
)
def test_empty_page_announces_its_content(client: Client, address: str, words: str) -> None:
    assert words in visible_text(get_page(client, address))


def test_about_says_how_to_cite_and_verify(client: Client) -> None:
    text = visible_text(get_page(client, "/about/"))
    assert "Forecaster Arena, methodology v2. http://testserver/" in text
    assert "manage.py verify_export data.zip" in text
    assert "CC BY 4.0" in text
