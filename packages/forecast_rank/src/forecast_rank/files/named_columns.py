"""Tables whose columns have names of the user's own beside the known ones: scores, quantiles, samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from forecast_rank.files.cells import TimeColumn, parse_columns_of_times
from forecast_rank.files.columns import TIMES
from forecast_rank.files.csv_files import read_csv_texts
from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.frames import FRAME, check_columns, polars_frame, typed_column
from forecast_rank.files.headings import NOT_NAMED, NamedHeadings
from forecast_rank.files.json_lines import object_lines
from forecast_rank.files.plain_files import plain_file
from forecast_rank.files.reading import format_of
from forecast_rank.files.text_files import REFUSED
from forecast_rank.metrics.flat_arrays import Codes


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """A table under the names that were asked for.

    Attributes
    ----------
    frame : polars.DataFrame
    lines : array of int
        The line of the file where each row begins; in Parquet and in a frame its number from 1.
    label : str
        The file, or "the frame".
    file_names : list of str
        The file of each row, where they are of several; else empty.
    """

    frame: pl.DataFrame
    lines: Codes
    label: str
    file_names: Sequence[str] = ()

    def times(self) -> dict[str, TimeColumn]:
        """The columns of times by name. Raises UnreadableFile."""
        kinds = self.frame.schema
        try:
            columns = [typed_column(name, name, kinds[name]) for name in TIMES if name in kinds]
        except TypeError as error:
            raise UnreadableFile(f"{self.label}: {error}") from error
        return parse_columns_of_times(self.frame.select(columns).to_dict())


def read_named_columns(
    source: Any, required: Sequence[str], optional: Sequence[str] = (), column_headings: NamedHeadings = NOT_NAMED
) -> NamedColumns:
    """The columns of a file or of a polars, pandas or Arrow table; headings match whatever their case and outer spaces.

    A column in `column_headings` has that heading.

    Raises UnreadableFile, also if a required column is missing, or a named one is there twice.
    """
    if isinstance(source, Path | str):
        frame, lines, label = read_file_texts(source)
    else:
        frame = polars_frame(source, every_column=True)
        lines, label = np.arange(1, len(frame) + 1), FRAME
    frame = _under_columns(frame, column_headings, label)
    frame = frame.rename(_known_headings(frame.columns, [*required, *optional], label))
    check_columns(frame, required, label)
    return NamedColumns(frame, lines, label)


def read_file_texts(source: Path | str) -> tuple[pl.DataFrame, Codes, str]:
    """All columns of a file, of CSV as texts, the line of each row, and the file's name. Raises UnreadableFile."""
    with plain_file(source) as plain:
        if not plain.path.is_file() or not plain.path.stat().st_size:
            raise UnreadableFile(f"{plain.path} is {'empty' if plain.path.is_file() else 'no file'}")
        format = format_of(plain.path)
        try:
            if format == "csv":
                return *read_csv_texts(plain.path), plain.name
            if format == "jsonl":
                frame = pl.read_ndjson(plain.path, infer_schema_length=None)
                return frame, object_lines(plain.path, len(frame)), plain.name
            if format == "parquet":
                frame = pl.read_parquet(plain.path)
                return frame, np.arange(1, len(frame) + 1), plain.name
        except (*REFUSED, OSError) as error:
            raise UnreadableFile(f"{plain.path}: {str(error).splitlines()[0]}") from error
        raise UnreadableFile(f"{plain.path} is an Excel workbook: save the sheet as CSV")


def _under_columns(frame: pl.DataFrame, column_headings: NamedHeadings, label: str) -> pl.DataFrame:
    """The frame with the columns named for these headings; a column that has the name already is left out."""
    renamed: dict[str, str] = {}
    for column, wanted_heading in column_headings.items():
        headings = [heading for heading in frame.columns if heading.strip().lower() == wanted_heading.strip().lower()]
        if len(headings) != 1:
            present = ", ".join(frame.columns)
            count = len(headings) or "no"
            raise UnreadableFile(f"{label} has {count} columns {wanted_heading!r} for {column}; it has {present}")
        renamed[headings[0]] = column
    hidden = [heading for heading in frame.columns if heading in renamed.values() and heading not in renamed]
    return frame.drop(hidden).rename(renamed)


def _known_headings(headings: Sequence[str], names: Sequence[str], label: str) -> dict[str, str]:
    """The heading of each name, by which it is renamed: the same text, else but for case and outer spaces."""
    renamed: dict[str, str] = {}
    for name in names:
        alike = [heading for heading in headings if heading.strip().lower() == name.strip().lower()]
        if name in headings or not alike:
            continue
        if len(alike) > 1:
            raise UnreadableFile(f"{label} has more than one column {name!r}: {', '.join(map(repr, alike))}")
        renamed[alike[0]] = name
    return renamed
