"""Boards of past instants that are on record: the same as computed, whatever changed since, and whoever changed it."""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents.models import Agent, Family, Forecast
from cohorts.models import Cohort
from markets import guards
from markets.models import Market, Question, QuestionEntry, QuestionOption, QuestionSheet
from markets.services.endings import questions_reconsider
from scoring import past
from scoring.models import BrierScore, PastBoard, Revision
from scoring.selected import PROTOCOLS, both_entries, selected_entries
from scoring.services import boards, forecast_boards, past_boards, scores
from scoring.services.forecast_panels import Selection
from scoring.services.past_boards import MANY, past_boards_keep
from scoring.services.scores import scores_forget
from tests.factories import (
    WEEK,
    AgentFactory,
    CohortFactory,
    DecisionFactory,
    MarketFactory,
    ModelCallFactory,
    QuestionFactory,
    SnapshotFactory,
    asked,
    bet,
    ended,
    reversed_to,
)
from tests.seasons import once
from tests.tampering import lifted

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
END = WEEK + 30 * DAY
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"
POLITICS, SPORTS = "Politics", "Sports"
SECOND = timedelta(seconds=1)
INSTANTS = [WEEK, WEEK + 2.75 * DAY, WEEK + 3 * DAY, END]


def score_and_keep() -> None:
    """What the daily job does."""
    scores.compute_scores(at=END)
    past_boards_keep(most=MANY)


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
        asked(question, {GPT: [0.1 * day, 1 - 0.1 * day], GROK: [0.4, 0.6]} | ({KIMI: [0.8, 0.2]} if day > 2 else {}))
        asked(question, {GPT: [0.6, 0.4], GROK: [0.3, 0.7]}, day=WEEK + DAY, arm="blind")
        if side:
            ended(question, side, at=WEEK + day * DAY)
    for day in range(1, 12):
        for place, agent in enumerate(players):
            SnapshotFactory(agent=agent, taken_at=WEEK + day * DAY, cash=Decimal(10_000 + day * 7 - place * 30))
    score_and_keep()


season = once(play)


@contextmanager
def nothing_on_record() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(past, "stored", lambda key, at: None)
        yield


def told(at: datetime | None, protocol: str, **selection: str) -> Any:
    """The entries, as the API sends them."""
    return json.loads(json.dumps(selected_entries(protocol, at=at, **selection), sort_keys=True, default=str))


def everything(instants: Iterable[datetime] = INSTANTS, protocols: Iterable[str] = PROTOCOLS) -> dict[Any, Any]:
    return {
        (protocol, category, at): told(at, protocol, category=category)
        for protocol in protocols
        for category in ("", POLITICS)
        for at in instants
    }


def on_record(at: datetime, protocol: str = "forecast", category: str = "") -> bool:
    arm = "priced" if protocol == "forecast" else ""
    return past.stored(past.Key(protocol, "", arm, category), at) is not None


def truth(instants: Iterable[datetime] = INSTANTS, protocols: Iterable[str] = PROTOCOLS) -> dict[Any, Any]:
    """What is told, which is what would be computed."""
    said = everything(instants, protocols)
    with nothing_on_record():
        computed = everything(instants, protocols)
    assert said == computed
    return said


def test_boards_on_record_are_those_computed_at_any_instant(season: None) -> None:
    instants = sorted({WEEK - DAY, END, *(WEEK + step * DAY / 2 for step in range(13)), WEEK + 3 * DAY - SECOND})
    assert all(on_record(at, protocol, c) for at in instants for protocol in PROTOCOLS for c in ("", POLITICS, SPORTS))
    said = truth(instants)
    assert [said["trading", "", at][0]["resolved_bets"] for at in (WEEK, WEEK + 2 * DAY, END)] == [0, 1, 4]
    assert len({str(entries) for (protocol, _, _), entries in said.items() if protocol == "forecast"}) == 6
    with_arm = told(END, "forecast", arm="blind")
    with nothing_on_record():
        assert told(END, "forecast", arm="blind") == with_arm != said["forecast", "", END]


def test_a_category_of_now_is_read_of_the_record_too(season: None) -> None:
    now = told(None, "trading", category=POLITICS)
    with nothing_on_record():
        assert told(None, "trading", category=POLITICS) == now
    assert now[0]["resolved_bets"] == 2


