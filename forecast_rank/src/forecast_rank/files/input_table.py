"""Tables of forecasts before and after their cells are parsed."""

from collections.abc import Callable
from dataclasses import dataclass, field

import polars as pl

from forecast_rank.files.faults import Fault
from forecast_rank.files.headings import Headings
from forecast_rank.metrics.panel import Codes, Floats


@dataclass(slots=True)
class InputTable:
    """The rows of a file. A column that the file lacks is empty in all rows.

    Attributes
    ----------
    names : dict of str to polars.Series
        Categorical columns of NAMES.
    numbers, times : dict of str to array
        Columns of NUMBERS and of TIMES (seconds since 1970); NaN is empty.
    faults : dict of int to Fault
        Reason why a row cannot be read, by its place.
    lines : callable
        Computes the line in the file (the row, in Parquet) of each place; called only if rows must be named.
    ignored : list of str
        Unknown columns.
    notes : list of str
        Facts about the file that a reader should know.
    understood : dict of str to str
        How the file was read.
    written : callable or None
        The heading and the cell as written, None if it is empty, of a place and a column; None without a file.
    """

    names: dict[str, pl.Series]
    numbers: dict[str, Floats]
    times: dict[str, Floats]
    faults: dict[int, Fault]
    lines: Callable[[], Codes]
    ignored: list[str]
    notes: list[str] = field(default_factory=list)
    understood: dict[str, str] = field(default_factory=dict)
    written: Callable[[int, str], tuple[str, str | None]] | None = None

    def __len__(self) -> int:
        return len(self.numbers["probability"])


@dataclass(slots=True)
class UnparsedTable:
    """A file's columns, under their headings, before their cells are parsed.

    Attributes
    ----------
    frame : polars.DataFrame
        Names and times are categorical, numbers are floats or texts; a time that is stored as such is a float.
    headings : Headings
    lines : callable
        As in InputTable, of each row of the frame.
    faults : dict of int to Fault
        By the row of the frame.
    understood : dict of str to str
    texts : callable or None
        The numbers of the frame as they are written; None if the frame has them so.
    """

    frame: pl.DataFrame
    headings: Headings
    lines: Callable[[], Codes]
    faults: dict[int, Fault] = field(default_factory=dict)
    understood: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    texts: Callable[[], pl.DataFrame] | None = None
