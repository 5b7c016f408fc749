"""Stated probabilities by hand: what a forecast on record is worth once its question has come to its end."""

from datetime import timedelta
from math import log, sqrt

import pytest
from django.db import IntegrityError

from agents.models import Forecast
from foundation.bulk import create_missing
from markets.models import Question
from scoring.models import ForecastScore
from scoring.services.forecast_scores import forecast_scores, score_forecasts
from tests.commands import run
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question, resolve
from tests.sandbox import Venue

pytestmark = pytest.mark.django_db
END = WEEK + timedelta(days=30)
GPT, GROK = "gpt-5.1", "grok-4"


def score_of(slug: str) -> ForecastScore:
    return ForecastScore.objects.get(forecast__family__slug=slug)


def ask_and_end(probabilities: dict[str, list[float]], *winners: str, question: Question | None = None) -> Question:
    """A question, by default binary at YES 0.40, with these forecasts, resolved or cancelled."""
    question = question or QuestionFactory()
    ask(question, probabilities)
    return end_question(question, *winners)


def several(*prices: str | None, exclusive: bool = True) -> Question:
    """A question of one event's markets, called A, B, C and so on, at these YES prices."""
    markets = [
        MarketFactory(
            question=name, event_id="cup", prices={"YES": price, "NO": price and str(round(1 - float(price), 2))}
        )
        for name, price in zip("ABCDE", prices, strict=False)
    ]
    return QuestionFactory(markets=markets, exclusive=exclusive)


def test_binary_forecasts_by_hand() -> None:
    ask_and_end({GPT: [0.7, 0.3], GROK: [0.2, 0.8]}, "YES")
    assert score_forecasts(at=END) == 2
    sure, doubting = score_of(GPT), score_of(GROK)
    assert (sure.brier, doubting.brier) == (pytest.approx(0.09), pytest.approx(0.64))
    assert (sure.log, doubting.log) == (pytest.approx(log(0.7)), pytest.approx(log(0.2)))
    assert sure.spherical == pytest.approx(0.7 / sqrt(0.58))
    assert (sure.accuracy, doubting.accuracy) == (1.0, 0.0)
    assert sure.market_brier == doubting.market_brier == pytest.approx(0.36)
    assert sure.resolved_at == END


@pytest.mark.parametrize(
    ("prices", "exclusive", "probabilities", "winner", "brier", "logarithm", "market_brier"),
    [
        # Mids of 0.6, 0.4 and 0.25 leave nothing for none of these, and are divided by 1.25.
        (("0.6", "0.4", "0.25"), True, [0.4, 0.4, 0.1, 0.1], "B",
         0.54 / 4, log(0.4), (0.48**2 + 0.68**2 + 0.2**2 + 0) / 4),
        (("0.5", "0.2"), True, [0.1, 0.1, 0.8], "None of these",
         0.06 / 3, log(0.8), (0.5**2 + 0.2**2 + 0.7**2) / 3),
        # Options that are not exclusive are two-way questions.
        (("0.4", "0.4"), False, [0.9, 0.2], "A",
         (0.01 + 0.04) / 2, (log(0.9) + log(0.8)) / 2, (0.36 + 0.16) / 2),
        # Without a price the market has no score.
        ((None,), True, [0.5, 0.5], "YES", 0.25, log(0.5), None),
    ],
)  # fmt: skip
def test_forecasts_of_several_options_by_hand(
    prices: tuple[str | None, ...],
    exclusive: bool,
    probabilities: list[float],
    winner: str,
    brier: float,
    logarithm: float,
    market_brier: float | None,
) -> None:
    ask_and_end({GPT: probabilities}, winner, question=several(*prices, exclusive=exclusive))
    score_forecasts(at=END)
    score = score_of(GPT)
    assert (score.brier, score.log) == (pytest.approx(brier), pytest.approx(logarithm))
    assert score.market_brier == (None if market_brier is None else pytest.approx(market_brier))


def test_a_forecast_is_scored_once_and_not_before_its_question_is_resolved() -> None:
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    assert score_forecasts(at=END) == 0
    end_question(question, "NO", at=END)
    assert score_forecasts(at=END - timedelta(days=1)) == 0
    assert [score_forecasts(at=END) for _ in range(2)] == [1, 0]


def test_a_cancelled_question_scores_nobody() -> None:
    assert ask_and_end({GPT: [0.7, 0.3]}).status == Question.Status.CANCELLED
    assert score_forecasts(at=END) == 0


def test_many_are_scored_in_batches_each_with_its_own_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scoring.services.forecast_scores.BATCH", 3)  # ends between the two forecasts of an entry
    for tenths in range(1, 6):
        ask_and_end({GPT: [tenths / 10, 1 - tenths / 10], GROK: [1 - tenths / 10, tenths / 10]}, "YES")
    assert score_forecasts(at=END) == 10
    for forecast in Forecast.objects.select_related("score"):
        assert forecast.score.brier == pytest.approx((forecast.probabilities["YES"] - 1) ** 2)


def test_scores_that_another_process_stored_first_stay() -> None:
    ask_and_end({GPT: [0.7, 0.3], GROK: [0.2, 0.8]}, "YES")
    scores = forecast_scores(Forecast.objects.filter(family__slug=GPT), at=END)
    create_missing(scores, "forecast")
    (stored,) = ForecastScore.objects.all()
    create_missing(forecast_scores(Forecast.objects.all(), at=END + timedelta(1)), "forecast")
    first, second = ForecastScore.objects.order_by("pk")
    assert (first.pk, first.scored_at, first.updated_at) == (stored.pk, END, stored.updated_at)
    assert (second.forecast.family.slug, second.scored_at) == (GROK, END + timedelta(1))


@pytest.mark.django_db(transaction=True)
def test_scores_are_stored_all_or_none() -> None:
    ask_and_end({GPT: [0.7, 0.3], GROK: [0.2, 0.8]}, "YES")
    first, second = forecast_scores(Forecast.objects.all(), at=END)
    second.brier = 2.0
    with pytest.raises(IntegrityError):
        create_missing([first, second], "forecast")
    assert not ForecastScore.objects.exists()


@pytest.mark.forged_record
def test_a_resolution_pass_ends_questions_and_scores_forecasts(venue: Venue) -> None:
    """From the command alone; run again it finds nothing to do."""
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    assert question.market is not None
    resolve(question.market, "YES", at=END)
    first = run("check_resolutions", END)
    assert (first["questions_resolved"], first["forecasts_scored"]) == (1, 1)
    again = run("check_resolutions", END)
    assert (again["questions_resolved"], again["forecasts_scored"]) == (0, 0)
    assert run("compute_scores", END)["forecasts_scored"] == 0
