"""The formats by name, with the function that splits files of the format into import sources."""

import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from forecast_rank.files.faults import UnreadableFile
from forecast_rank.files.input_table import InputTable, concatenate_tables
from forecast_rank.files.plain_files import PlainFile
from forecast_rank.readers import (
    forecastbench,
    gjo,
    kalshibench,
    long_form,
    metaculus,
    polystrat,
    prophet_csv,
    prophet_tasks,
)
from forecast_rank.readers.records import ImportSource, ParsedFile, read_each

FORMATS: dict[str, Callable[[Sequence[Path]], list[ImportSource]]] = {
    "long": read_each(long_form.read),
    "gjo": gjo.import_sources,
    "prophet_csv": read_each(prophet_csv.read),
    "prophet_tasks": prophet_tasks.import_sources,
    "forecastbench": forecastbench.import_sources,
    "kalshibench": read_each(kalshibench.read),
    "polystrat": read_each(polystrat.read),
    "metaculus": metaculus.import_sources,
}

PUBLISHED_FORMATS = tuple(name for name in FORMATS if name != "long")

FORMAT_NOTES = {
    "gjo": "A problem’s options are read as excluding each other.",
    "prophet_csv": "The markets of an event are read as excluding each other where exactly one came true and "
    "everybody’s probabilities sum to 1, else as two-way questions. An event asked about several times counts once.",
    "prophet_tasks": "The outcomes of a task are read as excluding each other unless another number than one "
    "came true.",
    "forecastbench": "Several people in one file are one forecaster, their median. A market that is not resolved is "
    "scored against its price, a fraction. A forecaster is an organisation with its model.",
    "kalshibench": "The prompt asked for a confidence. A number counts as the probability of YES only where it agrees "
    "with the answer beside it, and is never turned round. No outcomes are published with the answers.",
    "metaculus": "Questions of one post are one event. Annulled, ambiguous and numeric questions do not count.",
    "polystrat": "A forecaster is a model with its tool. One side’s price was paid; the other’s is taken as what is "
    "left of 1. When a market was settled stands for when it closed.",
}
"""How a format's files were read, as readers of a ranking should know."""

EXPECTED_COLUMNS: dict[str, tuple[str, ...]] = {
    "gjo": ("outcome", "made_at", "closed_at"),
    "prophet_csv": ("outcome", "odds", "no_odds", "category", "closed_at"),
    "prophet_tasks": ("outcome", "category", "made_at", "closed_at"),
    "forecastbench": ("outcome", "odds", "closed_at"),
    "metaculus": ("outcome", "event", "made_at", "closed_at"),
    "polystrat": ("outcome", "odds", "no_odds", "event", "made_at", "closed_at"),
}
"""Columns that files of a format fill in some rows at least."""


@dataclass(frozen=True, slots=True)
class PublishedForecasts:
    """The forecasts of another publisher's files as one table.

    Attributes
    ----------
    table : InputTable
    unread : list of (int, str)
        Line and reason of each record that is no row.
    fractional_outcomes : bool
        Whether outcomes between 0 and 1 are meant.
    """

    table: InputTable
    unread: list[tuple[int, str]]
    fractional_outcomes: bool


def read_published(files: Sequence[PlainFile], format: str) -> PublishedForecasts:
    """The forecasts of all files together; where several hold forecasts, reasons name the file.

    Raises UnreadableFile.
    """
    name_of = {file.path: file.name for file in files}
    for file in files:
        if not file.path.exists():
            raise UnreadableFile(f"{file.name}: {os.strerror(errno.ENOENT)}")
    sources = FORMATS[format]([file.path for file in files])
    tables, unread, notes = [], list[tuple[int, str]](), list[str]()
    for source in sources:
        parsed = source.read()
        name = name_of.get(source.files[0], str(source.files[0]))
        prefix = f"{name}: " if len(sources) > 1 else ""
        for record in parsed.unread:
            unread.append((record.line, prefix + record.why))
        for note in parsed.notes:
            notes.append(prefix + note)
        for warning in empty_column_warnings(format, parsed):
            notes.append(f"Warning: {prefix}{warning}")
        tables.append(parsed.table)
    table = concatenate_tables(tables)
    table.notes = [FORMAT_NOTES[format], *notes] if format in FORMAT_NOTES else notes
    table.understood = {"file": ", ".join(name_of.values()), "format": format}
    return PublishedForecasts(table, unread, any(source.fractional_outcomes for source in sources))


def empty_column_warnings(format: str, parsed: ParsedFile) -> list[str]:
    """A warning for each column that the format should fill and that is empty in all rows of a file."""
    table = parsed.table
    columns = table.numbers | table.times
    warnings = []
    for name in EXPECTED_COLUMNS.get(format, ()):
        is_empty = np.isnan(columns[name]).all() if name in columns else table.names[name].is_null().all()
        if is_empty and len(table):
            warnings.append(f"{name} is empty in all rows: the file has no field that fills it")
    return warnings
