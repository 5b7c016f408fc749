"""Files as people have them: compressed, from spreadsheets, in wide form, with percentages, commas and dates."""

import gzip
import sys
import zipfile
from datetime import UTC, date, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.ranking.forecasts import LoadedForecasts, read_forecasts
from tests.forecast_rank.panels import stated_probabilities
from tests.lazy_modules import pl

HEADER = "forecaster,question,probability,outcome"


def written(folder: Path, content: str | bytes, name: str = "forecasts.csv") -> Path:
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def probabilities(reading: LoadedForecasts) -> dict[tuple[str, str], float]:
    """The probability of the only option of each forecast."""
    return {key: next(iter(vector.values())) for key, vector in stated_probabilities(reading.panel).items()}


def rejected(reading: LoadedForecasts) -> dict[int, str]:
    return {item.row: item.why for item in reading.rejected}


def workbook(path: Path, sheets: dict[str, list[list[Any]]]) -> Path:
    """A workbook as Excel writes it; a date has a date's format."""
    with xlsxwriter.Workbook(path, {"default_date_format": "d.m.yyyy"}) as book:
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)
    return path


def zstd(content: bytes) -> bytes:
    packed: bytes = import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd").compress(
        content
    )
    return packed


class TestCompression:
    @pytest.mark.parametrize("pack", [gzip.compress, zstd])
    @pytest.mark.parametrize("name", ["forecasts.csv.gz", "forecasts.csv.zst", "forecasts.csv", "FORECASTS"])
    def test_packed_file_is_known_by_its_content(self, tmp_path: Path, name: str, pack: Any) -> None:
        file = written(tmp_path, pack(f"{HEADER}\nann,q1,0.5,1\nann,q2,7,1\n".encode()), name)
        reading = read_forecasts(file)
        assert probabilities(reading) == {("ann", "q1"): 0.5}
        assert rejected(reading) == {3: "probability 7 is outside [0, 1]"}

    def test_messages_name_the_file_and_not_its_copy(self, tmp_path: Path) -> None:
        file = written(tmp_path, zstd(b"forecaster,question\n"), "forecasts.csv.zst")
        with pytest.raises(UnreadableFile) as caught:
            read_forecasts(file)
        assert str(caught.value).startswith(f"{file} has no column 'probability', 'outcome'; it has 'forecaster'")

    @pytest.mark.parametrize("pack", [gzip.compress, zstd, lambda data: gzip.compress(data) + gzip.compress(b"a")])
    def test_file_that_expands_too_far_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any
    ) -> None:
        monkeypatch.setattr("forecast_rank.files.limits.EXPANDED_LIMIT", 2**20)
        file = written(tmp_path, pack(bytes(2**24)), "zeros.csv.zst")
        size = file.stat().st_size
        limit = max(2**20, 200 * size)
        with pytest.raises(
            UnreadableFile, match=rf"of {size:,} bytes expands to .* above the limit of {limit:,} bytes"
        ):
            read_forecasts(file)

    def test_size_that_a_compressed_file_states_is_believed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("forecast_rank.files.limits.EXPANDED_LIMIT", 2**20)
        monkeypatch.setattr("forecast_rank.files.plain_files._BLOCK", 1 << 10)
        with pytest.raises(UnreadableFile, match="expands to 16,777,216 bytes or more"):
            read_forecasts(written(tmp_path, zstd(bytes(2**24))))
        with pytest.raises(UnreadableFile, match="expands to 16,777,216 bytes or more"):
            read_forecasts(written(tmp_path, gzip.compress(bytes(2**24))))

    def test_rows_that_expand_too_far_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        frame = pl.DataFrame({"forecaster": "a", "question": "q", "probability": 0.5, "outcome": 1}).select(
            pl.all().repeat_by(1_000_000).explode()
        )
        frame.write_parquet(tmp_path / "forecasts.parquet")
        monkeypatch.setattr("forecast_rank.files.limits.EXPANDED_LIMIT", 2**20)
        with pytest.raises(UnreadableFile, match="expands to 256,000,000 bytes or more, above the limit"):
            read_forecasts(tmp_path / "forecasts.parquet")
        monkeypatch.setattr("forecast_rank.files.limits.ROW_LIMIT", 999_999)
        with pytest.raises(UnreadableFile, match="1,000,000 forecasts are more than the limit of 999,999"):
            read_forecasts(tmp_path / "forecasts.parquet")


