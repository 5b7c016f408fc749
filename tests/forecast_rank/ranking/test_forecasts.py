"""Forecast files as people write them, well and badly: what counts, what is rejected, and what is said of it."""

import csv
import gzip
import json
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.metrics.proper_scores import brier
from forecast_rank.ranking import validation
from forecast_rank.ranking.forecasts import LoadedForecasts, read_forecasts
from forecast_rank.ranking.rejections import InvalidRow
from tests.forecast_rank.panels import stated_probabilities
from tests.lazy_modules import pl

HEADER = "forecaster,question,option,probability,outcome"
FORMATS = ("csv", "parquet", "jsonl")
JSON = '{"forecaster": "ann", "question": "%s", "option": "YES", "probability": %s, "outcome": 1}'


def row(forecaster: str, question: str, option: str, probability: object, outcome: object, **fields: object) -> dict:
    names = HEADER.split(",")
    return dict(zip(names, (forecaster, question, option, probability, outcome), strict=True)) | fields


def pair(forecaster: str, question: str, p: float = 0.7, won: str = "a", **fields: object) -> list[dict]:
    """A forecast of p on option a and the rest on b."""
    return [
        row(forecaster, question, "a", p, int(won == "a"), **fields),
        row(forecaster, question, "b", round(1 - p, 9), int(won == "b"), **fields),
    ]


def write(path: Path, rows: list[dict], format: str) -> Path:
    """The rows as a file of the format; a cell that is None is left empty."""
    file = path / f"forecasts.{format}"
    columns = list(dict.fromkeys(name for item in rows for name in item))
    if format == "csv":
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, columns)
            writer.writeheader()
            writer.writerows(rows)
    elif format == "jsonl":
        file.write_text("".join(json.dumps(item) + "\n" for item in rows))
    else:
        pl.DataFrame(rows, schema=columns, infer_schema_length=None, strict=False).write_parquet(file)
    return file


def text(path: Path, content: str | bytes, suffix: str = "csv") -> Path:
    file = path / f"forecasts.{suffix}"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def forecasts_of(reading: LoadedForecasts) -> dict[tuple[str, str], dict[str, float]]:
    return stated_probabilities(reading.panel)


def rejected(reading: LoadedForecasts) -> dict[int, str]:
    return {item.row: item.why for item in reading.rejected}


@pytest.fixture(params=FORMATS)
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def first_row(format: str) -> int:
    """The number of the first row of data: a CSV has a header above it."""
    return 2 if format == "csv" else 1


class TestGoodRows:
    def test_every_format_gives_the_same_panel(self, tmp_path: Path) -> None:
        rows = [
            *pair("ann", "q2", 0.25, odds=0.6, no_odds=0.45, event="E", category="Sports", weight=2.0),
            *pair("bob", "q2", 0.5, odds=0.61, no_odds=0.44, event="E", category="Sports"),
            row("bob", "q1", "YES", 0.125, 1, closed_at="2026-01-02T00:00:00Z", made_at="2026-01-01T00:00:00Z"),
        ]
        for format in FORMATS:
            reading = read_forecasts(write(tmp_path, rows, format))
            panel, questions = reading.panel, reading.panel.questions
            assert reading.rejected == []
            assert forecasts_of(reading) == {
                ("ann", "q2"): {"a": 0.25, "b": 0.75},
                ("bob", "q2"): {"a": 0.5, "b": 0.5},
                ("bob", "q1"): {"YES": 0.125},
            }
            assert questions.names == ["q1", "q2"]
            assert questions.outcome.tolist() == [1, 1, 0]
            assert questions.exclusive.tolist() == [False, True]
            assert panel.weight.tolist() == [1, 2, 1]
            assert panel.odds.tolist()[1:] == [0.6, 0.6, 0.61, 0.61]
            assert np.isnan(panel.odds[0])
            assert panel.no_odds.tolist()[1:] == [0.45, 0.45, 0.44, 0.44]
            assert [questions.event_names[e] for e in questions.event] == ["q1", "E"]
            assert [questions.category_names[category] for category in questions.category] == ["", "Sports"]
            assert questions.closed_at[0] == datetime(2026, 1, 2, tzinfo=UTC).timestamp()
            assert panel.made_at[0] == datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    def test_one_row_is_the_yes_of_a_two_way_question(self, tmp_path: Path) -> None:
        reading = read_forecasts(text(tmp_path, f"{HEADER},exclusive\nann,q,YES,0.7,1,1\n"))
        assert reading.panel.questions.exclusive.tolist() == [False]
        assert brier(reading.panel).tolist() == pytest.approx([0.09])

    def test_options_keep_the_order_of_the_questions_first_forecast(self, tmp_path: Path) -> None:
        rows = "ann,q,z,0.5,1\nann,q,a,0.3,0\nann,q,m,0.2,0\nbob,q,a,0.1,0\nbob,q,m,0.2,0\nbob,q,z,0.7,1\n"
        reading = read_forecasts(text(tmp_path, f"{HEADER}\n{rows}"))
        assert reading.panel.questions.option_names == ["z", "a", "m"]
        assert reading.panel.probability.tolist() == [0.5, 0.3, 0.2, 0.7, 0.1, 0.2]
        assert reading.panel.outcome.tolist() == [1, 0, 0, 1, 0, 0]

    def test_a_missing_no_price_is_one_less_the_yes_price(self, tmp_path: Path) -> None:
        reading = read_forecasts(text(tmp_path, f"{HEADER},odds,no_odds\nann,q,a,0.7,1,0.6,0.45\nann,q,b,0.3,0,0.3,\n"))
        assert reading.panel.no_odds.tolist() == pytest.approx([0.45, 0.7])

    def test_options_that_are_not_exclusive_need_no_sum(self, tmp_path: Path) -> None:
        reading = read_forecasts(
            text(tmp_path, f"{HEADER},exclusive\nann,q,a,0.9,1,0\nann,q,b,0.8,1,0\nann,q,c,0.1,0,0\n")
        )
        assert reading.rejected == []
        assert reading.panel.questions.exclusive.tolist() == [False]

    def test_questions_without_an_event_are_events_of_their_own(self, tmp_path: Path) -> None:
        rows = [row("ann", "q1", "YES", 0.5, 1, event="q2"), *(row("ann", q, "YES", 0.5, 1) for q in ("q2", "q3"))]
        events = read_forecasts(write(tmp_path, rows, "csv")).panel.questions.event
        assert len(set(events.tolist())) == 3

    def test_fractions_count_where_asked_for(self, tmp_path: Path) -> None:
        file = text(tmp_path, f"{HEADER}\nann,q,YES,0.7,0.6\nann,r,a,0.5,0.25\nann,r,b,0.5,0.75\n")
        reading = read_forecasts(file, fractional_outcomes=True)
        assert reading.rejected == []
        assert reading.panel.questions.outcome.tolist() == [0.6, 0.25, 0.75]
        assert set(rejected(read_forecasts(file))) == {2, 3, 4}

    def test_columns_of_no_meaning_are_named(self, tmp_path: Path, format: str) -> None:
        assert read_forecasts(write(tmp_path, [row("ann", "q", "YES", 0.5, 1, odd=0.5)], format)).ignored == ["odd"]


