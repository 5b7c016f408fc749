"""Rows of scores or numbers, checked one by one: a fault rejects the whole forecast of its forecaster and question."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.cells import TIME_FIX, TimeColumn
from forecast_rank.files.named_columns import NamedColumns
from forecast_rank.ranking.rejections import InvalidRow, RejectedLine

KEY = ("forecaster", "question")
PLACE = "row number"
NUMBER_FIX = "write a number with a point for its decimals"


class CheckedRows:
    """The rows of a table without those that do not count.

    Attributes
    ----------
    frame : polars.DataFrame
        With the columns of KEY as texts, times as seconds since 1970, and PLACE.
    written : polars.DataFrame
        All rows as they were read.
    lines : array of int
        The line of each of them.
    repeated : int
        Rows that equal an earlier one, and count once.
    """

    def __init__(self, table: NamedColumns, numbers: tuple[str, ...]) -> None:
        self.lines, self.label, self.repeated = table.lines, table.label, 0
        self._file_names = table.file_names
        names = [name for name in (*KEY, "event") if name in table.frame.columns]
        texts = pl.col(names).cast(pl.String).str.strip_chars().replace("", None)
        self.written = table.frame
        columns = [_number(name, table.frame.schema[name]) for name in numbers]
        times = table.times()
        seconds = {name: pl.Series(column.values).fill_nan(None) for name, column in times.items()}
        self.frame = table.frame.with_columns(texts, *columns, **seconds).with_row_index(PLACE)
        forecasts = self.frame.select(pl.struct(KEY).rank("dense") - 1).to_series()
        self._forecast = forecasts.to_numpy().astype(np.int64)
        self._faults: dict[int, RejectedLine] = {}
        self._all = self.frame.select(PLACE, *KEY)
        for name in KEY:
            self.reject(pl.col(name).is_null(), f"{name} is empty", name, f"name the {name}")
        self._superseded = self.frame[PLACE].head(0)
        self._take_out_superseded(times)

    def _take_out_superseded(self, times: dict[str, TimeColumn]) -> None:
        """Takes out versions of a forecast that do not count: the latest made before the question closed does."""
        for name, column in times.items():
            places = [place for place in column.faults if place in set(self.frame[PLACE])]
            self.reject_places(places, f"{name} is not a time", name, TIME_FIX)
        if "made_at" not in times:
            return
        timed = self.frame
        if "closed_at" not in times:
            timed = timed.with_columns(closed_at=pl.lit(None, pl.Float64))
        closed_at = pl.col("closed_at").max().over(*KEY, "made_at")
        closed_at = closed_at.fill_null(pl.col("closed_at").drop_nulls().first().over("question"))
        timed = timed.with_columns(late=(pl.col("made_at") >= closed_at).fill_null(value=False))
        too_late = timed.filter(pl.col("late").all().over(KEY))[PLACE].to_list()
        fix = "leave out forecasts made after the question closed"
        self.reject_places(too_late, "made_at is not before closed_at", fix=fix)
        made_at = pl.when(~pl.col("late")).then(pl.col("made_at").fill_null(-np.inf))
        counts = made_at == made_at.max().over(KEY)
        self._superseded = timed.filter(~counts.fill_null(value=False))[PLACE]
        self.frame = self.frame.filter(~pl.col(PLACE).is_in(self._superseded.implode()))

    @property
    def superseded(self) -> int:
        """Rows of earlier or late versions of the forecasts that count."""
        refused = {int(self._forecast[place]) for place in self._faults}
        return sum(int(self._forecast[place]) not in refused for place in self._superseded)

    def reject(self, bad: pl.Expr, why: str, column: str | None = None, fix: str = "") -> None:
        """Rejects the forecasts that have a row where `bad`, for the reason `why`."""
        self.reject_places(self.frame.filter(bad.fill_null(value=True))[PLACE].to_list(), why, column, fix)

    def reject_places(self, places: list[int], why: str, column: str | None = None, fix: str = "") -> None:
        """Rejects the forecasts of these rows."""
        if not places:
            return
        for place in places:
            cell = None if column is None else self.written[column].cast(pl.String, strict=False)[place]
            located = f"{self._file_names[place]}: {why}" if self._file_names else why
            self._faults[place] = RejectedLine(int(self.lines[place]), located, why, cell or None, fix)
        refused = np.zeros(int(self._forecast.max()) + 1, dtype=bool)
        refused[self._forecast[places]] = True
        self.frame = self.frame.filter(~pl.Series(refused[self._forecast[self.frame[PLACE].to_numpy()]]))

    def check_numbers(self, columns: Iterable[str]) -> None:
        """Rejects rows with a cell that is neither empty nor a number."""
        for name in columns:
            written = self.written[name]
            if written.dtype.is_numeric() or written.dtype == pl.Boolean:
                continue
            text = written.cast(pl.String, strict=False).str.strip_chars().str.to_lowercase().fill_null("")
            is_stated = ~text.is_in(["", "nan"])
            places = self.frame.filter(pl.col(name).is_null())[PLACE]
            self.reject_places(
                places.filter(is_stated.gather(places)).to_list(), f"{name} is not a number", name, NUMBER_FIX
            )

    def check_weight(self) -> None:
        """Rejects rows with a weight that is not above 0; an empty one is 1. Adds the column where it is missing."""
        if "weight" not in self.frame.columns:
            self.frame = self.frame.with_columns(weight=pl.lit(1.0))
            return
        self.check_numbers(["weight"])
        self.frame = self.frame.with_columns(pl.col("weight").fill_null(1.0))
        positive = (pl.col("weight") > 0) & pl.col("weight").is_finite()
        self.reject(~positive, "weight is not above 0", "weight", "write a number above 0")

    def take_out_repeats(self, columns: list[str]) -> None:
        """Takes out rows that equal an earlier one in all these columns, and counts them."""
        first = self.frame.select(pl.struct(columns).is_first_distinct()).to_series()
        self.repeated += int((~first).sum())
        self.frame = self.frame.filter(first)

    def rejected(self) -> list[RejectedLine]:
        """All rows that do not count, in the order of the file."""
        cause: dict[int, int] = {}
        for place in sorted(self._faults):
            cause.setdefault(int(self._forecast[place]), place)
        lines = dict(self._faults)
        suspects = np.flatnonzero(np.isin(self._forecast, list(cause)))
        for place in suspects.tolist():
            if place not in lines:
                first = self._faults[cause[int(self._forecast[place])]]
                why = f"rejected with row {first.row}: {first.why}"
                kind = f"rejected with another row: {first.kind}"
                lines[place] = RejectedLine(int(self.lines[place]), why, kind, None, first.fix)
        return [lines[place] for place in sorted(lines)]

    def check_none_rejected(self) -> None:
        """Raises InvalidRow with the first row at fault."""
        if self._faults:
            place = min(self._faults)
            first = self._all.row(place, named=True)
            fault = self._faults[place]
            raise InvalidRow(f"{self.label}, row {fault.row}, {forecast_name(first)}: {fault.why}")


def is_empty(column: pl.Series) -> bool:
    """Whether no cell of a column holds anything."""
    return column.cast(pl.String, strict=False).str.strip_chars().replace(["", "NaN"], None).is_null().all()


def forecast_name(row: dict[str, Any]) -> str:
    """A forecast in a message."""
    return f"{row['forecaster']} on {row['question']}"


def _number(name: str, kind: pl.DataType) -> pl.Expr:
    """The column as numbers; null where a cell holds none."""
    column = pl.col(name)
    if not (kind.is_numeric() or kind == pl.Boolean):
        text = column.cast(pl.String, strict=False).str.strip_chars()
        number = text.str.strip_suffix("%").cast(pl.Float64, strict=False)
        column = pl.when(text.str.ends_with("%")).then(number / 100).otherwise(number)
    return column.cast(pl.Float64, strict=False).fill_nan(None)
