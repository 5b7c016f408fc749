"""Past leaderboards are computed once, and anew as soon as their past has changed."""

import json
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family, Forecast
from cohorts.models import Cohort
from markets.models import Market, Question
from markets.services.question_resolution import correct_question_outcomes
from scoring.models import BrierScore
from scoring.selectors.leaderboard_entries import PROTOCOLS, leaderboard_entries
from scoring.services import scores
from scoring.services.forecast_panels import Selection, family_names, resolved_entries
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.scores import clear_scores
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    SnapshotFactory,
    ask,
    bet,
    end_question,
    reverse_to,
)
from tests.selection import chosen
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"
POLITICS, SPORTS = "Politics", "Sports"
SECOND = timedelta(seconds=1)
INSTANTS = [WEEK + 2.75 * DAY, END]


def score() -> None:
    scores.compute_scores(at=END)


def play() -> None:
    """Bets of two families and forecasts of three on five markets; four of them end, on four days."""
    first = AgentFactory(family=Family.objects.get(slug=GPT))
    players = [first, AgentFactory(family=Family.objects.get(slug=GROK), cohort=first.cohort)]
    for day, (category, side) in enumerate(
        [(POLITICS, "YES"), (SPORTS, "NO"), (POLITICS, "NO"), (SPORTS, "YES"), ("", None)], start=2
    ):
        market = MarketFactory(category=category)
        for place, agent in enumerate(players):
            bet(agent, market, amount=f"{(place + 1) * 300 + day}.00")
        question = QuestionFactory(markets=[market], category=category)
        ask(question, {GPT: [0.1 * day, 1 - 0.1 * day], GROK: [0.4, 0.6]} | ({KIMI: [0.8, 0.2]} if day > 2 else {}))
        ask(question, {GPT: [0.6, 0.4], GROK: [0.3, 0.7]}, day=WEEK + DAY, arm="blind")
        if side:
            end_question(question, side, at=WEEK + day * DAY)
    for day in range(1, 12):
        for place, agent in enumerate(players):
            SnapshotFactory(agent=agent, taken_at=WEEK + day * DAY, cash=Decimal(10_000 + day * 7 - place * 30))
    score()


season = shared_rows(play)


def shown_entries(at: datetime | None, protocol: str, **selection: str) -> Any:
    """The entries, as the API sends them."""
    return json.loads(json.dumps(leaderboard_entries(protocol, at=at, **selection), sort_keys=True, default=str))


def all_entries(instants: Iterable[datetime] = INSTANTS, protocols: Iterable[str] = PROTOCOLS) -> dict[Any, Any]:
    return {
        (protocol, category, at): shown_entries(at, protocol, category=category)
        for protocol in protocols
        for category in ("", POLITICS)
        for at in instants
    }


def computed_equally(instants: Iterable[datetime] = INSTANTS, protocols: Iterable[str] = PROTOCOLS) -> dict[Any, Any]:
    """The entries as read, which are those computed without the cache."""
    boards = all_entries(instants, protocols)
    cache.clear()
    assert all_entries(instants, protocols) == boards
    return boards


def tables_read(at: datetime | None, protocol: str, **selection: str) -> set[str]:
    """The tables of all rows that a leaderboard's figures are made of, if it reads them."""
    with CaptureQueriesContext(connection) as captured:
        shown_entries(at, protocol, **selection)
    statements = [query["sql"] for query in captured if "COUNT(" not in query["sql"]]
    tables = (Forecast._meta.db_table, BrierScore._meta.db_table)
    return {table for table in tables for sql in statements if f'FROM "{table}"' in sql}


def test_a_past_leaderboard_is_as_of_its_instant(season: None) -> None:
    instants = sorted({WEEK - DAY, END, *(WEEK + step * DAY / 2 for step in range(13)), WEEK + 3 * DAY - SECOND})
    boards = computed_equally(instants)
    assert [boards["trading", "", at][0]["resolved_bets"] for at in (WEEK, WEEK + 2 * DAY, END)] == [0, 1, 4]
    assert len({str(entries) for (protocol, _, _), entries in boards.items() if protocol == "forecast"}) == 6
    assert shown_entries(END, "forecast", arm="blind") != boards["forecast", "", END]
    assert shown_entries(None, "trading", category=POLITICS)[0]["resolved_bets"] == 2


@pytest.mark.parametrize(
    ("at", "protocol", "selection"),
    [
        (WEEK + 3 * DAY, "forecast", {}),
        (WEEK + 3 * DAY, "forecast", {"arm": "blind", "category": SPORTS}),
        (WEEK + 3 * DAY, "trading", {}),
        (None, "trading", {"category": POLITICS}),
    ],
)
def test_a_past_leaderboard_is_computed_once(
    season: None, at: datetime | None, protocol: str, selection: dict[str, str]
) -> None:
    table = {"forecast": "agents_forecast", "trading": "scoring_brierscore"}[protocol]
    assert tables_read(at, protocol, **selection) == {table}
    assert tables_read(at, protocol, **selection) == set()
    end_question(Question.objects.get(status=Question.Status.OPEN), "YES", at=END - DAY)
    score()
    assert tables_read(at and at + SECOND, protocol, **selection) == set()  # a new end reaches nothing before it


