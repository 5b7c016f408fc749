"""Each format as its publisher writes it, first on small files with known answers, then on the captured ones."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import forecast_rank as fr
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.readers.forecastbench import DATASET, RESOLVED, UNRESOLVED
from forecast_rank.readers.kalshibench import p_yes
from forecast_rank.readers.polystrat import event_of
from forecast_rank.readers.records import InvalidRecord, parse_time
from tests.captured import CAPTURED
from tests.forecast_rank.readers.parsed import parsed

FORECASTS = CAPTURED / "forecasts"


def written(path: Path, *records: Any) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def report(format: str, *files: Path) -> dict[str, Any]:
    return fr.rank(list(files), format=format).to_dict()


class TestPolystrat:
    BET = {
        "mech_model": "gpt", "mech_tool": "rag", "condition_id": "0x1", "title": "Rain?", "p_yes": 0.3, "p_no": 0.7,
        "executed_price": 0.6, "outcome_index": 1, "winning_index": 0,
        "placed_at": 1773273609, "settled_at": 1773445967,
    }  # fmt: skip

    def test_bet_becomes_the_forecast_behind_it(self, tmp_path: Path) -> None:
        reading = parsed("polystrat", written(tmp_path / "bets.jsonl", self.BET))
        (row,) = reading.rows
        assert reading.stated == [("gpt · rag", "0x1", "YES", 0.3, 1.0)]
        assert (row["odds"], row["no_odds"], row["exclusive"]) == (pytest.approx(0.4), 0.6, 0.0)
        assert reading.questions["0x1"].title == "Rain?"

    def test_null_probability_is_rejected_and_never_read_as_zero(self, tmp_path: Path) -> None:
        null = {**self.BET, "p_yes": None, "p_no": None, "placed_at": 1773273700}
        reading = parsed("polystrat", written(tmp_path / "bets.jsonl", self.BET, null))
        assert (reading.records, reading.refused) == (2, [(2, "p_yes is null: nothing was stated")])
        assert reading.values("probability") == [0.3], "what was said before the tool failed still counts"

    def test_zero_is_a_probability(self, tmp_path: Path) -> None:
        reading = parsed("polystrat", written(tmp_path / "bets.jsonl", {**self.BET, "p_yes": 0.0, "p_no": 1.0}))
        assert reading.values("probability") == [0.0]

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"p_yes": 1.2}, "p_yes 1.2 is outside [0, 1]"),
            ({"p_yes": "high"}, "p_yes 'high' is not a number"),
            ({"p_yes": True}, "p_yes is not a number"),
            ({"p_no": 0.5}, "p_yes and p_no do not sum to 1"),
            ({"winning_index": 2}, "winning_index 2 is neither 0 nor 1"),
            ({"mech_model": None}, "mech_model is missing"),
            ({"placed_at": "soon"}, "placed_at 'soon' is not an ISO-8601 time"),
        ],
    )
    def test_row_that_can_not_be_used_is_rejected_with_its_reason(
        self, tmp_path: Path, change: dict[str, Any], why: str
    ) -> None:
        reading = parsed("polystrat", written(tmp_path / "bets.jsonl", {**self.BET, **change}, self.BET))
        assert reading.refused == [(1, why)]

    def test_two_bets_on_one_forecast_are_one(self, tmp_path: Path) -> None:
        reading = parsed("polystrat", written(tmp_path / "bets.jsonl", self.BET, {**self.BET, "executed_price": 0.7}))
        assert (reading.records, len(reading.refused), len(reading.rows)) == (2, 0, 1)

    @pytest.mark.parametrize(
        ("title", "settled", "event"),
        [
            ("Will it be 16°C on March 13?", "2026-03-13", "Will it be … on March 13? (2026-03-13)"),
            ("Will it be 17°C or higher on March 13?", "2026-03-14", "Will it be … on March 13? (2026-03-13)"),
            ("Will it be between 60-61°F on March 13?", "2026-03-13", "Will it be … on March 13? (2026-03-13)"),
            ("Will it be 16°C on March 14?", "2026-03-14", "Will it be … on March 14? (2026-03-14)"),
            ("Will X close at <$1,390.50 in the week of Mar 9 – Mar 13?", "2026-03-16",
             "Will X close at … in the week of Mar 9 – Mar 13? (2026-03-13)"),
            ("Will X be above 5 on December 31?", "2026-01-01", "Will X be … on December 31? (2025-12-31)"),
            ("Will X be above 5 on February 30?", "2026-03-01", "Will X be … on February 30? (2026-03-01)"),
            ("Will Ann say 'rain' 3+ times?", "2026-03-18", "Will Ann say 'rain' … times? (2026-03-18)"),
            ("Will Ann win?", "2026-03-18", "Will Ann win? (2026-03-18)"),
            ("", "2026-03-18", None),
            ("Will it be 16°C on March 13?", None, None),
        ],
    )  # fmt: skip
    def test_event_is_the_title_without_its_strike_and_the_day(
        self, title: str, settled: str | None, event: str | None
    ) -> None:
        assert event_of(title, parse_time(settled, "settled")) == event

    def test_strikes_of_one_day_are_one_event(self, tmp_path: Path) -> None:
        titles = ("Will it be 16°C on March 11?", "Will it be 17°C on March 11?", "Will it be 17°C on March 12?")
        bets = [{**self.BET, "condition_id": f"0x{i}", "title": title} for i, title in enumerate(titles)]
        assert parsed("polystrat", written(tmp_path / "bets.jsonl", *bets)).values("event") == [
            "Will it be … on March 11? (2026-03-11)",
            "Will it be … on March 11? (2026-03-11)",
            "Will it be … on March 12? (2026-03-12)",
        ]

    @pytest.mark.captured
    def test_captured_markets_form_157_events(self) -> None:
        file = FORECASTS / "polystrat_llm_bets_2026-03.jsonl"
        reading = parsed("polystrat", file)
        assert (len(reading.questions), reading.warnings) == (219, [])
        assert report("polystrat", file)["data"]["events"] == len(set(reading.values("event"))) == 157
        seoul = set()
        for question in reading.questions.values():
            if "in Seoul be" in question.title and question.title.endswith("March 16?"):
                seoul.add(question.question)
        assert len(seoul) == 4
        events = {row["event"] for row in reading.rows if row["question"] in seoul}
        assert events == {"Will the highest temperature in Seoul be … on March 16? (2026-03-16)"}

    @pytest.mark.captured
    def test_every_captured_bet_is_taken_and_eleven_nulls_among_them_are_not(self, tmp_path: Path) -> None:
        lines = (FORECASTS / "polystrat_llm_bets_2026-03.jsonl").read_text().splitlines()
        nulls = [json.dumps({**json.loads(line), "p_yes": None, "p_no": None}) for line in lines[:11]]
        file = tmp_path / "bets.jsonl"
        file.write_text("\n".join([*lines, *nulls]) + "\n")
        reading = parsed("polystrat", file)
        assert (reading.records, len(reading.refused)) == (len(lines) + 11, 11)
        assert {why for _, why in reading.refused} == {"p_yes is null: nothing was stated"}
        content = {
            (f"{record['mech_model']} · {record['mech_tool']}", record["condition_id"])
            for record in map(json.loads, lines)
        }
        assert {row[:2] for row in reading.stated} == content
        assert report("polystrat", file)["data"]["forecasts"] == len(content)


class TestForecastBench:
    PUBLISHED = {DATASET: (521, 0.122), RESOLVED: (54, 0.082), UNRESOLVED: (22, 0.055)}

    @pytest.mark.captured
    def test_superforecaster_medians_are_the_published_ones(self) -> None:
        folder = FORECASTS / "forecastbench"
        files = [
            folder / "superforecaster_individual_2024-07-21.json",
            folder / "resolution_set_2024-07-21_at_2025-09-05.json",
            folder / "question_set_2024-07-21-human.json",
        ]
        reading, ranked = parsed("forecastbench", *files), report("forecastbench", *files)
        assert (reading.records, reading.refused, reading.warnings) == (7_693, [], [])
        (entry,) = ranked["forecasters"].values()
        scored = Counter(row["category"] for row in reading.rows if row["outcome"] is not None)
        for category, (n, brier) in self.PUBLISHED.items():
            assert scored[category] == n
            assert round(entry["brier_by_category"][category], 3) == brier
        assert entry["n"] == 597
        assert ranked["references"]["uniform"]["brier_by_category"][DATASET] == 0.25
        assert ranked["references"]["market"]["n"] == 76

    def files(self, tmp_path: Path, *forecasts: dict[str, Any], resolutions: list[dict[str, Any]]) -> list[Path]:
        vectors = {"model": "Panel", "forecast_due_date": "2026-01-01", "forecasts": list(forecasts)}
        for name, content in (("said.json", vectors), ("resolved.json", {"resolutions": resolutions})):
            (tmp_path / name).write_text(json.dumps(content))
        return [tmp_path / "said.json", tmp_path / "resolved.json"]

    def test_several_people_are_their_median_by_horizon(self, tmp_path: Path) -> None:
        def says(user: str, p: Any, date: str = "2026-02-01") -> dict[str, Any]:
            return {"id": "x", "source": "fred", "forecast": p, "resolution_date": date, "user": user}

        values = [says("a", 0.1), says("b", 0.4), says("c", 0.9), says("d", None), says("a", 0.5)]
        resolution = {**self.RESOLUTION, "id": "x", "source": "fred", "resolved_to": 1.0}
        later = says("a", 0.6, "2026-03-01")
        reading = parsed("forecastbench", *self.files(tmp_path, *values, later, resolutions=[resolution]))
        assert reading.stated == [
            ("Panel (median)", "fred:x by 2026-02-01", "YES", 0.4, 1.0),
            ("Panel (median)", "fred:x by 2026-03-01", "YES", 0.6, None),
        ]
        reasons = [(4, "forecast is null: nothing was stated"), (5, "a has answered this question before")]
        assert reading.refused == reasons

    FORECAST = {"id": "m", "source": "manifold", "forecast": 0.5, "resolution_date": None}
    RESOLUTION = {"id": "m", "source": "manifold", "resolution_date": "2026-02-01", "resolved": True}

    def test_market_is_scored_once_against_its_price_while_it_is_open(self, tmp_path: Path) -> None:
        price = {**self.RESOLUTION, "resolved_to": 0.3, "resolved": False}
        files = self.files(tmp_path, self.FORECAST, resolutions=[price])
        (row,) = parsed("forecastbench", *files).rows
        values = (row["forecaster"], row["question"], row["outcome"], row["category"])
        assert values == ("Panel", "manifold:m", 0.3, UNRESOLVED)
        assert report("forecastbench", *files)["forecasters"]["Panel"]["brier"] == pytest.approx(0.04)

    def test_annulled_question_stays_open(self, tmp_path: Path) -> None:
        files = self.files(tmp_path, self.FORECAST, resolutions=[{**self.RESOLUTION, "resolved_to": float("nan")}])
        assert parsed("forecastbench", *files).values("outcome") == [None]

    def test_files_without_forecasts_are_bad_usage(self, tmp_path: Path) -> None:
        _, resolutions = self.files(tmp_path, resolutions=[])
        with pytest.raises(UnreadableFile, match="none of them holds forecasts"):
            parsed("forecastbench", resolutions)


class TestKalshiBench:
    @pytest.mark.parametrize(
        ("text", "p"),
        [
            ("<answer>yes</answer>\n<confidence>65</confidence>", 0.65),
            ("<answer>no</answer>\n<confidence>5</confidence>", 0.05),
            ("<answer>No</answer><confidence>50</confidence>", 0.5),
            ("<answer> YES </answer><confidence>99.9%</confidence>", 0.999),
            ("<think><confidence>3</confidence></think><answer>yes</answer><confidence>80</confidence>", 0.8),
            ("<answer>no</answer><confidence>2</confidence> so: <answer>no</answer><confidence>2</confidence>", 0.02),
        ],
    )  # fmt: skip
    def test_number_that_agrees_with_the_answer_is_p_yes(self, text: str, p: float) -> None:
        assert p_yes(text) == pytest.approx(p)

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("<answer>no</answer><confidence>97</confidence>", "the answer no contradicts the stated 97"),
            ("<answer>yes</answer><confidence>42</confidence>", "the answer yes contradicts the stated 42"),
            ("", "the answer is empty"),
            ("It will rain, 70 %.", "no answer is stated"),
            ("<answer>yes</answer>", "no confidence is stated"),
            ("<answer>yes</answer><confidence>high</confidence>", "the confidence is no plain number: 'high'"),
            ("<answer>yes</answer><confidence>0.7</confidence>", "may be a share or a percentage"),
            ("<answer>yes</answer><confidence>120</confidence>", "above 100"),
            ("<answer>maybe</answer><confidence>60</confidence>", "neither yes nor no"),
            ("<answer>yes</answer><answer>no</answer><confidence>60</confidence>", "2 different values of answer"),
            ("<think><answer>yes</answer><confidence>60</confidence>", "the thinking is never closed"),
        ],
    )
    def test_number_that_is_not_certainly_p_yes_is_refused(self, text: str, why: str) -> None:
        with pytest.raises(InvalidRecord, match=re.escape(why)):
            p_yes(text)

    def test_question_id_on_two_rows_tells_nothing_apart(self, tmp_path: Path) -> None:
        def row(question: str) -> dict[str, Any]:
            content = "<answer>yes</answer><confidence>65</confidence>"
            return {"question_id": question, "raw_output": content, "predicted_probability": 0.1, "error": None}

        failed = {**row("KXD"), "raw_output": "", "error": "timeout"}
        file = written(tmp_path / "tier1__model_x.jsonl", row("KXA"), row("KXB"), row("KXA"), failed)
        reading = parsed("kalshibench", file)
        assert reading.stated == [("model_x", "KXB", "YES", 0.65, None)]
        reason = "question_id KXA stands on 2 rows: nothing tells the questions apart"
        assert reading.refused == [(1, reason), (3, reason), (4, "the call failed: timeout")]

    @pytest.mark.captured
    def test_of_1800_real_answers_each_is_stored_as_stated_or_refused_with_a_reason(self) -> None:
        files = sorted((FORECASTS / "kalshibench").glob("*.jsonl"))
        reading = parsed("kalshibench", *files)
        assert reading.records == len(reading.rows) + len(reading.refused) == 1_800
        assert len(reading.rows) > 800
        assert set(reading.values("outcome")) == {None}
        assert all(why for _, why in reading.refused)
        texts = {
            (file.stem.rpartition("__")[2], line): json.loads(text)["raw_output"]
            for file in files
            for line, text in enumerate(file.read_text().splitlines(), start=1)
        }
        for row in reading.rows:
            content = texts[row["forecaster"], row["line"]].rpartition("</think>")[2]
            values = {float(number) for number in re.findall(r"<confidence>\s*([\d.]+)", content)}
            assert values == {round(100 * row["probability"], 6)}, "the number itself, never 1 minus it"
            answered_yes = "<answer>yes" in content.lower()
            assert row["probability"] == 0.5 or answered_yes == (row["probability"] > 0.5)


class TestGoodJudgmentOpen:
    PROBLEMS = [
        {
            "problem_id": "3940", "title": "Who?", "url": "u", "options": ["Ada", "Bo"], "correct_answer": "Ada",
            "metadata": {"status": "Closed", "end_date": "2026-02-01T00:00:00Z"},
        },
        {"problem_id": "7", "title": "When?", "options": ["May", "June"], "correct_answer": None, "metadata": {}},
    ]  # fmt: skip

    def files(self, tmp_path: Path, *predictions: Any) -> list[Path]:
        (tmp_path / "predictions.json").write_text(json.dumps(predictions))
        (tmp_path / "metadata.json").write_text(json.dumps(self.PROBLEMS))
        return [tmp_path / "metadata.json", tmp_path / "predictions.json"]

    def test_predictions_meet_their_problem_whatever_the_kind_of_its_id(self, tmp_path: Path) -> None:
        content = {
            "problem_id": 3940,
            "username": "ann",
            "timestamp": "2026-01-01T10:00:00Z",
            "prediction": [0.75, 0.25],
        }
        later = {**content, "timestamp": "2026-01-02T10:00:00Z", "prediction": [1.0, 0.0]}
        late = {**content, "timestamp": "2026-02-02T10:00:00Z", "prediction": [0.0, 1.0]}
        files = self.files(tmp_path, content, later, late, {**content, "problem_id": 7, "username": "bo"})
        reading = parsed("gjo", *files)
        assert (reading.records, reading.refused) == (4, [])
        assert {row["question"] for row in reading.rows if row["outcome"] is None} == {"7"}
        assert report("gjo", *files)["forecasters"]["ann"]["brier"] == 0, "the latest before the close counts"
        assert list(reading.questions["3940"].happened) == ["Ada"]

    @pytest.mark.parametrize("name", ["end_date", "end_time"])
    def test_problem_closes_at_the_date_of_its_metadata(self, tmp_path: Path, name: str) -> None:
        content = {"problem_id": 1, "username": "ann", "timestamp": "2026-01-01", "prediction": [0.75, 0.25]}
        problem = {**self.PROBLEMS[0], "problem_id": "1", "metadata": {name: "2026-01-02"}}
        late = {**content, "timestamp": "2026-01-03", "prediction": [1.0, 0.0]}
        (tmp_path / "metadata.json").write_text(json.dumps([problem]))
        (tmp_path / "predictions.json").write_text(json.dumps([content, late]))
        reading = fr.read([tmp_path / "predictions.json", tmp_path / "metadata.json"], "gjo")
        assert reading.panel.probability.tolist() == [0.75, 0.25]

    def test_prediction_that_does_not_fit_its_problem_is_rejected(self, tmp_path: Path) -> None:
        good = {"problem_id": 3940, "username": "ann", "timestamp": "2026-01-01", "prediction": [0.75, 0.25]}
        bad = [
            {**good, "problem_id": 1}, {**good, "prediction": [1.0]}, {**good, "prediction": [0.5, 0.6]},
            {**good, "username": "bo", "prediction": ["a", 0.6]}, {**good, "username": "bo", "prediction": 1}, None,
        ]  # fmt: skip
        reading = parsed("gjo", *self.files(tmp_path, {**good, "username": "cem"}, *bad))
        assert [why for _, why in reading.refused] == [
            "problem_id 1 is not in the metadata",
            "prediction holds 1 numbers, the problem 2 options",
            "probability 0.5 belongs to exclusive options that sum to 1.1, not 1",
            "prediction for Ada 'a' is not a number",
            "prediction holds no list, the problem 2 options",
            "the record is not an object",
        ]

    def test_problems_without_an_end_date_are_a_warning(self, tmp_path: Path) -> None:
        prediction = {"problem_id": 7, "username": "ann", "timestamp": "2026-01-01T10:00:00Z", "prediction": [0.5, 0.5]}
        files = self.files(tmp_path, prediction)
        assert parsed("gjo", *files).warnings == [
            f"{name} is empty in all rows: the file has no field that fills it" for name in ("outcome", "closed_at")
        ]

    def test_predictions_without_metadata_are_bad_usage(self, tmp_path: Path) -> None:
        _, predictions = self.files(tmp_path, {"problem_id": 1, "prediction": [1.0]})
        with pytest.raises(UnreadableFile, match="none of them holds the problems' metadata"):
            parsed("gjo", predictions)


class TestProphetArena:
    @pytest.mark.captured
    def test_csv_is_ranked_as_the_same_forecasts_in_the_long_form(self) -> None:
        folder = CAPTURED / "pm_rank"
        reading = parsed("prophet_csv", folder / "S_prophet.csv")
        assert (reading.refused, reading.warnings) == ([], [])
        assert all(question.title for question in reading.questions.values())
        ours, expected = report("prophet_csv", folder / "S_prophet.csv"), fr.rank(folder / "S.csv").to_dict()
        for name, entry in expected["forecasters"].items():
            for key in ("n", "brier", "log", "average_return", "alpha", "ece"):
                assert ours["forecasters"][name][key] == pytest.approx(entry[key]), (name, key)
        assert ours["rankings"] == expected["rankings"]

    def table(self, tmp_path: Path, *records: dict[str, Any]) -> Path:
        import csv

        path = tmp_path / "arena.csv"
        with path.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, fieldnames=list(records[0]))
            writer.writeheader()
            for record in records:
                writer.writerow(
                    {k: value if isinstance(value, str) else json.dumps(value) for k, value in record.items()}
                )
        return path

    def record(self, **changed: Any) -> dict[str, Any]:
        vector = changed.pop("vector", {"A": 0.75, "B": 0.25})
        return {
            "event_ticker": "KXE", "predictor_name": "ann", "submission_id": "KXE-1", "category": "Sports",
            "close_time": "2026-02-01T00:00:00+00:00", "market_outcome": {"A": 1, "B": 0},
            "market_info": {
                "A": {"title": "Who wins?", "yes_ask": 71, "no_ask": 31}, "B": {"yes_ask": 0, "no_ask": 100},
            },
            "prediction": {"probabilities": [{"market": m, "probability": p} for m, p in vector.items()]}, **changed,
        }  # fmt: skip

    def test_title_is_that_of_the_markets_and_asks_are_cents_or_none_at_the_bounds(self, tmp_path: Path) -> None:
        reading = parsed("prophet_csv", self.table(tmp_path, self.record()))
        a, b = sorted(reading.rows, key=lambda row: row["option"])
        assert (a["odds"], a["no_odds"], b["odds"], b["no_odds"]) == (0.71, 0.31, None, None)
        assert (a["question"], a["event"], a["exclusive"], a["weight"]) == ("KXE-1", "KXE", 1.0, 1.0)
        assert reading.questions["KXE-1"].title == "Who wins?"

    def test_event_asked_about_twice_counts_once(self, tmp_path: Path) -> None:
        reading = parsed("prophet_csv", self.table(tmp_path, self.record(), self.record(submission_id="KXE-2")))
        assert {(row["question"], row["weight"]) for row in reading.rows} == {("KXE-1", 0.5), ("KXE-2", 0.5)}

    def test_markets_that_are_no_distribution_are_two_way_questions(self, tmp_path: Path) -> None:
        bo = self.record(predictor_name="bo", vector={"A": 0.75, "B": 0.75})
        file = self.table(tmp_path, self.record(), bo)
        reading = parsed("prophet_csv", file)
        assert (reading.refused, set(reading.values("exclusive"))) == ([], {0.0})
        brier = report("prophet_csv", file)["forecasters"]["bo"]["brier"]
        assert brier == pytest.approx((0.0625 + 0.5625) / 2)

    def test_half_a_vector_and_nonsense_are_rejected(self, tmp_path: Path) -> None:
        rows = [
            self.record(), self.record(predictor_name="bo", vector={"A": 1.0}),
            self.record(predictor_name="cem", prediction="nonsense"),
            self.record(predictor_name="dea", vector={"A": 0.5, "B": 0.25, "C": 0.25}),
            self.record(predictor_name="", vector={"A": 0.5, "B": 0.5}),
        ]  # fmt: skip
        assert parsed("prophet_csv", self.table(tmp_path, *rows)).refused == [
            (3, "market 'B' has no probability"),
            (4, "prediction is not valid JSON"),
            (5, "market 'C' has no outcome"),
            (6, "predictor_name is missing"),
        ]

    @pytest.mark.captured
    def test_tasks_alone_bring_questions_and_no_forecasts(self) -> None:
        files = sorted(FORECASTS.glob("prophet_arena_tasks__*.jsonl"))
        reading = parsed("prophet_tasks", *files)
        assert (reading.records, reading.refused, reading.rows, len(reading.questions)) == (42, [], [], 42)
        assert sum(question.happened is not None for question in reading.questions.values()) == 26

    def test_predictions_are_scored_by_what_the_task_resolved_to(self, tmp_path: Path) -> None:
        task = {
            "task_id": "T", "title": "Who?", "outcomes": ["A", "B"], "predict_by": "2026-02-01T00:00:00+00:00",
            "metadata": {"category": "Sports"}, "resolved_outcome": {"value": ["B"]},
        }  # fmt: skip

        def says(forecaster: str, **vector: Any) -> dict[str, Any]:
            values = [{"market": market, "probability": p} for market, p in vector.items()]
            return {"task_id": "T", "predictor_name": forecaster, "probabilities": values}

        tasks = written(tmp_path / "tasks.jsonl", task)
        content = written(
            tmp_path / "said.jsonl", says("ann", A=0.25, B=0.75), says("bo", A=1), says("cem", A=0.5, C=0.5)
        )
        ann = fr.rank([tasks, content], format="prophet_tasks", allow_rejected=True).to_dict()["forecasters"]["ann"]
        assert ann["brier"] == pytest.approx(0.0625)
        reasons = [(2, "'B' has no probability"), (3, "'C' is none of the task's outcomes")]
        assert parsed("prophet_tasks", tasks, content).refused == reasons
