"""Forecasts that Metaculus publishes of its AI Forecasting Benchmark."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
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


@pytest.mark.captured
def test_published_file_is_read_but_for_annulled_questions() -> None:
    reading = read_forecasts(FILE, "metaculus")
    assert {line.why for line in reading.rejected} == {"resolution 'annulled': the question does not count"}
    assert len(reading.rejected) == 7
    panel = reading.panel
    with FILE.open(newline="") as file:
        counted = [line for line in csv.DictReader(file) if line["resolution"] != "annulled"]
    assert len(panel) == len({(line["question_id"], line["forecaster"]) for line in counted})
    assert len(panel.questions) == len({line["question_id"] for line in counted})
    latest = max(
        (line for line in counted if (line["question_id"], line["forecaster"]) == ("35387", "pro_01")),
        key=lambda line: line["forecast_timestamp"],
    )
    assert stated_probabilities(panel)["pro_01", "35387"] == {"YES": float(latest["probability_yes"])}
    assert not [note for note in reading.notes if note.startswith("Warning")]