def test_a_past_leaderboard_has_the_money_of_the_newest_snapshots_by_then(season: None) -> None:
    later = AgentFactory(family=Family.objects.get(slug=GPT), cohort=CohortFactory())
    SnapshotFactory(agent=later, taken_at=WEEK + 8 * DAY, cash=Decimal(9_000), positions_value=Decimal("500.26"))

    def values(at: datetime) -> list[tuple[int, str]]:
        entries = {entry["family"]: entry for entry in shown_entries(at, "trading")}
        return [(entries[slug]["cohorts"], entries[slug]["total_value"]) for slug in (GPT, GROK)]

    assert values(WEEK) == [(1, "10000.00"), (1, "10000.00")]
    assert values(WEEK + 2 * DAY) == [(1, "10014.00"), (1, "9984.00")]
    assert values(WEEK + 3 * DAY - SECOND) == values(WEEK + 2 * DAY)
    assert values(WEEK + 7.5 * DAY) == [(2, "10024.50"), (1, "10019.00")]  # one of two has no snapshot yet
    assert values(WEEK + 8 * DAY) == [(2, "9778.13"), (1, "10026.00")]


def test_a_past_leaderboard_has_the_costs_of_the_weeks_frozen_by_then(season: None) -> None:
    agent = Agent.objects.get(family__slug=GPT)
    first, second = (DecisionFactory(agent=agent, week=week) for week in (2, 3))
    for decision, spent in ((first, "0.25"), (first, "0.05"), (second, "0.50")):
        ModelCallFactory(decision=decision, sequence=decision.calls.count(), cost_usd=Decimal(spent))

    def cost(at: datetime) -> str:
        return next(str(entry["cost_usd"]) for entry in shown_entries(at, "trading") if entry["family"] == GPT)

    instants = [decision.universe.frozen_at for decision in (first, second)]
    assert [cost(at - SECOND) for at in instants] == ["0.000000", "0.300000"]
    assert [cost(at) for at in instants] == ["0.300000", "0.800000"]


def resolve_late() -> None:
    """Resolves the fifth market after the others, at an instant before some of them."""
    question = Question.objects.get(status=Question.Status.OPEN)
    end_question(question, "YES", at=WEEK + 2.5 * DAY)
    score()


def late_forecast() -> None:
    """Another family answers a question that has resolved already."""
    ask(Question.objects.filter(status="resolved").order_by("resolved_at")[1], {"gemini-2.5-flash": [0.99, 0.01]})


def reversed_bets(side: str | None = None) -> None:
    market = Market.objects.filter(status="resolved").order_by("resolved_at")[1]
    reverse_to(market, side, at=END - DAY)
    clear_scores(market, correct_question_outcomes(market, at=END - DAY))


def resolved_by_now() -> None:
    end_question(Question.objects.get(status=Question.Status.OPEN), "NO", at=END - DAY)


CHANGES = [resolved_by_now, resolve_late, late_forecast, partial(reversed_bets, "YES"), reversed_bets]


@pytest.mark.parametrize("change", chosen([late_forecast, reversed_bets], CHANGES))
def test_a_change_of_the_past_is_on_its_leaderboards_at_once(season: None, change: Callable[[], Any]) -> None:
    before = all_entries()
    change()
    unscored = computed_equally()
    score()
    assert before != unscored or change is not late_forecast
    assert before != computed_equally()


def test_family_without_a_forecast_is_on_past_leaderboards_by_its_present_name(season: None) -> None:
    Family.objects.filter(slug=KIMI).update(display_name="Kimi of Now")
    computed_equally([END])
    entries = {e["forecaster"]: e for e in shown_entries(WEEK + DAY, "forecast")}
    assert (entries[KIMI]["display_name"], entries[KIMI]["n"], entries[KIMI]["ruins"]["0"]) == ("Kimi of Now", 0, 0)
    selection = Selection("priced", until=END)
    with_all = forecast_leaderboard(resolved_entries(selection), family_names(selection), {}, reported=False)
    full_entries = {entry["forecaster"]: entry for entry in json.loads(json.dumps(with_all.entries))}
    assert {
        e["forecaster"]: {key: e[key] for key in full_entries[KIMI]} for e in shown_entries(END, "forecast")
    } == full_entries


def test_each_of_several_methodologies_has_leaderboards_of_its_own(season: None) -> None:
    version = Cohort.objects.get().methodology.version
    for protocol in PROTOCOLS:
        assert shown_entries(END, protocol, methodology=version) == shown_entries(END, protocol)
    rules = Cohort.objects.get().methodology
    rules.pk, rules.version = None, "v9"
    rules.save()
    other_agent = AgentFactory(cohort=CohortFactory(methodology=rules))
    bet(other_agent, Market.objects.filter(status="resolved").order_by("pk")[0])
    score()
    for methodology in ("", version, "v9"):
        entries = shown_entries(END, "trading", methodology=methodology)
        assert sum(entry["resolved_bets"] for entry in entries) == {"": 9, version: 8, "v9": 1}[methodology]


def test_agents_of_whom_nothing_is_scored_have_no_figures(season: None) -> None:
    newcomer: Agent = AgentFactory(family=Family.objects.get(slug=KIMI), cohort=Cohort.objects.get())
    rows = {row["family"]: row for row in shown_entries(END, "trading")}
    assert (rows[newcomer.family.slug]["resolved_bets"], rows[newcomer.family.slug]["brier"]) == (0, None)
    computed_equally([END])