class TestSeveralForecasts:
    def times(self, tmp_path: Path, *made_at: str, closed: str = "2026-01-10T00:00:00Z") -> LoadedForecasts:
        rows = [
            row("ann", "q", "YES", round(0.1 * k, 1), 1, made_at=at, closed_at=closed)
            for k, at in enumerate(made_at, start=1)
        ]
        return read_forecasts(write(tmp_path, rows, "csv"))

    @pytest.mark.parametrize(
        ("made_at", "latest", "superseded"),
        [
            (["2026-01-03T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-04T00:00:00Z"], 0.2, 2),
            (["2026-01-03T12:00:00+02:00", "2026-01-03 11:00", "2026-01-03T08:00:00-01:00"], 0.2, 2),
            (["2026-01-09T23:59:59Z", "2026-01-10T00:00:00Z"], 0.1, 1),
        ],
        ids=["in any order", "as instants of any zone", "made before closing"],
    )
    def test_the_latest_counts(self, tmp_path: Path, made_at: list[str], latest: float, superseded: int) -> None:
        reading = self.times(tmp_path, *made_at)
        assert forecasts_of(reading) == {("ann", "q"): {"YES": latest}}
        assert (reading.rejected, reading.superseded, reading.rows) == ([], superseded, len(made_at))

    def test_times_without_a_zone_are_utc_wherever_it_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TZ", "America/New_York")
        time.tzset()
        try:
            made_at = self.times(tmp_path, "2026-01-03 12:00").panel.made_at
        finally:
            monkeypatch.undo()
            time.tzset()
        assert made_at.tolist() == [datetime(2026, 1, 3, 12, tzinfo=UTC).timestamp()]

    def test_nothing_before_closing_is_rejected(self, tmp_path: Path) -> None:
        reading = self.times(tmp_path, "2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z")
        assert rejected(reading) == {
            line: f"made_at 2026-01-{day}T00:00:00Z is not before closed_at" for line, day in ((2, 10), (3, 11))
        }
        assert len(reading.panel) == 0

    @pytest.mark.parametrize(
        ("version", "faulty"),
        [
            ([row("ann", "q", "Smith", 0.9, 0), row("ann", "q", "a", 0.1, 1)], 0),
            ([row("ann", "q", "a", 0.6, 1), row("ann", "q", "b", 0.6, 0)], 2),
            ([row("ann", "q", "a", 1.5, 1), row("ann", "q", "b", "", 0)], 2),
            ([row("ann", "q", "a", 0.6, 0), row("ann", "q", "b", 0.4, 1)], 0),
        ],
        ids=["other options", "sums to 1.2", "bad cells", "another outcome"],
    )
    @pytest.mark.parametrize("made_at", ["2026-01-01", "2026-04-01"], ids=["earlier", "late"])
    def test_another_version_never_rejects_the_one_that_counts(
        self, tmp_path: Path, version: list[dict], faulty: int, made_at: str
    ) -> None:
        rows = [item | {"made_at": made_at, "closed_at": "2026-03-01"} for item in version]
        rows += pair("ann", "q", 0.7, made_at="2026-02-01", closed_at="2026-03-01")
        for order in (rows, rows[::-1]):
            reading = read_forecasts(write(tmp_path, order, "csv"))
            assert forecasts_of(reading) == {("ann", "q"): {"a": 0.7, "b": 0.3}}
            assert (len(reading.rejected), reading.superseded) == (faulty, 2 - faulty)

    def test_a_time_at_fault_leaves_open_which_version_counts(self, tmp_path: Path) -> None:
        rows = [*pair("ann", "q", made_at="2026-02-01"), *pair("ann", "q", 0.6, made_at="soon"), *pair("bob", "q")]
        reading = read_forecasts(write(tmp_path, rows, "csv"))
        assert set(forecasts_of(reading)) == {("bob", "q")}


