"""The library's own long form in CSV, Parquet or JSON Lines."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from forecast_rank.ranking.tabular_files import read_table
from forecast_rank.readers.records import ImportSource, ParsedFile


def import_sources(files: Sequence[Path]) -> list[ImportSource]:
    """An import source for each file."""
    return [ImportSource((file,), partial(_read, file)) for file in files]


def _read(file: Path) -> ParsedFile:
    table = read_table(file)
    return ParsedFile(table, len(table))
