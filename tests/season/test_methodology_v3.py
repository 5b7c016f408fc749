"""Methodology v3 through the commands: how it is chosen, what its prompts show, and the samples of a forecast."""

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from agents.models import Elicitation, Forecast, Instruction, ModelCall, Release, RunSetting, Trade
from arena_verifier.answers import forecast_of_samples
from cohorts.models import Cohort, Methodology
from foundation import failpoints
from markets.models import QuestionBatch, QuestionSet
from tests.answers import GPT, GROK, bet, forecast
from tests.commands import DECISION, SUNDAY, CommandOutput, run
from tests.factories import line_up
from tests.guards import guards_removed
from tests.sandbox import Venue
from tests.scoring.exports.forgery import standalone_violations
from tests.shared_rows import shared_rows_at_venue
from venue_sandbox.prompt import ModelRequest
from venue_sandbox.script import Failure, ModelAnswer

DAY = timedelta(days=1)
MONDAY = SUNDAY + DAY + timedelta(hours=2)
RAIN = "Will it rain?"
RULES = "It rains if the gauge at the harbour holds one millimetre. " * 20


def open_season(venue: Venue) -> None:
    """A market with long rules, a book and a day's volume, and cohort 1 under v3."""
    venue.market(
        RAIN, description=RULES, bestBid="0.39", bestAsk="0.42", volume24hr=1234.56,
        events=[{"id": "weather", "title": "Weather in June"}],
    )  # fmt: skip
    venue.market("Will it snow?")
    line_up(GPT, GROK)
    assert run("sync_markets", SUNDAY).code == 0
    assert run("start_cohort", SUNDAY, "--methodology", "v3")["cohort"] == 1


season = shared_rows_at_venue(open_season)


@pytest.fixture
def opened(season: tuple[Venue, None], venue: Venue) -> Venue:
    return venue.as_left(season[0])


def row_of(table: list[dict[str, Any]], text: str) -> dict[str, Any]:
    return next(row for row in table if row["question"] == text)


def prompts_by_condition(venue: Venue, model: str = GPT) -> dict[str, ModelRequest]:
    """The first prompt of a model under each condition, in the order of the batches."""
    arms = QuestionBatch.objects.filter(number=1).values_list("arm", flat=True)
    return dict(zip(arms, [prompt for prompt in venue.asked if prompt.model == model], strict=True))


# the choice


def test_named_version_is_published_and_holds_from_then_on(opened: Venue) -> None:
    assert Cohort.objects.get().methodology.version == "v3"
    assert Methodology.objects.current().version == "v3"
    assert run("run_forecasts", MONDAY)["asked"] == 4
    assert set(Forecast.objects.values_list("methodology", flat=True)) == {"v3"}
    assert run("start_cohort", SUNDAY + 7 * DAY)["cohort"] == 2
    assert Cohort.objects.get(number=2).methodology.version == "v3"


def test_version_named_in_a_replay_becomes_the_newest(venue: Venue) -> None:
    before = datetime(2026, 3, 1, tzinfo=UTC)
    assert Methodology.objects.get(version="v2").published_at > before  # type: ignore[operator]
    venue.market(RAIN)
    run("sync_markets", before)
    assert run("start_cohort", before, "--methodology", "v3")["cohort"] == 1
    run("run_forecasts", before + timedelta(hours=2))
    assert set(Forecast.objects.values_list("methodology", flat=True)) == {"v3"}


def test_without_a_name_the_published_version_holds(venue: Venue) -> None:
    venue.market(RAIN)
    venue.start_first_cohort()
    assert Cohort.objects.get().methodology.version == "v2"
    assert Methodology.objects.get(version="v3").published_at is None


def test_unknown_version_is_refused_with_the_known_ones(venue: Venue) -> None:
    ran = run("start_cohort", SUNDAY, "--methodology", "v8")
    assert ran.code == 2
    assert "--methodology: there is no 'v8'; the versions are v1, v2, v3" in ran.stderr
    assert not Cohort.objects.exists()


# matched information