class TestBadRows:
    @pytest.mark.parametrize(
        ("changes", "why"),
        [
            ({"probability": 1.2}, "probability 1.2 is outside [0, 1]"),
            ({"probability": -0.1}, "probability -0.1 is outside [0, 1]"),
            ({"probability": float("nan")}, "probability 'NaN' is not a number"),
            ({"probability": None}, "probability is empty"),
            ({"probability": float("inf")}, "probability inf is outside [0, 1]"),
            ({"outcome": 2}, "outcome 2 is neither 0 nor 1"),
            ({"outcome": 0.5}, "outcome 0.5 is neither 0 nor 1; fractions need --fractional-outcomes"),
            ({"odds": 0.0}, "odds 0.0 is outside (0, 1)"),
            ({"odds": 1.0}, "odds 1.0 is outside (0, 1)"),
            ({"odds": -0.2}, "odds -0.2 is outside (0, 1)"),
            ({"no_odds": 1.5}, "no_odds 1.5 is outside (0, 1)"),
            ({"weight": 0.0}, "weight 0.0 is not above 0"),
            ({"weight": float("inf")}, "weight inf is not above 0"),
            ({"exclusive": 2.0}, "exclusive 2.0 is neither 0 nor 1"),
            ({"forecaster": ""}, "forecaster is empty"),
            ({"question": None}, "question is empty"),
            ({"option": ""}, "option is empty"),
            ({"made_at": "yesterday"}, "made_at 'yesterday' is not a time"),
            ({"closed_at": "2026-13-01"}, "closed_at '2026-13-01' is not a time"),
        ],
        ids=str,
    )
    def test_a_bad_row_is_named_in_every_format_and_the_rest_counts(
        self, tmp_path: Path, format: str, changes: dict, why: str
    ) -> None:
        rows = [row("ann", f"q{k}", "YES", 0.5, 1) for k in range(4)]
        rows[2] |= changes
        rows[0] |= dict.fromkeys(changes) | {name: rows[0][name] for name in changes if name in rows[0]}
        reading = read_forecasts(write(tmp_path, rows, format))
        spelled = {"inf": "Infinity" if format == "jsonl" else "inf", "'NaN'": "'nan'" if format == "csv" else "'NaN'"}
        for reason, written in spelled.items():
            why = why.replace(reason, written)
        assert rejected(reading) == {first_row(format) + 2: why}
        assert reading.panel.questions.names == ["q0", "q1", "q3"]

    def test_an_empty_outcome_is_a_fault_only_where_another_row_states_it(self, tmp_path: Path, format: str) -> None:
        rows = [row(name, f"q{k}", "YES", 0.5, None if k else 1) for k in range(2) for name in ("ann", "bob")]
        assert read_forecasts(write(tmp_path, rows, format)).unresolved == 2
        rows[3]["outcome"] = 1
        reading = read_forecasts(write(tmp_path, rows, format))
        assert (reading.unresolved, rejected(reading)) == (0, {first_row(format) + 2: "outcome is empty"})

    @pytest.mark.parametrize(
        ("cell", "why"),
        [
            ({"probability": "high"}, "probability 'high' is not a number"),
            ({"outcome": "won"}, "outcome 'won' is not a number"),
            ({"odds": "12¢"}, "odds '12¢' is not a number"),
            ({"exclusive": "maybe"}, "exclusive 'maybe' is not a number"),
            ({"weight": "1,500"}, "weight '1,500' is not a number"),
        ],
        ids=str,
    )
    def test_a_word_where_a_number_belongs_costs_its_row_alone(
        self, tmp_path: Path, format: str, cell: dict, why: str
    ) -> None:
        rows = [{name: str(value) for name, value in row("ann", f"q{k}", "YES", 0.5, 1).items()} for k in range(3)]
        rows[1] |= cell
        reading = read_forecasts(write(tmp_path, rows, format))
        assert rejected(reading) == {first_row(format) + 1: why}
        assert len(reading.panel) == 2

    def test_a_whole_forecast_goes_with_its_bad_row(self, tmp_path: Path, format: str) -> None:
        rows = [*pair("ann", "q"), *pair("bob", "q", 1.25), *pair("cy", "q")]
        reading = read_forecasts(write(tmp_path, rows, format))
        line = first_row(format) + 2
        assert rejected(reading) == {
            line: "probability 1.25 is outside [0, 1]",
            line + 1: "probability -0.25 is outside [0, 1]",
        }
        rows[3]["probability"] = 0.1
        why = rejected(read_forecasts(write(tmp_path, rows, format)))
        fault = "probability 1.25 is outside [0, 1]"
        assert why == {line: fault, line + 1: f"rejected with row {line}: {fault}"}
        assert set(forecasts_of(reading)) == {("ann", "q"), ("cy", "q")}

    @pytest.mark.parametrize(
        ("columns", "lines", "why", "cells"),
        [
            (
                "", "ann,q,a,.7,1 ann,q,b,.3000009,0 bob,q,a,.7,1 bob,q,b,.3000011,0 cy,q,a,.7,1 cy,q,b,.299999,0",
                "probability {} belongs to exclusive options that sum to 1.0000011, not 1; "
                "--normalise divides them by it",
                {4: ".7", 5: ".3000011"},
            ),
            (
                "", "ann,q,a,0.7,0 ann,q,b,0.3,0",
                "outcome {} belongs to exclusive options of which none happened", {2: "0", 3: "0"},
            ),
            (
                "", "ann,q,a,0.7,1 ann,q,b,0.3,1",
                "outcome {} belongs to exclusive options of which 2 happened", {2: "1", 3: "1"},
            ),
            (",weight", "ann,q,a,0.7,1,1 ann,q,b,0.3,0,2", "weight {} differs between the options", {2: "1", 3: "2"}),
            (
                ",exclusive", "ann,q,a,0.7,1,1 ann,q,b,0.3,0,0",
                "exclusive {} differs between the options", {2: "1", 3: "0"},
            ),
            (
                "", "ann,q,a,0.7,1 ann,q,b,0.3,0 bob,q,a,0.7,1 bob,q,b,0.3,0 cy,q,a,0.7,1",
                "option {} contradicts the question's other forecasts (see row 2)", {6: "a"},
            ),
            (
                ",exclusive", "ann,q,a,.7,1, ann,q,b,.3,0, bob,q,a,.7,1, bob,q,b,.3,0, cy,q,a,.7,1,0 cy,q,b,.3,0,0",
                "exclusive {} contradicts the question's other forecasts (see row 2)", {6: "0", 7: "0"},
            ),
        ],
    )  # fmt: skip
    def test_forecasts_that_contradict_themselves_or_the_others_are_rejected(
        self, tmp_path: Path, columns: str, lines: str, why: str, cells: dict[int, str]
    ) -> None:
        reading = read_forecasts(text(tmp_path, "\n".join([HEADER + columns, *lines.split()])))
        assert rejected(reading) == {line: why.format(cell) for line, cell in cells.items()}

    def test_fractions_of_exclusive_options_sum_to_one(self, tmp_path: Path) -> None:
        file = text(tmp_path, f"{HEADER}\nann,q,a,0.7,0.5\nann,q,b,0.3,0.4\n")
        why = rejected(read_forecasts(file, fractional_outcomes=True))
        assert why == {
            line: f"outcome {cell} belongs to exclusive options whose outcomes sum to 0.9, not 1"
            for line, cell in ((2, "0.5"), (3, "0.4"))
        }

    def test_row_that_repeats_another_exactly_counts_once(self, tmp_path: Path, format: str) -> None:
        rows = [*pair("ann", "q", event="e"), *pair("bob", "q", event="e"), *pair("ann", "q", event="e")[:1] * 2]
        reading = read_forecasts(write(tmp_path, rows, format))
        assert forecasts_of(reading) == {("ann", "q"): {"a": 0.7, "b": 0.3}, ("bob", "q"): {"a": 0.7, "b": 0.3}}
        assert (reading.rejected, reading.repeated, reading.rows) == ([], 2, 6)

    def test_row_with_another_value_for_the_same_key_is_named(self, tmp_path: Path, format: str) -> None:
        rows = [*pair("ann", "q"), *pair("bob", "q"), *pair("ann", "q", 0.6)[:1]]
        line = first_row(format)
        assert rejected(read_forecasts(write(tmp_path, rows, format))) == {
            line: f"rejected with row {line + 4}: probability 0.6 repeats row {line} with another value",
            line + 1: f"rejected with row {line + 4}: probability 0.6 repeats row {line} with another value",
            line + 4: f"probability 0.6 repeats row {line} with another value",
        }

    @pytest.mark.parametrize(
        ("rows", "expected"),
        [
            ([*pair("ann", "q", won="b"), *pair("bob", "q"), *pair("cy", "q"), *pair("ann", "r")],
             {("bob", "q"), ("cy", "q"), ("ann", "r")}),
            ([*pair("bob", "q", won="b"), *pair("ann", "q"), *pair("ann", "r")], {("ann", "r")}),
            ([*(row("ann", "q", "YES", 0.5, 0, made_at=f"2026-01-0{day}") for day in range(1, 6)),
              *(row(name, "q", "YES", 0.5, 1, made_at="2026-01-01") for name in ("bob", "cy"))],
             {("bob", "q"), ("cy", "q")}),
        ],
        ids=["of most forecasters", "of nobody at a tie", "each forecaster counts once"],
    )  # fmt: skip
    def test_outcomes_on_which_forecasters_differ_are_those(
        self, tmp_path: Path, rows: list[dict], expected: set[tuple[str, str]]
    ) -> None:
        reading = read_forecasts(write(tmp_path, rows, "csv"))
        assert set(forecasts_of(reading)) == expected
        assert all("contradicts the question's other forecasts" in why for why in rejected(reading).values())
        assert {why.split()[0] for why in rejected(reading).values()} == {"outcome"}

    def test_strict_ends_at_the_first_bad_row(self, tmp_path: Path, format: str) -> None:
        rows = [row("ann", "q0", "YES", 0.5, 1), row("ann", "q1", "YES", 1.5, 1), row("ann", "q2", "YES", 2.5, 1)]
        with pytest.raises(InvalidRow, match=rf"row {first_row(format) + 1}: probability 1.5 is outside \[0, 1\]"):
            read_forecasts(write(tmp_path, rows, format), strict=True)

    def test_contradictions_are_found_however_many_forecasts_are_compared_at_a_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rows = [item for name in ("ann", "bob", "cyd") for q in "pqr" for item in pair(name, q)]
        rows += [*pair("dan", "p"), *pair("dan", "q", won="b"), *(row("dan", "r", k, 0.5, k == "a") for k in "ac")]
        full_panel = read_forecasts(pl.DataFrame(rows))
        monkeypatch.setattr(validation, "_FORECASTS_AT_ONCE", 2)
        split = read_forecasts(pl.DataFrame(rows))
        assert split.rejected == full_panel.rejected
        assert {line.row for line in split.rejected} == {21, 22, 23, 24}