class TestWorkbooks:
    def test_sheet_is_read_with_its_rows_dates_and_percentages(self, tmp_path: Path) -> None:
        rows = [
            ["Forecaster", "Question", "Probability", "Outcome", "made_at"],
            ["ann", "q1", 0.25, 1, datetime.fromisoformat("2026-03-01T12:00")],
            [],
            ["ann", 7, "62%", True, date(2026, 3, 2)],
            ["ann", "q3", 1.2, 0, None],
        ]
        reading = read_forecasts(workbook(tmp_path / "forecasts.xlsx", {"Sheet1": rows}))
        assert probabilities(reading) == {("ann", "q1"): 0.25, ("ann", "7"): 0.62}
        assert rejected(reading) == {5: "probability 1.2 is outside [0, 1]"}
        assert sorted(reading.panel.made_at.tolist()) == [
            datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp(), datetime(2026, 3, 2, tzinfo=UTC).timestamp(),
        ]  # fmt: skip

    def test_sheet_with_the_headings_is_chosen_and_named(self, tmp_path: Path) -> None:
        sheets = {"Notes": [["What this is"]], "Data": [HEADER.split(","), ["ann", "q", 0.5, 1]]}
        reading = read_forecasts(workbook(tmp_path / "forecasts.xlsx", sheets))
        assert (len(reading.panel), reading.notes) == (1, ["sheet 'Data', one of 2"])

    def test_table_may_begin_beside_and_below_the_corner(self, tmp_path: Path) -> None:
        rows: list[list[Any]] = [[], ["", "question", "outcome", "ann"], ["", "q", 1, 0.5], ["", "r", 0, 7]]
        reading = read_forecasts(workbook(tmp_path / "forecasts.xlsx", {"Sheet1": rows}))
        assert (probabilities(reading), reading.ignored) == ({("ann", "q"): 0.5}, [])
        assert rejected(reading) == {4: "ann 7 is outside [0, 1]"}

    def test_archive_that_is_no_workbook_is_named(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "forecasts.zip", "w") as archive:
            archive.writestr("forecasts.csv", HEADER)
        with pytest.raises(UnreadableFile, match=r"forecasts\.zip is a zip archive and no Excel workbook"):
            read_forecasts(tmp_path / "forecasts.zip")

    def test_workbook_that_expands_too_far_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("forecast_rank.files.limits.EXPANDED_LIMIT", 2**20)
        file = workbook(tmp_path / "forecasts.xlsx", {"Sheet1": [HEADER.split(",")]})
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/bomb.xml", bytes(2**24))
        with pytest.raises(UnreadableFile, match=r"expands to .* above the limit"):
            read_forecasts(file)


