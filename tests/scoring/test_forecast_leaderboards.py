"""The leaderboards of the forecast protocol by hand, and equal to what `rank` makes of the same forecasts in a file."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from io import StringIO
from math import log
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from agents.models import Elicitation, Family, Forecast, Release
from forecast_rank.metrics import irt, panel
from markets.models import Market, Question
from markets.services.question_resolution import correct_question_outcomes
from scoring.constants import REFERENCES
from scoring.leaderboard_keys import first_difference
from scoring.models import Leaderboard, QuestionDifficulty
from scoring.selectors.forecast_panels import Selection, family_names, panels, resolved_entries
from scoring.services import forecast_inputs
from scoring.services.forecast_leaderboards import refresh_forecast_leaderboards
from scoring.services.forecast_ranking import forecast_leaderboard
from scoring.services.forecast_scores import score_forecasts
from scoring.services.leaderboard_drift import leaderboard_drift
from scoring.services.scores import clear_scores
from tests.factories import WEEK, MarketFactory, QuestionFactory, ask, end_question, reverse_to
from tests.scoring.reads import statements
from tests.shared_rows import shared_rows

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
END = WEEK + timedelta(days=30)
DAY = timedelta(days=1)
GPT, GROK, KIMI = "gpt-5.1", "grok-4", "kimi-k2"


def asked_and_ended(probabilities: Mapping[str, Sequence[float]], winner: str = "YES", **options: Any) -> Question:
    """A resolved binary question that was asked at YES 0.40."""
    question = QuestionFactory()
    ask(question, probabilities, **options)
    return end_question(question, winner)


def leaderboard(arm: str = "priced", **selection: Any) -> dict[str, dict[str, Any]]:
    """The entries by forecaster."""
    leaderboard_selection = Selection(arm, **selection)
    return {
        e["forecaster"]: e
        for e in forecast_leaderboard(
            resolved_entries(leaderboard_selection), family_names(leaderboard_selection), {}
        ).entries
    }


def stored(arm: str = "priced", methodology: str = "", category: str = "") -> Leaderboard:
    return Leaderboard.objects.get(protocol="forecast", arm=arm, methodology=methodology, category=category)


def stored_entry(forecaster: str = GPT, **selection: str) -> dict[str, Any]:
    return next(entry for entry in stored(**selection).entries if entry["forecaster"] == forecaster)


def test_references_have_the_names_of_the_library() -> None:
    assert REFERENCES[:3] == panel.REFERENCES


def test_figures_by_hand() -> None:
    """GPT 0.7 then 0.5, Grok 0.2 then 0.5; YES at 0.40 came first, then NO."""
    asked_and_ended({GPT: [0.7, 0.3], GROK: [0.2, 0.8]})
    asked_and_ended({GPT: [0.5, 0.5], GROK: [0.5, 0.5]}, "NO")
    entries = leaderboard()
    gpt, grok = entries[GPT], entries[GROK]
    assert (gpt["n"], gpt["coverage"], gpt["rank"], grok["rank"]) == (2, 1.0, 1, 2)
    assert gpt["brier"] == pytest.approx((0.09 + 0.25) / 2)
    assert grok["brier"] == pytest.approx((0.64 + 0.25) / 2)
    assert gpt["log"] == pytest.approx((log(0.7) + log(0.5)) / 2)
    assert gpt["accuracy"] == 0.75
    assert gpt["alpha"] == pytest.approx((0.36 - 0.09 + 0.16 - 0.25) / 2)
    assert gpt["bss_uniform"] == pytest.approx(1 - 0.17 / 0.25)
    assert gpt["bss_market"] == pytest.approx(1 - 0.17 / 0.26)
    # All on YES at 0.40, won, and again, for 0.5/0.4 is more than 0.5/0.6, lost.
    assert gpt["average_return"]["0"] == pytest.approx((1 / 0.4 + 0) / 2)
    assert gpt["average_return"]["1"] == pytest.approx((0.7 / 0.4 + 0.5 / 0.6) / 2)


def test_the_references_stand_beside_the_families_on_the_same_questions() -> None:
    asked_and_ended({GPT: [0.9, 0.1], GROK: [0.6, 0.4], KIMI: [0.6, 0.4]})
    asked_and_ended({GPT: [0.5, 0.5]}, "NO")
    entries = leaderboard()
    assert entries["market"]["brier"] == pytest.approx((0.36 + 0.16) / 2)
    assert entries["uniform"]["brier"] == 0.25
    assert entries["ensemble"]["brier"] == pytest.approx((0.09 + 0.25) / 2)
    assert entries["ensemble_median"]["brier"] == pytest.approx((0.16 + 0.25) / 2)
    sure = 0.7**1.5 / (0.7**1.5 + 0.3**1.5)
    assert entries["ensemble_extremised"]["brier"] == pytest.approx(((1 - sure) ** 2 + 0.25) / 2)
    assert all(entries[name]["n"] == 2 and entries[name]["reference"] for name in REFERENCES)
    assert entries["market"]["rank"] == 4  # the place it would take: behind GPT and two with a question each
    assert (entries[GROK]["n"], entries[GROK]["coverage"]) == (1, 0.5)


def test_the_market_and_the_uniform_answer_what_no_family_did() -> None:
    asked_and_ended({GPT: [0.9, 0.1]})
    asked_and_ended({}, "NO")
    entries = leaderboard()
    assert [entries[name]["n"] for name in ("market", "uniform", "ensemble", GPT)] == [2, 2, 1, 1]
    assert entries[GPT]["coverage"] == 0.5


def test_nobody_gains_a_rank_by_leaving_out_the_hard_question() -> None:
    """GPT answers the easy question alone. By plain Brier scores it would be first, 0.04 against 0.13 and 0.16."""
    hard = 1 - math.sqrt(0.28)
    asked_and_ended({GPT: [0.8, 0.2], GROK: [0.9, 0.1], KIMI: [0.8, 0.2]})
    asked_and_ended({GROK: [0.5, 0.5], KIMI: [hard, 1 - hard]})
    entries = leaderboard()
    assert {entry["ranked_by"] for entry in entries.values()} == {"adjusted_brier"}
    assert {name: entries[name]["rank"] for name in (GPT, GROK, KIMI)} == {GROK: 1, GPT: 2, KIMI: 2}
    assert entries[GROK]["adjusted_brier"] == pytest.approx(0.13)
    assert entries[GPT]["adjusted_brier"] == pytest.approx(0.16)
    assert entries["market"]["rank"] == 4  # 0.36 on both


def test_plain_scores_rank_who_answered_the_same_questions() -> None:
    asked_and_ended({GPT: [0.8, 0.2], GROK: [0.9, 0.1]})
    assert {entry["ranked_by"] for entry in leaderboard().values()} == {"brier"}


def test_coverage_counts_questions_and_not_days() -> None:
    """Two of three forecasts asked for, on both questions."""
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    ask(question, {GROK: [0.9, 0.1]}, day=WEEK + DAY)
    end_question(question, "YES")
    asked_and_ended({GPT: [0.5, 0.5], GROK: [0.5, 0.5]}, "NO")
    entries = leaderboard()
    assert [entries[name]["coverage"] for name in (GPT, GROK, "market")] == [1, 1, 1]


def test_a_question_asked_on_several_days_counts_once() -> None:
    """((0.09 + 0.01) / 2 + 0.25) / 2: a mean over forecasts would be (0.09 + 0.01 + 0.25) / 3."""
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    ask(question, {GPT: [0.9, 0.1]}, day=WEEK + DAY)
    end_question(question, "YES")
    asked_and_ended({GPT: [0.5, 0.5]}, "NO")
    entry = leaderboard()[GPT]
    assert (entry["n"], entry["forecasts"]) == (2, 3)
    assert entry["brier"] == pytest.approx(0.15)
    assert leaderboard()["market"]["brier"] == pytest.approx((0.36 + 0.16) / 2)


def test_the_arms_are_never_mixed() -> None:
    question = QuestionFactory()
    ask(question, {GPT: [0.7, 0.3]})
    ask(question, {GPT: [0.1, 0.9]}, arm="blind")
    end_question(question, "YES")
    assert leaderboard()[GPT]["brier"] == pytest.approx(0.09)
    assert leaderboard("blind")[GPT]["brier"] == pytest.approx(0.81)
    assert leaderboard("blind")["ensemble"]["brier"] == pytest.approx(0.81)


def test_an_ask_is_what_a_dollar_is_bet_at_and_the_mid_what_the_market_says() -> None:
    asked_and_ended({GPT: [0.7, 0.3]}, asks={"YES": ("0.50", "0.70"), "NO": ("0.70", "0.50")})
    entries = leaderboard()
    assert entries[GPT]["average_return"]["0"] == pytest.approx(2.0)
    assert entries["market"]["brier"] == pytest.approx(0.36)
    assert entries[GPT]["alpha"] == pytest.approx(0.36 - 0.09)


@pytest.mark.parametrize("price", ["0", "1", "1.2"])
def test_an_option_that_can_not_be_bet_on_leaves_its_question_without_a_return(price: str) -> None:
    asked_and_ended({GPT: [0.7, 0.3]}, asks={"YES": (price, None)})
    entry = leaderboard()[GPT]
    assert (entry["average_return"]["0"], entry["brier"]) == (None, pytest.approx(0.09))


def test_family_without_an_answer_has_nulls_and_stands_last() -> None:
    asked_and_ended({GPT: [0.0, 1.0]})
    entries = leaderboard()
    silent = list(entries.values())[-1]
    assert (silent["n"], silent["brier"], silent["rank"], silent["rank_low"]) == (0, None, 2, None)
    assert entries[GPT]["rank"] == 1
    assert len(entries) == 7 + len(REFERENCES)


def test_the_newer_of_two_releases_that_answered_the_same_batch_speaks_for_the_family() -> None:
    question = QuestionFactory()
    entry = ask(question, {GPT: [0.7, 0.3]})
    older = Forecast.objects.get()
    family = Family.objects.get(slug=GPT)
    newer = Release.objects.create(
        family=family, model_id="openai/gpt-6", display_name="GPT-6", price_prompt=0, price_completion=0,
        effective_from=WEEK - DAY,
    )  # fmt: skip
    task = Elicitation.objects.get()
    task.pk, task.release = None, newer
    task.save()
    older.pk, older.elicitation, older.release, older.probabilities = None, task, newer, {"YES": 0.9, "NO": 0.1}
    older.save()
    end_question(question, "YES")
    assert entry.forecasts.count() == 2
    assert leaderboard()[GPT]["brier"] == pytest.approx(0.01)


def test_a_selection_ends_with_an_instant() -> None:
    asked_and_ended({GPT: [0.7, 0.3]})
    later = QuestionFactory()
    ask(later, {GPT: [0.5, 0.5]})
    end_question(later, "YES", at=END + DAY)
    assert (leaderboard(until=END)[GPT]["n"], leaderboard()[GPT]["n"]) == (1, 2)


def test_few_questions_raise_nothing() -> None:
    ask(QuestionFactory(), {GPT: [0.7, 0.3]})
    for resolved in range(4):
        refresh_forecast_leaderboards(at=END)
        entry = stored_entry()
        assert (entry["n"], entry["brier"] is None) == (resolved, resolved == 0)
        assert entry["brier_ci"] is None  # below four events
        asked_and_ended({GPT: [1.0, 0.0], GROK: [0.5, 0.5]})


def a_week(questions: int) -> None:
    """Questions of two categories on which three families differ, some in one event, two asked twice."""
    for number in range(questions):
        lean = 0.1 + 0.12 * (number % 6)
        vectors = {GPT: [lean, 1 - lean], GROK: [0.9 - lean / 2, 0.1 + lean / 2], KIMI: [0.5, 0.5]}
        market = MarketFactory(category=("Politics", "Sports")[number % 2], event_id=f"event-{number // 2}")
        asks = {"YES": ("0.42", "0.62"), "NO": ("0.62", "0.42")}
        question = QuestionFactory(markets=[market])
        for day in range(1 + (number < 2)):
            ask(question, vectors, day=WEEK + day * DAY, asks=asks)
            ask(question, {GPT: [0.5, 0.5]}, day=WEEK + day * DAY, arm="blind")
        end_question(question, ("YES", "NO", "NO")[number % 3])


def ranked(path: Path, *, latest: bool) -> dict[str, Any]:
    """What `rank` makes of the forecasts on record: of every day's, or told when they were made, of the latest."""
    out = path.with_suffix(".json")
    _write_long_form(path, latest=latest)
    call_command("rank", path, out=out, json=True, stdout=StringIO())
    return json.loads(out.read_text())


