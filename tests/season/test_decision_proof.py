"""Decisions and instructions that raw answers do not state are named, by `verify_export` and the archive's program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agents.models import Decision, Instruction, Trade
from tests.answers import GPT, bet
from tests.commands import DECISION, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.scoring.exports.forgery import standalone_violations
from tests.shared_rows import shared_rows_at_venue

RAIN = "Will it rain?"


def decide(venue: Venue) -> None:
    """A model's two bets, of which the second is too small."""
    venue.market(RAIN)
    line_up(GPT)
    venue.start_first_cohort()
    venue.says(GPT, bet(RAIN, "YES", 600, (RAIN, "NO", 20)))
    assert run("run_decisions", DECISION)["trades"] == 1


decided = shared_rows_at_venue(decide)


@pytest.fixture
def decided_venue(decided: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(decided[0])


def change_reasoning() -> None:
    Decision.objects.update(reasoning="None of its own.")


def change_a_stake() -> None:
    row = Instruction.objects.get(sequence=1)
    Instruction.objects.filter(pk=row.pk).update(payload=row.payload | {"amount": "700"})


def drop_an_instruction() -> None:
    Instruction.objects.get(sequence=2).delete()


def sell_instead() -> None:
    Trade.objects.update(kind="SELL", implied_confidence=None)


@pytest.mark.parametrize(
    ("bend", "sentence"),
    [
        (change_reasoning, "states reasoning None of its own., computed is"),
        (change_a_stake, "are not the ones of its answer"),
        (drop_an_instruction, "are not the ones of its answer"),
        (sell_instead, "are not its executed instructions"),
    ],
)
def test_decision_that_its_answer_does_not_state_is_named(
    decided_venue: Venue, tmp_path: Path, bend: Callable[[], None], sentence: str
) -> None:
    with guards_removed():
        bend()
    folder = tmp_path / "archive"
    run("export_dataset", DECISION, "--out", str(folder), "--format", "csv")
    assert any(sentence in line for line in standalone_violations(folder)), standalone_violations(folder)
    assert sentence in run("verify_export", DECISION, str(folder)).stdout


def test_decision_as_its_answer_states_it_is_sound(decided_venue: Venue, tmp_path: Path) -> None:
    run("export_dataset", DECISION, "--out", str(tmp_path / "archive"), "--format", "csv")
    assert standalone_violations(tmp_path / "archive") == []
