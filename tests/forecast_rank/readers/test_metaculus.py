"""Forecasts that Metaculus publishes of its AI Forecasting Benchmark."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.ranking.forecasts import LoadedForecasts, read_forecasts
from tests.captured import CAPTURED
from tests.forecast_rank.panels import stated_probabilities

FILE = CAPTURED / "forecasts" / "metaculus_aib_pro_forecasts_q1_2025.csv"


def record(**changed: Any) -> dict[str, Any]:
    return {
        "question_id": "7", "post_id": "9", "question_title": "Will it rain?", "probability_yes": "0.25",
        "probability_yes_per_category": "", "forecast_timestamp": "2025-03-01 10:00:00.5+00", "resolution": "yes",
        "actual_close_time": "2025-03-02 10:00:00+00", "question_weight": "1.0", "type": "binary", "options": "",
        "forecaster": "ann", **changed,
    }  # fmt: skip


def choice(**changed: Any) -> dict[str, Any]:
    options = {"options": '["a","b","c"]', "probability_yes_per_category": "[0.2,0.3,0.5]", "probability_yes": ""}
    return record(**({"question_id": "8", "type": "multiple_choice", "resolution": "b"} | options | changed))


def read(folder: Path, *records: dict[str, Any]) -> LoadedForecasts:
    with (folder / "forecasts.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(record()))
        writer.writeheader()
        writer.writerows(records)
    return read_forecasts(folder / "forecasts.csv", "metaculus")


def test_binary_and_multiple_choice_questions_are_read(tmp_path: Path) -> None:
    later = record(forecast_timestamp="2025-03-02 09:00:00+00", probability_yes="0.5", question_weight="0.5")
    late = record(forecast_timestamp="2025-03-02 10:00:00+00", probability_yes="0.9")
    panel = read(tmp_path, later, record(), late, choice()).panel
    assert stated_probabilities(panel) == {("ann", "7"): {"YES": 0.5}, ("ann", "8"): {"a": 0.2, "b": 0.3, "c": 0.5}}
    assert panel.questions.outcome.tolist() == [1, 0, 1, 0]
    assert panel.questions.exclusive.tolist() == [False, True]
    assert panel.weight.tolist() == [0.5, 1]
    assert [panel.questions.event_names[event] for event in panel.questions.event] == ["9", "9"]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(resolution="annulled"), "resolution 'annulled': the question does not count"),
        (record(resolution="maybe"), "resolution 'maybe' is none of the options"),
        (record(type="numeric"), "type 'numeric' has no probabilities of options"),
        (record(probability_yes="62"), "probability_yes 62 is outside [0, 1]"),
        (record(forecaster=""), "forecaster is missing"),
        (choice(resolution="d"), "resolution 'd' is none of the options"),
        (choice(options="['a', 'b', 'c']"), "options is not valid JSON"),
        (choice(options=json.dumps(["a", "b"])), "probability_yes_per_category holds 3 numbers for 2 options"),
        (choice(options=json.dumps(["a", "b", "b"])), "options names one of them twice"),
    ],
)
def test_record_that_can_not_be_used_is_named(tmp_path: Path, bad: dict[str, Any], why: str) -> None:
    reading = read(tmp_path, record(question_id="1"), bad)
    assert [(line.row, line.why) for line in reading.rejected] == [(3, why)]
    assert reading.panel.questions.names == ["1"]


class TestDownload:
    """The two files that the site lets one download, as a folder, a zip file or by themselves."""

    CLOSE = "2026-02-01 00:00:00+00:00"

    def question(self, number: int, **changed: Any) -> dict[str, Any]:
        return {
            "Question ID": number, "Question Title": "Will it rain?", "Post ID": 10 + number,
            "Question Type": "binary", "MC Options (Current)": "", "MC Options (All)": "",
            "Scheduled Close Time": self.CLOSE, "Actual Close Time": self.CLOSE, "Resolution": "yes",
            "Question Weight": "1.0",
        } | changed  # fmt: skip

    def forecast(self, number: int, name: str, p: Any, day: int, end: str = "", **changed: Any) -> dict[str, Any]:
        return {
            "Question ID": number, "Forecaster ID": f"1{len(name)}", "Forecaster Username": name, "Is Bot": "False",
            "Start Time": f"2026-01-{day:02} 00:00:00+00:00", "End Time": end, "Forecaster Count": "",
            "Probability Yes": p, "Probability Yes Per Category": "",
        } | changed  # fmt: skip

    def folder(self, path: Path, questions: list[dict[str, Any]], forecasts: list[dict[str, Any]]) -> Path:
        (path / "download").mkdir()
        for name, rows in (("question_data.csv", questions), ("forecast_data.csv", forecasts)):
            with (path / "download" / name).open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        return path / "download"

    def usual(self, path: Path) -> Path:
        aggregate = {"Forecaster ID": "", "Forecaster Count": "2"}
        return self.folder(
            path,
            [self.question(1), self.question(2, Resolution="no"), self.question(3, **{"Question Type": "numeric"})],
            [
                self.forecast(1, "ann", 0.6, 2, "2026-01-20 00:00:00+00:00"),
                self.forecast(1, "ann", 0.8, 20),
                self.forecast(2, "bob", 0.4, 3),
                self.forecast(1, "recency_weighted", 0.7, 3, **aggregate),
                self.forecast(3, "ann", "", 3),
            ],
        )

    def test_folder_zip_and_files_are_read_alike(self, tmp_path: Path) -> None:
        folder = self.usual(tmp_path)
        packed = shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "download")
        files = [folder / "question_data.csv", folder / "forecast_data.csv"]
        for source in (folder, Path(packed), files, files[1]):
            reading = read_forecasts(source, "metaculus")
            assert stated_probabilities(reading.panel) == {("ann", "1"): {"YES": 0.8}, ("bob", "2"): {"YES": 0.4}}
            assert reading.panel.questions.outcome.tolist() == [1, 0]
            assert (reading.rejected, reading.superseded) == ([], 1)
            assert "1 forecasts of aggregates are left out: recency_weighted" in reading.notes
            assert "1 forecasts on questions without options are left out: numeric" in reading.notes

    def test_options_of_multiple_choice_questions_are_those_that_it_has_now(self, tmp_path: Path) -> None:
        options = {"MC Options (Current)": "['a', \"b's\"]", "MC Options (All)": "['a', \"b's\", 'gone']"}
        question = self.question(1, **{"Question Type": "multiple_choice", "Resolution": "b's"} | options)
        vector = {"Probability Yes Per Category": "[0.3, 0.7, None]"}
        reading = read_forecasts(
            self.folder(tmp_path, [question], [self.forecast(1, "ann", "", 2, **vector)]), "metaculus"
        )
        assert stated_probabilities(reading.panel) == {("ann", "1"): {"a": 0.3, "b's": 0.7}}
        assert reading.panel.questions.outcome.tolist() == [0, 1]

    def test_anonymous_forecasters_are_read_and_methods_left_out(self, tmp_path: Path) -> None:
        rows = [self.forecast(1, "ann", 0.6, 2), self.forecast(1, "unweighted", 0.6, 2, **{"Forecaster Count": "1"})]
        for row in rows:
            row["Forecaster (Anonymized)"] = row.pop("Forecaster Username")
            del row["Forecaster ID"]
        assert read_forecasts(self.folder(tmp_path, [self.question(1)], rows), "metaculus").panel.forecasters == ["ann"]

    def test_forecast_that_cannot_be_used_is_named(self, tmp_path: Path) -> None:
        rows = [
            self.forecast(1, "ann", 0.6, 2),
            self.forecast(1, "bob", 0.6, 2, "2026-01-09 00:00:00+00:00"),
            self.forecast(1, "cy", 1.5, 2),
            self.forecast(2, "ann", 0.5, 2),
            self.forecast(9, "ann", 0.5, 2),
        ]
        questions = [self.question(1), self.question(2, Resolution="annulled")]
        reading = read_forecasts(self.folder(tmp_path, questions, rows), "metaculus")
        assert {line.row: line.why for line in reading.rejected} == {
            3: "the forecast was withdrawn before the question closed",
            4: "Probability Yes 1.5 is outside [0, 1]",
            5: "resolution 'annulled': the question does not count",
            6: "Question ID 9 is not in question_data.csv",
        }

    def test_download_without_one_of_its_files_is_refused(self, tmp_path: Path) -> None:
        folder = self.usual(tmp_path)
        (folder / "question_data.csv").unlink()
        for source in (folder, folder / "forecast_data.csv"):
            with pytest.raises(UnreadableFile, match=r"question_data\.csv of the download missing"):
                read_forecasts(source, "metaculus")

    def test_zip_file_that_is_cut_is_called_so(self, tmp_path: Path) -> None:
        self.usual(tmp_path)
        packed = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", tmp_path, "download"))
        packed.write_bytes(packed.read_bytes()[:400])
        with pytest.raises(UnreadableFile, match=r"packed\.zip is not a whole zip file"):
            read_forecasts(packed, "metaculus")


@pytest.mark.captured
def test_published_file_is_read_but_for_annulled_questions() -> None:
    reading = read_forecasts(FILE, "metaculus")
    assert {line.why for line in reading.rejected} == {"resolution 'annulled': the question does not count"}
    assert len(reading.rejected) == 7
    panel = reading.panel
    with FILE.open(newline="") as file:
        open_lines = [line for line in csv.DictReader(file) if line["resolution"] != "annulled"]
    assert len(panel) == len({(line["question_id"], line["forecaster"]) for line in open_lines})
    assert len(panel.questions) == len({line["question_id"] for line in open_lines})
    latest = max(
        (line for line in open_lines if (line["question_id"], line["forecaster"]) == ("35387", "pro_01")),
        key=lambda line: line["forecast_timestamp"],
    )
    assert stated_probabilities(panel)["pro_01", "35387"] == {"YES": float(latest["probability_yes"])}
    assert not [note for note in reading.notes if note.startswith("Warning")]