def score_a_week() -> None:
    a_week(8)
    refresh_forecast_leaderboards(at=END)


scored_week = shared_rows(score_a_week)


def test_the_leaderboard_equals_what_rank_makes_of_the_same_forecasts_in_a_file(
    scored_week: None, tmp_path: Path
) -> None:
    entries = {entry["forecaster"]: entry for entry in stored().entries}
    averaged = ("brier", "brier_ci", "log", "average_return", "alpha", "ece")
    more = (
        "spherical", "accuracy", "log_wealth", "bss_uniform", "bss_market", "pool_weight", "coverage", "adjusted_brier",
        "bt_ability", "bt_se", "rank_range",
    )  # fmt: skip
    every_day = ranked(tmp_path / "days.csv", latest=False)
    last_forecasts = ranked(tmp_path / "last.csv", latest=True)
    for report, group, keys in (
        (every_day, "forecasters", averaged + more),
        (every_day, "references", averaged),
        (last_forecasts, "forecasters", ("weighted_brier", "irt_ability", "irt_se")),
    ):
        for name, figures in report[group].items():
            entry = entries[name] | {"rank_range": [entries[name]["rank_low"], entries[name]["rank_high"]]}
            for key in keys:
                assert _flat(entry[key]) == pytest.approx(_flat(figures[key]), rel=1e-7, abs=1e-9, nan_ok=True), key
    pairs = {(pair["first"], pair["second"]): pair for pair in stored().report["pairs"]}
    for pair in every_day["pairs"]:
        ours = pairs.get((pair["first"], pair["second"])) or pairs[pair["second"], pair["first"]]
        assert ours["p"] == pytest.approx(pair["p"])
        # The file's rows are days of questions; the leaderboard counts questions.
        assert ours["questions_needed"] == pytest.approx(pair["questions_needed"] * ours["weight"] / pair["n"], abs=1.5)


