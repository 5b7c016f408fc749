"""The proof of the forecasts: what the ledger's verification says of rows that somebody bent."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from agents.models import Elicitation, Forecast, ModelCall
from markets.models import QuestionBatch, QuestionEntry, QuestionOption
from scoring.exports.verification.ledger_audit import violations_about
from tests.answers import GEMINI, GPT, GROK, forecast
from tests.commands import run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.season.test_forecasts import MONDAY, RAIN
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.script import Failure, ModelAnswer


def ask(venue: Venue) -> None:
    """A run with a refused vector, a model that declined and one that is down, and a question that resolved."""
    venue.market(RAIN)
    venue.market("Will it snow?")
    line_up(GPT, GEMINI, GROK)
    run("sync_markets", MONDAY - timedelta(hours=2))
    venue.says(GPT, forecast({RAIN: {"YES": 0.9, "NO": 0.9}}), ModelAnswer("", refusal="no"))
    venue.says(GROK, Failure(503))
    assert run("run_forecasts", MONDAY)["recorded"] == 3 * 2 + 1
    venue.resolve("Will it snow?", "Yes")
    run("check_resolutions", MONDAY + timedelta(hours=8))


season = shared_rows_at_venue(ask)


@pytest.fixture
def asked_venue(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def _bend_a_probability() -> None:
    row = Forecast.objects.first()
    assert row is not None
    Forecast.objects.filter(pk=row.pk).update(probabilities={"YES": 0.51, "NO": 0.49})


def _change_an_answer() -> None:
    call = ModelCall.objects.filter(result="answered").last()
    assert call is not None
    for forecast_row in call.parsed:
        forecast_row["probabilities"] = [["YES", "0.3"], ["NO", "0.7"]]
    call.save()


def _take_a_forecast_away() -> None:
    Forecast.objects.filter(question__text=RAIN).first().delete()  # type: ignore[union-attr]


def _forecast_for_one_that_declined() -> None:
    task = Elicitation.objects.get(declined=True)
    row = Forecast.objects.filter(arm=task.batch.arm).first()
    assert row is not None
    row.pk, row.elicitation, row.release = None, task, task.release
    row.save()


def _move_a_price() -> None:
    entry = QuestionEntry.objects.first()
    assert entry is not None
    entry.prices["YES"]["price"] = "0.5"
    entry.save()


def _rewrite_a_batch() -> None:
    QuestionBatch.objects.update(block="[]")


def _turn_an_ending_round() -> None:
    QuestionOption.objects.filter(happened=True).update(happened=False)


def _backdate() -> None:
    Forecast.objects.update(made_at=MONDAY - timedelta(days=1))


@pytest.mark.forged_record
@pytest.mark.parametrize(
    ("bend", "message"),
    [
        (_bend_a_probability, "'YES': 0.51"),
        (_change_an_answer, "was read as another answer than its own"),
        (_take_a_forecast_away, "has other forecasts than its answers state"),
        (_forecast_for_one_that_declined, "has other forecasts than its answers state"),
        (_move_a_price, "the fingerprint is not that of its entries"),
        (_rewrite_a_batch, "its block is not what its entries make"),
        (_turn_an_ending_round, "its options' ends are not those of its markets"),
        (_backdate, "names another family, release, arm, methodology or time"),
    ],
)
def test_a_bent_row_is_named(asked_venue: Venue, bend: Callable[[], None], message: str) -> None:
    with guards_removed():
        bend()
    assert any(message in line for line in violations_about("forecasts"))
