"""Derived rows: one that was tampered with is named by `verify_ledger` and made right by `rebuild_derived`."""

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import call_command
from django.db import connection

from agents.models import Trade
from foundation.models import Run
from markets.models import Question
from scoring.models import AgentsBoard, Leaderboard, QuestionDifficulty
from scoring.services.derived import comparisons
from scoring.services.leaderboard_drift import leaderboard_drift
from scoring.services.scores import compute_scores
from scoring.services.trading_leaderboards import refresh_trading_leaderboards
from tests.commands import run
from tests.factories import WEEK, ModelCallFactory, QuestionFactory, ask, chain_all, end_question, play_week
from tests.selection import chosen
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=40)


def play() -> None:
    """A week, and a second forecast with a score."""
    play_week()
    question = QuestionFactory()
    ask(question, {"gpt-5.1": [0.6, 0.4]})
    end_question(question, "YES")
    compute_scores(at=END)
    chain_all()


season = shared_rows(play)


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount > 0, statement


def tampered(protocol: str, change: Callable[[Leaderboard], object]) -> Callable[[], None]:
    """A change to the leaderboard of all methodologies and categories that no service makes."""

    def tamper() -> None:
        leaderboard = Leaderboard.objects.get(
            protocol=protocol, methodology="", category="", arm="priced" if protocol == "forecast" else ""
        )
        change(leaderboard)
        leaderboard.save()

    return tamper


def change_agents_board() -> None:
    board = AgentsBoard.objects.get(track="closed", protocol="forecast")
    board.entries.append({"forecaster": "nobody"})
    board.save()


def add_difficulty() -> None:
    """A difficulty of a question that has too few answers for one."""
    question = Question.objects.order_by("pk")[0]
    QuestionDifficulty.objects.create(question=question, arm="priced", difficulty=9.0, difficulty_se=1.0)


def first_deleted(table: str) -> str:
    return f"DELETE FROM {table} WHERE id = (SELECT MIN(id) FROM {table})"


TAMPERED: dict[str, str | Callable[[], None]] = {
    "total of family N is": "UPDATE scoring_familytotal SET total = total + 1",
    "total of family N is missing": first_deleted("scoring_familytotal"),
    "score is 0.123, should be": "UPDATE scoring_brierscore SET score = 0.123",
    "trade N has no score": first_deleted("scoring_brierscore"),
    "brier is 0.123, should be": "UPDATE scoring_forecastscore SET brier = 0.123",
    "forecast N has no score": first_deleted("scoring_forecastscore"),
    "board of agents, closed forecast: entries is [{'forecaster': 'nobody'}], should be": change_agents_board,
    "leaderboard trading: entries[0].total_value is '1.00'": tampered(
        "trading", lambda row: row.entries[0].update(total_value="1.00")
    ),
    "leaderboard trading v2: is missing": (
        "DELETE FROM scoring_leaderboard WHERE protocol = 'trading' AND methodology = 'v2'"
    ),
    "snapshots has no cache version": "DELETE FROM markets_cacheversion WHERE scope = 'snapshots'",
    "difficulty of question N priced is (9.0, 1.0, None, None), should be None": add_difficulty,
    "leaderboard forecast priced: entries[0].log is -9.0": tampered(
        "forecast", lambda row: row.entries[0].update(log=-9.0)
    ),
}
OTHERS = {
    "total of family N is": "UPDATE scoring_familytotal SET agents = agents + 1",
    "leaderboard trading: entries[0].cost_usd is '9.000000'": tampered(
        "trading", lambda row: row.entries[0].update(cost_usd="9.000000")
    ),
    "leaderboard forecast priced: report.pairs is None": tampered("forecast", lambda row: row.report.pop("pairs")),
    "Chess: is of nothing that resolved": (
        "UPDATE scoring_leaderboard SET category = 'Chess' WHERE category <> '' AND methodology = ''"
    ),
}
DELETED_LEADERBOARD = {
    "leaderboard forecast priced: is missing": (
        "DELETE FROM scoring_leaderboard WHERE protocol = 'forecast' AND methodology = ''"
    ),
    "leaderboard trading: report.calibration.bets is 99": tampered(
        "trading", lambda row: row.report["calibration"].update(bets=99)
    ),
}


@pytest.mark.parametrize("tamperings", chosen([TAMPERED], [TAMPERED, OTHERS, DELETED_LEADERBOARD]))
def test_tampered_rows_are_named_and_rebuilt(season: None, tamperings: dict[str, str | Callable[[], None]]) -> None:
    for tamper in tamperings.values():
        if isinstance(tamper, str):
            sql(tamper)
        else:
            tamper()
    verified = run("verify_ledger", END)
    assert verified.code == 1
    violations = "\n".join(Run.objects.filter(kind="verify_ledger").latest("pk").log_texts)
    violations = re.sub(r"\b(family|agent|trade|forecast|question) \d+(?: at \S+ \S+)?", r"\1 N", violations)
    assert [words for words in tamperings if words not in violations] == []
    rebuilt = run("rebuild_derived", END)
    assert rebuilt.code == 0
    assert len(tamperings) <= rebuilt.summary["corrected"] <= rebuilt.summary["rebuilt"]
    assert run("verify_ledger", END).code == 0


def test_rebuilding_right_rows_and_migrating_change_none(season: None) -> None:
    def rows() -> list[set[int]]:
        return [set(model._default_manager.values_list("pk", flat=True)) for model in comparisons(END)]

    before = rows()
    assert all(before)
    call_command("migrate", verbosity=0)
    assert run("rebuild_derived", END).summary["corrected"] == 0
    assert rows() == before


def test_cost_of_a_later_call_waits_for_the_next_leaderboard(season: None) -> None:
    call = ModelCallFactory(decision=Trade.objects.order_by("pk")[0].decision, result="malformed")
    assert list(leaderboard_drift(at=END)) == []
    refresh_trading_leaderboards(at=END)
    costs = Leaderboard.objects.get(protocol="trading", methodology="").report["costs"]
    assert Decimal(costs[call.decision.agent.family.slug]) >= call.cost_usd > 0
    assert list(leaderboard_drift(at=END)) == []


def test_what_the_jobs_have_yet_to_reach_is_no_drift(season: None) -> None:
    sql("DELETE FROM scoring_brierscore")
    sql("DELETE FROM scoring_forecastscore")
    sql("DELETE FROM scoring_leaderboard")
    assert run("verify_ledger", WEEK + timedelta(days=31)).code == 0