class TestPlacesInTheFile:
    @pytest.mark.parametrize(
        ("content", "suffix", "rejected_lines"),
        [
            (f'{HEADER}\n"an\nn",q1,YES,0.5,1\n"a\r\nb\nc",q1,YES,1.5,1\nbob,q1,YES,7,1\n', "csv", {4, 7}),
            (f"{HEADER}\n\nann,q1,YES,0.5,1\n\n\nann,q2,YES,1.5,1\n\n", "csv", {6}),
            (f"\n{JSON % ('q1', 0.5)}\n \n\n{JSON % ('q2', 1.5)}\n\n", "jsonl", {5}),
        ],
        ids=["line breaks in quotes", "blank lines of CSV", "blank lines of JSON"],
    )
    def test_every_line_is_counted(self, tmp_path: Path, content: str, suffix: str, rejected_lines: set[int]) -> None:
        reading = read_forecasts(text(tmp_path, content, suffix))
        assert (set(rejected(reading)), reading.rows) == (rejected_lines, content.count("YES"))

    def test_a_line_with_a_field_too_many_is_rejected_alone(self, tmp_path: Path) -> None:
        good = 'ann,q1,YES,0.5,1\nann,q2,YES,0.5,1,surplus\nann,q"3,YES,0.5,1\n'
        content = f"{HEADER}\n{good}\nann,q4,YES,0.5\nann,q5,YES,x,1\n"
        reading = read_forecasts(text(tmp_path, content))
        assert rejected(reading) == {
            3: "the line has 6 fields, the header 5",
            7: "probability 'x' is not a number",
        }
        assert reading.unresolved == 1
        assert reading.panel.questions.names == ['q"3', "q1"]

    def test_a_line_that_is_no_json_object_is_rejected_alone(self, tmp_path: Path) -> None:
        good = json.dumps(row("ann", "q1", "YES", 0.5, True))
        content = f'{good}\n{{"forecaster": "ann"\n[1, 2]\n\n{good.replace("q1", "q2").replace("0.5", "NaN")}\n{{}}\n'
        why = rejected(read_forecasts(text(tmp_path, content, "jsonl")))
        assert why[2] == why[3] == "the line is not a JSON object"
        assert why[5] == "probability 'NaN' is not a number"
        assert why[6] == "forecaster is empty"

    def test_names_that_look_like_numbers_stay_names(self, tmp_path: Path, format: str) -> None:
        reading = read_forecasts(write(tmp_path, [row("7", "007", "1", 0.5, 1)], format))
        assert forecasts_of(reading) == {("7", "007"): {"1": 0.5}}


