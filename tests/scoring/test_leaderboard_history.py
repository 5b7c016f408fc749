"""Stored past leaderboards equal the computed ones, whatever has changed since."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family, Forecast
from cohorts.models import Cohort
from markets.models import Market, Question
from markets.services.cache_versions import Scope, mark_history_stale
from markets.services.question_resolution import correct_question_outcomes
from scoring import leaderboard_history as history
from scoring.leaderboard_entries import PROTOCOLS, leaderboard_entries
from scoring.models import BrierScore, LeaderboardHistory
from scoring.services import history_backfill, scores
from scoring.services.forecast_leaderboards import forecast_leaderboard
from scoring.services.forecast_panels import Selection, family_names, resolved_entries
from scoring.services.history_backfill import backfill_history
from scoring.services.scores import clear_scores
from tests.commands import run
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
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"
POLITICS, SPORTS = "Politics", "Sports"
PRICED_FORECASTS = history.LeaderboardKey("forecast", "", "priced")
SECOND = timedelta(seconds=1)
INSTANTS = [WEEK, WEEK + 2.75 * DAY, WEEK + 3 * DAY, END]


def score_and_store() -> None:
    """The jobs that score and that store past leaderboards."""
    scores.compute_scores(at=END)
    backfill_history()


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
    score_and_store()


season = shared_rows(play)


@contextmanager
def nothing_stored() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "stored_entries", lambda key, at: None)
        yield


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


def is_stored(at: datetime, protocol: str = "forecast", category: str = "") -> bool:
    arm = "priced" if protocol == "forecast" else ""
    return history.stored_entries(history.LeaderboardKey(protocol, "", arm, category), at) is not None


def computed_equally(instants: Iterable[datetime] = INSTANTS, protocols: Iterable[str] = PROTOCOLS) -> dict[Any, Any]:
    """The entries as read, which equal the computed ones."""
    shown = all_entries(instants, protocols)
    with nothing_stored():
        computed = all_entries(instants, protocols)
    assert shown == computed
    return shown


def test_leaderboards_on_record_are_those_computed_at_any_instant(season: None) -> None:
    instants = sorted({WEEK - DAY, END, *(WEEK + step * DAY / 2 for step in range(13)), WEEK + 3 * DAY - SECOND})
    assert all(is_stored(at, protocol, c) for at in instants for protocol in PROTOCOLS for c in ("", POLITICS, SPORTS))
    shown = computed_equally(instants)
    assert [shown["trading", "", at][0]["resolved_bets"] for at in (WEEK, WEEK + 2 * DAY, END)] == [0, 1, 4]
    assert len({str(entries) for (protocol, _, _), entries in shown.items() if protocol == "forecast"}) == 6
    with_arm = shown_entries(END, "forecast", arm="blind")
    with nothing_stored():
        assert shown_entries(END, "forecast", arm="blind") == with_arm != shown["forecast", "", END]


def test_a_category_of_now_is_read_of_the_record_too(season: None) -> None:
    now = shown_entries(None, "trading", category=POLITICS)
    with nothing_stored():
        assert shown_entries(None, "trading", category=POLITICS) == now
    assert now[0]["resolved_bets"] == 2


def test_a_leaderboard_on_record_is_read_and_not_computed(season: None) -> None:
    def queries(protocol: str) -> list[str]:
        shown_entries(WEEK + 3 * DAY, protocol)  # who plays is read once for a change, not for a leaderboard
        with CaptureQueriesContext(connection) as counted:
            shown_entries(WEEK + 3 * DAY, protocol)
        return [query["sql"] for query in counted]

    read = queries("forecast"), queries("trading")
    assert not any(Forecast._meta.db_table in sql for sql in read[0])
    assert not any(BrierScore._meta.db_table in sql for sql in read[1])
    assert [len(statements) for statements in read] == [2, 5]  # of trading one is of the weeks that snapshots cover
    with nothing_stored():
        assert any(Forecast._meta.db_table in sql for sql in queries("forecast"))


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

    then = [decision.universe.frozen_at for decision in (first, second)]
    assert [cost(at - SECOND) for at in then] == ["0.000000", "0.300000"]
    assert [cost(at) for at in then] == ["0.300000", "0.800000"]


def resolve_late() -> None:
    """Resolves the fifth market after the others, at an instant before some of them."""
    question = Question.objects.get(status=Question.Status.OPEN)
    end_question(question, "YES", at=WEEK + 2.5 * DAY)
    score_and_store()


def late_forecast() -> None:
    """Another family answers a question that has resolved already."""
    ask(Question.objects.filter(status="resolved").order_by("resolved_at")[1], {"gemini-2.5-flash": [0.99, 0.01]})


def reversed_bets(side: str | None = None) -> None:
    market = Market.objects.filter(status="resolved").order_by("resolved_at")[1]
    reverse_to(market, side, at=END - DAY)
    clear_scores(market, correct_question_outcomes(market, at=END - DAY))


def resolved_by_now() -> None:
    end_question(Question.objects.get(status=Question.Status.OPEN), "NO", at=END - DAY)


@pytest.mark.parametrize(
    ("change", "protocol"), [(reversed_bets, "trading"), (reversed_bets, "forecast"), (late_forecast, "forecast")]
)
def test_a_change_of_the_past_makes_the_leaderboard_since_then_stale(
    season: None, change: Callable[[], Any], protocol: str
) -> None:
    before = all_entries(protocols=[protocol])
    change()
    assert not any(is_stored(at, protocol) for at in INSTANTS if at >= WEEK + 3 * DAY)
    assert all(is_stored(at, protocol) for at in INSTANTS if at < WEEK + 3 * DAY)
    after = computed_equally(protocols=[protocol])
    assert after != before
    backfill_history()
    assert all(is_stored(at, protocol) for at in INSTANTS)
    assert all_entries(protocols=[protocol]) == after


def test_a_rolled_back_change_leaves_every_leaderboard_current(season: None) -> None:
    with transaction.atomic():
        reversed_bets()
        transaction.set_rollback(True)
    assert all(is_stored(at, protocol) for at in INSTANTS for protocol in PROTOCOLS)


@pytest.mark.parametrize("change", [resolved_by_now, resolve_late, partial(reversed_bets, "YES"), reversed_bets])
def test_resolutions_and_reversals(season: None, change: Callable[[], None]) -> None:
    before = all_entries()
    change()
    computed_equally()
    score_and_store()
    assert all(is_stored(at, protocol) for at in INSTANTS for protocol in PROTOCOLS)
    assert computed_equally() != before


def test_a_new_end_reaches_nothing_before_it(season: None) -> None:
    before = set(LeaderboardHistory.objects.values_list("pk", flat=True))
    end_question(Question.objects.get(status=Question.Status.OPEN), "YES", at=END - DAY)
    score_and_store()
    assert before < set(LeaderboardHistory.objects.values_list("pk", flat=True))


def test_family_without_a_forecast_is_on_past_leaderboards_by_its_present_name(season: None) -> None:
    Family.objects.filter(slug=KIMI).update(display_name="Kimi of Now")
    assert is_stored(END)
    computed_equally([END])
    entries = {e["forecaster"]: e for e in shown_entries(WEEK + DAY, "forecast")}
    assert (entries[KIMI]["display_name"], entries[KIMI]["n"], entries[KIMI]["ruins"]["0"]) == ("Kimi of Now", 0, 0)
    chosen = Selection("priced", until=END)
    with_all = forecast_leaderboard(resolved_entries(chosen), family_names(chosen), {}, reported=False)
    whole = {entry["forecaster"]: entry for entry in json.loads(json.dumps(with_all.entries))}
    assert {e["forecaster"]: {key: e[key] for key in whole[KIMI]} for e in shown_entries(END, "forecast")} == whole


def test_each_of_several_methodologies_has_leaderboards_of_its_own(season: None) -> None:
    version = Cohort.objects.get().methodology.version
    for protocol in PROTOCOLS:
        assert shown_entries(END, protocol, methodology=version) == shown_entries(END, protocol)
    rules = Cohort.objects.get().methodology
    rules.pk, rules.version = None, "v9"
    rules.save()
    other = AgentFactory(cohort=CohortFactory(methodology=rules))
    bet(other, Market.objects.filter(status="resolved").order_by("pk")[0])
    score_and_store()
    for methodology in ("", version, "v9"):
        assert history.stored_entries(history.LeaderboardKey("trading", methodology), END) is not None
        shown = shown_entries(END, "trading", methodology=methodology)
        with nothing_stored():
            assert shown_entries(END, "trading", methodology=methodology) == shown
        assert sum(entry["resolved_bets"] for entry in shown) == {"": 9, version: 8, "v9": 1}[methodology]


def test_what_changes_while_leaderboards_are_made_is_on_none_of_them(
    season: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    LeaderboardHistory.objects.all().delete()
    compute = history_backfill.answered_entries

    def meanwhile(asked: Any) -> Any:
        entries = compute(asked)
        mark_history_stale(Scope.FORECAST_HISTORY, since=WEEK + 2 * DAY)
        return entries

    monkeypatch.setattr(history_backfill, "answered_entries", meanwhile)
    assert history_backfill.backfill(PRICED_FORECASTS, limit=100) == 0
    monkeypatch.undo()
    assert history_backfill.backfill(PRICED_FORECASTS, limit=100) == 11
    computed_equally([END])


def test_leaderboards_are_made_the_newest_first_and_no_more_than_asked_for(season: None) -> None:
    LeaderboardHistory.objects.all().delete()
    assert history_backfill.backfill(PRICED_FORECASTS, limit=2) == 2
    assert (is_stored(END), is_stored(WEEK + 2 * DAY)) == (True, False)
    computed_equally([WEEK + 2 * DAY, END])
    assert history_backfill.backfill(PRICED_FORECASTS, limit=100) == 9
    assert history_backfill.backfill(PRICED_FORECASTS, limit=100) == 0


def test_command_stores_what_is_missing_and_then_nothing(season: None) -> None:
    stored = LeaderboardHistory.objects.count()
    LeaderboardHistory.objects.all().delete()
    few = run("backfill_leaderboards", END, limit=1)["past_leaderboards"]
    assert 0 < few < stored
    assert run("backfill_leaderboards", END)["past_leaderboards"] == stored - few
    assert run("backfill_leaderboards", END)["past_leaderboards"] == 0
    assert all(is_stored(at, protocol) for at in INSTANTS for protocol in PROTOCOLS)
    refused = run("backfill_leaderboards", END, limit=0)
    assert (refused.code, "--limit must be at least 1" in refused.stderr) == (2, True)


def test_migrating_keeps_every_past_leaderboard(season: None) -> None:
    before = set(LeaderboardHistory.objects.values_list("pk", flat=True))
    call_command("migrate", verbosity=0)
    assert set(LeaderboardHistory.objects.values_list("pk", flat=True)) == before != set()
    assert all(is_stored(at, protocol) for at in INSTANTS for protocol in PROTOCOLS)


def test_agents_of_whom_nothing_is_scored_have_no_figures(season: None) -> None:
    newcomer: Agent = AgentFactory(family=Family.objects.get(slug=KIMI), cohort=Cohort.objects.get())
    rows = {row["family"]: row for row in shown_entries(END, "trading")}
    assert (rows[newcomer.family.slug]["resolved_bets"], rows[newcomer.family.slug]["brier"]) == (0, None)
    computed_equally([END])
