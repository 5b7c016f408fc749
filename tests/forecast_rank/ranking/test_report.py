"""The report of a ranking: what is in it for whom, in which order, and what it says where there is nothing to say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import numpy as np
import pytest

import forecast_rank as fr
from forecast_rank.metrics import irt, thurstone_mosteller
from forecast_rank.metrics.bradley_terry import pairwise_ability, pool_weights
from forecast_rank.metrics.difficulty_adjustment import adjusted_brier
from forecast_rank.metrics.distinct_pairs import distinct_pairs
from forecast_rank.metrics.irt import fit_irt
from forecast_rank.metrics.linear_pool import pool_contests
from forecast_rank.metrics.panel import Panel, from_arrays, references
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.metrics.uncertainty import resample_counts
from forecast_rank.ranking import calibration_figures, figure_table, model_fits, score_figures, scoreboard, threads
from forecast_rank.ranking.model_fits import sampled_events, with_references
from forecast_rank.ranking.report import rank_panel
from forecast_rank.ranking.report_tables import report_tables
from forecast_rank.ranking.scoreboard import concatenate_panels
from forecast_rank.ranking.scores import METRICS, USUAL_METRICS
from forecast_rank.ranking.settings import Settings
from tests.forecast_rank.panels import EMPTY, answers, panel, relabelled, rows_of, synthetic
from tests.forecast_rank.simulated_worlds import simulate
from tests.lazy_modules import pl
from tests.selection import chosen

QUICK = Settings(bootstrap=200, stream=10)
FITTED = ("irt", "weighted_brier", "thurstone_mosteller", "bradley_terry", "adjusted_brier")
CHEAP = tuple(name for name in METRICS if name not in FITTED)
BEST = 1.3
"""The best forecaster's ability in a run of 4,000 questions of the world "independent", to 0.05."""
KEYS = {
    "n", "coverage", "brier", "brier_ci", "rank_range", "log", "spherical", "accuracy", "average_return", "log_wealth",
    "alpha", "ece", "weighted_brier", "pool_weight", "bt_ability", "bt_se", "irt_ability", "irt_se", "adjusted_brier",
}  # fmt: skip


@pytest.fixture(scope="module")
def forecasts() -> Panel:
    return synthetic(6, 150, seed=3, event_size=2).panel


@pytest.fixture(scope="module")
def report(forecasts: Panel) -> dict[str, Any]:
    return rank_panel(forecasts, QUICK)


def full(report: dict[str, Any]) -> dict[str, Any]:
    """The report with what `rank` adds."""
    return report | {"settings": {"like": None, "level": 0.95, "log_clip": 1e-6, "gammas": ["0"]}, "rejected": []}


