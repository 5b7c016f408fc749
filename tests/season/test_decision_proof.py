"""The proof of the decisions: what the ledger's verification says of rows that their raw answers do not state."""

from collections.abc import Callable

import pytest

from agents.models import Decision, Instruction, ModelCall, Trade
from scoring.exports.verification.ledger_audit import violations_about
from tests.answers import GPT, bet
from tests.commands import DECISION, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
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


def change_the_parsed_answer() -> None:
    call = ModelCall.objects.get()
    ModelCall.objects.update(parsed=call.parsed | {"bets": call.parsed["bets"][:1]})


def fall_back() -> None:
    Decision.objects.update(action="HOLD", fallback=True, reasoning="")


@pytest.mark.forged_record
@pytest.mark.parametrize(
    ("bend", "sentence"),
    [
        (change_reasoning, "has reasoning None of its own., the rows that it follows from make because"),
        (change_a_stake, "are not the ones of its answer"),
        (drop_an_instruction, "are not the ones of its answer"),
        (sell_instead, "are not its executed instructions"),
        (change_the_parsed_answer, "was read as another answer than its own"),
        (fall_back, "has fallback True, the rows that it follows from make False"),
    ],
)
def test_decision_that_its_answer_does_not_state_is_named(
    decided_venue: Venue, bend: Callable[[], None], sentence: str
) -> None:
    with guards_removed():
        bend()
    assert any(sentence in line for line in [*violations_about("decisions"), *violations_about("accounts")])