def test_both_protocols_show_the_same_facts_of_a_market(opened: Venue) -> None:
    opened.books[opened.tokens(RAIN)[0]] = ("0.39", "0.42")
    run("run_decisions", DECISION)
    market = row_of(opened.asked[0].markets, RAIN)
    run("run_forecasts", MONDAY)
    question = row_of(prompts_by_condition_of_last_run(opened)["priced"].questions, RAIN)
    assert market["event"] == question["event"] == "Weather in June"
    assert market["rules"] == question["rules"] == RULES.strip()[:600].rstrip() + " … [cut]"
    assert market["spread"] == 0.03
    assert question["spread"] == {"YES": 0.03, "NO": 0.03}
    assert market["volume_24h_usd"] == question["volume_24h_usd"] == 1234
    short = row_of(opened.asked[0].markets, "Will it snow?")
    assert (short["spread"], short["volume_24h_usd"]) == (0.01, None)


def prompts_by_condition_of_last_run(venue: Venue) -> dict[str, ModelRequest]:
    prompts = [prompt for prompt in venue.asked if prompt.model == GPT and "QUESTIONS" in prompt.user]
    arms = QuestionBatch.objects.filter(number=1).values_list("arm", flat=True)
    return dict(zip(arms, prompts, strict=True))


def test_conditions_differ_in_what_a_prompt_shows(opened: Venue) -> None:
    run("run_forecasts", MONDAY)
    prompts = prompts_by_condition(opened)
    assert list(prompts) == ["blind", "priced"]
    hidden = {"prices": None, "spread": None, "volume_24h_usd": None}
    assert prompts["blind"].questions == [row | hidden for row in prompts["priced"].questions]
    assert row_of(prompts["priced"].questions, RAIN)["prices"] == {"YES": 0.4, "NO": 0.6}


def schema_sent(venue: Venue, block: str) -> dict[str, Any]:
    prompt = next(prompt for prompt in venue.asked if prompt.model == GPT and f"\n{block}\n" in prompt.user)
    schema: dict[str, Any] = prompt.body["response_format"]["json_schema"]["schema"]
    return schema


def test_rationale_and_reasons_come_before_the_numbers(opened: Venue) -> None:
    def reasoned(prompt: ModelRequest) -> Any:
        answer = bet(RAIN, "YES", 100)(prompt)
        answer["bets"][0]["reason"] = "the sky is dark"
        return answer

    opened.says(GPT, reasoned, forecast())
    Release.objects.filter(model_id=GPT).update(supported_parameters=["structured_outputs"])
    run("run_decisions", DECISION)
    assert Trade.objects.get().amount == 100
    assert Instruction.objects.get().payload["reason"] == "the sky is dark"
    schema = schema_sent(opened, "MARKETS")
    assert next(iter(schema["properties"])) == "reasoning"
    assert list(schema["properties"]["bets"]["items"]["properties"]) == ["market_id", "side", "reason", "amount"]
    run("run_forecasts", MONDAY)
    schema = schema_sent(opened, "QUESTIONS")
    items = schema["properties"]["forecasts"]["items"]["properties"]
    assert list(items) == ["question_id", "rationale", "probabilities"]


def test_answers_under_v2_keep_no_reason_of_a_bet(venue: Venue) -> None:
    venue.market(RAIN)
    venue.start_first_cohort()

    def reasoned(prompt: ModelRequest) -> Any:
        answer = bet(RAIN, "YES", 100)(prompt)
        answer["bets"][0]["reason"] = "unasked"
        return answer

    venue.says(GPT, reasoned)
    run("run_decisions", DECISION)
    assert set(Instruction.objects.get().payload) == {"market_id", "side", "amount"}


# conditions on and off


def test_condition_that_is_paused_is_not_asked(opened: Venue) -> None:
    RunSetting.objects.create(protocol="forecast", condition="blind", paused=True)
    run("run_forecasts", MONDAY)
    assert set(QuestionBatch.objects.values_list("arm", flat=True)) == {"priced"}