def test_a_board_on_record_is_read_and_not_computed(season: None) -> None:
    def queries(protocol: str) -> list[str]:
        told(WEEK + 3 * DAY, protocol)  # who plays is read once for a change, not for a board
        with CaptureQueriesContext(connection) as counted:
            told(WEEK + 3 * DAY, protocol)
        return [query["sql"] for query in counted]

    read = queries("forecast"), queries("trading")
    assert not any(Forecast._meta.db_table in sql for sql in read[0])
    assert not any(BrierScore._meta.db_table in sql for sql in read[1])
    assert [len(statements) for statements in read] == [2, 4]
    with nothing_on_record():
        assert any(Forecast._meta.db_table in sql for sql in queries("forecast"))


@pytest.mark.parametrize("category", ["", POLITICS])
@pytest.mark.parametrize("at", [None, WEEK + 3 * DAY])
def test_both_boards_together_are_each_by_itself(season: None, category: str, at: datetime | None) -> None:
    boards.refresh_boards(at=END)
    forecast_boards.refresh_forecast_boards(at=END)
    both = both_entries("", category, at)
    assert both == tuple(selected_entries(protocol, category=category, at=at) for protocol in PROTOCOLS)
    assert all(both)
    if at is None and not category:
        with CaptureQueriesContext(connection) as counted:
            both_entries("", "", None)
        assert len(counted) == 1


def test_a_past_board_has_the_money_of_the_newest_snapshots_by_then(season: None) -> None:
    later = AgentFactory(family=Family.objects.get(slug=GPT), cohort=CohortFactory())
    SnapshotFactory(agent=later, taken_at=WEEK + 8 * DAY, cash=Decimal(9_000), positions_value=Decimal("500.26"))

    def values(at: datetime) -> list[tuple[int, str]]:
        entries = {entry["family"]: entry for entry in told(at, "trading")}
        return [(entries[slug]["cohorts"], entries[slug]["total_value"]) for slug in (GPT, GROK)]

    assert values(WEEK) == [(1, "10000.00"), (1, "10000.00")]
    assert values(WEEK + 2 * DAY) == [(1, "10014.00"), (1, "9984.00")]
    assert values(WEEK + 3 * DAY - SECOND) == values(WEEK + 2 * DAY)
    assert values(WEEK + 7.5 * DAY) == [(2, "10024.50"), (1, "10019.00")]  # one of two has no snapshot yet
    assert values(WEEK + 8 * DAY) == [(2, "9778.13"), (1, "10026.00")]


def test_a_past_board_has_the_costs_of_the_weeks_frozen_by_then(season: None) -> None:
    agent = Agent.objects.get(family__slug=GPT)
    first, second = (DecisionFactory(agent=agent, week=week) for week in (2, 3))
    for decision, spent in ((first, "0.25"), (first, "0.05"), (second, "0.50")):
        ModelCallFactory(decision=decision, sequence=decision.calls.count(), cost_usd=Decimal(spent))

    def cost(at: datetime) -> str:
        return next(str(entry["cost_usd"]) for entry in told(at, "trading") if entry["family"] == GPT)

    then = [decision.universe.frozen_at for decision in (first, second)]
    assert [cost(at - SECOND) for at in then] == ["0.000000", "0.300000"]
    assert [cost(at) for at in then] == ["0.300000", "0.800000"]


def late_end() -> None:
    """The fifth market, ended after the others, by an instant before them."""
    question = Question.objects.get(status=Question.Status.OPEN)
    ended(question, "YES", at=WEEK + 2.5 * DAY)
    score_and_keep()


