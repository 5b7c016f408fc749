"""The pages: numbers equal to those recorded, text escaped, queries counted."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext
from selectolax.lexbor import LexborHTMLParser

from agents.models import Agent
from arena_site.pages.freshness import next_decision_run
from cohorts.models import Cohort, MissedWeek
from markets.models import Market, UniverseEntry
from scoring.selectors.valuations import valuations
from scoring.services.scores import compute_scores
from tests.arena_site.addresses import PLAYED, REFUSED, pages
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    InstructionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
    chain_all,
    end_question,
    resolve,
    sale,
)
from tests.guards import guards_removed
from tests.markup import count_queries, element, elements, get_page, links, section, table_row, visible_text
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def create_season(weeks: int = 1) -> None:
    """Cohorts in which two families bet on the same two markets; one resolved YES, boards are computed."""
    rain = MarketFactory(question="Will it rain in Orsa?")
    election = MarketFactory(question="Who wins?", prices={"Ada": "0.5", "Bo": "0.25", "Cy": "0.2"})
    for cohort in CohortFactory.create_batch(weeks):
        for slug, side in (("gpt-5.1", "YES"), ("grok-4", "NO")):
            agent = AgentFactory(slug=slug, cohort=cohort)
            bet(agent, rain, side, "1000.00")
            bet(agent, election, "Ada", "500.00")
            call = ModelCallFactory(decision=agent.decisions.get())
            InstructionFactory(
                call=call, payload={"market_id": str(rain.pk), "side": side, "amount": "1000"}, executed=True, reason=""
            )
            InstructionFactory(call=call)
            for day in range(3):
                SnapshotFactory(agent=agent, taken_at=cohort.week_start + day * DAY)
    resolve(rain, "YES", at=WEEK + 3 * DAY)
    forecast_questions(WEEK)
    compute_scores(at=WEEK + 4 * DAY)


def forecast_questions(day: datetime) -> None:
    """Two questions, asked of two families on a day; the second is resolved."""
    for question in QuestionFactory.create_batch(2):
        ask(question, {"gpt-5.1": [0.7, 0.3], "grok-4": [0.4, 0.6]}, day=day)
        ask(question, {"gpt-5.1": [0.55, 0.45]}, arm="blind", day=day)
    end_question(question, "YES", at=day + 3 * DAY)
    chain_all()


season = shared_rows(create_season)


# --- the leaderboard ------------------------------------------------------------------------------------


def test_no_page_shows_none_without_data(client):
    """Beside prompts, and the option that is called "None of these"."""
    for address in pages(missing=PLAYED):
        answer = client.get(address)
        assert answer.status_code == REFUSED.get(address, 200), address
        page = LexborHTMLParser(answer.content if answer["Content-Type"].startswith("text/html") else b"")
        for prompt in elements(page, "pre"):
            prompt.decompose()
        assert "None" not in visible_text(page).replace("None of these", ""), address


def test_an_empty_leaderboard_says_when_the_next_run_is(client):
    text = visible_text(get_page(client, "/"))
    assert "No leader yet: no question has resolved; a leader is named from 4 on." in text
    assert "The first decisions are due on" in text
    assert "The first cohort starts on" in visible_text(get_page(client, "/trading/"))


def test_one_cohort_has_no_interval_and_the_page_says_why(client, season):
    page = get_page(client, "/trading/")
    assert "±" not in table_row(page, "GPT-5.2")
    assert "With one cohort there is no interval for the return yet" in visible_text(page)


def test_with_two_cohorts_the_page_names_the_interval_and_its_limits(client):
    create_season(weeks=2)
    text = visible_text(get_page(client, "/trading/"))
    assert "its 95 % interval over calendar weeks, since cohorts share weeks and markets" in text
    assert "with fewer than about twelve cohorts one rare shared win can still fall outside" in text
    assert "95 % interval over events; never leaves 0 to 1; allows for one unseen event" in text
    assert "confidence is a share of cash, not a probability, so this is not a proper score" in text


def test_leaderboard_shows_one_time_that_of_its_board(client, season):
    instants = elements(get_page(client, "/trading/"), "dd time")
    times = {node.attributes["datetime"]: visible_text(node) for node in instants}
    since = times.pop("2026-03-10T00:10:00Z")  # the pause
    assert (since, times) == ("10 Mar 2026, 00:10 UTC", {"2026-03-12T00:00:00Z": "12 Mar 2026, 00:00 UTC"})


def test_the_latest_decisions_are_linked(client):
    agent = AgentFactory(slug="gpt-5.1")
    decisions = [DecisionFactory(agent=agent, week=week) for week in range(1, 13)]
    paths = [f"/decisions/{decision.pk}/" for decision in reversed(decisions[8:])]
    assert links(get_page(client, "/models/gpt-5.2/"), 'main a[href^="/decisions/"]') == paths


def test_missed_decision_is_not_among_the_latest(client):
    DecisionFactory(agent=AgentFactory(slug="gpt-5.1"), missed=True)
    assert "Latest decisions" not in visible_text(get_page(client, "/models/gpt-5.2/"))


@pytest.mark.parametrize(
    ("now", "run"),
    [
        ("2026-03-08T00:04:59Z", "2026-03-08T00:05:00Z"),
        ("2026-03-08T00:05:00Z", "2026-03-15T00:05:00Z"),
        ("2026-03-14T23:59:00Z", "2026-03-15T00:05:00Z"),
    ],
)
def test_the_next_decision_run_is_the_next_sunday_five_past_midnight(now, run):
    assert next_decision_run(datetime.fromisoformat(now)) == datetime.fromisoformat(run)


# --- a decision -----------------------------------------------------------------------------------------


def test_a_decision_shows_its_trades_with_price_source_and_outcome(client):
    rain = MarketFactory(question="Will it rain in Orsa?")
    trade = bet(AgentFactory(), rain, "NO", "1250.00")
    sources = {"NO": {"source": "retained", "stale": True}}
    with guards_removed(UniverseEntry):
        trade.decision.universe.entries.filter(market=rain).update(sources=sources)
    resolve(rain, "YES", at=WEEK + DAY)
    compute_scores(at=WEEK + DAY)
    assert table_row(get_page(client, f"/decisions/{trade.decision_id}/"), "BUY") == (
        "Will it rain in Orsa? BUY NO 2,083.33 60.0 % last accepted price, retained, stale $1,250.00 50.0 % "
        "of $2,500.00 – lost 0.250"
    )


def test_a_decision_shows_each_instruction_and_why_it_was_rejected(client):
    rain = MarketFactory(question="Will it rain in Orsa?")
    call = ModelCallFactory()
    instruction = {"market_id": str(rain.pk), "side": "YES", "amount": "500"}
    InstructionFactory(call=call, payload=instruction, executed=True, reason="")
    InstructionFactory(call=call, payload={"market_id": "nonsense", "side": "NO", "amount": "70"}, reason="unknown")
    page = get_page(client, f"/decisions/{call.decision_id}/")
    assert table_row(page, "$500") == "BET YES Will it rain in Orsa? $500 executed"
    assert table_row(page, "$70") == "BET NO nonsense $70 rejected unknown"


def test_a_sale_names_the_market_of_its_position(client):
    trade = bet(AgentFactory(), MarketFactory(question="Will it rain in Orsa?"))
    call = ModelCallFactory(decision=trade.decision)
    payload = {"position_id": str(trade.position_id), "percentage": "25"}
    InstructionFactory(call=call, kind="SELL", payload=payload, executed=True, reason="")
    page = get_page(client, f"/decisions/{trade.decision_id}/")
    assert table_row(page, "25 %") == "SELL YES Will it rain in Orsa? 25 % executed"


def test_every_call_is_shown_and_their_costs_are_summed(client):
    decision = DecisionFactory()
    ModelCallFactory(decision=decision, result="malformed", error="two JSON objects", cost_usd=Decimal("0.5"))
    ModelCallFactory(
        decision=decision,
        model="openai/gpt-5.2",
        returned_model="openai/gpt-5.2-20251211",
        provider="OpenAI",
        cost_usd=Decimal("0.75"),
        latency_ms=655,
    )
    page = get_page(client, f"/decisions/{decision.pk}/")
    assert "two JSON objects" in table_row(page, "malformed")
    assert "openai/gpt-5.2 openai/gpt-5.2-20251211 OpenAI 1,000 / 200 $0.7500" in table_row(page, "answered")
    assert "Model cost $1.25 Tokens in / out 2,000 / 400 Response time 2.2 s" in visible_text(page)


def test_the_prompt_and_the_answer_are_shown_byte_for_byte(client):
    MarketFactory(question="\"'><script>alert(1)</script>\n# SYSTEM\n{{ secret }}")
    call = ModelCallFactory(raw_response='\n\n  {"answer": "<b>&amp;</b>"}  \n')
    blocks = [block.text() for block in elements(get_page(client, f"/decisions/{call.decision_id}/"), "pre")]
    assert blocks == [call.system_prompt, call.user_prompt, call.raw_response]


def test_a_retry_shows_its_note_and_not_the_whole_message_again(client):
    first = ModelCallFactory(result="malformed")
    ModelCallFactory(decision=first.decision, retry_note="\nNOTE\nthe answer was cut off")
    text = visible_text(get_page(client, f"/decisions/{first.decision_id}/"))
    assert text.count("Decide now: one JSON object.") == 1
    assert "the answer was cut off" in text


def test_a_retry_with_another_portfolio_shows_its_own_message(client):
    first = ModelCallFactory(result="failed")
    ModelCallFactory(decision=first.decision, portfolio_block="CHANGED")
    assert "CHANGED" in visible_text(get_page(client, f"/decisions/{first.decision_id}/"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"missed": True, "reasoning": ""}, ("Missed: the decision window", "No API call was made.", "window over")),
        ({"failed": True}, ("can be retried until the decision window closes", "Only completed decisions")),
        ({"fallback": True, "reasoning": ""}, ("HOLD by fallback: the model gave no readable answer",)),
    ],
)
def test_decision_without_an_answer_says_why(client, fields, words):
    text = visible_text(get_page(client, f"/decisions/{DecisionFactory(**fields).pk}/"))
    assert [word for word in words if word not in text] == []
    assert "None" not in text


# --- cohorts, agents, families --------------------------------------------------------------------------


def test_positions_and_those_awaiting_resolution_are_counted_for_each_agent(client):
    holder, idle = AgentFactory(slug="gpt-5.1"), AgentFactory(slug="grok-4", cohort=Cohort.objects.get())
    unpriced, closed, open_, sold = MarketFactory.create_batch(4)
    for market in (unpriced, closed, open_):
        bet(holder, market)
    bet(holder, closed, "NO")
    sale(bet(holder, sold).position)
    unpriced.outcomes.update(price=None)
    Market.objects.filter(pk__in=[unpriced.pk, closed.pk]).update(status=Market.Status.CLOSED, closed_at=WEEK + DAY)
    agents = Agent.objects.select_related("cohort__methodology")
    full, cheap = valuations(agents, awaiting=True), valuations(agents)
    assert [(worth.open_positions, worth.awaiting) for worth in full.values()] == [(4, 3), (0, 0)]
    assert [(worth.open_positions, worth.awaiting) for worth in cheap.values()] == [(4, 0), (0, 0)]
    assert [worth.total for worth in full.values()] == [worth.total for worth in cheap.values()]
    assert full[idle.pk].total == Decimal("10000.00")
    assert " 4 3 awaiting resolution " in table_row(get_page(client, "/cohorts/1/"), holder.model_id)
    assert "awaiting" not in table_row(get_page(client, "/cohorts/1/"), idle.model_id)
    assert " 4 3 awaiting resolution " in visible_text(get_page(client, "/cohorts/1/"))
    assert " 4 3 awaiting resolution " in table_row(get_page(client, "/cohorts/"), "Cohort 1")


def test_a_cohort_links_each_decision_in_its_week(client):
    agent = AgentFactory(slug="gpt-5.1")
    first, third = (DecisionFactory(agent=agent, week=week) for week in (1, 3))
    weeks = [links(cell) for cell in elements(get_page(client, "/cohorts/1/"), "table.grid td")]
    assert weeks == [[f"/decisions/{first.pk}/"], [], [f"/decisions/{third.pk}/"], [], []]


def test_weeks_that_nobody_ran_are_missed_and_later_ones_open(client):
    cohort = CohortFactory()
    agent = AgentFactory(slug="gpt-5.1", cohort=cohort)
    broke = AgentFactory(slug="grok-4", cohort=cohort, status=Agent.Status.BANKRUPT)
    for member in (agent, broke):
        DecisionFactory(agent=member)
    in_week_3 = cohort.week_start + timedelta(weeks=2, hours=1)
    with time_machine.travel(in_week_3, tick=False):
        page = get_page(client, "/cohorts/1/")
        weeks = visible_text(section(get_page(client, "/cohorts/1/gpt-5.2/"), "decisions"))
        text = visible_text(page)
    assert table_row(section(page, "decisions"), "GPT-5.2") == "GPT-5.2 HOLD missed – – –"
    assert table_row(section(page, "decisions"), "Grok 4.1") == "Grok 4.1 HOLD – – – –"
    assert "Week 2 missed" in weeks
    assert "Week 3" not in weeks
    assert "paused since 22 Mar 2026, 00:05 UTC" in text


def test_releases_name_the_first_and_last_of_consecutive_cohorts(client):
    for cohort in CohortFactory.create_batch(5):
        AgentFactory(slug="grok-4" if cohort.number != 4 else "gpt-5.1", cohort=cohort)
    releases = section(get_page(client, "/models/grok-4.1/"), "releases")
    assert table_row(releases, "x-ai/grok-4").endswith(" 1 – 3 5")
    assert links(releases, ".number-links a") == [f"/cohorts/{number}/grok-4.1/" for number in (1, 3, 5)]


def test_each_position_shows_its_result(client):
    agent = AgentFactory(slug="gpt-5.1")
    names = ("won", "lost", "cancelled", "awaiting", "open", "sold")
    markets = {name: MarketFactory(question=f"Market {name}?") for name in names}
    trades = {name: bet(agent, market, amount="100.00") for name, market in markets.items()}
    for name, side in (("won", "YES"), ("lost", "NO"), ("cancelled", None)):
        resolve(markets[name], side, at=WEEK + DAY)
    sale(trades["sold"].position, price="0.50")  # in week 2
    Market.objects.filter(pk=markets["awaiting"].pk).update(status="closed", closed_at=WEEK + DAY)
    page = get_page(client, "/cohorts/1/gpt-5.2/")
    positions = section(page, "positions")
    assert table_row(positions, "Market won?").endswith("won 8 Mar 2026 9 Mar 2026 +$150.00")
    assert table_row(positions, "Market lost?").endswith("lost 8 Mar 2026 9 Mar 2026 −$100.00")
    assert table_row(positions, "Market cancelled?").endswith("cancelled 8 Mar 2026 9 Mar 2026 $0.00")
    assert table_row(positions, "Market sold?").endswith("sold 8 Mar 2026 15 Mar 2026 +$25.00")
    assert "YES awaiting resolution 250.00" in table_row(positions, "Market awaiting?")
    assert table_row(positions, "Market open?").endswith("YES open 250.00 40.0 % 40.0 % $100.00 $100.00 $0.00")
    assert "Largest single position: +$150.00" in visible_text(page)


def test_a_missed_week_stands_among_the_cohorts(client):
    MissedWeek.objects.create(week_start=WEEK, recorded_at=WEEK, reason="nobody was there")
    assert "8 Mar 2026 : nobody was there" in visible_text(get_page(client, "/cohorts/"))


# --- methodology ----------------------------------------------------------------------------------------


def test_the_methodology_is_shown_as_it_is_frozen(client):
    methodology = CohortFactory().methodology
    page = get_page(client, f"/methodology/{methodology.version}/")
    text, prompts = visible_text(page), [prompt.text() for prompt in elements(page, "pre")]
    assert {methodology.system_prompt, methodology.forecast["system_prompt"]} <= {*prompts}
    for sentence in (*methodology.rulings, *methodology.scoring.values(), methodology.forecast["choice_rule"]):
        assert " ".join(sentence.split()) in text
    assert "nobody may bet on them" in text
    assert "A question qualifies if" in text
    assert methodology.sha256 in text
    assert "Fair (at or near random)" in text


@pytest.mark.parametrize(
    "address",
    [
        *("/decisions/7/", "/cohorts/7/", "/cohorts/1/nobody-1.0/", "/models/nobody-1.0/", "/markets/7/"),
        *("/questions/99/", "/methodology/v9/", "/og/secrets.png", "/calibration/?arm=deaf"),
        *(f"/trading/?{query}" for query in ("category=X", "methodology=v9", "as_of=tomorrow")),
        *("/cohorts/1/?range=2D", "/cohorts/1/charts/nothing.svg", "/cohorts/1/charts/values.gif"),
        *("/?as_of=tomorrow", "/?as_of=2999-01-01", "/leaderboard.csv?as_of=tomorrow", "/og/forecasts.gif"),
        *(f"/forecasts/?{query}" for query in ("arm=X", "category=X", "methodology=v9", "gamma=2")),
        *(f"/compare/{pair}/" for pair in ("gpt-5.1/gpt-5.1", "gpt-5.1/nobody", "nobody/gpt-5.1")),
    ],
)
def test_unknown_row_or_choice_is_not_found(client, address):
    get_page(client, address, status=404)


# --- all pages ------------------------------------------------------------------------------------------


def queries_of(client, addresses: list[str]) -> dict[str, int]:
    """By address, the queries of a page that has been read before."""
    counted = {}
    for address in addresses:
        assert client.get(address).status_code in (200, 302, REFUSED.get(address)), address
        with CaptureQueriesContext(connection) as captured:
            client.get(address)
        counted[address] = len(captured)
    return counted


def test_no_page_needs_more_queries_as_rows_grow(client, season):
    old = Agent.objects.filter(family__slug="gpt-5.1").earliest("pk")
    first = old.decisions.get()
    # A market that was named and not traded is looked up: all such at once.
    instruction = {"market_id": str(MarketFactory().pk), "side": "YES", "amount": "20"}
    InstructionFactory(call=first.calls.get(), payload=instruction)
    read = [*pages(missing={"external-agent"})]
    before = queries_of(client, read)
    assert max(before.values()) <= 17, before
    for week in (1, 2):
        more = MarketFactory(prices={"A": "0.5", "B": "0.3", "C": "0.2"})
        newcomer = AgentFactory(cohort=old.cohort)
        for agent in (newcomer, *AgentFactory.create_batch(2, cohort=CohortFactory())):
            bet(agent, more, "A", "100.00")
            bet(agent, Market.objects.get(question="Who wins?"), "Bo", "100.00")
            SnapshotFactory(agent=agent, taken_at=WEEK + week * DAY)
        trade = bet(old, more, "B", "100.00", week=week)
        for decision in (first, trade.decision):
            call = ModelCallFactory(decision=decision)
            for side in ("A", "B"):
                InstructionFactory(call=call, payload={"market_id": str(more.pk), "side": side, "amount": "60"})
        forecast_questions(WEEK + week * DAY)
    resolve(more, "A", at=WEEK + 5 * DAY)
    compute_scores(at=WEEK + 6 * DAY)
    assert queries_of(client, read) == before


def test_share_image_is_the_pages_own(client, season):
    images = {
        address: element(get_page(client, address), 'meta[property="og:image"]').attributes["content"]
        for address in ("/", "/trading/", "/cohorts/1/", "/models/gpt-5.2/", "/decisions/", "/methodology/")
    }
    assert images == {
        "/": "http://testserver/og/forecasts.png",
        "/trading/": "http://testserver/og/trading.png",
        "/cohorts/1/": "http://testserver/cohorts/1/charts/values.png",
        "/models/gpt-5.2/": "http://testserver/models/gpt-5.2/charts/returns.png",
        "/decisions/": "http://testserver/og/site.png",
        "/methodology/": "http://testserver/og/site.png",
    }
    for image in images.values():
        assert client.get(image)["Content-Type"] == "image/png"


def test_boards_say_by_what_they_are_sorted(client, season):
    heading = element(get_page(client, "/trading/"), '.board th[aria-sort="ascending"]')
    assert visible_text(heading).startswith("Rank")


def test_release_from_the_beginning_has_no_invented_date(client):
    page = get_page(client, "/models/gpt-5.2/")
    assert "1 Jan 2020" not in visible_text(page)
    assert "the beginning" in visible_text(section(page, "releases"))


@pytest.mark.parametrize(
    ("address", "most"),
    [
        # One of each looks for maintenance.
        ("/cohorts/", 6),
        ("/cohorts/1/", 12),
        ("/cohorts/1/gpt-5.2/", 11),
        ("/cohorts/1/gpt-5.2/trades/", 6),
        ("/models/", 5),
        ("/models/gpt-5.2/", 17),
    ],
)
def test_page_reads_competitors_and_positions_once(client, address, most, season):
    assert count_queries(client, address) == most
