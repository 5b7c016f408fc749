"""A made season: as large as was asked for, sound in every book, and the same for the same seed."""

import hashlib
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import models, transaction
from django.test import Client

from agents.models import Agent, ChainLink, Decision, Forecast, JournalEntry, ModelCall, Position, Settlement, Trade
from markets.models import Market, UniverseEntry
from scoring.models import BrierScore, ForecastScore, Leaderboard, Snapshot
from scoring.selectors.valuations import bet_records, valuations
from tests.benchmarks.generator.command import Command
from tests.benchmarks.generator.plan import SMALL
from tests.factories import CohortFactory

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.thorough]
FAMILIES = 7


def seeded(**options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command(Command(), small=True, json=True, stdout=out, **options)
    summary: dict[str, Any] = json.loads(out.getvalue())
    return summary


def test_a_small_arena_is_whole_and_its_books_balance(client: Client) -> None:
    counts = seeded()
    agents = SMALL.cohorts * FAMILIES
    assert counts["agents"] == agents
    assert counts["markets"] == Market.objects.count() == SMALL.markets
    assert counts["decisions"] == Decision.objects.filter(status="completed").count() == SMALL.decisions
    assert counts["trades"] == Trade.objects.count() == SMALL.trades
    assert counts["snapshots"] == Snapshot.objects.count() == agents * SMALL.snapshot_days * 144
    assert counts["forecasts"] == Forecast.objects.count() == SMALL.forecasts
    assert BrierScore.objects.count() == counts["brier_rows"] > 0
    assert ForecastScore.objects.count() == counts["forecasts_scored"] > 0
    assert Leaderboard.objects.count() == counts["leaderboards"] > 0
    assert {row["kind"] for row in Settlement.objects.values("kind")} >= {"won", "lost"}
    assert JournalEntry.objects.filter(kind="sell").exists()
    assert ChainLink.objects.filter(protocol="trading").count() == SMALL.decisions
    call_command("verify_ledger", stdout=io.StringIO())  # exits with 1 on any violation

    newest = Snapshot.objects.latest("taken_at").taken_at
    played = list(Agent.objects.select_related("cohort__methodology"))
    worth, record = valuations(played), bet_records(played)
    for snapshot in Snapshot.objects.filter(taken_at=newest):
        assert snapshot.total_value == worth[snapshot.agent_id].total
        if snapshot.agent_id in record:
            agent_record = record[snapshot.agent_id]
            assert (snapshot.brier, snapshot.resolved_bets) == (agent_record.brier, agent_record.resolved_bets)
        open_positions = Position.objects.open().filter(agent=snapshot.agent_id).count()
        assert (snapshot.open_positions, open_positions > 0) == (open_positions, True)

    call = ModelCall.objects.filter(decision__isnull=False).order_by("pk")[10]
    assert call.prompt_sha256 == ModelCall.fingerprint(call.system_prompt, call.user_prompt)
    decision = call.decision
    assert decision is not None
    for path in ("/", "/cohorts/1/", f"/decisions/{decision.pk}/", "/api/v1/leaderboard/", "/api/v1/forecasts/"):
        assert client.get(path).status_code == 200, path


FINGERPRINTED: dict[type[models.Model], tuple[str, ...]] = {
    UniverseEntry: ("position", "market__external_id", "prices"),
    Trade: ("shares", "price", "amount", "implied_confidence", "executed_at"),
    JournalEntry: ("kind", "balance"),
    Snapshot: ("taken_at", "total_value", "brier"),
    Forecast: ("probabilities", "made_at"),
}


def fingerprint(**options: Any) -> str:
    """The checksum of the rows that the options make, without database ids; the rows are rolled back."""
    with transaction.atomic():
        seeded(**options)
        rows = [list(m._default_manager.order_by("pk").values_list(*columns)) for m, columns in FINGERPRINTED.items()]
        transaction.set_rollback(True)
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def test_the_same_seed_makes_the_same_rows() -> None:
    tiny = {"cohorts": 1, "markets": 20, "trades": 84, "decisions": 14, "positions": 3, "forecasts": 28}
    first = fingerprint(seed=3, **tiny)
    assert fingerprint(seed=3, **tiny) == first
    assert fingerprint(seed=4, **tiny) != first


def test_sizes_are_what_is_asked_for() -> None:
    counts = seeded(cohorts=1, trades=84, decisions=14, positions=3, forecasts=0)
    assert (counts["agents"], counts["trades"], counts["decisions"], counts["forecasts"]) == (7, 84, 14, 0)


def test_an_arena_with_a_season_is_left_alone() -> None:
    CohortFactory()
    with pytest.raises(CommandError, match="holds a season already") as refused:
        seeded()
    assert refused.value.returncode == 2
    assert not Market.objects.exists()


@pytest.mark.parametrize(("option", "value"), [("cohorts", 0), ("markets", 3), ("trades", -1)])
def test_a_size_that_makes_no_arena_is_refused(option: str, value: int) -> None:
    with pytest.raises(CommandError, match=f"--{option} must be at least"):
        seeded(**{option: value})
