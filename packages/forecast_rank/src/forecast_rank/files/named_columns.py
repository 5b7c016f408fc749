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
    """

    frame: pl.DataFrame
    lines: Codes
    label: str

    def times(self) -> dict[str, TimeColumn]:
        """The columns of times by name. Raises UnreadableFile."""
        kinds = self.frame.schema
        try:
            columns = [typed_column(name, name, kinds[name]) for name in TIMES if name in kinds]
        except TypeError as error:
            raise UnreadableFile(f"{self.label}: {error}") from error
        return parse_columns_of_times(self.frame.select(columns).to_dict())


def read_named_columns(source: Any, required: Sequence[str], optional: Sequence[str] = ()) -> NamedColumns:
    """The columns of a file or of a polars, pandas or Arrow table; headings match whatever their case and outer spaces.

    Raises UnreadableFile, also if a required column is missing, or a named one is there twice.
    """
    if isinstance(source, Path | str):
        frame, lines, label = _read_file(source)
    else:
        frame = polars_frame(source, every_column=True)
        lines, label = np.arange(1, len(frame) + 1), FRAME
    frame = frame.rename(_known_headings(frame.columns, [*required, *optional], label))
    check_columns(frame, required, label)
    return NamedColumns(frame, lines, label)


def _read_file(source: Path | str) -> tuple[pl.DataFrame, Codes, str]:
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