def test_condition_paused_after_the_freeze_leaves_its_batches_unasked(opened: Venue) -> None:
    run("run_forecasts", MONDAY, "--family", "grok-4")
    RunSetting.objects.create(protocol="forecast", condition="blind", paused=True)
    ran = run("run_forecasts", MONDAY + timedelta(hours=1))
    assert (ran["asked"], ran["paused"]) == (1, 2)
    assert Counter(Forecast.objects.values_list("arm", flat=True)) == {"priced": 4, "blind": 2}


def test_condition_that_is_switched_on_at_noon_begins_on_the_next_day(opened: Venue, settings: Any) -> None:
    run("run_forecasts", MONDAY)
    settings.ARENA_SEARCH = True
    run("run_forecasts", MONDAY + timedelta(hours=10))
    assert set(QuestionBatch.objects.values_list("arm", flat=True)) == {"priced", "blind"}
    run("run_forecasts", MONDAY + DAY)
    day = QuestionSet.objects.get(day__date=(MONDAY + DAY).date())
    assert set(day.batches.values_list("arm", flat=True)) == {"priced", "blind", "search"}


# samples


@pytest.fixture
def sampled(opened: Venue) -> Venue:
    """Three samples at temperature 1 under `priced`, in a version of its own."""
    v3 = Methodology.objects.get(version="v3")
    v3.pk, v3.version, v3.published_at = None, "v3-samples", MONDAY
    priced = v3.forecast["conditions"][0] | {"samples": 3, "temperature": 1.0}
    v3.forecast = v3.forecast | {"conditions": [priced]}
    v3.save()
    return opened


def yes(probability: float) -> Any:
    return forecast({RAIN: {"YES": probability, "NO": round(1 - probability, 2)}})


def recorded(model: str = GPT, text: str = RAIN) -> Forecast:
    return Forecast.objects.get(release__model_id=model, question__text=text)