def _flat(value: Any) -> list[float]:
    """A number, an interval or numbers by gamma as a list, NaN for null."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    return [math.nan if part is None else part for part in (value if isinstance(value, list) else [value])]


def _write_long_form(path: Path, *, latest: bool) -> None:
    selection = Selection("priced")
    entries = resolved_entries(selection)
    families = panels(entries, family_names(selection)).families
    questions = families.questions
    names = ("forecaster", "question", "option", "probability", "outcome", "odds", "no_odds", "event", "weight")
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*names, "exclusive", *(("made_at", "closed_at") if latest else ())])
        for cell in range(len(families.probability)):
            forecast = int(families.cell_forecast[cell])
            question, option = int(families.question[forecast]), int(families.cell_option[cell])
            entry = entries[question]
            number = str(entry.question if latest else entry.entry).zfill(9)
            row = [families.forecasters[families.forecaster[forecast]], number]
            row += [questions.option_names[option], families.probability[cell], int(questions.outcome[option])]
            row += [families.odds[cell], families.no_odds[cell], questions.event_names[questions.event[question]]]
            times = [(WEEK + question * DAY).isoformat(), (END + 60 * DAY).isoformat()] if latest else []
            out.writerow([*row, 1 if latest else families.weight[forecast], 1, *times])


def test_leaderboards_are_stored_by_methodology_arm_and_category(scored_week: None) -> None:
    leaderboards = Leaderboard.objects.filter(protocol="forecast").values_list("methodology", "arm", "category")
    assert set(leaderboards) == {
        (version, arm, category)
        for version in ("", "v2") for arm in ("blind", "priced") for category in ("", "Politics", "Sports")
    }  # fmt: skip
    politics = stored_entry(category="Politics")
    assert (politics["n"], politics["forecasts"], politics["cost_usd"], politics["irt_ability"]) == (4, 5, None, None)
    assert stored().entries == stored(methodology="v2").entries


def test_a_leaderboard_tells_what_asking_cost_and_stores_how_hard_questions_were(scored_week: None) -> None:
    entry = stored_entry()
    assert (entry["cost_usd"], entry["asked"], entry["declined"], entry["refused"]) == ("0.100000", 10, 0, 0)
    assert entry["irt_ability"] is not None
    difficulties = QuestionDifficulty.objects.filter(arm="priced")
    assert difficulties.count() == 8
    difficulties.update(difficulty=9.0)
    drift = list(leaderboard_drift(at=END, repair=True))
    assert [line.partition(" priced is (9.0")[1] for line in drift] == [" priced is (9.0"] * 8
    assert not difficulties.filter(difficulty=9.0).exists()
    assert list(leaderboard_drift(at=END)) == []


def test_unchanged_leaderboards_are_left_alone_and_a_pass_keeps_what_takes_long_to_fit(
    scored_week: None,
) -> None:
    assert refresh_forecast_leaderboards(at=END + DAY) == 0
    before = stored_entry()
    fitted = stored().report["fitted_at"]
    question = asked_and_ended({GPT: [0.9, 0.1], GROK: [0.1, 0.9]})
    assert question.category == "Politics"
    refresh_forecast_leaderboards(at=END + 2 * DAY, refit=False)
    after = stored_entry()
    assert after["n"] == before["n"] + 1
    assert after["irt_ability"] == before["irt_ability"] is not None
    assert stored().report["fitted_at"] == fitted
    refresh_forecast_leaderboards(at=END + 3 * DAY)
    assert stored().report["fitted_at"] != fitted
    assert stored_entry(category="Politics")["n"] == 5


@pytest.mark.thorough
def test_few_new_forecasts_wait_for_the_daily_fit_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = {family.slug: [0.7, 0.3] for family in Family.objects.all()}
    for _ in range(math.ceil(100 / len(everyone))):
        asked_and_ended(everyone)
    refresh_forecast_leaderboards(at=END)
    asked_and_ended({GPT: [0.9, 0.1]})
    refresh_forecast_leaderboards(at=END)
    fitted = stored().report["fitted"]
    assert fitted["forecasts"] == 106
    monkeypatch.setattr(forecast_inputs, "MANY_FORECASTS", 106)
    asked_and_ended({GPT: [0.9, 0.1]})
    refresh_forecast_leaderboards(at=END + DAY / 2)
    assert stored().report["fitted"] == fitted
    assert stored_entry()["n"] == stored_entry(GROK)["n"] + 2
    assert list(leaderboard_drift(at=END + DAY / 2)) == []
    refresh_forecast_leaderboards(at=END + DAY)
    assert stored().report["fitted"]["forecasts"] == fitted["forecasts"] + 1
    asked_and_ended(everyone)
    refresh_forecast_leaderboards(at=END + 1.5 * DAY)
    assert stored().report["fitted"]["forecasts"] == fitted["forecasts"] + 1 + len(everyone)


@pytest.mark.thorough
def test_slow_fits_added_to_a_current_leaderboard_give_what_one_computation_gives() -> None:
    a_week(4)
    refresh_forecast_leaderboards(at=END)
    asked_and_ended({GPT: [0.9, 0.1], GROK: [0.1, 0.9], KIMI: [0.4, 0.6]})
    refresh_forecast_leaderboards(at=END + DAY, refit=False)
    before = stored()
    refresh_forecast_leaderboards(at=END + 2 * DAY)
    in_two_steps = stored()
    assert in_two_steps.report["fitted"] != before.report["fitted"]
    assert list(leaderboard_drift(at=END + 2 * DAY)) == []
    Leaderboard.objects.all().delete()
    refresh_forecast_leaderboards(at=END + 2 * DAY)
    at_once = stored()
    assert first_difference(in_two_steps.entries, at_once.entries) is None
    assert first_difference(in_two_steps.report, at_once.report) is None
    assert QuestionDifficulty.objects.filter(arm="priced").count() == 5


@pytest.mark.thorough
def test_note_that_a_slow_fit_did_not_converge_stays_as_long_as_its_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(irt, "ROUNDS", 1)
    note = "item response theory: the search ended before it converged"
    a_week(4)
    refresh_forecast_leaderboards(at=END)
    assert stored().report["notes"].count(note) == 1
    ask(QuestionFactory(), {GPT: [0.7, 0.3]})  # another forecast was made, and none of those that were fitted changed
    refresh_forecast_leaderboards(at=END + DAY, refit=False)
    assert (stored().computed_at, stored().report["notes"].count(note)) == (END + DAY, 1)
    assert list(leaderboard_drift(at=END + DAY)) == []
    asked_and_ended({GPT: [0.9, 0.1], GROK: [0.1, 0.9]})
    refresh_forecast_leaderboards(at=END + 2 * DAY, refit=False)
    refresh_forecast_leaderboards(at=END + 3 * DAY)
    assert stored().report["notes"].count(note) == 1
    assert list(leaderboard_drift(at=END + 3 * DAY)) == []


def test_a_category_without_a_new_resolution_keeps_its_leaderboard(scored_week: None) -> None:
    question = QuestionFactory(markets=[MarketFactory(category="Sports")])
    ask(question, {GPT: [0.7, 0.3]})
    end_question(question, "YES")
    refresh_forecast_leaderboards(at=END + DAY)
    computed = {category: stored(category=category).computed_at for category in ("", "Politics", "Sports")}
    assert computed == {"": END + DAY, "Politics": END, "Sports": END + DAY}


def test_fits_of_an_older_format_are_repeated(scored_week: None) -> None:
    """A release of November stored the inputs of fits without their format."""
    leaderboard = stored()
    leaderboard.report["fitted"] = {"number": 6, "newest": None, "forecasts": 11, "scored_at": None}
    leaderboard.save()
    refresh_forecast_leaderboards(at=END + DAY / 2)
    assert stored().report["fitted_at"] == (END + DAY / 2).isoformat()


def test_missing_leaderboard_of_a_category_is_computed_beside_current_ones(scored_week: None) -> None:
    Leaderboard.objects.filter(category="Sports").delete()
    assert refresh_forecast_leaderboards(at=END + DAY) == 4
    assert stored(category="Sports").computed_at == stored("blind", "v2", "Sports").computed_at == END + DAY


def test_reversed_outcome_renews_leaderboards_of_as_many_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecast_inputs, "MANY_FORECASTS", 0)
    question = asked_and_ended({GPT: [0.7, 0.3], GROK: [0.2, 0.8]})
    refresh_forecast_leaderboards(at=END)
    market = Market.objects.get(outcomes__question_options__question=question, outcomes__side="YES")
    later = END + DAY / 2
    reverse_to(market, "NO", at=later)
    clear_scores(market, correct_question_outcomes(market, at=later))
    score_forecasts(at=later)
    refresh_forecast_leaderboards(at=later, refit=False)
    assert stored_entry()["brier"] == pytest.approx(0.49)
    refresh_forecast_leaderboards(at=later)
    assert stored().report["fitted_at"] == later.isoformat()
    assert stored_entry(category="Politics")["brier"] == pytest.approx(0.49)


def test_a_leaderboard_costs_the_same_queries_whatever_was_asked() -> None:
    a_week(2)
    before = statements(resolved_entries, Selection("priced"))
    a_week(4)
    assert statements(resolved_entries, Selection("priced")) == before == 3


def test_the_report_holds_pairs_agreement_curves_and_reliability(scored_week: None) -> None:
    report = stored().report
    pair = next(p for p in report["pairs"] if {p["first"], p["second"]} == {GPT, GROK})
    assert (pair["n"], pair["weight"]) == (8, pytest.approx(8)), "questions, two of them asked twice"
    assert 0 <= pair["p_holm"] <= 1
    assert pair["questions_more"] is not None
    assert set(report["curves"]["average_return"]) == {"0", "0.5", "1"}
    assert report["curves"]["average_return"]["0"]["forecasters"][GPT][-1] is not None
    assert GPT in report["curves"]["reliability"]["forecasters"]
    assert report["agreement"]["spearman"]["brier"]["log"] is not None
    assert report["forecasts_and_trades"] == []
    assert (report["data"]["questions"], report["data"]["entries"]) == (8, 10)
