"""Derived rows: one that was tampered with is named by `verify_ledger` and made right by `rebuild_derived`."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import Model

from scoring.models import Leaderboard
from scoring.services.boards import refresh_boards
from scoring.services.derived import DRIFT, derived_drift
from scoring.services.leaderboard_history import DAILY_LIMIT, backfill_history
from tests.commands import run
from tests.factories import WEEK, chained, play_week
from tests.shared_rows import shared_rows

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=40)


def play() -> None:
    play_week()
    refresh_boards(at=END)
    backfill_history(limit=DAILY_LIMIT)
    chained()


season = shared_rows(play)


def sql(statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        assert cursor.rowcount > 0, statement


def other_brier() -> None:
    board = Leaderboard.objects.get(protocol="trading", methodology="", category="")
    board.entries[0]["brier"] = 0.123
    Leaderboard.objects.filter(pk=board.pk).update(entries=board.entries)


TAMPERINGS: dict[str, tuple[str | Callable[[], None], str]] = {
    "total": ("UPDATE scoring_familytotal SET total = total + 1", "total of family"),
    "agents of a total": ("UPDATE scoring_familytotal SET agents = agents + 1", "total of family"),
    "deleted total": ("DELETE FROM scoring_familytotal", "is missing"),
    "cost": ("UPDATE agents_universecost SET cost_usd = cost_usd + 1", "cost of family"),
    "deleted cost": ("DELETE FROM agents_universecost", "cost of family"),
    "score of a bet": ("UPDATE scoring_brierscore SET score = 0.123", "brier score"),
    "score of a forecast": ("UPDATE scoring_forecastscore SET brier = 0.123", "forecast score"),
    "disagreement": ("UPDATE scoring_storeddisagreement SET content = '{}' WHERE kind = 'trades'", "disagreement"),
    "past leaderboard": ("UPDATE scoring_leaderboardhistory SET entries = '[]'", "past leaderboard"),
    "end of a past leaderboard": (
        "UPDATE scoring_leaderboardhistory SET until = '9500-01-01 00:00:00'", "past leaderboard"
    ),
    "leaderboard": (other_brier, "leaderboard trading"),
    "deleted cache version": ("DELETE FROM markets_cacheversion", "has no cache version"),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampered_row_is_named_and_rebuilt(season: None, name: str) -> None:
    tamper, words = TAMPERINGS[name]
    assert list(derived_drift()) == []
    if isinstance(tamper, str):
        sql(tamper)
    else:
        tamper()
    assert any(words in line for line in derived_drift())
    verified = run("verify_ledger", END)
    assert verified.code == 1
    assert verified.summary["violations"] > 0
    rebuilt = run("rebuild_derived", END)
    assert rebuilt.code == 0
    assert 0 < rebuilt.summary["corrected"] <= rebuilt.summary["rebuilt"]
    assert list(derived_drift()) == []
    assert run("verify_ledger", END).code == 0


@pytest.mark.parametrize("model", DRIFT)
def test_rebuilding_right_rows_and_migrating_change_none(season: None, model: type[Model]) -> None:
    def rows() -> set[Any]:
        return set(model._default_manager.values_list("pk", flat=True))

    before = rows()
    call_command("migrate", verbosity=0)
    assert rows() == before != set()
    assert run("rebuild_derived", END).summary["corrected"] == 0
    assert rows() == before