def check_proofs(folder: Path, at: datetime = MONDAY + DAY) -> None:
    """`verify_export` and an archive's own program find no fault."""
    run("export_dataset", at, "--out", str(folder / "archive"))
    ran = run("verify_export", at, str(folder / "archive"))
    assert ran.code == 0, ran.stdout
    program = [sys.executable, str(folder / "archive" / "verify_arena.py"), str(folder / "archive")]
    verified = subprocess.run(program, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_record_is_the_median_of_the_samples(sampled: Venue, tmp_path: Path) -> None:
    sampled.says(GPT, yes(0.9), yes(0.2), yes(0.6))
    ran = run("run_forecasts", MONDAY)
    assert (ran["asked"], ran["recorded"], ran["failed"]) == (6, 4, 0)
    row = recorded()
    assert row.probabilities == {"YES": 0.6, "NO": 0.4}
    assert row.samples == {
        "1": {"YES": 0.9, "NO": 0.1}, "2": {"YES": 0.2, "NO": 0.8}, "3": {"YES": 0.6, "NO": 0.4},
    }  # fmt: skip
    assert (row.samples_asked, row.samples_read, row.normalised) == (3, 3, False)
    # log odds: ln 9 = 2.1972, ln .25 = -1.3863, ln 1.5 = .4055; their mean is .4055, their deviation 1.7917
    assert row.log_odds_mean["YES"] == pytest.approx(0.6, abs=1e-4)
    assert row.spread == pytest.approx(1.7918, abs=1e-4)
    calls = ModelCall.objects.filter(model=GPT).order_by("pk")
    assert [call.parameters["temperature"] for call in calls] == [1.0, 1.0, 1.0]
    assert len({call.idempotency_key for call in calls}) == 3
    check_proofs(tmp_path)
    again = run("run_forecasts", MONDAY + timedelta(hours=1))
    assert (again["asked"], again["recorded"]) == (0, 0)


def test_two_of_three_samples_that_fail_make_no_record_until_the_window_ends(sampled: Venue) -> None:
    sampled.says(GPT, yes(0.9), Failure(503), Failure(503))
    ran = run("run_forecasts", MONDAY)
    assert (ran["recorded"], ran["failed"]) == (2, 2)
    sampled.says(GPT, *[Failure(503)] * 2)
    run("run_forecasts", MONDAY + DAY + timedelta(hours=1))
    assert not Forecast.objects.filter(release__model_id=GPT, entry__question_set__day__date=MONDAY.date()).exists()


def test_half_of_the_samples_is_enough_and_how_many_is_said(sampled: Venue) -> None:
    sampled.says(GPT, yes(0.9), ModelAnswer("", refusal="no"), yes(0.7))
    run("run_forecasts", MONDAY)
    row = recorded()
    assert row.probabilities == {"YES": pytest.approx(0.8), "NO": pytest.approx(0.2)}
    assert (row.samples_asked, row.samples_read, list(row.samples)) == (3, 2, ["1", "3"])


def test_sample_that_was_cut_counts_for_the_questions_it_answered(sampled: Venue) -> None:
    def cut(prompt: ModelRequest) -> Any:
        answer_text = json.dumps(yes(0.7)(prompt))
        return ModelAnswer(answer_text[: answer_text.rindex('{"question_id"') + 5], finish_reason="length")

    sampled.says(GPT, yes(0.9), cut, forecast(), yes(0.2))
    run("run_forecasts", MONDAY)
    assert {text: recorded(text=text).samples_read for text in (RAIN, "Will it snow?")} == {RAIN: 3, "Will it snow?": 3}


@pytest.mark.parametrize("point", ["call.sent", "call.answered", "call.stored", "elicitation.recorded"])
def test_worker_that_dies_between_samples_leaves_each_asked_once(
    sampled: Venue, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Death(BaseException):
        pass

    def die(*_: int) -> None:
        raise Death

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_NAME", point)
        patch.setattr(failpoints, "_countdown", 2)
        patch.setattr(failpoints.os, "kill", die)
        with pytest.raises(Death):
            run("run_forecasts", MONDAY)
    Elicitation.objects.filter(status=Elicitation.Status.CLAIMED).update(lease_until=timezone.now())
    run("run_forecasts", MONDAY + timedelta(hours=1))
    assert Forecast.objects.count() == 4
    completed = Elicitation.objects.filter(status=Elicitation.Status.COMPLETED)
    assert Counter(completed.values_list("release__model_id", flat=True)).most_common(1)[0][1] == 3


@pytest.mark.parametrize("point", ["call.sent", "call.stored", "elicitation.recorded"])
def test_two_workers_at_once_ask_each_sample_once_and_record_one_median(
    sampled: Venue, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    second: list[CommandOutput] = []

    def overtake(*_: int) -> None:
        patch.undo()
        second.append(run("run_forecasts", MONDAY))

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_NAME", point)
        patch.setattr(failpoints, "_countdown", 2)
        patch.setattr(failpoints.os, "kill", overtake)
        first = run("run_forecasts", MONDAY)
    assert (first.code, first["asked"] + second[0]["asked"], first["failed"] + second[0]["failed"]) == (0, 6, 0)
    assert len(sampled.asked) == len({call.idempotency_key for call in ModelCall.objects.all()}) == 6
    assert (Forecast.objects.count(), Forecast.objects.filter(samples_read=3).count()) == (4, 4)


@pytest.mark.forged_record
def test_bent_samples_are_named(sampled: Venue, tmp_path: Path) -> None:
    sampled.says(GPT, yes(0.9), yes(0.2), yes(0.6))
    run("run_forecasts", MONDAY)
    with guards_removed(), transaction.atomic():
        row = recorded()
        Forecast.objects.filter(pk=row.pk).update(samples=row.samples | {"3": {"YES": 0.7, "NO": 0.3}})
    ran = run("verify_ledger", MONDAY + DAY)
    assert ran.code == 1
    sentence = f"forecast {row.pk} has other samples than the answers state"
    assert sentence in ran.stdout
    run("export_dataset", MONDAY + DAY, "--out", str(tmp_path / "archive"))
    ran = run("verify_export", MONDAY + DAY, str(tmp_path / "archive"))
    assert ran.code == 1
    assert sentence in ran.stdout
    assert any(sentence in line for line in standalone_violations(tmp_path / "archive"))


# names


def test_conditions_of_any_name_are_asked_ranked_compared_and_proven(
    opened: Venue, client: Client, tmp_path: Path
) -> None:
    version = Methodology.objects.get(version="v3")
    version.pk, version.version, version.published_at = None, "renamed", MONDAY
    rules = version.forecast
    for condition, name in zip(rules["conditions"], ("quoted", "bare", "papers", "all_of_it", "web"), strict=True):
        condition["name"] = name
    rules["board_condition"] = "bare"
    version.save()
    opened.says(GPT, yes(0.9), yes(0.2))
    dry = run("run_forecasts", MONDAY, "--dry-run")
    assert (dry["asked"], run("run_forecasts", MONDAY)["recorded"]) == (4, 8)
    opened.resolve(RAIN, "Yes")
    run("check_resolutions", MONDAY + DAY)
    run("compute_scores", MONDAY + DAY)
    scores = {}
    for arm in ("quoted", "bare"):
        board = client.get("/api/v1/leaderboard/", {"protocol": "forecast", "arm": arm}).json()["results"]
        scores[arm] = next(row["brier"] for row in board if row["forecaster"] == "gpt-5.1")
    assert scores == pytest.approx({"bare": 0.01, "quoted": 0.64})
    default = client.get("/api/v1/leaderboard/", {"protocol": "forecast"}).json()["results"]
    assert next(row["brier"] for row in default if row["forecaster"] == "gpt-5.1") == pytest.approx(0.01)
    pair = client.get("/api/v1/comparisons/conditions/", {"family": "gpt-5.1"}).json()["results"]
    assert [(row["condition_a"], row["condition_b"], round(row["difference"], 4)) for row in pair] == [
        ("quoted", "bare", 0.63)
    ]
    for path in ("/", "/forecasts/", "/forecasts/?arm=quoted", "/conditions/", "/findings/", "/methodology/renamed/",
                 "/models/gpt-5.2/", "/costs/", "/calibration/"):  # fmt: skip
        assert client.get(path).status_code == 200, path
    check_proofs(tmp_path, MONDAY + 2 * DAY)


# the maths


def test_medians_of_exclusive_options_are_normalised() -> None:
    samples = [{"A": 0.7, "B": 0.2, "C": 0.1}, {"A": 0.1, "B": 0.6, "C": 0.3}, {"A": 0.2, "B": 0.2, "C": 0.6}]
    combined = forecast_of_samples(samples, exclusive=True)
    assert combined["stated"] == {"A": "0.2", "B": "0.2", "C": "0.3"}
    assert combined["probabilities"] == pytest.approx({"A": 2 / 7, "B": 2 / 7, "C": 3 / 7})
    assert combined["normalised"]
    independent = forecast_of_samples(samples, exclusive=False)
    assert independent["probabilities"] == {"A": 0.2, "B": 0.2, "C": 0.3}


def test_certain_samples_are_clipped_and_an_even_number_has_the_mean_of_the_middle_two() -> None:
    combined = forecast_of_samples([{"YES": 0.0, "NO": 1.0}, {"YES": 1.0, "NO": 0.0}], exclusive=True)
    assert combined["probabilities"] == {"YES": 0.5, "NO": 0.5}
    assert combined["log_odds_mean"] == pytest.approx({"YES": 0.5, "NO": 0.5})
    # ln(.999 / .001) = 6.9068; the deviation of a pair is the distance over the root of 2
    assert combined["spread"] == pytest.approx(2 * 6.9068 / 2**0.5, abs=1e-3)
    alone = forecast_of_samples([{"YES": 0.25, "NO": 0.75}], exclusive=True)
    assert (alone["spread"], alone["probabilities"]) == (None, {"YES": 0.25, "NO": 0.75})


def test_options_to_which_no_sample_gives_a_chance_share_equally() -> None:
    samples = [{"A": 1.0, "B": 0.0, "C": 0.0}, {"A": 0.0, "B": 1.0, "C": 0.0}, {"A": 0.0, "B": 0.0, "C": 1.0}]
    assert forecast_of_samples(samples, exclusive=True)["probabilities"] == dict.fromkeys("ABC", 1 / 3)