class TestForms:
    @pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"], ids=["plain", "byte order mark"])
    @pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
    @pytest.mark.parametrize("last", [True, False], ids=["ended", "unended"])
    def test_csv_as_spreadsheets_write_it(self, tmp_path: Path, prefix: bytes, end: bytes, last: bool) -> None:
        lines = [HEADER.encode(), b'"Lovelace, Ann",q1,"a ""quoted"" YES", 0.5 ,TRUE', b"ann,q1,NO,2,0"]
        reading = read_forecasts(text(tmp_path, prefix + end.join(lines) + (end if last else b"")))
        assert forecasts_of(reading) == {("Lovelace, Ann", "q1"): {'a "quoted" YES': 0.5}}
        assert set(rejected(reading)) == {3}

    @pytest.mark.parametrize(("separator", "name"), [(";", "';'"), ("\t", "tabs")])
    @pytest.mark.parametrize("cell", ["0.5", "half"], ids=["read at once", "read line by line"])
    def test_other_separators_are_found_and_named(self, tmp_path: Path, separator: str, name: str, cell: str) -> None:
        lines = [HEADER, "ann,q1,YES,0.25,1", f"bob,q1,YES,{cell},1", "cy,q1,YES,2,1,surplus"]
        reading = read_forecasts(text(tmp_path, "\n".join(lines).replace(",", separator)))
        assert forecasts_of(reading)["ann", "q1"] == {"YES": 0.25}
        assert {2, 3, 4} - set(rejected(reading)) == ({2, 3} if cell == "0.5" else {2})
        assert reading.notes == [f"columns are separated by {name}"]

    def test_headings_are_known_in_any_case(self, tmp_path: Path, format: str) -> None:
        rows = [{f" {name.upper()}": value for name, value in row("ann", "q1", "YES", 0.5, 1, Odd=2).items()}]
        reading = read_forecasts(write(tmp_path, rows, format))
        assert forecasts_of(reading) == {("ann", "q1"): {"YES": 0.5}}
        assert reading.ignored == [" ODD"]

    @pytest.mark.parametrize("name", ["forecasts.csv.gz", "forecasts.csv", "forecasts.CSV.GZ"])
    def test_gzip_is_unpacked(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_bytes(gzip.compress(f"{HEADER}\nann,q1,YES,0.5,1\nann,q2,YES,7,1\n".encode()))
        reading = read_forecasts(tmp_path / name)
        assert forecasts_of(reading) == {("ann", "q1"): {"YES": 0.5}}
        assert set(rejected(reading)) == {3}

    def test_gzip_that_expands_too_far_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("forecast_rank.files.limits.EXPANDED_LIMIT", 2**20)
        packed = tmp_path / "zeros.csv.gz"
        packed.write_bytes(gzip.compress(bytes(2**24)))
        size = packed.stat().st_size
        with pytest.raises(UnreadableFile, match=rf"of {size:,} bytes expands to .* the limit of {200 * size:,} bytes"):
            read_forecasts(packed)

    def test_sums_near_1_are_divided_out_on_request(self, tmp_path: Path, format: str) -> None:
        thirds = [row("ann", "q", option, 0.333, int(option == "a")) for option in "abc"]
        far = [row("bob", "q", option, 0.3, int(option == "a")) for option in "abc"]
        file = write(tmp_path, [*thirds, *far], format)
        reading = read_forecasts(file, normalise=True)
        assert forecasts_of(reading) == {("ann", "q"): pytest.approx(dict.fromkeys("abc", 1 / 3))}
        assert (reading.normalised, len(reading.rejected)) == (1, 3)
        whys = rejected(read_forecasts(file))
        why = "probability 0.333 belongs to exclusive options that sum to 0.999, not 1; --normalise divides them by it"
        assert whys[first_row(format)] == why
        assert whys[first_row(format) + 3] == "probability 0.3 belongs to exclusive options that sum to 0.9, not 1"

    def test_json_with_a_byte_order_mark_and_text_numbers(self, tmp_path: Path) -> None:
        lines = json.dumps(row("ann", "q1", "YES", "0.5", True, exclusive=False, note=[1]))
        reading = read_forecasts(text(tmp_path, b"\xef\xbb\xbf" + lines.encode(), "ndjson"))
        assert forecasts_of(reading) == {("ann", "q1"): {"YES": 0.5}}
        assert reading.ignored == ["note"]

    def test_parquet_columns_of_other_kinds_that_mean_the_same(self, tmp_path: Path) -> None:
        frame = pl.DataFrame(
            {
                "forecaster": pl.Series(["ann", "ann"], dtype=pl.Categorical),
                "question": pl.Series([88, 88], dtype=pl.Int64),
                "option": pl.Series(["x", "y"], dtype=pl.Enum(["x", "y"])),
                "probability": pl.Series([Decimal("0.25"), Decimal("0.75")], dtype=pl.Decimal(5, 2)),
                "outcome": [True, False],
                "odds": pl.Series([0.25, 0.75], dtype=pl.Float32),
                "weight": pl.Series([3, 3], dtype=pl.UInt8),
                "exclusive": pl.Series(["1", "true"]),
                "made_at": pl.Series([datetime(2026, 1, 1, tzinfo=UTC)] * 2).dt.replace_time_zone(None),
                "closed_at": pl.Series([date(2026, 1, 2)] * 2),
                "event": pl.Series([None, None], dtype=pl.Null),
                "category": pl.Series([b"Sports", b"Sports"], dtype=pl.Binary),
            }
        )
        frame.write_parquet(tmp_path / "f.parquet")
        reading = read_forecasts(tmp_path / "f.parquet")
        panel = reading.panel
        assert reading.rejected == []
        assert forecasts_of(reading) == {("ann", "88"): {"x": 0.25, "y": 0.75}}
        assert panel.weight.tolist() == [3]
        assert panel.questions.category_names == ["Sports"]
        assert panel.made_at.tolist() == [datetime(2026, 1, 1, tzinfo=UTC).timestamp()]
        assert panel.questions.closed_at.tolist() == [datetime(2026, 1, 2, tzinfo=UTC).timestamp()]

    @pytest.mark.parametrize(
        ("column", "values", "why"),
        [
            ("probability", [[0.5], [0.5]], r"column 'probability' holds List\(Float64\), not numbers"),
            ("probability", [True, False], "column 'probability' holds Boolean, not numbers"),
            ("forecaster", [{"name": "ann"}] * 2, "column 'forecaster' holds Struct.*, not names"),
            ("made_at", [[1], [2]], r"column 'made_at' holds List\(Int64\), not times"),
        ],
        ids=["lists", "booleans", "structs", "lists as times"],
    )
    def test_a_parquet_column_of_a_wrong_kind_is_named(
        self, tmp_path: Path, column: str, values: list, why: str
    ) -> None:
        frame = pl.DataFrame([row("ann", q, "YES", 0.5, 1) for q in ("q1", "q2")])
        frame.with_columns(pl.Series(column, values)).write_parquet(tmp_path / "f.parquet")
        with pytest.raises(UnreadableFile, match=why):
            read_forecasts(tmp_path / "f.parquet")

    def test_a_parquet_column_that_can_not_be_read_is_no_panel(self, tmp_path: Path) -> None:
        frame = pl.DataFrame(pair("ann", "p")).with_columns(pl.Series("question", [b"\xff", b"p"]))
        frame.write_parquet(tmp_path / "forecasts.parquet")
        with pytest.raises(UnreadableFile, match=r"forecasts\.parquet: invalid utf-?8"):
            read_forecasts(tmp_path / "forecasts.parquet")

    def test_columns_in_pieces_with_empty_cells_are_those_of_a_whole_one(self) -> None:
        rows = [item for name in ("cyd", "ann", "bob") for q in "qp" for item in pair(name, q)]
        for k, item in enumerate(rows):
            item |= {"odds": None if k in (3, 4, 7) else 0.6, "event": None if k % 3 else "e", "closed_at": None}
            item["closed_at"] = f"2026-03-1{k % 7}" if k % 2 else None
        pieces = pl.concat(
            [pl.DataFrame([item], schema_overrides={"odds": pl.Float64}) for item in rows],
            rechunk=False,
            how="vertical_relaxed",
        )
        assert pieces.n_chunks() > 1
        split, full_panel = read_forecasts(pieces).panel, read_forecasts(pieces.rechunk()).panel
        for name in ("forecaster", "question", "probability", "odds", "no_odds"):
            assert getattr(split, name).tolist() == pytest.approx(
                getattr(full_panel, name).tolist(), abs=0, nan_ok=True
            )
        assert split.questions.names == ["p", "q"]
        assert split.questions.event_names == full_panel.questions.event_names
        assert split.questions.closed_at.tolist() == full_panel.questions.closed_at.tolist()
        assert np.isnan(split.odds).sum() == 3

    @pytest.mark.parametrize("format", FORMATS)
    def test_a_file_that_names_no_options_holds_plain_binary_questions(self, tmp_path: Path, format: str) -> None:
        named_rows = [row("ann", "q1", "YES", 0.7, 1), row("ann", "q2", "YES", 0.2, 0), row("bob", "q1", "YES", 1.7, 1)]
        bare = [{name: cell for name, cell in item.items() if name != "option"} for item in named_rows]
        expected, reading = (
            read_forecasts(write(tmp_path, named_rows, format)),
            read_forecasts(write(tmp_path, bare, format)),
        )
        assert reading.panel.questions.option_names == expected.panel.questions.option_names == ["YES", "YES"]
        assert list(brier(reading.panel)) == list(brier(expected.panel)) == pytest.approx([0.09, 0.04])
        assert [bad.why for bad in reading.rejected] == ["probability 1.7 is outside [0, 1]"]

    def test_the_format_can_be_said_where_the_suffix_does_not(self, tmp_path: Path) -> None:
        file = text(tmp_path, f"{HEADER}\nann,q,YES,0.5,1\n", "txt")
        assert len(read_forecasts(file, "csv").panel) == 1
        file.write_text("Who said what?\n")
        with pytest.raises(UnreadableFile, match=r"the suffix '\.txt' names a format; use --format"):
            read_forecasts(file)
        with pytest.raises(UnreadableFile, match="has no column 'forecaster'"):
            read_forecasts(file, "csv")


class TestYearsOfTwoDigits:
    HEADING = "forecaster,question,probability,outcome,made_at,closed_at\n"

    @pytest.mark.parametrize(
        ("made_at", "closed", "year"),
        [
            ("8/31/11", "2011-09-30", 2011),
            ("31.8.11", "2011-09-30", 2011),
            ("31 Aug 99", "2000-01-03", 1999),
            ("8/31/11 10:30", "9/30/2011", 2011),
            ("1/31/69", "1969-02-01", 1969),
        ],
    )
    def test_century_is_that_of_the_other_column(self, tmp_path: Path, made_at: str, closed: str, year: int) -> None:
        reading = read_forecasts(text(tmp_path, f"{self.HEADING}ann,q,0.7,1,{made_at},{closed}\n"))
        assert datetime.fromtimestamp(reading.panel.made_at[0], UTC).year == year

    @pytest.mark.parametrize(
        "times", ["8/31/11,9/30/11", "8/31/11,", "8/31/11,2061-01-01"], ids=["both short", "alone", "between two"]
    )
    def test_year_without_a_certain_century_is_refused_by_name(self, tmp_path: Path, times: str) -> None:
        file = text(tmp_path, f"{self.HEADING}ann,q,0.7,1,{times}\n")
        with pytest.raises(UnreadableFile, match=r"made_at: '8/31/11' has a year of two digits, and no other column"):
            read_forecasts(file)


class TestUselessFiles:
    @pytest.mark.parametrize(
        ("content", "suffix", "why"),
        [
            ("", "csv", "is empty"),
            ("", "jsonl", "is empty"),
            ("", "parquet", "is empty"),
            ("\n", "csv", "it has none"),
            ("forecaster,question,option,outcome\n", "csv", "has no column 'probability'; it has 'forecaster'"),
            (HEADER.replace(",", "|") + "\n", "csv", "has no column 'forecaster'.*'forecaster.question.option"),
            (f"{HEADER},OUTCOME\n", "csv", "more than one column 'outcome'"),
            (f"{HEADER},outcome\nann,q,YES,0.5,1,0\n", "csv", "more than one column 'outcome'"),
            (HEADER.encode() + b"\nann,q1,YES,0.5,1\nJos\xe9,q,YES,0.5,1\n", "csv", "line 3: not UTF-8"),
            (b'{"forecaster": "Jos\xe9"}\n', "jsonl", "line 1: not UTF-8"),
            (f"{HEADER}\n".encode("utf-16"), "csv", "line 1: not UTF-8"),
            ('{"forecaster": "ann", "question": "q", "option": "YES"}', "jsonl", "no line has 'probability', 'out"),
            ("PAR1 but not really", "parquet", "not a readable Parquet file"),
            (b"\x1f\x8b\x08\x00more", "csv", "not a readable gzip file"),
            (b"\x28\xb5\x2f\xfdmore", "csv", "not a readable zstd file"),
            (b"\xd0\xcf\x11\xe0more", "xls", "of the old kind or with a password: save it as .xlsx"),
            (b"PK\x03\x04more", "xlsx", "not a readable Excel workbook"),
            ('[{"forecaster": "ann"}]', "json", "is a JSON list: write one object to a line"),
        ],
    )
    def test_a_file_that_can_not_be_used_says_why(
        self, tmp_path: Path, content: str | bytes, suffix: str, why: str
    ) -> None:
        with pytest.raises(UnreadableFile, match=why):
            read_forecasts(text(tmp_path, content, suffix))

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableFile, match="No such file"):
            read_forecasts(tmp_path / "none.csv")
        with pytest.raises(UnreadableFile, match="Is a directory"):
            read_forecasts(tmp_path, "csv")

    def test_a_header_alone_is_a_panel_of_nothing(self, tmp_path: Path) -> None:
        for content in (HEADER, f"{HEADER}\n", f"{HEADER}\n,,,,\n\n"):
            reading = read_forecasts(text(tmp_path, content))
            assert (len(reading.panel), len(reading.panel.questions), reading.rows) == (0, 0, 0)
            assert reading.panel.offsets.tolist() == [0]

    def test_nothing_but_bad_rows_is_a_panel_of_nothing(self, tmp_path: Path, format: str) -> None:
        reading = read_forecasts(write(tmp_path, pair("ann", "q", 1.5), format))
        assert (len(reading.panel), len(reading.panel.forecasters), len(reading.rejected)) == (0, 0, 2)