class TestShape:
    def test_every_key_of_the_contract_is_there_for_forecasters_and_references(self, report: dict[str, Any]) -> None:
        for entry in (*report["forecasters"].values(), *report["references"].values()):
            assert set(entry) >= KEYS

    def test_references_are_three_and_stand_apart(self, report: dict[str, Any]) -> None:
        assert list(report["references"]) == ["market", "uniform", "ensemble"]
        assert not set(report["references"]) & set(report["forecasters"])
        for names in report["rankings"].values():
            assert sorted(names) == sorted(report["forecasters"])

    def test_every_metric_asked_for_is_ranked(self, report: dict[str, Any]) -> None:
        returns = {f"average_return:{gamma}" for gamma in QUICK.gammas}
        assert (set(USUAL_METRICS) - {"average_return"}) | returns <= set(report["rankings"])

    def test_wins_are_ranked_only_where_they_are_asked_for(self, forecasts: Panel, report: dict[str, Any]) -> None:
        assert report["forecasters"]["f00"]["bt_ability"] is not None
        assert not {"bradley_terry"} & {*report["rankings"], *report["agreement"]["spearman"]}
        columns = rank_panel(forecasts, replace(QUICK, metrics=("bradley_terry",)))
        assert set(columns["rankings"]) == {"bradley_terry"}
        assert any(note.startswith("Bradley–Terry counts wins, not margins") for note in columns["notes"])

    def test_few_questions_give_scores_without_a_rank(self) -> None:
        rows = answers(ann=[0.9, 0.8, 0.7, 0.9, 0.8], bob=[0.6, 0.5, 0.6, 0.7, 0.5], zoe=[1.0])
        report = rank_panel(panel(rows), replace(QUICK, metrics=CHEAP, min_questions=2))
        assert {tuple(names) for names in report["rankings"].values()} == {("ann", "bob")}
        zoe = report["forecasters"]["zoe"]
        assert (zoe["brier"], zoe["rank_range"], set(zoe["rank_ranges"].values())) == (0.0, None, {None})
        assert report["forecasters"]["bob"]["rank_range"] == [2, 2]
        table = next(report_tables(full(report)))
        assert [row[:2] for row in table.rows if "(" not in row[1]] == [["1", "ann"], ["2", "bob"], ["–", "zoe"]]

    def test_different_coverage_puts_the_adjusted_score_at_the_head(self) -> None:
        metrics = ("brier", "adjusted_brier")
        for bob, headline in (([0.6] * 5, "brier"), ([0.6] * 4, "adjusted_brier")):
            report = rank_panel(panel(answers(ann=[0.9] * 5, bob=bob)), replace(QUICK, metrics=metrics))
            assert (report["headline"], next(report_tables(full(report))).name) == (headline, headline)

    def test_a_leader_with_few_of_the_questions_is_named(self) -> None:
        report = rank_panel(panel(answers(ann=[0.9] * 20, zoe=[1.0])), replace(QUICK, metrics=("brier",)))
        assert report["notes"] == [
            "zoe leads by the Brier score with 1 of 20 questions; "
            "--min-questions N ranks only forecasters with N or more"
        ]

    def test_noisy_returns_name_the_questions_that_would_tell_the_first_two_apart(self) -> None:
        # Returns 2, 2, 2, 0 and 0, 0, 0, 2: mean difference 1, standard error 1; 4 (1.960 + 0.842)^2 = 31.4.
        rows = [
            row
            for k, happened in enumerate((0, 0, 0, 1))
            for name, p in (("ann", 0.9), ("bob", 0.1))
            for row in rows_of(name, f"q{k}", [p, round(1 - p, 9)], happened, odds=[0.5, 0.5])
        ]
        rows = rows_of("abe", "q3", [0.9, 0.1], 1, odds=[0.5, 0.5]) + rows  # is last, though the first of the panel
        report = rank_panel(panel(rows), replace(QUICK, metrics=("average_return",), gammas=("0",)))
        assert report["notes"] == [
            "averaged return, risk aversion 0, is a noisy measure: ann and bob cannot be told apart on 4 common "
            "questions; it would take some 31 (80% power)"
        ]

    def test_only_what_was_asked_for(self, forecasts: Panel) -> None:
        report = rank_panel(forecasts, replace(QUICK, metrics=("log",)))
        assert set(report["rankings"]) == {"log", "accuracy"}
        entry = report["forecasters"]["f00"]
        assert "log" in entry
        assert "brier" not in entry
        assert report["pairs"] == []

    def test_gamma_is_a_key_as_it_was_written(self, forecasts: Panel) -> None:
        report = rank_panel(forecasts, replace(QUICK, metrics=("average_return",), gammas=("0", "0.50", "1.0")))
        assert list(report["forecasters"]["f00"]["average_return"]) == ["0", "0.50", "1.0"]
        assert "average_return:0.50" in report["rankings"]

    def test_it_is_json_without_nan(self, report: dict[str, Any]) -> None:
        assert json.loads(json.dumps(report, allow_nan=False)) == report

    def test_progress_ends_when_all_is_done(self, forecasts: Panel) -> None:
        progress_calls: list[tuple[int, int, str]] = []
        rank_panel(forecasts, replace(QUICK, metrics=("brier", "alpha")), lambda *step: progress_calls.append(step))
        assert [finished_count for finished_count, _, _ in progress_calls] == list(range(len(progress_calls)))
        assert progress_calls[-1][0] == progress_calls[-1][1]

    def test_parts_side_by_side_make_the_same_report(
        self, forecasts: Panel, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(threads, "MANY_FORECASTS", 0)
        captions: list[str] = []
        together = rank_panel(forecasts, QUICK, lambda finished_count, of, caption: captions.append(caption))
        equal = json.dumps(together) == json.dumps(report)
        assert equal, "not the same bytes"  # a comparison of both would be long
        assert captions[0] == "Brier scores and pairs"

    def test_what_several_figures_take_is_computed_once(
        self, forecasts: Panel, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fits, sorted_pairs = Mock(wraps=adjusted_brier), Mock(wraps=distinct_pairs)
        contests, draws = Mock(wraps=pool_contests), Mock(wraps=resample_counts)
        monkeypatch.setattr(model_fits, "adjusted_brier", fits)
        monkeypatch.setattr(thurstone_mosteller, "adjusted_brier", fits)
        monkeypatch.setattr(model_fits, "pool_contests", contests)
        monkeypatch.setattr(calibration_figures, "distinct_pairs", sorted_pairs)
        for module in (figure_table, scoreboard):
            monkeypatch.setattr(module, "resample_counts", draws)
        again = rank_panel(forecasts, QUICK)
        assert json.dumps(again) == json.dumps(report)
        assert fits.call_count == 2  # without the references and with them
        assert (sorted_pairs.call_count, contests.call_count) == (1, 1)
        assert draws.call_count == 2  # for the means, and for the calibration error

    def test_error_in_one_of_the_parts_ends_the_report(self, forecasts: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(threads, "MANY_FORECASTS", 0)
        monkeypatch.setattr(score_figures, "alpha", Mock(side_effect=MemoryError))
        with pytest.raises(MemoryError):
            rank_panel(forecasts, QUICK)


class TestFigures:
    @pytest.mark.parametrize(("ranking", "key"), [("brier", "brier"), ("calibration", "ece_unbiased")])
    def test_figures_intervals_and_ranks_belong_together(self, report: dict[str, Any], ranking: str, key: str) -> None:
        order = report["rankings"][ranking]
        scores = [report["forecasters"][name][key] for name in order]
        assert scores == sorted(scores)
        for place, name in enumerate(order, start=1):
            entry = report["forecasters"][name]
            low, high = entry["ece_ci" if ranking == "calibration" else f"{key}_ci"]
            assert 0 <= low < high
            assert low <= entry[key] < high
            first, last = entry["rank_ranges"][ranking]
            assert first <= place <= last
            assert isinstance(first, int)
            assert entry["rank_range"] == entry["rank_ranges"]["brier"]

    def test_a_reference_has_the_rank_it_would_hold_among_the_forecasters(self, report: dict[str, Any]) -> None:
        scores = [entry["brier"] for entry in report["forecasters"].values()]
        for name, entry in report["references"].items():
            place = 1 + sum(score < entry["brier"] for score in scores)
            first, last = entry["rank_range"]
            assert first <= place <= last, name
        assert report["references"]["uniform"]["rank_range"][1] == len(scores) + 1

    def test_coverage_is_the_share_of_questions_answered(self, forecasts: Panel, report: dict[str, Any]) -> None:
        for i, name in enumerate(forecasts.forecasters):
            n = int((forecasts.forecaster == i).sum())
            assert report["forecasters"][name]["n"] == n
            assert report["forecasters"][name]["coverage"] == pytest.approx(n / 150)
        assert report["references"]["uniform"]["coverage"] == 1

    def test_weights_weigh_every_metric(self, forecasts: Panel) -> None:
        heavy = replace(forecasts, weight=np.where(forecasts.question < 75, 3.0, 1.0))
        entry = rank_panel(heavy, replace(QUICK, metrics=CHEAP))["forecasters"]["f00"]
        mine = forecasts.forecaster == 0
        expected = np.average(brier(forecasts)[mine], weights=heavy.weight[mine])
        assert entry["brier"] == pytest.approx(expected)
        assert entry["murphy"]["brier"] == pytest.approx(expected)

    def test_names_and_order_mean_nothing(self, forecasts: Panel, report: dict[str, Any]) -> None:
        moved, _, _ = relabelled(forecasts, seed=0)
        again = rank_panel(moved, QUICK)
        for name, entry in report["forecasters"].items():
            for key in ("brier", "log", "alpha", "ece", "bt_ability", "irt_ability", "adjusted_brier"):
                assert again["forecasters"][name][key] == pytest.approx(entry[key], abs=1e-4), key
        assert again["rankings"]["brier"] == report["rankings"]["brier"]

    def test_a_forecaster_may_be_called_market(self) -> None:
        rows = [*rows_of("market", "q", [0.9, 0.1], 0, [0.6, 0.5]), *rows_of("ann", "q", [0.5, 0.5], 0, [0.6, 0.5])]
        report = rank_panel(panel(rows), replace(QUICK, metrics=CHEAP))
        assert report["forecasters"]["market"]["brier"] == pytest.approx(0.01)
        assert report["references"]["market"]["brier"] != pytest.approx(0.01)

    def test_categories_have_their_own_scores(self) -> None:
        rows = [
            *rows_of("ann", "q1", [0.9, 0.1], 0, category="Sports"),
            *rows_of("ann", "q2", [0.8, 0.2], 0, category="Politics"),
            *rows_of("ann", "q3", [0.6, 0.4], 0, category="Politics"),
        ]
        figures = rank_panel(panel(rows), replace(QUICK, metrics=("brier",)))["forecasters"]["ann"]["brier_by_category"]
        assert figures == pytest.approx({"Sports": 0.01, "Politics": 0.1})

    def test_the_best_in_truth_leads(self) -> None:
        skilled = synthetic(5, 800, seed=1, noise=(0.1, 2.0))
        report = rank_panel(skilled.panel, replace(QUICK, gammas=("1",)))
        for ranking in (
            "brier",
            "log",
            "log_wealth:1",
            "alpha",
            "adjusted_brier",
            "irt",
            "weighted_brier",
            "thurstone_mosteller",
        ):
            assert report["rankings"][ranking] == skilled.panel.forecasters, ranking

    def test_the_same_seed_gives_the_same_report(self, forecasts: Panel) -> None:
        settings = replace(QUICK, metrics=("brier",))
        assert rank_panel(forecasts, settings) == rank_panel(forecasts, settings)
        other_report = rank_panel(forecasts, replace(settings, seed=1))
        assert (
            other_report["forecasters"]["f00"]["brier_ci"]
            != rank_panel(forecasts, settings)["forecasters"]["f00"]["brier_ci"]
        )

    def test_no_resamples_no_intervals(self, forecasts: Panel) -> None:
        entry = rank_panel(forecasts, replace(QUICK, metrics=("brier",), bootstrap=0))["forecasters"]["f00"]
        assert entry.get("brier_ci") is None
        assert entry["rank_range"] is None
        assert entry["brier_se"] > 0

    def test_models_have_intervals_about_their_estimates(self, report: dict[str, Any]) -> None:
        for entry in report["forecasters"].values():
            for key in ("adjusted_brier", "bt_ability", "irt_ability"):
                low, high = entry[f"{key}_ci"]
                assert low < entry[key] < high, key

    def test_missing_intervals_are_explained(self) -> None:
        rows = [*answers(ann=[0.9, 0.6, 0.8, 0.7, 0.4], bob=[0.6, 0.7, 0.7])]
        report = rank_panel(panel(rows), replace(QUICK, metrics=("brier", "irt", "adjusted_brier")))
        assert report["forecasters"]["ann"]["brier_ci"] is not None
        assert report["forecasters"]["bob"]["brier_ci"] is None
        assert report["no_interval"]["brier"] == "fewer than 4 events: bob"
        assert report["no_interval"]["adjusted_brier"] == "fewer than 4 events: bob"
        assert "ann, bob" in report["no_interval"]["irt"]
        assert rank_panel(panel(rows), replace(QUICK, metrics=("brier",), bootstrap=0))["no_interval"] == {
            "brier": "no resamples", "accuracy": "no resamples"
        }  # fmt: skip

    @pytest.mark.parametrize("events", [39, 40])
    def test_averaged_returns_need_forty_events_for_an_interval(self, events: int) -> None:
        generator = np.random.default_rng(2)
        vectors, happened = generator.uniform(0.1, 0.9, (3, events, 1)), generator.uniform(size=(events, 1)) < 0.5
        forecasts = from_arrays(vectors, happened, odds=np.full((events, 1), 0.5), exclusive=False)
        report = rank_panel(forecasts, replace(QUICK, metrics=("brier", "average_return")))
        entry, name = report["forecasters"]["f0"], "average_return:1"
        band = report["curves"]["average_return"]["1"]["bands"]["f0"]
        assert (entry["average_return_ci"]["1"] is None, band[0][-1] is None) == (events < 40, events < 40)
        assert entry["brier_ci"] is not None
        assert entry["log_wealth_ci"]["1"] is not None
        assert report["no_interval"].get(name) == ("fewer than 40 events: f0, f1, f2" if events < 40 else None)

    @pytest.mark.thorough
    def test_intervals_of_abilities_hold_them_in_units_free_of_errors(self) -> None:
        settings, hits, without_stretch = replace(QUICK, metrics=("irt",)), [], []
        for seed in range(20):
            world = simulate("independent", forecasters=10, events=50, seed=seed)
            report, fit = rank_panel(world.panel, settings), fit_irt(world.panel)
            low, high = report["forecasters"]["f0"]["irt_ability_ci"]
            hits.append(low <= BEST <= high)
            without_stretch.append(abs(fit.ability[0] - BEST) <= 2 * fit.ability_se[0])
        assert np.mean(hits) >= 0.95
        assert np.mean(without_stretch) <= 0.85

    @pytest.mark.parametrize("seeds", chosen([2], [2, 12]))
    def test_equals_may_all_be_the_ablest(self, seeds: int) -> None:
        settings, together = replace(QUICK, metrics=("irt",)), 0
        for seed in range(seeds):
            report = rank_panel(simulate("equal", forecasters=10, events=50, seed=seed).panel, settings)
            together += all(entry["rank_ranges"]["irt"][0] == 1 for entry in report["forecasters"].values())
        assert together >= seeds - 1

    def test_intervals_end_where_scores_do(self) -> None:
        rows = answers(ann=[0.9, 0.6, 0.8, 0.4, 0.4, 0.3, 0.7])
        entries = rank_panel(panel(rows), replace(QUICK, metrics=("brier",)))["forecasters"]
        low, high = entries["ann"]["accuracy_ci"]
        assert 0 < low < entries["ann"]["accuracy"] < high < 1

    def test_all_right_is_not_certain(self) -> None:
        """Ten of ten by Clopper and Pearson: .025^(1/10); a score that is always the same has no interval."""
        sample = panel(answers(ann=[0.9] * 10, bob=[0.4] * 5 + [0.8] * 5))
        entries = rank_panel(sample, replace(QUICK, metrics=("brier",)))["forecasters"]
        assert entries["ann"]["accuracy"] == 1
        assert entries["ann"]["accuracy_ci"] == pytest.approx([0.025**0.1, 1.0])
        assert entries["ann"]["brier_ci"] is None

    def test_ten_equals_may_all_be_first_in_every_ranking(self) -> None:
        report = rank_panel(simulate("equal", events=30, seed=3).panel, replace(QUICK, metrics=CHEAP))
        for ranking in report["rankings"]:
            assert all(entry["rank_ranges"][ranking][0] == 1 for entry in report["forecasters"].values()), ranking

    def test_the_other_kind_of_interval(self, forecasts: Panel) -> None:
        results = [
            rank_panel(forecasts, replace(QUICK, metrics=("log",), interval=kind))["forecasters"]["f00"]["log_ci"]
            for kind in ("percentile", "bca", "studentised")
        ]
        assert len({tuple(ends) for ends in results}) == 3
        assert results[0] == pytest.approx(results[1], abs=0.1)
        assert results[2][1] - results[2][0] > results[0][1] - results[0][0]


class TestFits:
    def test_references_move_no_forecasters_figure(self, forecasts: Panel, report: dict[str, Any]) -> None:
        alone = {
            "pool_weight": pool_weights(forecasts).weight,
            "bt_ability": pairwise_ability(forecasts).value,
            "bt_se": pairwise_ability(forecasts).se,
            "irt_ability": irt.fit_irt(forecasts).ability,
            "adjusted_brier": adjusted_brier(forecasts, brier(forecasts)).value,
        }
        for i, name in enumerate(forecasts.forecasters):
            for key, values in alone.items():
                assert report["forecasters"][name][key] == pytest.approx(values[i]), key

    def test_a_reference_is_placed_as_a_forecaster_who_says_the_same(self) -> None:
        forecasts = synthetic(4, 200, seed=5, missing=0).panel
        everybody = concatenate_panels(forecasts, references(forecasts))
        ensemble = everybody.forecasters.index("ensemble")
        double = everybody.take((everybody.forecaster < 4) | (everybody.forecaster == ensemble))
        double = replace(
            double,
            forecasters=[*forecasts.forecasters, "double"],
            forecaster=np.where(double.forecaster == ensemble, 4, double.forecaster),
        )
        fitted = replace(QUICK, metrics=("brier", "adjusted_brier", "irt"))
        report, of_double = rank_panel(forecasts, fitted), rank_panel(double, fitted)["forecasters"]
        guest, best = report["references"]["ensemble"], report["forecasters"]["f00"]
        figures, other_figures = of_double["double"], of_double["f00"]
        assert guest["adjusted_brier"] == pytest.approx(figures["adjusted_brier"])
        assert guest["adjusted_brier"] == pytest.approx(guest["brier"])
        # The unit differs, so only the places do not: above or below the best one in both.
        assert (guest["irt_ability"] > best["irt_ability"]) == (figures["irt_ability"] > other_figures["irt_ability"])

    def test_guests_are_moved_onto_the_forecasters_scale(self) -> None:
        abilities, error = np.array([0.0, 2.0, np.nan]), np.array([0.1, 0.2, np.nan])
        joint, joint_error = np.array([10.0, 11.0, 5.0, 12.0]), np.array([0.3, 0.3, 0.3, 0.4])
        value, errors = with_references(abilities, error, joint, joint_error)
        assert value.tolist() == pytest.approx([0.0, 2.0, np.nan, 12 - 9.5], nan_ok=True)
        assert errors.tolist() == pytest.approx([0.1, 0.2, np.nan, 0.4], nan_ok=True)

    def test_weights_by_discrimination_leave_a_constant_score_as_it_is(self) -> None:
        rows = answers(ann=[0.5] * 12, bob=0.9 - 0.05 * np.arange(12), cy=0.3 + 0.04 * np.arange(12))
        entry = rank_panel(panel(rows), replace(QUICK, metrics=("weighted_brier", "brier")))["forecasters"]
        assert entry["ann"]["weighted_brier"] == pytest.approx(0.25)
        assert entry["bob"]["weighted_brier"] != pytest.approx(entry["bob"]["brier"])

    def test_questions_have_difficulty_and_discrimination(self, forecasts: Panel, report: dict[str, Any]) -> None:
        assert list(report["questions"]) == forecasts.questions.names
        assert set(report["questions"]["q00000"]) == {
            *("difficulty", "difficulty_se", "discrimination", "discrimination_se")
        }

    def test_what_can_not_be_compared_is_said(self) -> None:
        vectors = 0.5 + 0.05 * np.arange(6)
        rows = [*answers(ann=vectors, bob=vectors), *rows_of("zoe", "other", [0.9, 0.1], 0)]
        report = rank_panel(panel(rows), replace(QUICK, metrics=("adjusted_brier", "thurstone_mosteller")))
        assert report["forecasters"]["zoe"]["tm_ability"] is None
        assert report["forecasters"]["zoe"]["adjusted_brier"] is None
        assert report["rankings"]["adjusted_brier"][-1] == "zoe"
        assert "adjusted Brier score: no common question links zoe to the others" in report["notes"]

    def test_a_forecaster_who_never_lost_is_said(self) -> None:
        rows = answers(ann=[0.9] * 6, bob=[0.6] * 6, cy=[0.5] * 6)
        report = rank_panel(panel(rows), replace(QUICK, metrics=("bradley_terry",)))
        assert report["models"]["bt_ability"]["separable"] is True
        assert any("never lost" in note for note in report["notes"])
        assert report["forecasters"]["ann"]["bt_se"] is None
        assert report["rankings"]["bradley_terry"] == ["ann", "bob", "cy"]

    def test_many_forecasts_are_sampled_by_event_and_said(
        self, forecasts: Panel, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(model_fits, "MOST_RESPONSES", 500)
        settings = replace(QUICK, metrics=("brier", "irt", "weighted_brier"))
        report = rank_panel(forecasts, settings)
        note = next(note for note in report["notes"] if "item response theory" in note)
        assert "from 493 of 754 forecasts, on a random sample of the events" in note
        sampled = sampled_events(forecasts, 500, seed=0)
        alone = rank_panel(sampled, settings)
        for name in forecasts.forecasters:
            entry, expected = report["forecasters"][name], alone["forecasters"][name]
            for key in ("irt_ability", "irt_ability_ci", "weighted_brier", "weighted_brier_ci"):
                assert entry[key] == pytest.approx(expected[key]), key
            assert entry["rank_ranges"]["irt"] == expected["rank_ranges"]["irt"]
            assert entry["n"] > expected["n"]
        assert report["rankings"]["irt"] == alone["rankings"]["irt"]
        whole_events = {forecasts.questions.event[j] for j in sampled.question}
        assert len(sampled) == sum(forecasts.questions.event[j] in whole_events for j in forecasts.question)

    def test_many_events_are_merged_for_the_calibration_error(
        self, forecasts: Panel, report: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(scoreboard, "MOST_EVENTS_OF_BINS", 40)
        merged = rank_panel(forecasts, replace(QUICK, metrics=("calibration",)))["forecasters"]
        for name, entry in merged.items():
            expected = report["forecasters"][name]
            assert entry["ece"] == expected["ece"]
            assert entry["ece_ci"] == pytest.approx(expected["ece_ci"], abs=0.03)
            assert entry["ece_ci"] != expected["ece_ci"]

    @pytest.mark.parametrize("interval", ["studentised", "percentile", "bca"])
    def test_groups_of_events_are_resampled_where_events_are_many(
        self, forecasts: Panel, interval: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = replace(QUICK, metrics=("brier",), interval=interval)
        events = rank_panel(forecasts, settings)["forecasters"]
        monkeypatch.setattr(figure_table, "MOST_EVENTS", 40)
        groups = rank_panel(forecasts, settings)["forecasters"]
        for name, entry in groups.items():
            expected = events[name]
            assert (entry["brier"], entry["brier_se"]) == (expected["brier"], expected["brier_se"])
            assert entry["brier_ci"] == pytest.approx(expected["brier_ci"], abs=expected["brier_se"])
            assert entry["brier_ci"] != expected["brier_ci"]
            assert entry["rank_ranges"] == expected["rank_ranges"]

    def test_convergence_is_shown(self, report: dict[str, Any]) -> None:
        pool = report["models"]["pool_weight"]
        assert pool["converged"] is True
        assert pool["kkt_gap"] <= 1e-9
        assert pool["pseudo_count"] > 0
        assert report["models"]["irt"]["integrated"] == "questions"


class TestPairsAgreementAndCurves:
    def test_pairs_are_compared_on_common_questions(self) -> None:
        rows = answers(ann=[0.9] * 4, bob=[0.8, 0.7, 0.6])
        (pair,) = rank_panel(panel(rows), replace(QUICK, metrics=("brier",)))["pairs"]
        assert (pair["first"], pair["second"], pair["n"]) == ("ann", "bob", 3)
        assert pair["difference"] == pytest.approx(0.01 - (0.04 + 0.09 + 0.16) / 3)
        assert 0 < pair["p"] <= pair["p_holm"] <= 1
        assert pair["questions_needed"] > 3

    def test_rankings_agree_with_themselves(self, report: dict[str, Any]) -> None:
        for measure in ("spearman", "kendall"):
            table = report["agreement"][measure]
            assert list(table) == list(report["rankings"])
            assert all(table[name][name] == pytest.approx(1) for name in table)
            assert all(table[a][b] == table[b][a] for a in table for b in table)

    def test_better_is_better_in_every_metric(self, report: dict[str, Any]) -> None:
        assert report["agreement"]["spearman"]["brier"]["log"] > 0.5
        assert report["agreement"]["spearman"]["brier"]["adjusted_brier"] > 0.5

    def test_the_stream_ends_at_the_mean(self, report: dict[str, Any]) -> None:
        for gamma, curve in report["curves"]["average_return"].items():
            assert curve["questions"] == [*range(10, 151, 10)]
            assert curve["closed_at"] == sorted(curve["closed_at"])
            for group in ("forecasters", "references"):
                for name, line in curve[group].items():
                    assert line[-1] == pytest.approx(report[group][name]["average_return"][gamma])

    def test_the_reliability_curve_holds_every_pair_once(self, forecasts: Panel, report: dict[str, Any]) -> None:
        for i, name in enumerate(forecasts.forecasters):
            bins = report["curves"]["reliability"]["forecasters"][name]
            assert sum(b["weight"] for b in bins) == pytest.approx(1)
            assert sum(b["pairs"] for b in bins) == (forecasts.spread(forecasts.forecaster) == i).sum()
            assert all(b["from"] <= b["forecast"] <= b["to"] for b in bins)
            error = sum(b["weight"] * abs(b["forecast"] - b["outcome"]) for b in bins)
            assert report["forecasters"][name]["ece"] == pytest.approx(error)


class TestNothingToSay:
    def test_without_prices_returns_and_alpha_are_null_and_not_ranked(self) -> None:
        forecasts = synthetic(3, 30, seed=1, priced=0).panel
        report = rank_panel(forecasts, QUICK)
        entry = report["forecasters"]["f00"]
        assert entry["average_return"] == {"0": None, "0.5": None, "1": None}
        assert entry["alpha"] is None
        assert entry["bss_market"] is None
        assert report["references"]["market"]["brier"] is None
        assert report["references"]["market"]["n"] == 0
        assert "alpha" not in report["rankings"]
        assert entry["brier"] > 0
        assert report["data"]["overround"] is None

    def test_who_has_no_figure_is_last(self) -> None:
        rows = [
            *rows_of("zoe", "q1", [0.9, 0.1], 0, [0.6, 0.5]),
            *rows_of("zoe", "q2", [0.9, 0.1], 1, [0.6, 0.5]),
            *rows_of("ann", "q1", [0.9, 0.1], 0),
        ]
        report = rank_panel(panel(rows), replace(QUICK, metrics=("alpha", "brier")))
        assert report["rankings"]["alpha"] == ["zoe", "ann"]
        assert report["rankings"]["brier"] == ["ann", "zoe"]

    def test_ruin_is_null_and_counted(self) -> None:
        rows = [
            *rows_of("ann", "q1", [1.0, 0.0], 1, [0.6, 0.45]),
            *rows_of("ann", "q2", [0.9, 0.1], 0, [0.6, 0.45]),
            *rows_of("bob", "q1", [0.8, 0.2], 1, [0.6, 0.45]),
        ]
        report = rank_panel(panel(rows), replace(QUICK, metrics=("average_return", "log"), gammas=("0", "1")))
        assert report["forecasters"]["bob"]["log_wealth"]["1"] < 0
        assert report["forecasters"]["ann"]["log_wealth"] == {"0": None, "1": None}
        assert report["forecasters"]["ann"]["ruins"] == {"0": 1, "1": 1}
        assert report["forecasters"]["bob"]["ruins"]["1"] == 0
        assert report["forecasters"]["ann"]["infinite_losses"] == 1
        assert report["forecasters"]["ann"]["log"] < -6

    def test_ruined_forecasters_are_ranked_last_and_compared(self) -> None:
        vectors = {"ann": (1.0, 0.8), "bob": (0.9, 0.7), "cy": (0.6, 0.6)}
        rows = [
            row
            for name, probabilities in vectors.items()
            for question, p in zip("qr", probabilities, strict=True)
            for row in rows_of(name, question, [p, 1 - p], int(question == "q"), [0.6, 0.5])
        ]
        rows += rows_of("dan", "s", [0.6, 0.4], 0)
        report = rank_panel(panel(rows), replace(QUICK, metrics=("average_return", "brier"), gammas=("1",)))
        assert report["forecasters"]["ann"]["log_wealth"]["1"] is None
        assert report["rankings"]["log_wealth:1"] == ["cy", "bob", "ann", "dan"]
        assert report["forecasters"]["ann"]["rank_ranges"]["log_wealth:1"] is not None
        assert report["agreement"]["common"]["log_wealth:1"]["brier"] == 3

    def test_impossible_that_happened_costs_what_the_clip_says(self) -> None:
        rows = rows_of("ann", "q1", [1.0, 0.0], 1)
        for clip in (1e-6, 0.01):
            entry = rank_panel(panel(rows), replace(QUICK, metrics=("log",), log_clip=clip))["forecasters"]["ann"]
            assert entry["log"] == pytest.approx(np.log(clip))

    def test_one_forecaster_on_one_question(self) -> None:
        report = rank_panel(panel(rows_of("ann", "q", [0.75, 0.25], 0, [0.7, 0.35])), QUICK)
        entry = report["forecasters"]["ann"]
        assert entry["brier"] == pytest.approx(0.0625)
        assert entry["brier_ci"] is None
        assert entry["brier_se"] is None
        assert report["rankings"]["brier"] == ["ann"]
        assert report["pairs"] == []

    def test_nothing_at_all(self) -> None:
        report = rank_panel(EMPTY, QUICK)
        assert report["forecasters"] == {}
        assert report["rankings"] == {}
        assert [entry["n"] for entry in report["references"].values()] == [0, 0, 0]
        json.dumps(report, allow_nan=False)


class TestSettings:
    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            ({"metrics": ("brier", "elo")}, "metrics: unknown elo; known are brier, log"),
            ({"metrics": ()}, "metrics: at least one"),
            ({"gammas": ("0", "2")}, "gamma: '2' is not a number in"),
            ({"gammas": ("nan",)}, "gamma: 'nan'"),
            ({"gammas": ("low",)}, "gamma: 'low'"),
            ({"bootstrap": -1}, "bootstrap: at least 0, not -1"),
            ({"stream": 0}, "stream: at least 1"),
            ({"log_clip": 1.0}, "log_clip: at least 0 and below 1"),
            ({"level": 1.0}, "level: between 0 and 1"),
            ({"interval": "magic"}, "interval: one of studentised, percentile, bca"),
        ],
    )
    def test_what_can_not_be_meant_is_named(self, wrong: dict[str, Any], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            Settings(**wrong)


@pytest.mark.thorough
def test_models_are_fitted_to_many_forecasters_only_where_asked_for() -> None:
    table = {"question": ["q1", "q2"], "outcome": [1, 0]} | {f"f{i}": [0.9, i / 1000] for i in range(501)}
    usual = fr.rank(pl.DataFrame(table), bootstrap=10)
    assert "irt" not in usual.to_dict()["rankings"]
    assert "pool_weight" not in usual.to_dict()["forecasters"]["f0"]
    note = "item response theory and the weighted Brier score are fitted only where asked for"
    assert note in usual.to_text()
    report = fr.rank(pl.DataFrame(table), bootstrap=10, metrics="brier,irt")
    assert "irt" in report.to_dict()["rankings"]
    assert note not in report.to_text()


class TestPairsOfTheFirst:
    COLUMNS: ClassVar[dict[str, Any]] = {
        "question": [f"q{j}" for j in range(8)], "outcome": [1, 0] * 4,
        "worst": [0.1, 0.8] * 4, "best": [0.9, 0.2] * 4, "second": [0.8, 0.3, 0.7, 0.3] * 2, "third": [0.5, 0.6] * 4,
    }  # fmt: skip

    def test_pairs_are_those_among_the_first_and_the_report_says_so(self, tmp_path: Path) -> None:
        full_report = fr.rank(pl.DataFrame(self.COLUMNS), bootstrap=50, metrics="brier")
        part = fr.rank(pl.DataFrame(self.COLUMNS), bootstrap=50, pairs=3, metrics="brier", plots=tmp_path)
        names = [{pair["first"], pair["second"]} for pair in part.to_dict()["pairs"]]
        assert names == [{"best", "second"}, {"best", "third"}, {"second", "third"}]
        of_whole = {(pair["first"], pair["second"]): pair for pair in full_report.to_dict()["pairs"]}
        for pair in part.to_dict()["pairs"]:
            full_pair = of_whole[pair["first"], pair["second"]]
            assert (pair["difference"], pair["p"], pair["n"]) == (
                full_pair["difference"],
                full_pair["p"],
                full_pair["n"],
            )
        note = "pairs are compared among the first 3 of 4 forecasters by the Brier score; --pairs N compares more"
        assert note in part.to_text()
        assert (len(of_whole), full_report.to_dict()["settings"]["pairs"]) == (6, 50)
        assert part.to_markdown("pairs").count("best – second") == 1

    @pytest.mark.parametrize("pairs", [0, 1])
    def test_no_pairs_where_none_are_asked_for(self, pairs: int) -> None:
        report = fr.rank(pl.DataFrame(self.COLUMNS), bootstrap=0, pairs=pairs)
        assert report.to_dict()["pairs"] == []
        assert "no pairs are compared, as asked" in report.to_text()

    def test_negative_number_is_refused(self) -> None:
        with pytest.raises(fr.InvalidSetting, match="pairs: at least 0, not -1"):
            fr.Settings(pairs=-1)