class TestWideForm:
    WIDE = "question,outcome,ann,Bob (%),comment\nq1,1,0.7,60,first\nq2,0,,20,second\nq3,1,high,150,third\n"

    @pytest.mark.parametrize("format", ["csv", "parquet", "jsonl", "xlsx"])
    def test_every_other_column_with_numbers_is_a_forecaster(self, tmp_path: Path, format: str) -> None:
        file = written(tmp_path, self.WIDE)
        frame = pl.read_csv(file)
        if format == "parquet":
            frame.write_parquet(file := tmp_path / "forecasts.parquet")
        elif format == "jsonl":
            frame.write_ndjson(file := tmp_path / "forecasts.jsonl")
        elif format == "xlsx":
            rows = [list(row) for row in [frame.columns, *frame.rows()]]
            file = workbook(tmp_path / "forecasts.xlsx", {"Sheet1": rows})
        reading = read_forecasts(file)
        assert probabilities(reading) == {("ann", "q1"): 0.7, ("Bob", "q1"): 0.6, ("Bob", "q2"): 0.2}
        first = 1 if format in ("parquet", "jsonl") else 2
        assert [(item.row, item.why) for item in reading.rejected] == [
            (first + 2, "ann 'high' is not a number"),
            (first + 2, "Bob 150 is outside [0, 1]"),
        ]
        assert (reading.rows, reading.ignored) == (5, ["comment"])

    def test_known_columns_hold_for_all_forecasters(self, tmp_path: Path) -> None:
        lines = ["question;option;outcome;odds;ann;bob", "q;a;1;0,6;0,75;50%", "q;b;0;0,45;0,25;50%"]
        reading = read_forecasts(written(tmp_path, "\n".join(lines)))
        assert stated_probabilities(reading.panel) == {
            ("ann", "q"): {"a": 0.75, "b": 0.25},
            ("bob", "q"): {"a": 0.5, "b": 0.5},
        }
        assert reading.panel.odds.tolist() == [0.6, 0.45, 0.6, 0.45]

    def test_bad_outcome_costs_the_forecasts_of_all(self, tmp_path: Path) -> None:
        reading = read_forecasts(written(tmp_path, "question,outcome,ann,bob\nq1,won,0.5,0.5\nq2,1,0.5,0.5\n"))
        assert [(item.row, item.why) for item in reading.rejected] == [(2, "outcome 'won' is not a number")] * 2
        assert len(reading.panel) == 2

    def test_table_without_any_forecaster_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(UnreadableFile, match="no column of 'title', 'note' holds probabilities"):
            read_forecasts(written(tmp_path, "question,outcome,title,note\nq1,1,a,b\n"))
        with pytest.raises(UnreadableFile, match="more than one column 'ann'"):
            read_forecasts(written(tmp_path, "question,outcome,ann,ann \nq1,1,0.5,0.5\n"))


class TestNumbers:
    @pytest.mark.parametrize(
        ("heading", "cell", "p"),
        [
            ("probability", "62%", 0.62),
            ("probability", " 62 % ", 0.62),
            ("probability", "0,62", 0.62),
            ("probability", "62,5%", 0.625),
            ("Probability (%)", "62", 0.62),
            ("probability(%)", "62.5", 0.625),
            ("probability (%)", "62%", 0.62),
            ("probability %", "62,5", 0.625),
        ],
    )
    def test_percentages_and_decimal_commas_are_understood(
        self, tmp_path: Path, heading: str, cell: str, p: float
    ) -> None:
        lines = [HEADER.replace("probability", heading), f'ann,q1,"{cell}",1', 'bob,q1,"high",1']
        reading = read_forecasts(written(tmp_path, "\n".join(lines)))
        assert probabilities(reading) == {("ann", "q1"): p}
        reading = read_forecasts(written(tmp_path, "\n".join(lines[:2])))
        assert probabilities(reading) == {("ann", "q1"): p}, "the same without a cell that is no number"

    def test_percentages_of_prices(self, tmp_path: Path) -> None:
        content = f"{HEADER},odds,no_odds (%)\nann,q,50%,1,60%,45\nbob,q,0.5,1,0.6,45\n"
        panel = read_forecasts(written(tmp_path, content)).panel
        assert (panel.odds.tolist(), panel.no_odds.tolist()) == ([0.6, 0.6], [0.45, 0.45])

    def test_cells_are_named_as_they_are_written(self, tmp_path: Path) -> None:
        cells = ["120%", "1,20", "-0.10", "1e3"]
        content = "\n".join([HEADER, *(f'ann,q{k},"{cell}",1' for k, cell in enumerate(cells)), *["bob,q,0.5,1"] * 5])
        assert list(rejected(read_forecasts(written(tmp_path, content))).values()) == [
            f"probability {cell} is outside [0, 1]" for cell in cells
        ]

    def test_comma_that_may_be_of_thousands_is_refused(self, tmp_path: Path) -> None:
        content = f'{HEADER},weight\nann,q1,0.5,1,"1,500"\nann,q2,0.5,1,"1,5"\n'
        reading = read_forecasts(written(tmp_path, content))
        assert rejected(reading) == {2: "weight '1,500' is not a number"}
        assert reading.panel.weight.tolist() == [1.5]