def sql(statement: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


def changes() -> dict[str, tuple[Callable[[], Any], float, str]]:
    """By name: a change, the days from the beginning on which it reaches, and what it reaches."""

    def second(model: Any, **which: Any) -> Any:
        return model.objects.filter(**which).order_by("resolved_at")[2]

    def of_question(change: Callable[[Question], Any]) -> Callable[[], None]:
        def do() -> None:
            with lifted():
                change(Question.objects.filter(status="resolved").order_by("resolved_at")[1])

        return do

    score, question = BrierScore._meta.db_table, Question._meta.db_table
    forecast, option = Forecast._meta.db_table, QuestionOption._meta.db_table

    def forecast_of(q: Question) -> Forecast:
        return Forecast.objects.filter(question=q, arm="priced").order_by("pk")[0]

    def another(q: Question) -> None:
        said = forecast_of(q)
        said.pk, said.probabilities = None, {"YES": 0.99, "NO": 0.01}
        said.entry = QuestionEntry.objects.filter(question=q).order_by("-pk")[0]
        said.save(force_insert=True)

    return {
        "a score by SQL": (
            lambda: sql(f"UPDATE {score} SET score = 0.875 WHERE id = %s", second(BrierScore).pk), 3, "trading"
        ),
        "a score taken away": (lambda: second(BrierScore).delete(), 3, "trading"),
        "a score moved in time": (
            lambda: BrierScore.objects.filter(pk=second(BrierScore).pk).update(resolved_at=WEEK + 4.5 * DAY),
            3, "trading",
        ),
        "a market's category": (
            lambda: Market.objects.filter(pk=second(BrierScore).market_id).update(category=POLITICS), 3, "trading"
        ),
        "a market's event": (
            lambda: Market.objects.filter(pk__in=BrierScore.objects.values("market")).update(event_id="one"),
            2, "trading",
        ),
        "a question reopened": (
            lambda: sql(
                f"UPDATE {question} SET status = 'closed', resolved_at = NULL WHERE resolved_at = %s",
                connection.ops.adapt_datetimefield_value(WEEK + 3 * DAY),
            ), 3, "forecast",
        ),
        "a question's category": (
            of_question(lambda q: Question.objects.filter(pk=q.pk).update(category=POLITICS)), 3, "forecast"
        ),
        "a question moved in time": (
            of_question(lambda q: Question.objects.filter(pk=q.pk).update(resolved_at=WEEK + 2.5 * DAY)),
            2.5, "forecast",
        ),
        "what happened": (
            of_question(lambda q: sql(
                f"UPDATE {option} SET happened = NOT happened WHERE question_id = %s", q.pk)
            ), 3, "forecast",
        ),
        "a forecast by SQL": (
            of_question(lambda q: sql(
                f"UPDATE {forecast} SET probabilities = %s WHERE id = %s", '{"YES": 0.5, "NO": 0.5}', forecast_of(q).pk)
            ), 3, "forecast",
        ),
        "a forecast taken away": (
            of_question(lambda q: forecast_of(q).score.delete() and forecast_of(q).delete()), 3, "forecast"
        ),
        "a late forecast": (of_question(another), 3, "forecast"),
        "prices": (
            of_question(lambda q: QuestionEntry.objects.filter(question=q).update(prices={})), 3, "forecast"
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", changes())
def test_what_a_change_reaches_is_no_longer_on_record(season: None, name: str) -> None:
    change, day, protocol = changes()[name]
    before = everything(protocols=[protocol])
    change()
    assert not any(on_record(at, protocol) for at in INSTANTS if at >= WEEK + day * DAY)
    assert all(on_record(at, protocol) for at in INSTANTS if at < WEEK + day * DAY)
    after = truth(protocols=[protocol])
    assert after != before
    if protocol == "trading":
        boards.keep_past_scores("")
    else:
        past_boards.keep_past_boards(Selection("priced"), most=100)
    assert all(on_record(at, protocol) for at in INSTANTS)
    assert everything(protocols=[protocol]) == after


def test_a_sheet_asks_again_what_has_ended(season: None) -> None:
    entry = QuestionEntry.objects.filter(question__resolved_at=WEEK + 3 * DAY)[0]
    QuestionSheet.objects.create(question_set=entry.question_set, number=1, arm="third", block="")
    assert [on_record(at) for at in (WEEK + 2.75 * DAY, WEEK + 3 * DAY)] == [True, False]


@pytest.mark.parametrize("what", ["another end", "an end of the past", "a reversal", "a cancellation"])
def test_ends_and_reversals(season: None, what: str) -> None:
    before = everything()
    if what == "another end":
        ended(Question.objects.get(status=Question.Status.OPEN), "NO", at=END - DAY)
    elif what == "an end of the past":
        late_end()
    else:
        market = Market.objects.filter(status="resolved").order_by("resolved_at")[1]
        reversed_to(market, "YES" if what == "a reversal" else None, at=END - DAY)
        scores_forget(market, questions_reconsider(market, at=END - DAY))
    truth()
    score_and_keep()
    assert all(on_record(at, protocol) for at in INSTANTS for protocol in PROTOCOLS)
    assert truth() != before


def test_a_new_end_reaches_nothing_before_it(season: None) -> None:
    kept = set(PastBoard.objects.values_list("pk", flat=True))
    ended(Question.objects.get(status=Question.Status.OPEN), "YES", at=END - DAY)
    score_and_keep()
    assert kept < set(PastBoard.objects.values_list("pk", flat=True))


def test_who_never_spoke_stands_on_past_boards_by_the_name_of_now(season: None) -> None:
    Family.objects.filter(slug=KIMI).update(display_name="Kimi of Now")
    assert on_record(END)
    truth([END])
    entries = {e["forecaster"]: e for e in told(WEEK + DAY, "forecast")}
    assert (entries[KIMI]["display_name"], entries[KIMI]["n"], entries[KIMI]["ruins"]["0"]) == ("Kimi of Now", 0, 0)
    with_all = forecast_boards.forecast_board(
        forecast_boards.asked_entries(Selection("priced", until=END)),
        forecast_boards.family_slugs(Selection("priced")),
        reported=False,
    )
    whole = {entry["forecaster"]: entry for entry in json.loads(json.dumps(with_all.entries))}
    assert {e["forecaster"]: {key: e[key] for key in whole[KIMI]} for e in told(END, "forecast")} == whole


def test_a_family_of_another_slug_is_on_no_board_on_record(season: None) -> None:
    Family.objects.filter(slug=GPT).update(slug="gpt-renamed")
    assert not any(on_record(at) for at in INSTANTS)
    assert "gpt-renamed" in {entry["family"] for entry in truth()["forecast", "", END]}


def test_each_of_several_methodologies_has_boards_of_its_own(season: None) -> None:
    version = Cohort.objects.get().methodology.version
    for protocol in PROTOCOLS:
        assert told(END, protocol, methodology=version) == told(END, protocol)
    rules = Cohort.objects.get().methodology
    rules.pk, rules.version = None, "v9"
    rules.save()
    other = AgentFactory(cohort=CohortFactory(methodology=rules))
    bet(other, Market.objects.filter(status="resolved").order_by("pk")[0])
    score_and_keep()
    for methodology in ("", version, "v9"):
        assert past.stored(past.Key("trading", methodology), END) is not None
        said = told(END, "trading", methodology=methodology)
        with nothing_on_record():
            assert told(END, "trading", methodology=methodology) == said
        assert sum(entry["resolved_bets"] for entry in said) == {"": 9, version: 8, "v9": 1}[methodology]


def test_what_changes_while_boards_are_made_is_on_none_of_them(season: None, monkeypatch: pytest.MonkeyPatch) -> None:
    PastBoard.objects.all().delete()
    make = past_boards.spoken_entries

    def meanwhile(asked: Any) -> Any:
        made = make(asked)
        Question.objects.filter(resolved_at=WEEK + 2 * DAY).update(closed_at=WEEK)
        return made

    monkeypatch.setattr(past_boards, "spoken_entries", meanwhile)
    assert past_boards.keep_past_boards(Selection("priced"), most=100) == 0
    monkeypatch.undo()
    assert past_boards.keep_past_boards(Selection("priced"), most=100) == 11
    truth([END])


def test_boards_are_made_the_newest_first_and_no_more_than_asked_for(season: None) -> None:
    PastBoard.objects.all().delete()
    assert past_boards.keep_past_boards(Selection("priced"), most=2) == 2
    assert (on_record(END), on_record(WEEK + 2 * DAY)) == (True, False)
    truth([WEEK + 2 * DAY, END])
    assert past_boards.keep_past_boards(Selection("priced"), most=100) == 9
    assert past_boards.keep_past_boards(Selection("priced"), most=100) == 0


def test_nothing_is_kept_where_no_trigger_watched(season: None) -> None:
    call_command("migrate", verbosity=0)
    assert not PastBoard.objects.exists()
    assert Revision.objects.filter(thing__in=past.THINGS.values()).count() == 2
    Revision.objects.all().delete()
    score_and_keep()
    assert not PastBoard.objects.exists()
    truth([END])


def test_the_triggers_are_watched_like_all_others() -> None:
    assert {"past_boards_scored", "past_boards_ended"} <= {trigger.name for trigger in guards.declared()}
    assert not guards.missing(connection)


def test_agents_of_whom_nothing_is_scored_have_no_figures(season: None) -> None:
    newcomer: Agent = AgentFactory(family=Family.objects.get(slug=KIMI), cohort=Cohort.objects.get())
    rows = {row["family"]: row for row in told(END, "trading")}
    assert (rows[newcomer.family.slug]["resolved_bets"], rows[newcomer.family.slug]["brier"]) == (0, None)
    truth([END])
