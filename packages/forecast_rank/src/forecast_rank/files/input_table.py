"""Tables of forecasts before and after their cells are parsed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl

from forecast_rank.files.columns import NAMES, NUMBERS, TIMES
from forecast_rank.files.faults import Fault
from forecast_rank.files.headings import Headings
from forecast_rank.metrics.flat_arrays import Codes, Floats


class Columns(Protocol):
    """The part of a polars frame that a table uses: columns of one height, each read by its heading."""

    @property
    def columns(self) -> list[str]: ...

    @property
    def height(self) -> int: ...

    def __getitem__(self, heading: str, /) -> pl.Series: ...


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
    option_order : list of str or None
        The options in the order of the column's categories; None if it has none.
    file_names : list of str
        The file of each row, where they are of several; else empty.
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
    option_order: list[str] | None = None
    file_names: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.numbers["probability"])


def concatenate_tables(tables: Sequence[InputTable]) -> InputTable:
    """The rows of all tables one below the other; lines are those of each table."""
    names: dict[str, list[pl.Series]] = {name: [] for name in NAMES}
    values: dict[str, list[Floats]] = {name: [] for name in (*NUMBERS, *TIMES)}
    faults: dict[int, Fault] = {}
    ignored: dict[str, None] = {}
    rows = 0
    for table in tables:
        for name in NAMES:
            names[name].append(table.names[name])
        for name, column in (table.numbers | table.times).items():
            values[name].append(column)
        for place, fault in table.faults.items():
            faults[rows + place] = fault
        ignored |= dict.fromkeys(table.ignored)
        rows += len(table)
    return InputTable(
        names={name: pl.concat(columns) for name, columns in names.items()},
        numbers={name: np.concatenate(values[name]) for name in NUMBERS},
        times={name: np.concatenate(values[name]) for name in TIMES},
        faults=faults,
        lines=lambda: np.concatenate([table.lines() for table in tables]),
        ignored=list(ignored),
    )


@dataclass(slots=True)
class UnparsedTable:
    """A file's columns, under their headings, before their cells are parsed.

    Attributes
    ----------
    frame : polars.DataFrame or other columns
        Names and times are categorical, numbers are floats or texts; a time that is stored as such is a float.
    headings : Headings
    lines : callable
        As in InputTable, of each row of the frame.
    faults : dict of int to Fault
        By the row of the frame.
    understood : dict of str to str
    texts : callable or None
        The cells of the frame as they are written; None if the frame has them so.
    option_order : list of str or None
        As in InputTable.
    """

    frame: Columns
    headings: Headings
    lines: Callable[[], Codes]
    faults: dict[int, Fault] = field(default_factory=dict)
    understood: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    texts: Callable[[], Columns] | None = None
    option_order: list[str] | None = None