class TestTimes:
    def read(self, folder: Path, *cells: str, suffix: str = "csv") -> LoadedForecasts:
        lines = [f"{HEADER},made_at", *(f'ann,q{k},0.5,1,"{cell}"' for k, cell in enumerate(cells))]
        return read_forecasts(written(folder, "\n".join(lines)))

    @pytest.mark.parametrize(
        ("cell", "time"),
        [
            ("3.2.2026", (2026, 2, 3)),
            ("03.02.2026 14:30", (2026, 2, 3, 14, 30)),
            ("3 Mar 2026", (2026, 3, 3)),
            ("3 March 2026 9:05:07", (2026, 3, 3, 9, 5, 7)),
            ("3/15/2026", (2026, 3, 15)),
            ("3/15/2026 2:30 PM", (2026, 3, 15, 14, 30)),
            ("15/3/2026", (2026, 3, 15)),
            ("1772582400", (2026, 3, 4)),
            ("1772582400.5", (2026, 3, 4, 0, 0, 0, 500_000)),
            ("20260304", (2026, 3, 4)),
            ("2026-03-04T10:00:00+02:00", (2026, 3, 4, 8)),
        ],
    )
    def test_every_form_of_a_date_is_read(self, tmp_path: Path, cell: str, time: tuple[int, ...]) -> None:
        reading = self.read(tmp_path, cell)
        assert reading.rejected == []
        assert reading.panel.made_at.tolist() == [datetime(*time, tzinfo=UTC).timestamp()]  # type: ignore[misc,arg-type]

    def test_day_above_12_decides_for_the_whole_column(self, tmp_path: Path) -> None:
        assert self.read(tmp_path, "3/4/2026", "3/15/2026").panel.made_at.tolist() == [
            datetime(2026, 3, day, tzinfo=UTC).timestamp() for day in (4, 15)
        ]
        reading = self.read(tmp_path, "3/4/2026", "15/4/2026")
        assert reading.panel.made_at.tolist() == [datetime(2026, 4, day, tzinfo=UTC).timestamp() for day in (3, 15)]
        assert reading.notes == ["made_at is written as D/M/YYYY"]

    @pytest.mark.parametrize("cells", [("3/4/2026", "5/6/2026"), ("3/15/2026", "15/3/2026")])
    def test_column_that_can_be_read_either_way_is_refused_by_name(
        self, tmp_path: Path, cells: tuple[str, ...]
    ) -> None:
        with pytest.raises(UnreadableFile, match=r"made_at: '\d+/\d+/2026' .* write (dates|them) as 2026-03-15"):
            self.read(tmp_path, *cells)

    @pytest.mark.parametrize("cell", ["2026", "31.2.2026", "3 Foo 2026", "soon"])
    def test_no_date_is_named(self, tmp_path: Path, cell: str) -> None:
        assert rejected(self.read(tmp_path, "2026-01-01", cell)) == {3: f"made_at '{cell}' is not a time"}

    def test_milliseconds_are_named(self, tmp_path: Path) -> None:
        why = "made_at 1772582400000 is too large for seconds since 1970"
        assert rejected(self.read(tmp_path, "2026-01-01", "1772582400000")) == {3: why}

    def test_numbers_of_a_frame_are_seconds(self) -> None:
        columns = {
            "forecaster": ["a"],
            "question": ["q"],
            "probability": [0.5],
            "outcome": [1],
            "made_at": [1772582400],
        }
        panel = read_forecasts(pl.DataFrame(columns)).panel
        assert panel.made_at.tolist() == [datetime(2026, 3, 4, tzinfo=UTC).timestamp()]


def test_format_is_that_of_the_content_whatever_the_suffix(tmp_path: Path) -> None:
    frame = pl.DataFrame({"forecaster": ["ann"], "question": ["q"], "probability": [0.5], "outcome": [1]})
    for name in ("a.csv", "b.parquet", "c.jsonl", "d.xlsx", "e.txt", "f"):
        for write in (frame.write_csv, frame.write_parquet, frame.write_ndjson):
            write(tmp_path / name)
            assert probabilities(read_forecasts(tmp_path / name)) == {("ann", "q"): 0.5}, (name, write)
