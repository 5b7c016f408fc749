"""The library's own long form in CSV, Parquet or JSON Lines."""

from pathlib import Path

from forecast_rank.ranking.tabular_files import read_table
from forecast_rank.readers.records import ParsedFile


def read(file: Path) -> ParsedFile:
    table = read_table(file)
    return ParsedFile(table, len(table))
